#include "tools/nettrace/report/duration_histogram.h"

#include <algorithm>
#include <bit>

namespace tools::report {
namespace {

// A power of two is divided into 2^kBits buckets; durations below 2^kBits have one each.
constexpr unsigned kBits = 5;
constexpr std::uint64_t kParts = 1 << kBits;

}  // namespace

std::size_t DurationHistogram::IndexOf(std::uint64_t duration) {
  if (duration < kParts) return static_cast<std::size_t>(duration);
  const unsigned shift = static_cast<unsigned>(std::bit_width(duration)) - 1 - kBits;
  return static_cast<std::size_t>(shift * kParts + (duration >> shift));
}

DurationHistogram::Bucket DurationHistogram::BucketAt(std::size_t index) {
  if (index < kParts) return {index, index, 0};
  const std::size_t shift = index / kParts - 1;
  const std::uint64_t part = index - shift * kParts;
  const std::uint64_t width = std::uint64_t{1} << shift;
  return {part << shift, (part << shift) + (width - 1), 0};
}

void DurationHistogram::Add(std::uint64_t duration) {
  const std::size_t index = IndexOf(duration);
  if (index >= counts_.size()) counts_.resize(index + 1);
  ++counts_[index];
  min_ = count_ == 0 ? duration : std::min(min_, duration);
  max_ = std::max(max_, duration);
  ++count_;
}

std::uint64_t DurationHistogram::Percentile(unsigned percent) const {
  // Rounded up, without overflow.
  const std::uint64_t wanted = count_ / 100 * percent + (count_ % 100 * percent + 99) / 100;
  std::uint64_t so_far = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    so_far += counts_[i];
    if (so_far != 0 && so_far >= wanted) return std::clamp(BucketAt(i).to, min_, max_);
  }
  return max_;
}

std::vector<DurationHistogram::Bucket> DurationHistogram::Buckets() const {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) continue;
    buckets.push_back(BucketAt(i));
    buckets.back().count = counts_[i];
  }
  return buckets;
}

}  // namespace tools::report
