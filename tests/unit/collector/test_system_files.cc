// Parsing of the kernel's text files: CPU lists and user_events_status.
#include <gtest/gtest.h>

#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {
namespace {

TEST(CpuList, HolesAndRanges) {
  const auto cpus = ParseCpuList("0-2,5,8-9\n");
  ASSERT_TRUE(cpus.ok());
  EXPECT_EQ(*cpus, (std::vector<int>{0, 1, 2, 5, 8, 9}));
}

TEST(CpuList, OneCpu) {
  const auto cpus = ParseCpuList("0\n");
  ASSERT_TRUE(cpus.ok());
  EXPECT_EQ(*cpus, std::vector<int>{0});
}

TEST(CpuList, OtherTextIsRefused) {
  for (const char* text : {"", "\n", "a", "1-", "3-1", "1,,2", "1;2", "0-99999999", "2,1", "-1"}) {
    EXPECT_FALSE(ParseCpuList(text).ok()) << text;
  }
}

TEST(CpuList, ThisMachineHasOne) {
  const auto cpus = OnlineCpus();
  ASSERT_TRUE(cpus.ok()) << cpus.status();
  EXPECT_FALSE(cpus->empty());
}

TEST(UserEventsStatus, NamesAndUsers) {
  const auto events = ParseUserEventsStatus(
      "Alpha_L1K0\nBeta_L4K1 # Used by ftrace perf\nGamma_L5K2 # Used by other\n\n"
      "Active: 3\nBusy: 2\n");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].name, "Alpha_L1K0");
  EXPECT_EQ(events[0].used_by, "");
  EXPECT_EQ(events[1].name, "Beta_L4K1");
  EXPECT_EQ(events[1].used_by, "ftrace perf");
  EXPECT_EQ(events[2].used_by, "other");
}

TEST(UserEventsStatus, NoEvents) {
  EXPECT_TRUE(ParseUserEventsStatus("\nActive: 0\nBusy: 0\n").empty());
  EXPECT_TRUE(ParseUserEventsStatus("").empty());
}

}  // namespace
}  // namespace collector
