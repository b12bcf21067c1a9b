#include "tools/base/quantities.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace base {

std::string FormatGrouped(std::uint64_t number) {
  std::string text = absl::StrCat(number);
  for (std::size_t i = text.size(); i > 3;) {
    i -= 3;
    text.insert(i, 1, ',');
  }
  return text;
}

std::string FormatScaled(double value, double step, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  // A value of 999.5 or more would be rounded to 1000, so it gets the next unit.
  for (; value >= 999.5 && unit + 1 < units.end(); ++unit) value /= step;
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f%s", decimals, value, *unit);
}

std::string FormatBytes(std::uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KMGTPE";
  for (; value >= 1023.5; ++unit) value /= 1024;
  return absl::StrFormat("%.*f %cB", value < 9.95 ? 1 : 0, value, *unit);
}

std::string FormatNarrowBytes(std::uint64_t bytes) {
  if (bytes < 100'000) return absl::StrCat(bytes);
  return FormatScaled(static_cast<double>(bytes) / 1024, 1024, {"K", "M", "G", "T", "P", "E"});
}

std::string FormatDuration(std::uint64_t nanoseconds) {
  if (nanoseconds < 1000) return absl::StrCat(nanoseconds, " ns");
  return FormatScaled(static_cast<double>(nanoseconds) / 1e3, 1000, {" µs", " ms", " s"});
}

std::string FormatNarrowDuration(std::uint64_t nanoseconds) {
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < 1000) return absl::StrCat(nanoseconds, "ns");
  if (value < 999.5e9) return FormatScaled(value / 1e3, 1000, {"us", "ms", "s"});
  const double hours = value / 3600e9;
  if (hours < 99.95) return absl::StrFormat("%.1fh", hours);
  return absl::StrFormat("%.0fd", hours / 24);
}

}  // namespace base
