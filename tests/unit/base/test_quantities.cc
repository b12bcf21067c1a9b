#include <gtest/gtest.h>

#include <cstdint>

#include "tools/base/quantities.h"

namespace base {
namespace {

TEST(Quantities, GroupsDigits) {
  EXPECT_EQ(FormatGrouped(0), "0");
  EXPECT_EQ(FormatGrouped(999), "999");
  EXPECT_EQ(FormatGrouped(1000), "1,000");
  EXPECT_EQ(FormatGrouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(Quantities, ScaledNumbersHaveThreeDigits) {
  EXPECT_EQ(FormatScaled(1.234, 10, {"a", "b"}), "1.23a");
  EXPECT_EQ(FormatScaled(9.995, 10, {"a", "b"}), "10.0a");
  EXPECT_EQ(FormatScaled(99.95, 10, {"a", "b"}), "100a");
  EXPECT_EQ(FormatScaled(999.5, 10, {"a", "b"}), "100b");
  EXPECT_EQ(FormatScaled(123'456, 10, {"a", "b"}), "12346b");
}

TEST(Quantities, BytesAreInTheLargestUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1024), "1.0 KB");
  EXPECT_EQ(FormatBytes(10188), "9.9 KB");
  EXPECT_EQ(FormatBytes(10189), "10 KB");
  EXPECT_EQ(FormatBytes((1 << 20) - 1), "1.0 MB");
  EXPECT_EQ(FormatBytes(UINT64_MAX), "16 EB");
}

TEST(Quantities, NarrowBytesKeepToTheirWidth) {
  EXPECT_EQ(FormatNarrowBytes(99'999), "99999");
  EXPECT_EQ(FormatNarrowBytes(100'000), "97.7K");
  EXPECT_EQ(FormatNarrowBytes(UINT64_MAX), "16.0E");
}

TEST(Quantities, DurationsHaveThreeDigits) {
  EXPECT_EQ(FormatDuration(0), "0 ns");
  EXPECT_EQ(FormatDuration(999), "999 ns");
  EXPECT_EQ(FormatDuration(1234), "1.23 µs");
  EXPECT_EQ(FormatDuration(999'500), "1.00 ms");
  EXPECT_EQ(FormatDuration(12'345'678), "12.3 ms");
  EXPECT_EQ(FormatDuration(600'000'000'000), "600 s");
  EXPECT_EQ(FormatDuration(3'600'000'000'000), "3600 s");
}

TEST(Quantities, NarrowDurationsKeepToTheirWidth) {
  EXPECT_EQ(FormatNarrowDuration(999), "999ns");
  EXPECT_EQ(FormatNarrowDuration(1'234), "1.23us");
  EXPECT_EQ(FormatNarrowDuration(999'499), "999us");
  EXPECT_EQ(FormatNarrowDuration(999'500), "1.00ms");
  EXPECT_EQ(FormatNarrowDuration(59'000'000'000), "59.0s");
  EXPECT_EQ(FormatNarrowDuration(9'000'000'000'000), "2.5h");
  EXPECT_EQ(FormatNarrowDuration(UINT64_MAX / 2), "106752d");
}

}  // namespace
}  // namespace base
