#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/collector/session/session_tracepoints.h"

namespace collector {
namespace {

std::vector<Selector> Parse(const std::vector<std::string>& texts) {
  std::vector<Selector> selectors;
  selectors.reserve(texts.size());
  for (const std::string& text : texts) selectors.push_back(*ParseSelector(text));
  return selectors;
}

TEST(SessionTracepoints, SelectorsWithoutTracepointsAreUnmatched) {
  CollectorEvents account;
  SessionTracepoints tracepoints(Parse({"sched:sched_switch", "Shop", "irq:*"}), &account);
  EXPECT_EQ(tracepoints.FindUnmatched().size(), 3u);
  tracepoints.SetMatched(0);
  tracepoints.SetMatched(2);
  EXPECT_EQ(tracepoints.FindUnmatched(), std::vector<std::string>{"Shop"});
}

TEST(SessionTracepoints, OnlyPatternsSelectTracepointsThatAppear) {
  CollectorEvents account;
  const SessionTracepoints tracepoints(Parse({"sched:sched_switch", "Shop", "irq:*"}), &account);
  EXPECT_FALSE(tracepoints.HasPatternFor({"sched", "sched_switch"}));
  EXPECT_TRUE(tracepoints.HasPatternFor({"user_events", "Shop_L4K1"}));
  EXPECT_FALSE(tracepoints.HasPatternFor({"user_events", "Shopping_L4K1"}));
  EXPECT_TRUE(tracepoints.HasPatternFor({"irq", "irq_handler_entry"}));
}

TEST(SessionTracepoints, HasFilterIfOneSelectorHasAFilter) {
  CollectorEvents account;
  std::vector<Selector> selectors = Parse({"sched:sched_switch", "irq:*"});
  EXPECT_FALSE(SessionTracepoints(selectors, &account).HasFilter());
  selectors[1].filter = "irq == 1";
  EXPECT_TRUE(SessionTracepoints(selectors, &account).HasFilter());
}

TEST(SessionTracepoints, SkippedTracepointIsAccountedOnce) {
  CollectorEvents account;
  SessionTracepoints tracepoints(Parse({"ftrace:*"}), &account);
  tracepoints.Skip("ftrace:function", "cannot be enabled");
  EXPECT_FALSE(account.is_empty());
  EXPECT_FALSE(tracepoints.IsDue("ftrace:function", 0));
  EXPECT_EQ(tracepoints.skipped().names(), std::vector<std::string>{"ftrace:function"});
  tracepoints.Skip("ftrace:function", "cannot be enabled");
  EXPECT_EQ(tracepoints.skipped().count(), 1u);
  tracepoints.SetRecorded("ftrace:function");
  EXPECT_TRUE(tracepoints.IsDue("ftrace:function", 0));
}

TEST(SessionTracepoints, MetTracepointIsAccounted) {
  CollectorEvents account;
  SessionTracepoints tracepoints(Parse({"Shop"}), &account);
  tracepoints.Meet("user_events:Shop_L4K1");
  EXPECT_FALSE(account.is_empty());
}

TEST(SessionTracepoints, WarningsAreBounded) {
  CollectorEvents account;
  SessionTracepoints tracepoints(Parse({"Shop"}), &account);
  for (int i = 0; i < 100; ++i) tracepoints.Warn(std::to_string(i));
  ASSERT_EQ(tracepoints.warnings().size(), SkippedTracepoints::kMaxReasons);
  EXPECT_EQ(tracepoints.warnings().front(), "0");
}

}  // namespace
}  // namespace collector
