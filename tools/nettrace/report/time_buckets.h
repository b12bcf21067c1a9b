// Counts events over time, for several series, in a limited number of buckets of equal width. When
// a new time does not fit into the buckets, their width doubles, once or several times. The counts
// of adjacent buckets are then added, so that each count remains exact.
#ifndef TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_
#define TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tools::report {

class TimeBuckets {
 public:
  // `buckets` is the maximum number of buckets, and at least 2.
  explicit TimeBuckets(std::size_t buckets) : buckets_(buckets) {}

  // Adds a series whose counts are all 0. Returns its index.
  std::size_t AddSeries();
  // Adds `count` events at the time `ticks`. Times may be in any order.
  void Add(std::size_t series, std::uint64_t ticks, std::uint64_t count);

  // Returns the number of buckets from the earliest to the latest time; 0 if there is no time.
  std::size_t size() const;
  // Returns the width of a bucket in ticks, a power of 2.
  std::uint64_t width() const { return std::uint64_t{1} << shift_; }
  // Returns the time at which the first bucket begins, in ticks.
  std::uint64_t start() const { return base_ << shift_; }
  // Returns the size() counts of a series. They are valid until the next Add or AddSeries.
  std::span<const std::uint64_t> counts(std::size_t series) const;

 private:
  // Moves and widens the buckets so that they contain the time `ticks`.
  void Cover(std::uint64_t ticks);

  const std::size_t buckets_;
  std::vector<std::vector<std::uint64_t>> series_;
  bool empty_ = true;
  std::uint64_t first_ = 0;  // earliest time, in ticks
  std::uint64_t last_ = 0;   // latest time, in ticks
  // Bucket i holds the times t with t >> shift_ == base_ + i.
  unsigned shift_ = 0;
  std::uint64_t base_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_
