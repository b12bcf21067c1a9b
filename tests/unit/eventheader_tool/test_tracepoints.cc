#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "eventheader/wire.h"
#include "tools/eventheader/name_problem.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {
namespace {

namespace fs = std::filesystem;

Tracepoint Make(const std::string& name, const std::optional<std::string>& fields,
                const std::string& used_by = "") {
  return {name, used_by, fields, {}};
}

TEST(Tracepoints, OtherFieldsMakeNoEventHeaderTracepoint) {
  EXPECT_TRUE(Make("A_L4K1", eh::kTracepointFields).EventHeader());
  EXPECT_TRUE(Make("A_L4K1", std::nullopt).EventHeader());
  EXPECT_FALSE(Make("A_L4K1", "u8 a").EventHeader());
  EXPECT_FALSE(Make("A", eh::kTracepointFields).EventHeader());
  EXPECT_TRUE(Make("A_L4K1", "u8 a").IsTaken());
  EXPECT_FALSE(Make("A", "u8 a").IsTaken());
}

TEST(Tracepoints, PatternsAreAShells) {
  EXPECT_TRUE(MatchesAny("A_L4K1", {}));
  EXPECT_TRUE(MatchesAny("A_L4K1", {"B*", "A_L[1-4]*"}));
  EXPECT_FALSE(MatchesAny("A_L4K1", {"B*", "A"}));
}

TEST(Tracepoints, ReadsHitsFromAHistogram) {
  EXPECT_EQ(HitsOfHistogram(""), std::nullopt);
  EXPECT_EQ(HitsOfHistogram("# event histogram\n\nTotals:\n    Hits: 12\n    Entries: 3\n"), 12U);
  EXPECT_EQ(HitsOfHistogram("    Hits: 12\n    Hits: 14\n"), 14U);
}

// A folder like /proc. Pid 7 has user_events_data open, 8 a perf event, 9 neither.
class TracepointHolders : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/test_tracepoints.XXXXXX";
    proc_ = mkdtemp(name);
    Add("7", "first", "/sys/kernel/tracing/user_events_data");
    Add("8", "second", "anon_inode:[perf_event]");
    Add("9", "third", "/dev/null");
    fs::create_directories(proc_ / "self/ns");
    fs::create_symlink("pid:[4026531836]", proc_ / "self/ns/pid");
  }
  void TearDown() override { fs::remove_all(proc_); }
  void Add(const std::string& pid, const std::string& comm, const std::string& target) {
    fs::create_directories(proc_ / pid / "fd");
    std::ofstream(proc_ / pid / "comm") << comm << '\n';
    fs::create_symlink(target, proc_ / pid / "fd/3");
  }
  fs::path proc_;
};

TEST_F(TracepointHolders, AreFound) {
  const Holders holders = FindHolders(proc_);
  ASSERT_EQ(holders.registrants.size(), 1U);
  ASSERT_EQ(holders.recorders.size(), 1U);
  EXPECT_TRUE(holders.all);
  EXPECT_EQ(holders.registrants[0].pid, 7);
  EXPECT_EQ(holders.registrants[0].name, "first");
  EXPECT_EQ(
      DescribeUsers(Make("A", "", "perf"), holders),
      "it is enabled by perf; these processes have perf events: 8 (second); these processes have "
      "user_events open: 7 (first)");
}

TEST_F(TracepointHolders, PersistentIfNothingElseCanKeepIt) {
  const Tracepoint idle = Make("A_L1K1", eh::kTracepointFields);
  EXPECT_EQ(IsPersistent(idle, FindHolders(proc_)), std::nullopt);
  fs::remove_all(proc_ / "7");
  EXPECT_EQ(IsPersistent(idle, FindHolders(proc_)), true);
  EXPECT_EQ(IsPersistent(Make("A", "", "ftrace"), FindHolders(proc_)), std::nullopt);
  // In a separate pid namespace, other processes may be invisible.
  fs::remove(proc_ / "self/ns/pid");
  fs::create_symlink("pid:[4026531837]", proc_ / "self/ns/pid");
  EXPECT_EQ(IsPersistent(idle, FindHolders(proc_)), std::nullopt);
}

TEST_F(TracepointHolders, MessageNamesFewOfMany) {
  for (int pid = 100; pid < 120; ++pid) Add(std::to_string(pid), "x", "/t/user_events_data");
  const std::string text = DescribeUsers(Make("A", ""), FindHolders(proc_));
  EXPECT_TRUE(text.ends_with("and 11 more")) << text;
}

TEST(NameProblem, SuggestsTheIntendedName) {
  EXPECT_EQ(NameProblem("A_L4K1Gg"), "");
  for (const char* name : {"A_L4k1", "A_l4K1", "A_L04K1", "A_L4K01"}) {
    EXPECT_NE(NameProblem(name).find("'A_L4K1'"), std::string::npos) << name;
  }
  EXPECT_NE(NameProblem("A_L0K1").find("level"), std::string::npos);
  EXPECT_NE(NameProblem("A_L100K1").find("level"), std::string::npos);
  EXPECT_NE(NameProblem("A_L1K1gg").find("options"), std::string::npos);
  EXPECT_NE(NameProblem("9_L1K1").find("provider"), std::string::npos);
  EXPECT_NE(NameProblem("A").find("_L<level>"), std::string::npos);
  EXPECT_NE(NameProblem("A_LK1").find("_L<level>"), std::string::npos);
  EXPECT_NE(NameProblem(std::string(300, 'a')).find("300"), std::string::npos);
}

}  // namespace
}  // namespace tools
