// Values that users write on command lines and in settings, in one grammar for all programs:
// durations, sizes, levels and times. All functions are thread-safe.
#ifndef TOOLS_BASE_VALUES_H_
#define TOOLS_BASE_VALUES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace base {

// Reads a duration of 0 or more: decimal numbers, each with its unit, such as "90s", "1.5h" or
// "1h30m". Units are ns, us, ms, s, m or min, h, d and w; "0" needs no unit. Digits after the ninth
// decimal place are ignored. Fails with InvalidArgument, whose message quotes the text and gives
// examples.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// Reads a number of bytes: a whole number with no unit or with B, K, M, G or T, which are powers of
// 1024. "KB" and "KiB" mean the same as "K"; case does not matter. Fails with InvalidArgument,
// whose message quotes the text and gives examples.
absl::StatusOr<std::uint64_t> ParseSize(std::string_view text);

// Returns a text that ParseSize reads, in the largest unit that needs no fraction: "64M".
std::string FormatSize(std::uint64_t bytes);

// The level that selects events of all levels.
inline constexpr std::uint8_t kAllLevels = 255;

// Reads a level: a number from 1 to 255, or critical (1), error (2), warning (3), info or
// information (4), verbose (5) or * (255). Fails with InvalidArgument, whose message quotes the
// text and names what is accepted.
absl::StatusOr<std::uint8_t> ParseLevel(std::string_view text);

// Reads a time in the form of RFC 3339, such as 2026-11-21T10:00:00.5Z. Fails with
// InvalidArgument, whose message quotes the text and gives an example.
absl::StatusOr<absl::Time> ParseTime(std::string_view text);

}  // namespace base

#endif  // TOOLS_BASE_VALUES_H_
