// The heartbeat of a thread that runs a loop. The daemon uses it to detect a thread that hangs. The
// daemon then no longer notifies the watchdog of systemd, which restarts the daemon.
#ifndef TOOLS_NETTRACED_HEARTBEAT_H_
#define TOOLS_NETTRACED_HEARTBEAT_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace nettraced {

// Holds the time at which a thread last reported that it runs. Only this thread may call the
// functions that change the time; any thread may call IsAlive. Times are of CLOCK_MONOTONIC.
class Heartbeat {
 public:
  // A piece of posted work may take this much longer than a round of the thread's loop. Attaching
  // thousands of tracepoints is an example of such work.
  static constexpr absl::Duration kWorkTime = absl::Minutes(2);

  explicit Heartbeat(absl::Duration now) { Stamp(now); }

  void Stamp(absl::Duration now) { stamp_ = absl::ToInt64Nanoseconds(now); }
  // Must be called before a piece of work. IsAlive then stays true for kWorkTime longer.
  void BeginWork(absl::Duration now) { Stamp(now + kWorkTime); }
  // Must be called after the piece of work.
  void EndWork(absl::Duration now) { Stamp(now); }
  // Marks the thread as ended. The other functions that change the time must not be called again.
  void End() { stamp_ = std::numeric_limits<std::int64_t>::max(); }

  // Returns whether the thread has called Stamp or EndWork within `period` before `now`, or has
  // ended. Between BeginWork and EndWork, the limit is kWorkTime longer.
  bool IsAlive(absl::Duration now, absl::Duration period) const {
    const std::int64_t stamp = stamp_;
    return stamp == std::numeric_limits<std::int64_t>::max() ||
           now - absl::Nanoseconds(stamp) < period;
  }

 private:
  // Time of the last stamp, in ns; in the future during work, and the maximum after End.
  std::atomic<std::int64_t> stamp_ = 0;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_HEARTBEAT_H_
