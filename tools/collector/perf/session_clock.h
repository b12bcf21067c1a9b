// The clock of all timestamps of a recording: CLOCK_MONOTONIC. open_event.cc makes perf use it for
// its records.
#ifndef TOOLS_COLLECTOR_PERF_SESSION_CLOCK_H_
#define TOOLS_COLLECTOR_PERF_SESSION_CLOCK_H_

#include <cstdint>

#include "tools/base/monotonic_clock.h"

namespace collector {

// Returns the current time of the session clock, in ns.
inline std::uint64_t SessionClockNow() { return base::Nanoseconds(base::MonotonicNow()); }

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_SESSION_CLOCK_H_
