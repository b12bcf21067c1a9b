// The clock for time limits: nobody can set it.
#ifndef TOOLS_COLLECTOR_BASE_MONOTONIC_CLOCK_H_
#define TOOLS_COLLECTOR_BASE_MONOTONIC_CLOCK_H_

#include <time.h>

#include "absl/time/time.h"

namespace collector {

// Time since some moment before the process was started.
inline absl::Duration MonotonicNow() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::DurationFromTimespec(now);
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_BASE_MONOTONIC_CLOCK_H_
