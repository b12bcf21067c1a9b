// Reads CLOCK_MONOTONIC and CLOCK_BOOTTIME, for time limits and ages, and converts durations to ns.
#ifndef TOOLS_BASE_MONOTONIC_CLOCK_H_
#define TOOLS_BASE_MONOTONIC_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "absl/time/time.h"

namespace base {

// Returns the time since a fixed moment before the process started. The clock stands still while
// the machine sleeps.
inline absl::Duration MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

// Returns the time since the machine booted. The clock also runs while the machine sleeps.
inline absl::Duration Uptime() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return absl::DurationFromTimespec(now);
}

// Converts a duration, which must not be negative, to ns. Durations over 292 years become 2^63 - 1.
inline std::uint64_t Nanoseconds(absl::Duration duration) {
  return static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(duration));
}

}  // namespace base

#endif  // TOOLS_BASE_MONOTONIC_CLOCK_H_
