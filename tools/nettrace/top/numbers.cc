#include "tools/nettrace/top/numbers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/quantities.h"
#include "tools/base/text.h"
#include "tools/trace/levels.h"

namespace tools::top {
namespace {

// A row moves when its number has changed by more than this fraction.
constexpr double kCalm = 0.2;

std::string NumberOr(const std::optional<std::uint64_t>& number, std::string_view other) {
  return number ? absl::StrCat(*number) : std::string(other);
}

std::string WithoutFolder(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string OnHost(const RowName& name) {
  return name.host.empty() ? "" : absl::StrCat(" on ", name.host);
}

}  // namespace

const char* NameOf(View view) {
  static constexpr std::array kNames = {"provider", "event", "process", "thread",
                                        "cpu",      "level", "function"};
  return kNames[static_cast<std::size_t>(view)];
}

std::string FormatCount(std::uint64_t count, int width) {
  std::string digits = absl::StrCat(count);
  if (digits.size() <= static_cast<std::size_t>(width)) return digits;
  return base::FormatScaled(static_cast<double>(count), 1000, {"", "k", "M", "G", "T", "P", "E"});
}

std::string FormatRate(double rate) {
  if (rate < 9999.95) return absl::StrFormat("%.1f", rate);
  if (rate < 1e8 - 0.5) return absl::StrFormat("%.0f", rate);
  return base::FormatScaled(rate, 1000, {"", "k", "M", "G", "T", "P", "E"});
}

std::string FormatErrorRate(double rate) {
  if (rate > 0 && rate < 0.05) return "<0.1";
  if (rate < 999'999.5) return FormatRate(rate);
  return base::FormatScaled(rate, 1000, {"", "k", "M", "G", "T", "P", "E"});
}

std::string FormatRatio(double ratio) {
  if (ratio < 9.995) return absl::StrFormat("x%.2f", ratio);
  if (ratio < 99.95) return absl::StrFormat("x%.1f", ratio);
  return absl::StrFormat("x%.0f", std::min(ratio, 9999.0));
}

std::optional<double> P99Ratio(const RowNumbers& numbers) {
  if (numbers.minute.durations == 0 || numbers.minute_before.p99 == 0) return std::nullopt;
  return static_cast<double>(numbers.minute.p99) / static_cast<double>(numbers.minute_before.p99);
}

bool HasEnoughForMark(const RowNumbers& numbers) {
  return std::min(numbers.minute.durations, numbers.minute_before.durations) >= kLeastForMark;
}

bool IsMarked(const RowNumbers& numbers) {
  return HasEnoughForMark(numbers) && P99Ratio(numbers).value_or(0) >= kMarkedRatio;
}

std::string Cell(const RowNumbers& numbers, const ColumnFacts& facts) {
  const auto duration = [](std::uint64_t count, std::uint64_t nanoseconds) {
    return count == 0 ? "-" : base::FormatNarrowDuration(nanoseconds);
  };
  switch (facts.column) {
    case Column::kLevel:
      return trace::LevelName(numbers.level);
    case Column::kRate:
      return FormatRate(numbers.rate);
    case Column::kEvents:
      return FormatCount(numbers.events, facts.width);
    case Column::kErrors:
      return FormatErrorRate(numbers.error_rate);
    case Column::kBytes:
      return base::FormatNarrowBytes(numbers.bytes);
    case Column::kLost:
      return FormatCount(numbers.lost, facts.width);
    case Column::kDurations:
      return FormatCount(numbers.durations, facts.width);
    case Column::kP50:
      return duration(numbers.durations, numbers.p50);
    case Column::kP99:
      return duration(numbers.durations, numbers.p99);
    case Column::kMax:
      return duration(numbers.durations, numbers.max);
    case Column::kMinuteP50:
      return duration(numbers.minute.durations, numbers.minute.p50);
    case Column::kBeforeP50:
      return duration(numbers.minute_before.durations, numbers.minute_before.p50);
    case Column::kMinuteP99:
      return duration(numbers.minute.durations, numbers.minute.p99);
    case Column::kBeforeP99:
      return duration(numbers.minute_before.durations, numbers.minute_before.p99);
    case Column::kRatio: {
      const std::optional<double> ratio = P99Ratio(numbers);
      return ratio ? FormatRatio(*ratio) + (IsMarked(numbers) ? "!" : "") : "-";
    }
    case Column::kSelf:
      return FormatCount(numbers.self, facts.width);
  }
  return "";
}

double ValueOf(const RowNumbers& numbers, Column column) {
  switch (column) {
    case Column::kLevel:
      // The squares differ so much that a row moves when its level changes (CalmOrder).
      return numbers.level == 0 ? 0 : 1.0 / (numbers.level * numbers.level);
    case Column::kRate:
      return numbers.rate;
    case Column::kEvents:
      return static_cast<double>(numbers.events);
    case Column::kErrors:
      return numbers.error_rate;
    case Column::kBytes:
      return static_cast<double>(numbers.bytes);
    case Column::kLost:
      return static_cast<double>(numbers.lost);
    case Column::kDurations:
      return static_cast<double>(numbers.durations);
    case Column::kP50:
      return static_cast<double>(numbers.p50);
    case Column::kP99:
      return static_cast<double>(numbers.p99);
    case Column::kMax:
      return static_cast<double>(numbers.max);
    case Column::kMinuteP50:
      return static_cast<double>(numbers.minute.p50);
    case Column::kBeforeP50:
      return static_cast<double>(numbers.minute_before.p50);
    case Column::kMinuteP99:
      return static_cast<double>(numbers.minute.p99);
    case Column::kBeforeP99:
      return static_cast<double>(numbers.minute_before.p99);
    case Column::kRatio:
      return P99Ratio(numbers).value_or(0);
    case Column::kSelf:
      return static_cast<double>(numbers.self);
  }
  return 0;
}

std::string Title(View view, const RowName& name, bool with_paths) {
  const auto path = [with_paths](const std::string& process) {
    return with_paths ? process : WithoutFolder(process);
  };
  std::string text;
  const std::string pid = absl::StrCat(NumberOr(name.pid, "?"), OnHost(name));
  switch (view) {
    case View::kProvider:
      text = name.provider;
      break;
    case View::kEvent:
      text = absl::StrCat(name.name, "  ", name.provider);
      break;
    case View::kProcess:
      text = absl::StrCat(pid, " ", path(name.name));
      break;
    case View::kThread:
      text =
          absl::StrCat(NumberOr(name.tid, "?"), " ", name.name, "  ", pid, " ", path(name.process));
      break;
    case View::kCpu:
      text = absl::StrCat(name.tid ? absl::StrCat(*name.tid, " ") : "", name.name, OnHost(name));
      break;
    case View::kLevel:
    case View::kFunction:
      text = name.name;
      break;
  }
  const std::size_t end = text.find_last_not_of(' ');
  return end == std::string::npos ? "?" : base::Printable(text.substr(0, end + 1));
}

std::string OthersTitle(const SnapshotView& view) {
  return absl::StrCat("(", view.other_rows, " others)");
}

std::vector<std::size_t> CalmOrder::Sort(const std::vector<SnapshotRow>& rows, Column column,
                                         bool reverse, bool is_exact) {
  absl::flat_hash_map<std::string, double> values;
  std::vector<double> value_of(rows.size());
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    order[i] = i;
    double value = ValueOf(rows[i].numbers, column);
    if (const auto before = values_.find(rows[i].key); !is_exact && before != values_.end()) {
      const double change = std::abs(value - before->second);
      if (change <= kCalm * std::max(value, before->second)) value = before->second;
    }
    value_of[i] = values[rows[i].key] = value;
  }
  values_ = std::move(values);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return value_of[a] != value_of[b] ? value_of[a] > value_of[b] : rows[a].key < rows[b].key;
  });
  if (reverse) std::reverse(order.begin(), order.end());
  return order;
}

}  // namespace tools::top
