// Tests how settings become options of captures and sessions.
#include <gtest/gtest.h>

#include <cstdint>
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

SessionSettings WithSelector() {
  SessionSettings settings;
  settings.select = {*collector::ParseSelector("Shop")};
  return settings;
}

TEST(CaptureNeeds, SessionsWithoutTargetsFiltersStacksAndSamplesShareACapture) {
  EXPECT_FALSE(NeedsSeparateCapture(WithSelector()));
  // The shared capture of sessions without stacks does not track code.
  EXPECT_EQ(MakeCaptureNeeds(WithSelector()), CaptureNeeds());
  EXPECT_FALSE(CaptureNeeds().stacks);
  SessionSettings settings = WithSelector();
  settings.target.pids = {1};
  EXPECT_TRUE(NeedsSeparateCapture(settings));
  EXPECT_FALSE(NeedsStacks(settings));
  settings = WithSelector();
  settings.select[0].filter = "common_pid == 1";
  EXPECT_TRUE(NeedsSeparateCapture(settings));
  EXPECT_FALSE(NeedsStacks(settings));
}

TEST(CaptureNeeds, StacksAndSamplesNeedACaptureThatTracksCode) {
  SessionSettings stacks = WithSelector();
  stacks.select.push_back(*collector::ParseSelector("sched:sched_switch"));
  stacks.select[1].stacks.emplace();
  SessionSettings cpu = WithSelector();
  cpu.cpu_rate = 997;
  SessionSettings off_cpu;
  off_cpu.off_cpu = true;
  for (const SessionSettings& settings : {stacks, cpu, off_cpu}) {
    EXPECT_TRUE(NeedsSeparateCapture(settings));
    EXPECT_TRUE(MakeCaptureNeeds(settings).stacks);
    EXPECT_NE(MakeCaptureNeeds(settings), CaptureNeeds());
    // Samples alone need no tracefs.
    EXPECT_EQ(MakeCaptureNeeds(settings).tracepoints, !settings.select.empty());
  }
  SessionSettings other = stacks;
  other.target.pids = {1};
  EXPECT_NE(MakeCaptureNeeds(other), MakeCaptureNeeds(stacks));
}

TEST(CaptureNeeds, ProvidersOfDotnetNeedTracefs) {
  SessionSettings settings;
  settings.dotnet = {"Shop"};
  EXPECT_TRUE(MakeCaptureNeeds(settings).tracepoints);
  EXPECT_FALSE(NeedsSeparateCapture(settings));
  EXPECT_EQ(MakeDotnetProviders(settings)->size(), 1u);
  settings.dotnet.clear();
  EXPECT_TRUE(MakeDotnetProviders(settings)->empty());
}

TEST(KernelLimits, NameTheSettingAndTheLimit) {
  SessionSettings settings = WithSelector();
  settings.cpu_rate = 1;
  settings.select[0].stacks = collector::StackOptions{true, false, 1};
  EXPECT_TRUE(CheckKernelLimits(settings).ok());
  settings.cpu_rate = ~std::uint32_t{0};
  EXPECT_TRUE(CheckKernelLimits(settings).message().find("cpu: invalid rate") == 0)
      << CheckKernelLimits(settings);
  settings.cpu_rate = 0;
  settings.select[0].stacks->max_frames = 60000;
  EXPECT_TRUE(CheckKernelLimits(settings).message().find("stacks: invalid stacks \"user,max=") == 0)
      << CheckKernelLimits(settings);
}

}  // namespace
}  // namespace nettraced
