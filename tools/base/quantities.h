// Formats numbers, sizes and durations for people, rounded to a few digits. values.h formats sizes
// exactly, in a form that programs can parse.
#ifndef TOOLS_BASE_QUANTITIES_H_
#define TOOLS_BASE_QUANTITIES_H_

#include <cstdint>
#include <initializer_list>
#include <string>

namespace base {

// Returns all digits, in groups of three: "1,234,567".
std::string FormatGrouped(std::uint64_t number);

// Returns three digits and a unit: "1.23k", "12.3M". The first of `units` is the unit of `value`,
// and each further unit is `step` times the previous one. A value that is too large for the last
// unit has more digits.
std::string FormatScaled(double value, double step, std::initializer_list<const char*> units);

// Returns a size in the largest unit in which it is at least 1: "17 B", "1.5 KB" (of 1024 bytes),
// "234 MB".
std::string FormatBytes(std::uint64_t bytes);
// Returns a size in at most 5 characters: "99999", or "97.7K", "1.50M" in units of 1024 bytes.
std::string FormatNarrowBytes(std::uint64_t bytes);

// Returns a duration in ns, µs, ms or s, with at most three digits: "1.23 ms". Durations of 1000 s
// or more have more digits.
std::string FormatDuration(std::uint64_t nanoseconds);
// Returns a duration in at most 6 characters of ASCII: "850ns", "1.23us", "12.3ms", "4.50s",
// "2.5h". Durations of 100,000 days or more have 7 characters.
std::string FormatNarrowDuration(std::uint64_t nanoseconds);

}  // namespace base

#endif  // TOOLS_BASE_QUANTITIES_H_
