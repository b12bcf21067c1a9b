// Tests the parsing of the kernel's text files: CPU lists, /proc, and user_events_status.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  // qemu-user hides itself in /proc/self/exe, but not in /proc/thread-self/exe.
  const std::string running = std::filesystem::read_symlink("/proc/thread-self/exe").filename();
  if (running.starts_with("qemu-")) GTEST_SKIP() << running << " has threads of its own";
  const auto pid = static_cast<std::uint32_t>(getpid());
  const std::vector<std::uint32_t> pids = ProcPids();
  EXPECT_NE(std::find(pids.begin(), pids.end(), pid), pids.end());
  std::vector<std::uint32_t> tids = ProcTids(pid);
  // On kernels without user_events, other tests of this program use rings, and so have started the
  // library's thread "eventheader".
  std::erase_if(tids, [pid](std::uint32_t tid) {
    return ReadProcThread(pid, tid).value_or(ProcThread()).name == "eventheader";
  });
  EXPECT_EQ(tids, std::vector<std::uint32_t>{pid});
  EXPECT_TRUE(ReadProcExecutable(pid).ends_with("/test_collector"));
  EXPECT_EQ(ReadProcNamespacePid(pid), pid);
  EXPECT_FALSE(ReadProcThread(pid, pid)->ended);
}

TEST(ProcFiles, ProcessThatIsNotThere) {
  EXPECT_TRUE(ProcTids(0x40000000).empty());
  EXPECT_FALSE(ReadProcThread(0x40000000, 0x40000000).has_value());
  EXPECT_EQ(ReadProcExecutable(0x40000000), "");
  EXPECT_EQ(ReadProcNamespacePid(0x40000000), 0x40000000u);
}

TEST(ProcFiles, UserOfAProcess) {
  EXPECT_EQ(ReadProcUser(static_cast<std::uint32_t>(getpid())), geteuid());
  EXPECT_EQ(ReadProcUser(0x40000000), std::nullopt);
}

TEST(ProcFiles, ExecutableThatIsRemovedKeepsItsName) {
  EXPECT_EQ(WithoutDeleted("/bin/a (deleted)"), "/bin/a");
  EXPECT_EQ(WithoutDeleted("/bin/a"), "/bin/a");
}

// Returns the entries in `text`, the contents of user_events_status, as "NAME|USERS". `there`:
// names of the folders in tracefs. `unclear`, unless null, receives the number of unclear lines.
std::vector<std::string> Entries(std::string_view text, const std::set<std::string>& there = {},
                                 std::size_t* unclear = nullptr) {
  std::vector<std::string> entries;
  const std::size_t rest = ForEachUserEvent(
      text,
      [&entries](const UserEvent& event) {
        entries.push_back(std::string(event.name) + "|" + std::string(event.used_by));
      },
      [&there](std::string_view name) { return there.contains(std::string(name)); });
  if (unclear != nullptr) *unclear = rest;
  return entries;
}

TEST(UserEventsStatus, NamesAndUsers) {
  std::size_t unclear = 1;
  EXPECT_EQ(Entries("Alpha_L1K0\nBeta_L4K1 # Used by ftrace perf\nA/\x1b # Used by other\n\n"
                    "Active: 3\nBusy: 2\n",
                    {}, &unclear),
            (std::vector<std::string>{"Alpha_L1K0|", "Beta_L4K1|ftrace perf", "A/\x1b|other"}));
  EXPECT_EQ(unclear, 0u);
}

TEST(UserEventsStatus, NoEvents) {
  EXPECT_TRUE(Entries("\nActive: 0\nBusy: 0\n").empty());
  EXPECT_TRUE(Entries("").empty());
}

TEST(UserEventsStatus, NamesWithLineFeedsHideNothing) {
  std::size_t unclear = 0;
  EXPECT_EQ(Entries("A_L1K1\nZ\n\nB # Used by perf\n\n\n\nC_L1K1\n\nActive: 4\nBusy: 1\n",
                    {"A_L1K1", "Z\n\nB", "\n\n", "C_L1K1"}, &unclear),
            (std::vector<std::string>{"A_L1K1|", "Z\n\nB|perf", "\n\n|", "C_L1K1|"}));
  EXPECT_EQ(unclear, 0u);
}

TEST(UserEventsStatus, CountsAmbiguousNames) {
  std::size_t unclear = 0;
  // The second name is "x/\n\nActive: 7\nA_L1K1". No folder in tracefs has this name, because it
  // has a slash. So its last line is read as an entry of A_L1K1, and its other three lines are
  // counted as unclear.
  EXPECT_EQ(
      Entries("A_L1K1\nx/\n\nActive: 7\nA_L1K1 # Used by perf\nC_L1K1\n\nActive: 3\nBusy: 1\n",
              {"A_L1K1", "C_L1K1"}, &unclear),
      (std::vector<std::string>{"A_L1K1|", "A_L1K1|perf", "C_L1K1|"}));
  EXPECT_EQ(unclear, 3u);
}

TEST(UserEventsStatus, ANameThatEndsInAnothersDoesNotHideIt) {
  // The names are "x/\nE" and "E\nGood_L1K1": the lines after "x/" look like the second name.
  EXPECT_EQ(
      Entries("x/\nE\nGood_L1K1\nE\nGood_L1K1\n\nActive: 3\nBusy: 0\n",
              {"Good_L1K1", "E\nGood_L1K1"}),
      (std::vector<std::string>{"E\nGood_L1K1|", "Good_L1K1|", "E\nGood_L1K1|", "Good_L1K1|"}));
}

TEST(UserEventsStatus, ReadsABoundedNumberOfFolders) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "x\n";
  text += "Good_L1K1\n\nActive: 1\nBusy: 0\n";
  std::size_t asked = 0;
  std::size_t found = 0;
  ForEachUserEvent(
      text, [&found](const UserEvent& event) { found += event.name == "Good_L1K1" ? 1 : 0; },
      [&asked](std::string_view) { return ++asked == 0; });
  EXPECT_EQ(asked, kMaxQuestions);
  EXPECT_EQ(found, 1u);
}

TEST(UserEventsStatus, NamesOfFolders) {
  for (const char* name : {"", ".", "..", "a/b", "/", "../sched"}) EXPECT_FALSE(IsFolderName(name));
  for (const char* name : {"...", "a", "\n", "\xff"}) EXPECT_TRUE(IsFolderName(name));
}

}  // namespace
}  // namespace collector
