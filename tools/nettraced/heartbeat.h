// The sign of life of a thread that goes round in a loop.
#ifndef TOOLS_NETTRACED_HEARTBEAT_H_
#define TOOLS_NETTRACED_HEARTBEAT_H_

#include <atomic>
#include <cstdint>
#include <limits>

#include "absl/time/time.h"

namespace nettraced {

// The thread stamps, any other one looks. Times are those of a clock that nobody sets.
class Heartbeat {
 public:
  // How much longer than a round a piece of work may take that the thread was handed, such as
  // attaching thousands of tracepoints.
  static constexpr absl::Duration kWorkTime = absl::Minutes(2);

  explicit Heartbeat(absl::Duration now) { Stamp(now); }

  void Stamp(absl::Duration now) { stamp_ = absl::ToInt64Nanoseconds(now); }
  void BeginWork(absl::Duration now) { Stamp(now + kWorkTime); }
  void EndWork(absl::Duration now) { Stamp(now); }
  // The thread has come to its end, and is not to stamp any more.
  void End() { stamp_ = std::numeric_limits<std::int64_t>::max(); }

  // Whether the thread has stamped within `period`.
  bool IsAlive(absl::Duration now, absl::Duration period) const {
    const std::int64_t stamp = stamp_;
    return stamp == std::numeric_limits<std::int64_t>::max() ||
           now - absl::Nanoseconds(stamp) < period;
  }

 private:
  std::atomic<std::int64_t> stamp_ = 0;  // ns
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_HEARTBEAT_H_
