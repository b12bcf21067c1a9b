#include "tools/collector/config/values.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/common/text.h"

namespace collector {
namespace {

constexpr std::string_view kUnits = "KMGT";

// How many letters are to be added, left out, replaced or swapped with the next to make one of the
// other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;                // row i - 1
  std::vector<std::size_t> row(b.size() + 1, 0);  // row i
  std::vector<std::size_t> next(b.size() + 1);    // row i + 1
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = row[j] + (a[i] == b[j] ? 0 : 1);
      next[j + 1] = std::min({replaced, row[j + 1] + 1, next[j] + 1});
      const bool is_swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (is_swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before = row;
    row.swap(next);
  }
  return row.back();
}

std::optional<absl::Duration> UnitOfTime(std::string_view text) {
  static const struct {
    std::string_view name;
    absl::Duration duration;
  } kNames[] = {{"us", absl::Microseconds(1)}, {"ms", absl::Milliseconds(1)},
                {"s", absl::Seconds(1)},       {"min", absl::Minutes(1)},
                {"m", absl::Minutes(1)},       {"h", absl::Hours(1)},
                {"d", absl::Hours(24)},        {"w", absl::Hours(24 * 7)}};
  for (const auto& unit : kNames) {
    if (unit.name == text) return unit.duration;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> ParseSize(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty() && kUnits.find(text.back()) != std::string_view::npos) {
    shift = 10 * (static_cast<unsigned>(kUnits.find(text.back())) + 1);
    text.remove_suffix(1);
  }
  const std::optional<std::uint64_t> number = tools::ParseUint64(text);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) return std::nullopt;
  return *number << shift;
}

std::string FormatSize(std::uint64_t bytes) {
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, unit == 0 ? "" : std::string(1, kUnits[unit - 1]));
}

std::optional<absl::Duration> ParseDuration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  absl::Duration sum = absl::ZeroDuration();
  const auto is_digit = [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); };
  while (!text.empty()) {
    const auto unit = std::find_if_not(text.begin(), text.end(), is_digit);
    const auto end = std::find_if(unit, text.end(), is_digit);
    const auto digits = static_cast<std::size_t>(unit - text.begin());
    const auto size = static_cast<std::size_t>(end - text.begin());
    const std::optional<std::uint64_t> number = tools::ParseUint64(text.substr(0, digits));
    const std::optional<absl::Duration> each = UnitOfTime(text.substr(digits, size - digits));
    constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
    if (!number || *number > kMost || !each) return std::nullopt;
    sum += static_cast<std::int64_t>(*number) * *each;
    text.remove_prefix(size);
  }
  return sum;
}

std::string Nearest(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t kLongest = 64;
  std::string nearest;
  // Two of five letters may differ.
  std::size_t least = std::max<std::size_t>(text.size() * 2 / 5, 1) + 1;
  if (text.size() > kLongest) return nearest;
  for (const std::string& name : names) {
    const std::size_t distance = Distance(text, name);
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace collector
