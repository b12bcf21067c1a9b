// Counts over time, of several series, in a bounded number of buckets whatever time they cover: a
// bucket becomes twice as wide when they do not suffice. Counts are moved then, never estimated.
#ifndef TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_
#define TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tools::report {

class TimeBuckets {
 public:
  // At least 2 buckets.
  explicit TimeBuckets(std::size_t buckets) : buckets_(buckets) {}

  // Returns the index of a new series, all of whose counts are 0.
  std::size_t AddSeries();
  // Times are in ticks, in any order.
  void Add(std::size_t series, std::uint64_t ticks, std::uint64_t count);

  // Buckets from the first to the last one that Add named; 0 if there is none.
  std::size_t size() const;
  // Ticks of a bucket, a power of 2.
  std::uint64_t width() const { return std::uint64_t{1} << shift_; }
  // Ticks at which the first bucket begins.
  std::uint64_t start() const { return base_ << shift_; }
  // size() counts. Valid until Add or AddSeries.
  std::span<const std::uint64_t> counts(std::size_t series) const;

 private:
  void Cover(std::uint64_t ticks);

  const std::size_t buckets_;
  std::vector<std::vector<std::uint64_t>> series_;
  bool empty_ = true;
  std::uint64_t first_ = 0;  // the earliest and the latest time
  std::uint64_t last_ = 0;
  // Bucket i has the times whose bits from shift_ on are base_ + i.
  unsigned shift_ = 0;
  std::uint64_t base_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_TIME_BUCKETS_H_
