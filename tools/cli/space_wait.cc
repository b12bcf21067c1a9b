#include "tools/cli/space_wait.h"

#include <poll.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "absl/time/clock.h"
#include "tools/cli/signals.h"

namespace cli {
namespace {

// Returns whether the child has ended, and does not reap it.
bool HasEnded(pid_t child) {
  siginfo_t info = {};
  const int found = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  // ECHILD means that the child has ended and has been reaped.
  return found == 0 ? info.si_pid == child : errno == ECHILD;
}

}  // namespace

bool SpaceWait::IsOver() const {
  if (over_ || IsStopRequested() || absl::ToUnixNanos(absl::Now()) >= end_) return true;
  const pid_t command = command_;
  return command != 0 && HasEnded(command);
}

bool SpaceWait::Wait(int error) {
  if (error == 0) {
    if (!is_waiting_) return true;
    waited_ += absl::ToInt64Nanoseconds(absl::Now() - began_);
    is_waiting_ = false;
    notify_(false);
    return true;
  }
  if ((error != ENOSPC && error != EDQUOT) || IsOver()) return false;
  if (!is_waiting_) {
    began_ = absl::Now();
    is_waiting_ = true;
    notify_(true);
  }
  const absl::Time look = absl::Now() + kLook;
  // The end of the command makes WakeDescriptor readable, until another thread calls ClearWake.
  // WakeDescriptor is polled only in the first iteration, because poll would not wait while it is
  // readable.
  pollfd fds[] = {{StopDescriptor(), POLLIN, 0}, {WakeDescriptor(), POLLIN, 0}};
  for (nfds_t count = 2; !IsOver(); count = 1) {
    const absl::Time until = std::min(look, absl::FromUnixNanos(end_.load()));
    const absl::Duration left = until - absl::Now();
    if (left <= absl::ZeroDuration()) break;
    // Rounds up, because a poll of 0 ms would not wait.
    poll(fds, count, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (fds[0].revents == 0 && fds[1].revents == 0) break;
  }
  return !IsOver();
}

}  // namespace cli
