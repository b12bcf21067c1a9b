#include <gtest/gtest.h>

#include <string>

#include "tools/collector/session/left_out.h"

namespace collector {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

TEST(LeftOut, IsNamedOnceAndRetried) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.IsDue("s:e", kNsPerSecond));
  left_out.Add("s:e", "it is bad", kNsPerSecond);
  EXPECT_FALSE(left_out.IsDue("s:e", kNsPerSecond + 1));
  EXPECT_TRUE(left_out.IsDue("s:other", kNsPerSecond + 1));
  EXPECT_TRUE(left_out.IsDue("s:e", 2 * kNsPerSecond));
  left_out.Add("s:e", "it is worse", 2 * kNsPerSecond);
  EXPECT_FALSE(left_out.IsDue("s:e", 2 * kNsPerSecond + 1));
  left_out.Remove("s:e");
  EXPECT_TRUE(left_out.IsDue("s:e", 2 * kNsPerSecond + 1));
  left_out.Add("s:e", "it is bad", 4 * kNsPerSecond);
  EXPECT_EQ(left_out.count(), 1u);
  EXPECT_EQ(left_out.names(), std::vector<std::string>{"s:e"});
  EXPECT_EQ(left_out.reasons(), std::vector<std::string>{"it is bad"});
}

TEST(LeftOut, ManyAreDueOneAfterAnother) {
  LeftOut left_out;
  for (int i = 0; i < 10'000; ++i) left_out.Add("s:e" + std::to_string(i), "", kNsPerSecond);
  EXPECT_FALSE(left_out.IsDue("s:e9999", 50 * kNsPerSecond));
  EXPECT_TRUE(left_out.IsDue("s:e9999", 102 * kNsPerSecond));
}

TEST(LeftOut, MemoryIsBoundedForAMillionNames) {
  LeftOut left_out;
  for (int i = 0; i < 1'000'000; ++i) left_out.Add("s:e" + std::to_string(i), "no", kNsPerSecond);
  EXPECT_EQ(left_out.count(), 1'000'000u);
  EXPECT_EQ(left_out.names().size(), LeftOut::kMaxNames);
  EXPECT_EQ(left_out.reasons().size(), LeftOut::kMaxReasons);
}

}  // namespace
}  // namespace collector
