#include <gtest/gtest.h>

#include <string>

#include "tools/collector/session/skipped_tracepoints.h"

namespace collector {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

TEST(SkippedTracepoints, IsNamedOnceAndRetried) {
  SkippedTracepoints skipped;
  EXPECT_TRUE(skipped.IsDue("s:e", kNsPerSecond));
  skipped.Add("s:e", "it is bad", kNsPerSecond);
  EXPECT_FALSE(skipped.IsDue("s:e", kNsPerSecond + 1));
  EXPECT_TRUE(skipped.IsDue("s:other", kNsPerSecond + 1));
  EXPECT_TRUE(skipped.IsDue("s:e", 2 * kNsPerSecond));
  skipped.Add("s:e", "it is worse", 2 * kNsPerSecond);
  EXPECT_FALSE(skipped.IsDue("s:e", 2 * kNsPerSecond + 1));
  skipped.Remove("s:e");
  EXPECT_TRUE(skipped.IsDue("s:e", 2 * kNsPerSecond + 1));
  skipped.Add("s:e", "it is bad", 4 * kNsPerSecond);
  EXPECT_EQ(skipped.count(), 1u);
  EXPECT_EQ(skipped.names(), std::vector<std::string>{"s:e"});
  EXPECT_EQ(skipped.reasons(), std::vector<std::string>{"it is bad"});
}

TEST(SkippedTracepoints, ManyAreDueOneAfterAnother) {
  SkippedTracepoints skipped;
  for (int i = 0; i < 10'000; ++i) skipped.Add("s:e" + std::to_string(i), "", kNsPerSecond);
  EXPECT_FALSE(skipped.IsDue("s:e9999", 50 * kNsPerSecond));
  EXPECT_TRUE(skipped.IsDue("s:e9999", 102 * kNsPerSecond));
}

TEST(SkippedTracepoints, MemoryIsBoundedForAMillionNames) {
  SkippedTracepoints skipped;
  for (int i = 0; i < 1'000'000; ++i) skipped.Add("s:e" + std::to_string(i), "no", kNsPerSecond);
  EXPECT_EQ(skipped.count(), 1'000'000u);
  EXPECT_EQ(skipped.names().size(), SkippedTracepoints::kMaxNames);
  EXPECT_EQ(skipped.reasons().size(), SkippedTracepoints::kMaxReasons);
}

}  // namespace
}  // namespace collector
