#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

#include "absl/time/time.h"
#include "tools/base/values.h"

namespace base {
namespace {

TEST(Values, ReadsDurations) {
  const struct {
    const char* text;
    absl::Duration duration;
  } kCases[] = {
      {"0", absl::ZeroDuration()},
      {"0s", absl::ZeroDuration()},
      {"90s", absl::Seconds(90)},
      {"500ms", absl::Milliseconds(500)},
      {"5m", absl::Minutes(5)},
      {"10min", absl::Minutes(10)},
      {"1.5h", absl::Minutes(90)},
      {"1h30m", absl::Minutes(90)},
      {"1h30min", absl::Minutes(90)},
      {"0.000000001s", absl::Nanoseconds(1)},
      {"0.5us", absl::Nanoseconds(500)},
      {"7d", absl::Hours(7 * 24)},
      {"1w2d3h4min5s6ms7us8ns", absl::Hours(24 * 9 + 3) + absl::Minutes(4) + absl::Seconds(5) +
                                    absl::Milliseconds(6) + absl::Nanoseconds(7008)}};
  for (const auto& [text, duration] : kCases) {
    const auto read = ParseDuration(text);
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(*read, duration) << text;
  }
}

TEST(Values, ReadsTheDurationsThatMessagesShow) {
  for (const absl::Duration duration :
       {absl::Milliseconds(1500), absl::Hours(50), absl::Minutes(90), absl::Nanoseconds(1),
        absl::Seconds(3661)}) {
    const auto read = ParseDuration(absl::FormatDuration(duration));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, duration);
  }
}

TEST(Values, RejectsOtherDurations) {
  for (const std::string text :
       {"", "1", "s", "1x", "-1s", "+1s", "1 s", "1s ", "0x1s", ".5s", "1.s", "1.5", "1..5s", "inf",
        "1S", "99999999999999999999s", "9007199254740992w", "1h 30m"}) {
    const auto read = ParseDuration(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message(),
              "invalid duration \"" + text + "\"; examples: 500ms, 10s, 1.5h, 1h30m");
  }
}

TEST(Values, ReadsSizes) {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } kCases[] = {{"0", 0},
                {"4096", 4096},
                {"100B", 100},
                {"64K", 65536},
                {"64k", 65536},
                {"64KB", 65536},
                {"64KiB", 65536},
                {"1M", 1 << 20},
                {"1MB", 1 << 20},
                {"1mib", 1 << 20},
                {"2G", 2ULL << 30},
                {"16777215T", 16777215ULL << 40},
                {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()}};
  for (const auto& [text, bytes] : kCases) {
    const auto read = ParseSize(text);
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(*read, bytes) << text;
  }
}

TEST(Values, RejectsOtherSizes) {
  for (const std::string text : {"", "K", "-1", "1.5K", "1 K", "1KK", "1KiBB", "1i", "1iB", "1P",
                                 "0x10", "16777216T", "18446744073709551616"}) {
    const auto read = ParseSize(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message(),
              "invalid size \"" + text + "\"; examples: 4096, 64K, 4M, 1GiB");
  }
}

TEST(Values, ReadsTheSizesThatItFormats) {
  for (const char* text : {"0", "1", "1023", "1K", "1025", "64M", "3G", "5T", "5000T"}) {
    EXPECT_EQ(FormatSize(ParseSize(text).value()), text);
  }
}

TEST(Values, ReadsLevels) {
  const struct {
    const char* text;
    int level;
  } kCases[] = {{"critical", 1}, {"error", 2}, {"warning", 3}, {"info", 4}, {"information", 4},
                {"verbose", 5},  {"*", 255},   {"1", 1},       {"255", 255}};
  for (const auto& [text, level] : kCases) {
    const auto read = ParseLevel(text);
    ASSERT_TRUE(read.ok()) << text << read.status();
    EXPECT_EQ(*read, level) << text;
  }
  for (const char* text : {"", "0", "256", "-1", "Warning", "warn"}) {
    EXPECT_FALSE(ParseLevel(text).ok()) << text;
  }
}

TEST(Values, ReadsTimes) {
  const auto read = ParseTime("2026-11-21T10:00:00.5Z");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, absl::FromUnixMillis(1'795'255'200'500));
  for (const char* text : {"", "yesterday", "2026-11-21", "2026-11-21T10:00:00"}) {
    EXPECT_FALSE(ParseTime(text).ok()) << text;
  }
}

}  // namespace
}  // namespace base
