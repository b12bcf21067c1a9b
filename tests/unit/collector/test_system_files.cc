// Parsing of the kernel's text files: CPU lists, /proc, and user_events_status.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tools/collector/identity/proc_files.h"
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

TEST(ProcStat, NameMayHaveParenthesesAndBlanks) {
  const auto thread = ParseProcStat("42 (a) b (c) S 1 2 3\n");
  ASSERT_TRUE(thread.has_value());
  EXPECT_EQ(thread->name, "a) b (c");
  EXPECT_FALSE(thread->ended);
}

TEST(ProcStat, ZombiesHaveEnded) {
  EXPECT_TRUE(ParseProcStat("42 (a) Z 1 2 3\n")->ended);
  EXPECT_TRUE(ParseProcStat("42 (a) X 1 2 3\n")->ended);
}

TEST(ProcStat, OtherTextIsRefused) {
  for (const char* text : {"", "42", "42 (a", "42 a)", ")(", "42 (a)", "42 (a) "}) {
    EXPECT_FALSE(ParseProcStat(text).has_value()) << text;
  }
}

TEST(ProcFiles, ThisProcess) {
  const auto pid = static_cast<std::uint32_t>(getpid());
  const std::vector<std::uint32_t> pids = ProcPids();
  EXPECT_NE(std::find(pids.begin(), pids.end(), pid), pids.end());
  EXPECT_EQ(ProcTids(pid), std::vector<std::uint32_t>{pid});
  EXPECT_TRUE(ReadProcExecutable(pid).ends_with("test_collector_system_files"));
  EXPECT_EQ(ReadProcNamespacePid(pid), pid);
  EXPECT_FALSE(ReadProcThread(pid, pid)->ended);
}

TEST(ProcFiles, ProcessThatIsNotThere) {
  EXPECT_TRUE(ProcTids(0x40000000).empty());
  EXPECT_FALSE(ReadProcThread(0x40000000, 0x40000000).has_value());
  EXPECT_EQ(ReadProcExecutable(0x40000000), "");
  EXPECT_EQ(ReadProcNamespacePid(0x40000000), 0x40000000u);
}

TEST(ProcFiles, ExecutableThatIsRemovedKeepsItsName) {
  EXPECT_EQ(WithoutDeleted("/bin/a (deleted)"), "/bin/a");
  EXPECT_EQ(WithoutDeleted("/bin/a"), "/bin/a");
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
