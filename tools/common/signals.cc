#include "tools/common/signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include "tools/collector/base/status_util.h"

namespace tools {
namespace {

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : signals) sigaddset(&set, signal);
  return set;
}

absl::StatusOr<collector::UniqueFd> OpenSignals(const sigset_t& set) {
  collector::UniqueFd fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return collector::ErrnoStatus(errno, "signalfd");
  return fd;
}

}  // namespace

absl::StatusOr<collector::UniqueFd> BlockSignals() {
  const sigset_t set = SetOf({SIGINT, SIGTERM, SIGCHLD});
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);  // NOLINT(bugprone-signal-handler)
  return OpenSignals(set);
}

absl::StatusOr<collector::UniqueFd> OpenStopSignals() {
  return OpenSignals(SetOf({SIGINT, SIGTERM}));
}

bool IsStopPending() {
  const sigset_t children = SetOf({SIGCHLD});
  const timespec now = {};
  while (sigtimedwait(&children, nullptr, &now) > 0) {
  }
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1;
}

}  // namespace tools
