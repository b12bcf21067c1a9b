#include "tools/base/values.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tools/base/text.h"

namespace base {
namespace {

constexpr std::string_view kUnitsOfSize = "KMGT";

struct UnitOfTime {
  std::string_view name;
  absl::Duration duration;
};

std::optional<absl::Duration> FindUnitOfTime(std::string_view text) {
  static const UnitOfTime kUnits[] = {
      {"ns", absl::Nanoseconds(1)}, {"us", absl::Microseconds(1)}, {"ms", absl::Milliseconds(1)},
      {"s", absl::Seconds(1)},      {"m", absl::Minutes(1)},       {"min", absl::Minutes(1)},
      {"h", absl::Hours(1)},        {"d", absl::Hours(24)},        {"w", absl::Hours(24 * 7)}};
  for (const UnitOfTime& unit : kUnits) {
    if (unit.name == text) return unit.duration;
  }
  return std::nullopt;
}

// Removes characters from the front of the text up to the first for which `is_taken` is false.
// Returns the removed characters.
template <typename Predicate>
std::string_view TakeWhile(std::string_view* text, Predicate is_taken) {
  const auto end = std::find_if_not(text->begin(), text->end(), is_taken);
  const std::string_view taken = text->substr(0, static_cast<std::size_t>(end - text->begin()));
  text->remove_prefix(taken.size());
  return taken;
}

bool IsDigit(char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }
bool IsLetter(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); }

// Removes one number and its unit from the front of the text, and returns their duration. Returns
// nullopt if the text does not begin with a valid number and unit.
std::optional<absl::Duration> TakeDuration(std::string_view* text) {
  constexpr std::uint64_t kMaxWhole = std::uint64_t{1} << 53;
  constexpr std::size_t kMaxDecimals = 9;
  const std::optional<std::uint64_t> whole = ParseUint64(TakeWhile(text, IsDigit));
  if (!whole || *whole > kMaxWhole) return std::nullopt;
  std::uint64_t decimals = 0;
  std::int64_t denominator = 1;
  if (!text->empty() && text->front() == '.') {
    text->remove_prefix(1);
    const std::string_view digits = TakeWhile(text, IsDigit);
    if (digits.empty()) return std::nullopt;
    for (const char digit : digits.substr(0, kMaxDecimals)) {
      decimals = decimals * 10 + static_cast<std::uint64_t>(digit - '0');
      denominator *= 10;
    }
  }
  const std::optional<absl::Duration> unit = FindUnitOfTime(TakeWhile(text, IsLetter));
  if (!unit) return std::nullopt;
  return static_cast<std::int64_t>(*whole) * *unit +
         static_cast<std::int64_t>(decimals) * *unit / denominator;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseDuration(std::string_view text) {
  const auto error = [text] {
    return absl::InvalidArgumentError(absl::StrCat("invalid duration \"", std::string(text),
                                                   "\"; examples: 500ms, 10s, 1.5h, 1h30m"));
  };
  if (text == "0") return absl::ZeroDuration();
  if (text.empty()) return error();
  absl::Duration sum = absl::ZeroDuration();
  for (std::string_view rest = text; !rest.empty();) {
    const std::optional<absl::Duration> part = TakeDuration(&rest);
    if (!part) return error();
    sum += *part;
  }
  if (sum == absl::InfiniteDuration()) return error();
  return sum;
}

absl::StatusOr<std::uint64_t> ParseSize(std::string_view text) {
  const auto error = [text] {
    return absl::InvalidArgumentError(
        absl::StrCat("invalid size \"", std::string(text), "\"; examples: 4096, 64K, 4M, 1GiB"));
  };
  std::string_view rest = text;
  const std::string_view digits = TakeWhile(&rest, IsDigit);
  unsigned shift = 0;
  if (!rest.empty()) {
    const std::size_t unit =
        kUnitsOfSize.find(absl::ascii_toupper(static_cast<unsigned char>(rest[0])));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(unit) + 1);
      rest.remove_prefix(1);
      if (absl::EqualsIgnoreCase({rest.data(), rest.size()}, "iB")) rest = {};
    }
    if (absl::EqualsIgnoreCase({rest.data(), rest.size()}, "B")) rest = {};
  }
  const std::optional<std::uint64_t> number = ParseUint64(digits);
  if (!rest.empty() || !number || *number > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return error();
  }
  return *number << shift;
}

std::string FormatSize(std::uint64_t bytes) {
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit < kUnitsOfSize.size()) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, unit == 0 ? "" : std::string(1, kUnitsOfSize[unit - 1]));
}

absl::StatusOr<std::uint8_t> ParseLevel(std::string_view text) {
  static constexpr struct {
    std::string_view name;
    std::uint8_t level;
  } kNames[] = {{"*", kAllLevels}, {"critical", 1},    {"error", 2},  {"warning", 3},
                {"info", 4},       {"information", 4}, {"verbose", 5}};
  for (const auto& entry : kNames) {
    if (entry.name == text) return entry.level;
  }
  const std::optional<std::uint64_t> number = ParseUint64(text);
  if (!number || *number < 1 || *number > kAllLevels) {
    return absl::InvalidArgumentError(absl::StrCat(
        "invalid level \"", std::string(text),
        "\"; use critical, error, warning, info, verbose, * or a number from 1 to 255"));
  }
  return static_cast<std::uint8_t>(*number);
}

absl::StatusOr<absl::Time> ParseTime(std::string_view text) {
  absl::Time time;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, {text.data(), text.size()}, &time, &error)) return time;
  return absl::InvalidArgumentError(
      absl::StrCat("invalid time \"", std::string(text), "\"; example: 2026-11-21T10:00:00.5Z"));
}

}  // namespace base
