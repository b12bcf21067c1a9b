// Finds changed rates, changed shares, bursts and trends in series of numbers. Rates and shares are
// compared with the median, and trends use ranks, because a few outliers hardly affect medians and
// ranks.
#ifndef TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_
#define TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tools::report {

// Minimum difference between counted and expected events for a change, in standard deviations.
// Random data practically never reaches it, even in the most unusual of thousands of segments.
inline constexpr double kSureDeviations = 8;

// Returns the median, which is the upper one of two middle values; 0 if there are no values.
double Median(std::vector<double> values);

// A range of indices of a series.
struct Segment {
  std::size_t from = 0;
  std::size_t until = 0;  // exclusive

  friend bool operator==(const Segment&, const Segment&) = default;
};

// Returns the segment with the largest sum of scores, or nullopt if no score is positive.
std::optional<Segment> BestSegment(std::span<const double> scores);

struct RateChange {
  Segment segment;          // indices of the counts
  double usual = 0;         // median count
  double rate = 0;          // mean count in the segment
  bool from_start = false;  // whether the segment begins with the first examined count
  bool until_end = false;   // whether the segment ends with the last examined count
};

// `counts` has the number of events in each of several successive parts of time of equal length.
// Returns the segment that differs most from the median count. Its mean count is at least twice the
// median count, or at most half of it. Returns nullopt if there is no such segment, or if there are
// too few events to exclude chance. Ignores the first and the last part, because the recording may
// have begun and ended within them.
std::optional<RateChange> FindRateChange(std::span<const std::uint64_t> counts);

struct ShareChange {
  Segment segment;          // indices of parts
  double usual = 0;         // median share of the parts
  double share = 0;         // share in the segment
  bool from_start = false;  // whether the segment begins with the first part
  bool until_end = false;   // whether the segment ends with the last part
  // Number of successive parts that were added up before the comparison. The bounds of the segment
  // are accurate to this number of parts.
  std::size_t together = 1;
};

// Returns the segment in which the share of the errors among the events differs most from the usual
// share. Its share is at least twice the usual share, or at most half of it. `errors` and `events`
// are counts of equal parts of the time. Returns nullopt if there is no such segment, or if there
// are too few errors to exclude chance.
std::optional<ShareChange> FindShareChange(std::span<const std::uint64_t> errors,
                                           std::span<const std::uint64_t> events);

// `counts` has the number of events in each of several successive parts of time of equal length.
// Returns a segment of at most a third of the parts that has at least half of all events. Returns
// nullopt if there is none, or if random times of the events could explain it.
std::optional<Segment> FindBurst(std::span<const std::uint64_t> counts);

// Returns Kendall's rank correlation of the values with their order. It is 1 if each value is
// larger than the previous one, -1 if each is smaller, and about 0 without a trend.
double TrendOf(std::span<const double> values);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_
