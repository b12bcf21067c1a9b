#include "tools/nettrace/report/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tools::report {
namespace {

constexpr unsigned kParts = 4;  // buckets for each power of two

// Returns the middle of a bucket, in ns.
double MiddleOf(unsigned bucket) { return std::exp2((static_cast<double>(bucket) + 0.5) / kParts); }

}  // namespace

unsigned DurationsOverTime::BucketOf(std::uint64_t nanoseconds) {
  if (nanoseconds == 0) return 0;
  return static_cast<unsigned>(std::log2(static_cast<double>(nanoseconds)) * kParts);
}

void DurationsOverTime::Add(std::uint64_t ticks, std::uint64_t nanoseconds) {
  const auto [entry, is_new] = series_.try_emplace(BucketOf(nanoseconds));
  if (is_new) entry->second = buckets_.AddSeries();
  buckets_.Add(entry->second, ticks, 1);
}

void DurationsOverTime::Part::Merge(const Part& other) {
  count += other.count;
  for (const auto& [bucket, number] : other.histogram) histogram[bucket] += number;
}

double DurationsOverTime::Part::Percentile(double percent) const {
  const double rank = static_cast<double>(count) * percent / 100;
  std::uint64_t seen = 0;
  for (const auto& [bucket, number] : histogram) {
    seen += number;
    if (static_cast<double>(seen) >= rank) return MiddleOf(bucket);
  }
  return 0;
}

std::uint64_t DurationsOverTime::Part::CountAbove(unsigned bucket) const {
  std::uint64_t sum = 0;
  for (auto entry = histogram.upper_bound(bucket); entry != histogram.end(); ++entry) {
    sum += entry->second;
  }
  return sum;
}

std::vector<DurationsOverTime::Part> DurationsOverTime::Parts() const {
  std::vector<Part> parts(buckets_.size());
  for (const auto& [bucket, series] : series_) {
    const auto counts = buckets_.counts(series);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      parts[i].histogram[bucket] = counts[i];
      parts[i].count += counts[i];
    }
  }
  return parts;
}

void Statistics::OnEvent(std::size_t kind, std::size_t provider, std::size_t process,
                         std::uint64_t ticks, bool is_error) {
  while (kinds_.size() <= kind) {
    kinds_.emplace_back();
    rates_.AddSeries();
  }
  for (; providers_ <= provider; ++providers_) {
    shares_.AddSeries();
    shares_.AddSeries();
  }
  shares_.Add(2 * provider, ticks, 1);
  if (is_error) shares_.Add(2 * provider + 1, ticks, 1);
  OfKind& row = kinds_[kind];
  if (row.events++ == 0) {
    row.first = row.last = ticks;
  } else {
    const std::uint64_t gap = ticks - std::min(ticks, row.last);
    row.gaps.Add(gap);
    if (gap > row.longest_gap) {
      row.longest_gap = gap;
      row.longest_gap_until = ticks;
    }
    row.last = std::max(row.last, ticks);
  }
  rates_.Add(kind, ticks, 1);
  errors_.Add(0, ticks, 1);
  if (!is_error) return;
  if (row.errors++ == 0) {
    row.first_error = ticks;
    row.error_series = errors_.AddSeries();
  }
  row.last_error = ticks;
  errors_.Add(*row.error_series, ticks, 1);
  const std::pair<std::size_t, std::size_t> key = {kind, process};
  if (error_processes_.size() < kMaxErrorProcesses || error_processes_.contains(key)) {
    ++error_processes_[key];
  }
}

std::vector<std::uint64_t> Statistics::ErrorsByBucket(std::size_t kind) const {
  std::vector<std::uint64_t> sums(rates_.size());
  if (!kinds_[kind].error_series) return sums;
  // rates_ and errors_ contain the times of all events (errors_ in series 0), and errors_ may have
  // more buckets. Widths are powers of 2, so each bucket of errors_ is within one bucket of rates_.
  const auto errors = errors_.counts(*kinds_[kind].error_series);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    sums[(errors_.start() + i * errors_.width() - rates_.start()) / rates_.width()] += errors[i];
  }
  return sums;
}

std::optional<std::pair<std::size_t, std::uint64_t>> Statistics::MostErrors(
    std::size_t kind) const {
  std::optional<std::pair<std::size_t, std::uint64_t>> most;
  for (const auto& [key, count] : error_processes_) {
    if (key.first != kind) continue;
    if (!most || count > most->second || (count == most->second && key.second < most->first)) {
      most = {key.second, count};
    }
  }
  return most;
}

}  // namespace tools::report
