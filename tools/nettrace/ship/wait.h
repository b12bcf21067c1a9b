// Waits for a time, or until the process is asked to end.
#ifndef TOOLS_NETTRACE_SHIP_WAIT_H_
#define TOOLS_NETTRACE_SHIP_WAIT_H_

#include <poll.h>

#include "absl/time/time.h"
#include "tools/base/monotonic_clock.h"
#include "tools/cli/signals.h"

namespace tools::ship {

// Waits for `duration` and returns true. Returns false at once when the process is asked to end.
inline bool Sleep(absl::Duration duration) {
  const absl::Duration end = base::MonotonicNow() + duration;
  while (!cli::IsStopRequested()) {
    const absl::Duration left = end - base::MonotonicNow();
    if (left <= absl::ZeroDuration()) return true;
    pollfd wait = {cli::StopDescriptor(), POLLIN, 0};
    poll(&wait, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
  }
  return false;
}

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_WAIT_H_
