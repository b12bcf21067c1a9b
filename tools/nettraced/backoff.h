// How long to wait before something that failed is tried again.
#ifndef TOOLS_NETTRACED_BACKOFF_H_
#define TOOLS_NETTRACED_BACKOFF_H_

#include <algorithm>

#include "absl/time/time.h"

namespace nettraced {

class Backoff {
 public:
  static constexpr absl::Duration kFirst = absl::Seconds(1);
  static constexpr absl::Duration kLongest = absl::Seconds(30);

  // The time to wait after one more failure: twice that of before, from kFirst to kLongest.
  absl::Duration Next() {
    const absl::Duration wait = next_;
    next_ = std::min(next_ * 2, kLongest);
    return wait;
  }
  // What was tried has gone well.
  void Reset() { next_ = kFirst; }

 private:
  absl::Duration next_ = kFirst;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_BACKOFF_H_
