// Numbers, times and lines as `nettrace ctl` shows them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tools/nettrace/ctl_tables.h"

namespace {

TEST(CtlTables, ShowBytesInTheLargestUnit) {
  EXPECT_EQ(tools::FormatBytes(0), "0 B");
  EXPECT_EQ(tools::FormatBytes(1023), "1023 B");
  EXPECT_EQ(tools::FormatBytes(1024), "1.0 KB");
  EXPECT_EQ(tools::FormatBytes(10188), "9.9 KB");
  EXPECT_EQ(tools::FormatBytes(10189), "10 KB");
  EXPECT_EQ(tools::FormatBytes((1 << 20) - 1), "1.0 MB");
  EXPECT_EQ(tools::FormatBytes(UINT64_MAX), "16 EB");
}

TEST(CtlTables, ShowTheTwoLargestUnitsOfATime) {
  EXPECT_EQ(tools::FormatAge(absl::Milliseconds(-1)), "0s");
  EXPECT_EQ(tools::FormatAge(absl::Seconds(59.9)), "59s");
  EXPECT_EQ(tools::FormatAge(absl::Seconds(185)), "3m 05s");
  EXPECT_EQ(tools::FormatAge(absl::Minutes(127)), "2h 07m");
  EXPECT_EQ(tools::FormatAge(absl::Hours(99)), "4d 03h");
}

TEST(CtlTables, StayWithinTheTerminal) {
  std::vector<collector::SessionStatus> sessions(2);
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
