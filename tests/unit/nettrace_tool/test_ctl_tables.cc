// Tests numbers, times and lines in the form that `nettrace ctl` shows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tools/nettrace/ctl_tables.h"

namespace {

TEST(CtlTables, ShowTheTwoLargestUnitsOfATime) {
  EXPECT_EQ(tools::FormatAge(absl::Milliseconds(-1)), "0s");
  EXPECT_EQ(tools::FormatAge(absl::Seconds(59.9)), "59s");
  EXPECT_EQ(tools::FormatAge(absl::Seconds(185)), "3m 05s");
  EXPECT_EQ(tools::FormatAge(absl::Minutes(127)), "2h 07m");
  EXPECT_EQ(tools::FormatAge(absl::Hours(99)), "4d 03h");
}

// README.md shows this table.
TEST(CtlTables, ShowsALineForEachSession) {
  const absl::Time now = absl::Now();
  std::vector<control::SessionStatus> sessions(2);
  sessions[0].name = "shop";
  sessions[0].state = control::SessionStatus::State::kRunning;
  sessions[0].state_since = now - absl::Minutes(127);
  sessions[0].events = 48213;
  sessions[0].events_per_second = 6.3;
  sessions[0].bytes = 4404019;
  sessions[0].files = 3;
  sessions[1].name = "web";
  sessions[1].state = control::SessionStatus::State::kRunning;
  sessions[1].state_since = now - absl::Hours(99);
  sessions[1].events = 312400;
  sessions[1].events_per_second = 0.9;
  sessions[1].lost = 17;
  sessions[1].bytes = 29360128;
  sessions[1].files = 24;
  EXPECT_EQ(tools::StatusTable(sessions, now, 80),
            R"(SESSION  STATE     SINCE  EVENTS  EVENTS/S  LOST  WRITTEN  FILES  LAST ERROR
shop     running  2h 07m   48.2k         6     0   4.2 MB      3  -
web      running  4d 03h    312k         1    17    28 MB     24  -
)");
}

TEST(CtlTables, StayWithinTheTerminal) {
  std::vector<control::SessionStatus> sessions(2);
  sessions[0].name = std::string(100, 'n');
  sessions[0].error = "\xc3\xa9\xc3\xa9\n" + std::string(300, 'e');
  sessions[1].name = "b";
  for (const std::size_t width : {1, 10, 80, 110, 1000}) {
    const std::string table = tools::StatusTable(sessions, absl::Now(), width);
    std::size_t columns = 0;
    std::size_t lines = 0;
    for (const char c : table) {
      if (c == '\n') {
        EXPECT_LE(columns, width) << table;
        columns = 0;
        ++lines;
      } else if ((c & 0xC0) != 0x80) {
        ++columns;
      }
    }
    EXPECT_EQ(lines, 3U);
  }
  EXPECT_EQ(tools::StatusTable({}, absl::Now(), 80), "There are no sessions.\n");
}

}  // namespace
