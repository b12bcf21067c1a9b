#include "tools/nettrace/report/change_detection.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tools::report {
namespace {

constexpr std::size_t kLeastParts = 12;      // parts of the time needed to judge a change
constexpr double kLeastMedian = 8;           // minimum median count of a part to judge a change
constexpr double kLeastDifference = 30;      // minimum of |counted - expected| events of a segment
constexpr double kDeviationsOfMad = 1.4826;  // standard deviation / median absolute deviation

double Sum(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

// Returns the sums of pairs of adjacent values. Drops the last value if their number is odd.
std::vector<double> Halve(const std::vector<double>& values) {
  std::vector<double> halved(values.size() / 2);
  for (std::size_t i = 0; i < halved.size(); ++i) halved[i] = values[2 * i] + values[2 * i + 1];
  return halved;
}

// Returns the variance of the counts divided by their median, at least 1. Random (Poisson) counts
// have a ratio of 1. The variance is estimated from the differences of adjacent values, which a
// change of the rate hardly affects.
double DispersionOf(std::span<const double> values, double median) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < values.size(); ++i) {
    steps.push_back(std::abs(values[i] - values[i - 1]));
  }
  const double deviation = kDeviationsOfMad * Median(std::move(steps)) / std::sqrt(2.0);
  return std::max(1.0, deviation * deviation / median);
}

// Returns the segment whose counts are most above (`is_up`) or below the median. Returns nullopt if
// chance could explain the segment. With `is_up`, its mean must be at least twice the median, and
// otherwise at most half of the median.
std::optional<RateChange> ChangeOf(std::span<const double> values, double median, bool is_up) {
  std::vector<double> scores;
  for (const double value : values) {
    scores.push_back(is_up ? value - 1.5 * median : 0.75 * median - value);
  }
  const std::optional<Segment> segment = BestSegment(scores);
  if (!segment) return std::nullopt;
  const auto length = static_cast<double>(segment->until - segment->from);
  const double count = Sum(values.subspan(segment->from, segment->until - segment->from));
  const double expected = median * length;
  const double rate = count / length;
  const double difference = std::abs(count - expected);
  const bool is_large = is_up ? rate >= 2 * median : rate <= median / 2;
  const double deviation = std::sqrt(expected * DispersionOf(values, median));
  if (!is_large || difference < kLeastDifference || difference < kSureDeviations * deviation) {
    return std::nullopt;
  }
  return RateChange{*segment, median, rate, segment->from == 0, segment->until == values.size()};
}

// Numbers of errors and of events in each part of the time.
struct Shares {
  std::vector<double> errors;
  std::vector<double> events;

  double ShareOf(Segment segment) const {
    const std::size_t length = segment.until - segment.from;
    const double all = Sum(std::span(events).subspan(segment.from, length));
    return all == 0 ? 0 : Sum(std::span(errors).subspan(segment.from, length)) / all;
  }
};

// Returns the median of the shares of the parts that have events.
double UsualShare(const Shares& shares) {
  std::vector<double> values;
  for (std::size_t i = 0; i < shares.events.size(); ++i) {
    if (shares.events[i] != 0) values.push_back(shares.errors[i] / shares.events[i]);
  }
  return Median(std::move(values));
}

// Returns the variance of the errors, divided by the variance of random errors with this share; at
// least 1. The variance is estimated from the differences of adjacent parts.
double DispersionOfErrors(const Shares& shares, double share) {
  std::vector<double> steps;
  std::vector<double> expected;
  for (std::size_t i = 0; i < shares.events.size(); ++i) {
    expected.push_back(share * shares.events[i]);
    if (i == 0) continue;
    const double before = shares.errors[i - 1] - share * shares.events[i - 1];
    steps.push_back(std::abs(shares.errors[i] - share * shares.events[i] - before));
  }
  const double mean = Median(std::move(expected));
  if (mean <= 0) return 1;
  const double deviation = kDeviationsOfMad * Median(std::move(steps)) / std::sqrt(2.0);
  return std::max(1.0, deviation * deviation / mean);
}

// Returns the segment whose share is most above (`is_up`) or below the usual share. Returns nullopt
// if chance could explain the segment. With `is_up`, its share must be at least twice the usual
// share, and otherwise at most half of it.
std::optional<ShareChange> ShareChangeOf(const Shares& shares, double usual, bool is_up) {
  std::vector<double> scores;
  for (std::size_t i = 0; i < shares.events.size(); ++i) {
    const double expected = usual * shares.events[i];
    scores.push_back(is_up ? shares.errors[i] - 1.5 * expected
                           : 0.75 * expected - shares.errors[i]);
  }
  const std::optional<Segment> segment = BestSegment(scores);
  if (!segment) return std::nullopt;
  const double share = shares.ShareOf(*segment);
  const std::size_t length = segment->until - segment->from;
  const double events = Sum(std::span(shares.events).subspan(segment->from, length));
  const double expected = usual * events;
  const double difference = std::abs(share * events - expected);
  const double deviation = std::sqrt(std::max(1.0, expected) * DispersionOfErrors(shares, usual));
  const bool is_large = is_up ? share >= 2 * usual : share <= usual / 2;
  if (!is_large || difference < kLeastDifference || difference < kSureDeviations * deviation) {
    return std::nullopt;
  }
  return ShareChange{*segment, usual, share, segment->from == 0,
                     segment->until == shares.events.size()};
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::optional<Segment> BestSegment(std::span<const double> scores) {
  std::optional<Segment> best;
  double best_sum = 0;
  double sum = 0;
  std::size_t from = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (sum <= 0) {
      sum = 0;
      from = i;
    }
    sum += scores[i];
    if (sum > best_sum) {
      best_sum = sum;
      best = Segment{from, i + 1};
    }
  }
  return best;
}

std::optional<RateChange> FindRateChange(std::span<const std::uint64_t> counts) {
  if (counts.size() < kLeastParts + 2) return std::nullopt;
  std::vector<double> values(counts.begin() + 1, counts.end() - 1);
  std::size_t together = 1;
  double median = Median(values);
  for (; median < kLeastMedian && values.size() / 2 >= kLeastParts; median = Median(values)) {
    values = Halve(values);
    together *= 2;
  }
  if (median < kLeastMedian) return std::nullopt;
  std::optional<RateChange> up = ChangeOf(values, median, /*is_up=*/true);
  const std::optional<RateChange> down = ChangeOf(values, median, /*is_up=*/false);
  const auto size = [](const std::optional<RateChange>& change) {
    if (!change) return 0.0;
    return std::abs(change->rate - change->usual) *
           static_cast<double>(change->segment.until - change->segment.from);
  };
  std::optional<RateChange> change = size(down) > size(up) ? down : up;
  if (!change) return std::nullopt;
  const auto parts = static_cast<double>(together);
  change->segment.from = 1 + change->segment.from * together;
  change->segment.until = 1 + change->segment.until * together;
  change->usual /= parts;
  change->rate /= parts;
  return change;
}

std::optional<ShareChange> FindShareChange(std::span<const std::uint64_t> errors,
                                           std::span<const std::uint64_t> events) {
  Shares shares{{errors.begin(), errors.end()}, {events.begin(), events.end()}};
  std::size_t together = 1;
  // A part with few errors has no reliable share, so pairs of adjacent parts are joined.
  while (Median(shares.errors) < kLeastMedian && shares.errors.size() / 2 >= kLeastParts) {
    shares = {Halve(shares.errors), Halve(shares.events)};
    together *= 2;
  }
  if (shares.errors.size() < kLeastParts) return std::nullopt;
  const double usual = UsualShare(shares);
  const std::optional<ShareChange> up = ShareChangeOf(shares, usual, /*is_up=*/true);
  const std::optional<ShareChange> down = ShareChangeOf(shares, usual, /*is_up=*/false);
  const auto size = [&](const std::optional<ShareChange>& change) {
    if (!change) return 0.0;
    const std::size_t length = change->segment.until - change->segment.from;
    return std::abs(change->share - usual) *
           Sum(std::span(shares.events).subspan(change->segment.from, length));
  };
  std::optional<ShareChange> change = size(down) > size(up) ? down : up;
  if (!change) return std::nullopt;
  change->together = together;
  change->segment.from *= together;
  change->segment.until = change->until_end ? errors.size() : change->segment.until * together;
  return change;
}

std::optional<Segment> FindBurst(std::span<const std::uint64_t> counts) {
  const auto all =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  const auto parts = static_cast<double>(counts.size());
  std::vector<double> scores;
  for (const std::uint64_t count : counts) {
    scores.push_back(static_cast<double>(count) - 3 * all / parts);
  }
  const std::optional<Segment> segment = BestSegment(scores);
  if (!segment) return std::nullopt;
  const auto first = counts.begin() + static_cast<std::ptrdiff_t>(segment->from);
  const auto last = counts.begin() + static_cast<std::ptrdiff_t>(segment->until);
  const auto count = static_cast<double>(std::accumulate(first, last, std::uint64_t{0}));
  const double part = static_cast<double>(segment->until - segment->from) / parts;
  const double expected = all * part;
  const bool is_sure = count >= 10 && count - expected >= kSureDeviations * std::sqrt(expected);
  return is_sure && count >= all / 2 && part <= 1.0 / 3 ? segment : std::nullopt;
}

double TrendOf(std::span<const double> values) {
  double rising = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      if (values[j] > values[i]) ++rising;
      if (values[j] < values[i]) --rising;
    }
  }
  const auto count = static_cast<double>(values.size());
  return count < 2 ? 0 : rising / (count * (count - 1) / 2);
}

}  // namespace tools::report
