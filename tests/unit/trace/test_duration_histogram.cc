// Tests percentiles of durations: they are within the promised error of the true ones, for any
// durations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tools/trace/duration_histogram.h"

namespace trace {
namespace {

// Returns the shortest duration that `percent` % of the durations do not exceed.
std::uint64_t TruePercentile(std::vector<std::uint64_t> durations, unsigned percent) {
  std::sort(durations.begin(), durations.end());
  const std::size_t rank = std::max<std::size_t>((durations.size() * percent + 99) / 100, 1);
  return durations[rank - 1];
}

void ExpectClose(const DurationHistogram& histogram, const std::vector<std::uint64_t>& durations) {
  EXPECT_EQ(histogram.count(), durations.size());
  EXPECT_EQ(histogram.min(), *std::min_element(durations.begin(), durations.end()));
  EXPECT_EQ(histogram.max(), *std::max_element(durations.begin(), durations.end()));
  for (const unsigned percent : {0U, 1U, 50U, 90U, 99U, 100U}) {
    const auto expected = static_cast<double>(TruePercentile(durations, percent));
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(percent)), expected,
                expected * DurationHistogram::kMaxError)
        << percent << " % of " << durations.size();
  }
}

TEST(DurationHistogram, BucketsCountLikeTheirDurations) {
  DurationHistogram histogram;
  std::vector<std::uint64_t> durations;
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    durations.push_back(random() >> (random() % 64));
    histogram.AddBucket(DurationHistogram::BucketOf(durations.back()), 2);
  }
  histogram.AddBucket(7, 0);
  EXPECT_EQ(histogram.count(), 2 * durations.size());
  for (const unsigned percent : {0U, 1U, 50U, 99U, 100U}) {
    const auto expected = static_cast<double>(TruePercentile(durations, percent));
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(percent)), expected,
                expected * DurationHistogram::kMaxError)
        << percent;
  }
}

TEST(DurationHistogram, WithoutDurationsAllIsZero) {
  const DurationHistogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.min(), 0U);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.Percentile(50), 0U);
}

TEST(DurationHistogram, ShortDurationsAreExact) {
  for (std::uint64_t duration = 0; duration < 64; ++duration) {
    DurationHistogram histogram;
    histogram.Add(duration);
    histogram.Add(1'000'000);
    EXPECT_EQ(histogram.Percentile(50), duration);
  }
}

TEST(DurationHistogram, EachDurationIsWithinTheError) {
  std::vector<std::uint64_t> edges = {0, std::numeric_limits<std::uint64_t>::max()};
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    edges.insert(edges.end(), {power - 1, power, power + 1, power + power / 2});
  }
  for (const std::uint64_t edge : edges) {
    DurationHistogram histogram;
    histogram.Add(edge);
    histogram.Add(std::numeric_limits<std::uint64_t>::max());
    const auto expected = static_cast<double>(edge);
    EXPECT_NEAR(static_cast<double>(histogram.Percentile(50)), expected,
                expected * DurationHistogram::kMaxError)
        << edge;
  }
}

TEST(DurationHistogram, PercentilesAreNearTheTrueOnes) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {1U, 2U, 3U, 99U, 100U, 101U, 5000U}) {
    DurationHistogram histogram;
    std::vector<std::uint64_t> durations;
    for (std::size_t i = 0; i < count; ++i) {
      // Durations from nanoseconds to days, in random order.
      durations.push_back(random() >> (16 + random() % 48));
      histogram.Add(durations.back());
    }
    ExpectClose(histogram, durations);
  }
}

TEST(DurationHistogram, MergedOnesAreAsIfAllHadBeenAddedToOne) {
  std::mt19937_64 random(2);
  DurationHistogram merged;
  std::vector<std::uint64_t> all;
  for (int part = 0; part < 5; ++part) {
    DurationHistogram histogram;
    for (int i = 0; i < 300; ++i) {
      all.push_back(random() >> (20 + 8 * part));
      histogram.Add(all.back());
    }
    merged.Merge(histogram);
  }
  merged.Merge(DurationHistogram());
  ExpectClose(merged, all);
}

TEST(DurationHistogram, BucketsMeetAndHaveAll) {
  std::mt19937_64 random(2);
  DurationHistogram histogram;
  for (const std::uint64_t duration : {std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{32},
                                       std::numeric_limits<std::uint64_t>::max()}) {
    histogram.Add(duration);
  }
  for (int i = 0; i < 100000; ++i) histogram.Add(random() >> (random() % 64));
  std::uint64_t total = 0;
  std::uint64_t next = 0;
  for (const DurationHistogram::Bucket& bucket : histogram.Buckets()) {
    EXPECT_TRUE(total == 0 || bucket.from >= next);
    EXPECT_LE(bucket.to - bucket.from, bucket.from / 32);
    total += bucket.count;
    next = bucket.to + 1;
  }
  EXPECT_EQ(total, histogram.count());
  EXPECT_EQ(next, 0U);  // The number after the largest one is 0.
  EXPECT_EQ(histogram.Percentile(100), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace
}  // namespace trace
