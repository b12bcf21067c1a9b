// The waiting times between attempts at an operation that fails.
#ifndef TOOLS_NETTRACED_BACKOFF_H_
#define TOOLS_NETTRACED_BACKOFF_H_

#include <algorithm>

#include "absl/time/time.h"

namespace nettraced {

class Backoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);

  // Returns the time to wait after another failure: kFirst, then twice the previous time, up to
  // kLongest.
  absl::Duration Next() {
    const absl::Duration wait = next_;
    next_ = std::min(next_ * 2, kLongest);
    return wait;
  }
  // Resets the wait to kFirst after a success.
  void Reset() { next_ = kFirst; }

 private:
  absl::Duration next_ = kFirst;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_BACKOFF_H_
