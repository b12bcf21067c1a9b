// Statistics over time of the events of a file, collected in one pass and in bounded memory.
// findings.h derives from them what stands out in the file.
#ifndef TOOLS_NETTRACE_REPORT_STATISTICS_H_
#define TOOLS_NETTRACE_REPORT_STATISTICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/nettrace/report/time_buckets.h"
#include "tools/trace/duration_histogram.h"

namespace tools::report {

inline constexpr std::size_t kRateBuckets = 256;  // time buckets of each kind's events
// Time buckets of each provider's events, and of the activities of each kind.
inline constexpr std::size_t kShareBuckets = kRateBuckets;
inline constexpr std::size_t kErrorBuckets = 1024;    // time buckets of each kind's errors
inline constexpr std::size_t kDurationBuckets = 128;  // time buckets of each kind's durations
// Maximum number of pairs of kind and process whose errors are counted.
inline constexpr std::size_t kMaxErrorProcesses = 4096;

// Holds the durations of activities over time. Each part of the time has a histogram of durations,
// with four buckets for each power of two.
class DurationsOverTime {
 public:
  // Adds the duration of an activity that ended at the time `ticks`.
  void Add(std::uint64_t ticks, std::uint64_t nanoseconds);

  // The durations in one part of the time. The histogram has the number of durations by bucket.
  struct Part {
    std::uint64_t count = 0;
    std::map<unsigned, std::uint64_t> histogram;

    void Merge(const Part& other);
    // Returns a duration, in ns, that is within 12 % of the percentile. `count` must not be 0.
    double Percentile(double percent) const;
    // Returns the number of durations in buckets above `bucket`.
    std::uint64_t CountAbove(unsigned bucket) const;
  };
  // Returns the parts from the first to the last one with a duration.
  std::vector<Part> Parts() const;
  std::uint64_t start() const { return buckets_.start(); }  // ticks
  std::uint64_t width() const { return buckets_.width(); }  // ticks

  // Returns the bucket of a duration in the histograms.
  static unsigned BucketOf(std::uint64_t nanoseconds);

 private:
  TimeBuckets buckets_{kDurationBuckets};
  std::map<unsigned, std::size_t> series_;  // series in buckets_, by bucket of the histograms
};

class Statistics {
 public:
  // Statistics of one kind of events. Times are in ticks.
  struct OfKind {
    std::uint64_t events = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t errors = 0;
    std::uint64_t first_error = 0;
    std::uint64_t last_error = 0;
    std::uint64_t longest_gap = 0;            // longest time between two successive events
    std::uint64_t longest_gap_until = 0;      // time at which the longest gap ended
    trace::DurationHistogram gaps;            // times between successive events
    std::optional<std::size_t> error_series;  // series in errors(); none without an error
  };

  Statistics() { errors_.AddSeries(); }

  // `kind`, `provider` and `process` are indices of rows of ReportModel. Times must be in order.
  void OnEvent(std::size_t kind, std::size_t provider, std::size_t process, std::uint64_t ticks,
               bool is_error);

  const std::vector<OfKind>& kinds() const { return kinds_; }
  // Returns the events over time, with a series for each kind.
  const TimeBuckets& rates() const { return rates_; }
  // Returns the errors over time, in the series OfKind::error_series. Series 0 has all events, even
  // those that are not errors.
  const TimeBuckets& errors() const { return errors_; }
  // Returns the errors of a kind in each bucket of rates(), which has the same buckets as shares().
  std::vector<std::uint64_t> ErrorsByBucket(std::size_t kind) const;
  // Returns the counts over time. Series 2 * p has the events of provider p, and series 2 * p + 1
  // its errors.
  const TimeBuckets& shares() const { return shares_; }
  std::size_t providers() const { return providers_; }
  // Returns the process with the most errors of this kind, and the number of these errors. Returns
  // nullopt if no errors of the kind were counted by process (see kMaxErrorProcesses).
  std::optional<std::pair<std::size_t, std::uint64_t>> MostErrors(std::size_t kind) const;

 private:
  std::vector<OfKind> kinds_;
  TimeBuckets rates_{kRateBuckets};
  TimeBuckets errors_{kErrorBuckets};
  TimeBuckets shares_{kShareBuckets};
  std::size_t providers_ = 0;
  absl::flat_hash_map<std::pair<std::size_t, std::size_t>, std::uint64_t> error_processes_;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_STATISTICS_H_
