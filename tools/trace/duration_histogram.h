// Counts durations in buckets, so that percentiles can be computed in bounded memory.
#ifndef TOOLS_TRACE_DURATION_HISTOGRAM_H_
#define TOOLS_TRACE_DURATION_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace trace {

// A histogram of durations. Each range from a power of two to the next has 32 linear buckets, so
// that the relative error of a percentile is at most kMaxError. Durations below 64 ns, the minimum
// and the maximum are exact. Only the buckets from the shortest to the longest duration are stored:
// at most 1920 buckets of 8 bytes.
class DurationHistogram {
 public:
  // Maximum relative error of Percentile().
  static constexpr double kMaxError = 1.0 / 64;

  struct Bucket {
    std::uint64_t from = 0;  // ns
    std::uint64_t to = 0;    // ns, inclusive
    std::uint64_t count = 0;
  };

  // Returns the number of the bucket that counts this duration, for AddBucket().
  static std::uint16_t BucketOf(std::uint64_t nanoseconds);

  void Add(std::uint64_t nanoseconds);
  void Add(absl::Duration duration);  // a negative duration counts as 0
  void Merge(const DurationHistogram& other);
  // Adds `count` durations whose buckets are known, but not their values. min() and max() are then
  // values from the buckets, with an error of up to kMaxError.
  void AddBucket(std::uint16_t bucket, std::uint64_t count);

  std::uint64_t count() const { return count_; }
  std::uint64_t min() const { return min_; }  // ns; 0 if there are no durations
  std::uint64_t max() const { return max_; }  // ns; 0 if there are no durations
  // Returns a percentile in ns: the shortest duration such that at least `percent` % (0 to 100) of
  // all durations are not longer. Its relative error is at most kMaxError. Returns 0 if there are
  // no durations.
  std::uint64_t Percentile(unsigned percent) const;
  // Returns the buckets that are not empty, in ascending order.
  std::vector<Bucket> Buckets() const;

 private:
  void AddTo(std::size_t bucket, std::uint64_t count);

  std::vector<std::uint64_t> counts_;  // counts_[i] is the count of bucket first_ + i
  std::size_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace trace

#endif  // TOOLS_TRACE_DURATION_HISTOGRAM_H_
