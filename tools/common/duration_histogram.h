// How long things took, counted in buckets: percentiles in bounded memory.
#ifndef TOOLS_COMMON_DURATION_HISTOGRAM_H_
#define TOOLS_COMMON_DURATION_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tools {

// Buckets are linear within each power of two, 32 of them, so that a percentile differs from the
// true one by at most kMaxError of it. Below 64 ns all are exact, and so are minimum and maximum.
// Takes at most 16 KB, and only what lies between the shortest and the longest duration.
class DurationHistogram {
 public:
  static constexpr double kMaxError = 1.0 / 64;

  struct Bucket {
    std::uint64_t from = 0;  // ns
    std::uint64_t to = 0;    // included
    std::uint64_t count = 0;
  };

  void Add(std::uint64_t nanoseconds);
  void Merge(const DurationHistogram& other);

  std::uint64_t count() const { return count_; }
  std::uint64_t min() const { return min_; }  // ns; 0 if there is none
  std::uint64_t max() const { return max_; }  // likewise
  // The shortest duration that at least `percent` (0 to 100) of all do not exceed, ns; 0 if there
  // is none.
  std::uint64_t Percentile(unsigned percent) const;
  // Those with a count, in order.
  std::vector<Bucket> Buckets() const;

 private:
  void AddTo(std::size_t bucket, std::uint64_t count);

  std::vector<std::uint64_t> counts_;  // of bucket first_ and those after it
  std::size_t first_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t min_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace tools

#endif  // TOOLS_COMMON_DURATION_HISTOGRAM_H_
