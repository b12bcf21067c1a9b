#include "tools/nettrace/report/time_buckets.h"

#include <algorithm>
#include <utility>

namespace tools::report {

std::size_t TimeBuckets::AddSeries() {
  series_.emplace_back(buckets_);
  return series_.size() - 1;
}

void TimeBuckets::Add(std::size_t series, std::uint64_t ticks, std::uint64_t count) {
  if (empty_ || ticks < first_ || ticks > last_) Cover(ticks);
  series_[series][(ticks >> shift_) - base_] += count;
}

void TimeBuckets::Cover(std::uint64_t ticks) {
  const std::size_t before = size();
  first_ = empty_ ? ticks : std::min(first_, ticks);
  last_ = empty_ ? ticks : std::max(last_, ticks);
  empty_ = false;
  unsigned shift = shift_;
  while ((last_ >> shift) - (first_ >> shift) >= buckets_) ++shift;
  const std::uint64_t base = first_ >> shift;
  if (shift == shift_ && base == base_) return;
  for (std::vector<std::uint64_t>& counts : series_) {
    std::vector<std::uint64_t> moved(buckets_);
    for (std::size_t i = 0; i < before; ++i) {
      moved[((base_ + i) >> (shift - shift_)) - base] += counts[i];
    }
    counts = std::move(moved);
  }
  shift_ = shift;
  base_ = base;
}

std::size_t TimeBuckets::size() const {
  return empty_ ? 0 : static_cast<std::size_t>((last_ >> shift_) - base_) + 1;
}

std::span<const std::uint64_t> TimeBuckets::counts(std::size_t series) const {
  return std::span(series_[series]).first(size());
}

}  // namespace tools::report
