// The forms of values in the daemon's settings, and which of some names somebody may have meant.
#ifndef TOOLS_COLLECTOR_CONFIG_VALUES_H_
#define TOOLS_COLLECTOR_CONFIG_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace collector {

// The bytes that `text` is: a number with no unit, or with K, M, G or T, which are powers of 1024.
std::optional<std::uint64_t> ParseSize(std::string_view text);
// The same text as ParseSize reads, in the greatest unit that has no fraction.
std::string FormatSize(std::uint64_t bytes);

// The time that `text` is: whole numbers with their units, such as "90s" or "1h30min". Units are
// us, ms, s, min or m, h, d and w.
std::optional<absl::Duration> ParseDuration(std::string_view text);

// The one of `names` that is most like `text`, or "" if none is like it.
std::string Nearest(std::string_view text, const std::vector<std::string>& names);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_VALUES_H_
