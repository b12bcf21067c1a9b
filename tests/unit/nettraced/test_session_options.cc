// Tests how settings become options of captures and sessions.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/nettraced/config/session_options.h"

namespace nettraced {
namespace {

std::string Filter(const std::string& command) {
  const absl::StatusOr<std::string> filter = CommandFilter(command);
  return filter.ok() ? *filter : std::string(filter.status().message());
}

TEST(SessionOptions, CommandIsInQuotesThatItDoesNotHave) {
  EXPECT_EQ(Filter(""), "");
  EXPECT_EQ(Filter("nginx"), "COMM == \"nginx\"");
  EXPECT_EQ(Filter("fifteen-letters"), "COMM == \"fifteen-letters\"");
  EXPECT_EQ(Filter("a'b* && 1"), "COMM == \"a'b* && 1\"");
  EXPECT_EQ(Filter("a\" || \"b"), "COMM == 'a\" || \"b'");
}

TEST(SessionOptions, CommandWithoutAFormIsRefused) {
  for (const std::string& command : {std::string("'\""), std::string("a\0b", 3)}) {
    EXPECT_NE(Filter(command).find("cannot be written in a filter of the kernel"),
              std::string::npos);
  }
  EXPECT_NE(Filter("sixteen-letters.").find("at most 15 bytes"), std::string::npos);
}

TEST(SessionOptions, CommandIsDemandedOfEachSelector) {
  SessionSettings settings;
  settings.select = {*collector::ParseSelector("Shop"),
                     *collector::ParseSelector("sched:sched_switch")};
  settings.select[1].filter = "prev_prio < 100";
  EXPECT_EQ(*MakeSelectors(settings), settings.select);
  settings.target.command = "shop";
  const absl::StatusOr<std::vector<collector::Selector>> selectors = MakeSelectors(settings);
  ASSERT_TRUE(selectors.ok());
  EXPECT_EQ((*selectors)[0].filter, "COMM == \"shop\"");
  EXPECT_EQ((*selectors)[1].filter, "(prev_prio < 100) && (COMM == \"shop\")");
  settings.target.command = "'\"";
  EXPECT_FALSE(MakeSelectors(settings).ok());
}

TEST(SessionOptions, UnitAndCgroupAreFollowed) {
  TargetSettings target;
  target.pids = {7};
  EXPECT_EQ(ToTargetSelection(target).pids, std::vector<pid_t>{7});
  target = TargetSettings();
  target.unit = "shop.service";
  EXPECT_EQ(ToTargetSelection(target).cgroups, std::vector<std::string>{"shop.service"});
  EXPECT_TRUE(ToTargetSelection(target).follow);
  target = TargetSettings();
  target.cgroup = "/a/b";
  EXPECT_EQ(ToTargetSelection(target).cgroups, std::vector<std::string>{"/a/b"});
}

}  // namespace
}  // namespace nettraced
