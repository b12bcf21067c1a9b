// Finds changes in series of numbers by medians and counts, which outliers do not affect.
#ifndef TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_
#define TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tools::report {

// A number of standard deviations that random data practically never reaches, even if the most
// unusual one of thousands of segments of a series is chosen.
inline constexpr double kSureDeviations = 8;

// Returns the median; 0 if there are no values.
double Median(std::vector<double> values);

struct Segment {
  std::size_t from = 0;
  std::size_t until = 0;  // exclusive

  friend bool operator==(const Segment&, const Segment&) = default;
};

// Returns the segment with the largest sum of scores, or nullopt if no score is positive.
std::optional<Segment> BestSegment(std::span<const double> scores);

struct RateChange {
  Segment segment;   // of the counts
  double usual = 0;  // median count
  double rate = 0;   // mean count in the segment
  bool from_start = false;
  bool until_end = false;
};

// Returns the segment in which counts of equal parts of time are at least twice or at most half of
// the median. Returns nullopt if there is none or the counts are too few to be sure. The first and
// the last part are ignored, because the recording may have begun and ended within them.
std::optional<RateChange> FindRateChange(std::span<const std::uint64_t> counts);

// Returns the segment that has at least half of all counts in at most a third of the parts, and
// nullopt if random times could explain it.
std::optional<Segment> FindBurst(std::span<const std::uint64_t> counts);

// Returns Kendall's rank correlation of the values with their order: 1 if each value is larger than
// the previous one, -1 if each is smaller, and about 0 if there is no trend.
double TrendOf(std::span<const double> values);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_CHANGE_DETECTION_H_
