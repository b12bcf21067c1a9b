// How often durations of each size came: buckets whose width grows with the duration, so that each
// is known to one part in 32.
#ifndef TOOLS_NETTRACE_REPORT_DURATION_HISTOGRAM_H_
#define TOOLS_NETTRACE_REPORT_DURATION_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tools::report {

// All durations are nanoseconds.
class DurationHistogram {
 public:
  struct Bucket {
    std::uint64_t from = 0;
    std::uint64_t to = 0;  // included
    std::uint64_t count = 0;
  };

  void Add(std::uint64_t duration);

  std::uint64_t count() const { return count_; }
  std::uint64_t min() const { return min_; }  // 0 if there is none
  std::uint64_t max() const { return max_; }
  // The least duration that `percent` of all are not above, or up to 1/32 more than that; 0 if
  // there is none.
  std::uint64_t Percentile(unsigned percent) const;
  // The buckets with a count, in order.
  std::vector<Bucket> Buckets() const;

 private:
  static std::size_t IndexOf(std::uint64_t duration);
  static Bucket BucketAt(std::size_t index);

  std::vector<std::uint64_t> counts_;  // up to the last one that is not 0
  std::uint64_t count_ = 0;
  std::uint64_t min_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_DURATION_HISTOGRAM_H_
