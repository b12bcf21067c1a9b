#include <gtest/gtest.h>

#include <string>

#include "tools/collector/session/left_out.h"

namespace collector {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(LeftOut, IsNamedOnceAndTriedAgain) {
  LeftOut left_out;
  EXPECT_TRUE(left_out.IsDue("s:e", kSecond));
  left_out.Add("s:e", "it is bad", kSecond);
  EXPECT_FALSE(left_out.IsDue("s:e", kSecond + 1));
  EXPECT_TRUE(left_out.IsDue("s:other", kSecond + 1));
  EXPECT_TRUE(left_out.IsDue("s:e", 2 * kSecond));
  left_out.Add("s:e", "it is worse", 2 * kSecond);
  EXPECT_FALSE(left_out.IsDue("s:e", 2 * kSecond + 1));
  left_out.Remove("s:e");
  EXPECT_TRUE(left_out.IsDue("s:e", 2 * kSecond + 1));
  left_out.Add("s:e", "it is bad", 4 * kSecond);
  EXPECT_EQ(left_out.count(), 1u);
  EXPECT_EQ(left_out.names(), std::vector<std::string>{"s:e"});
  EXPECT_EQ(left_out.reasons(), std::vector<std::string>{"it is bad"});
}

TEST(LeftOut, ManyAreDueOneAfterAnother) {
  LeftOut left_out;
  for (int i = 0; i < 10'000; ++i) left_out.Add("s:e" + std::to_string(i), "", kSecond);
  EXPECT_FALSE(left_out.IsDue("s:e9999", 50 * kSecond));
  EXPECT_TRUE(left_out.IsDue("s:e9999", 102 * kSecond));
}

TEST(LeftOut, AMillionNamesCostLittle) {
  LeftOut left_out;
  for (int i = 0; i < 1'000'000; ++i) left_out.Add("s:e" + std::to_string(i), "no", kSecond);
  EXPECT_EQ(left_out.count(), 1'000'000u);
  EXPECT_EQ(left_out.names().size(), LeftOut::kMaxNames);
  EXPECT_EQ(left_out.reasons().size(), LeftOut::kMaxReasons);
}

}  // namespace
}  // namespace collector
