// A limit for how often an action may happen.
#ifndef TOOLS_NETTRACED_RATE_LIMIT_H_
#define TOOLS_NETTRACED_RATE_LIMIT_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "absl/time/time.h"

namespace nettraced {

// Allows at most `count` actions within any span of `time`.
class RateLimit {
 public:
  RateLimit(std::uint64_t count, absl::Duration time) : count_(count), time_(time) {}

  // Returns whether the action may happen at `now`, a time of CLOCK_MONOTONIC, and counts it if so.
  bool Take(absl::Duration now) {
    while (!taken_.empty() && now - taken_.front() >= time_) taken_.pop_front();
    if (taken_.size() >= count_) return false;
    taken_.push_back(now);
    return true;
  }

 private:
  std::uint64_t count_;
  absl::Duration time_;
  std::deque<absl::Duration> taken_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_RATE_LIMIT_H_
