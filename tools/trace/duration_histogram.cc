#include "tools/trace/duration_histogram.h"

#include <algorithm>
#include <bit>

namespace trace {
namespace {

// Each range from a power of two to the next, beginning with kLinear ns, has kLinear buckets of
// equal width. Durations below kLinear ns have buckets of 1 ns.
constexpr int kLinearBits = 5;
constexpr std::size_t kLinear = std::size_t{1} << kLinearBits;

DurationHistogram::Bucket BucketAt(std::size_t index) {
  if (index < 2 * kLinear) return {index, index, 0};
  const std::size_t shift = index / kLinear - 1;
  const std::uint64_t from = std::uint64_t{index - shift * kLinear} << shift;
  return {from, from + ((std::uint64_t{1} << shift) - 1), 0};
}

std::uint64_t MiddleOf(const DurationHistogram::Bucket& bucket) {
  return bucket.from + (bucket.to - bucket.from + 1) / 2;
}

}  // namespace

std::uint16_t DurationHistogram::BucketOf(std::uint64_t nanoseconds) {
  if (nanoseconds < 2 * kLinear) return static_cast<std::uint16_t>(nanoseconds);
  const int shift = static_cast<int>(std::bit_width(nanoseconds)) - 1 - kLinearBits;
  return static_cast<std::uint16_t>(static_cast<std::size_t>(shift) * kLinear +
                                    static_cast<std::size_t>(nanoseconds >> shift));
}

void DurationHistogram::Add(std::uint64_t nanoseconds) {
  AddTo(BucketOf(nanoseconds), 1);
  min_ = count_ == 0 ? nanoseconds : std::min(min_, nanoseconds);
  max_ = std::max(max_, nanoseconds);
  ++count_;
}

void DurationHistogram::Add(absl::Duration duration) {
  Add(static_cast<std::uint64_t>(std::max<std::int64_t>(absl::ToInt64Nanoseconds(duration), 0)));
}

void DurationHistogram::AddBucket(std::uint16_t bucket, std::uint64_t count) {
  if (count == 0) return;
  AddTo(bucket, count);
  const std::uint64_t middle = MiddleOf(BucketAt(bucket));
  min_ = count_ == 0 ? middle : std::min(min_, middle);
  max_ = std::max(max_, middle);
  count_ += count;
}

void DurationHistogram::Merge(const DurationHistogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) {
    if (other.counts_[i] != 0) AddTo(other.first_ + i, other.counts_[i]);
  }
  if (other.count_ != 0) min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t DurationHistogram::Percentile(unsigned percent) const {
  if (count_ == 0) return 0;
  // Computes the rank of the result, count_ * percent / 100 rounded up, without overflow.
  const std::uint64_t rest = 100 - std::min(percent, 100U);
  const std::uint64_t above = count_ / 100 * rest + count_ % 100 * rest / 100;
  const std::uint64_t rank = std::max<std::uint64_t>(count_ - above, 1);
  if (rank == count_) return max_;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::clamp(MiddleOf(BucketAt(first_ + i)), min_, max_);
  }
  return max_;
}

std::vector<DurationHistogram::Bucket> DurationHistogram::Buckets() const {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    buckets.push_back(BucketAt(first_ + i));
    buckets.back().count = counts_[i];
  }
  return buckets;
}

void DurationHistogram::AddTo(std::size_t bucket, std::uint64_t count) {
  if (counts_.empty()) first_ = bucket;
  if (bucket < first_) {
    counts_.insert(counts_.begin(), first_ - bucket, 0);
    first_ = bucket;
  }
  if (bucket - first_ >= counts_.size()) counts_.resize(bucket - first_ + 1);
  counts_[bucket - first_] += count;
}

}  // namespace trace
