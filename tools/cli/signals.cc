#include "tools/cli/signals.h"

#include <sys/eventfd.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"

namespace cli {
namespace {

constexpr std::array kStopSignals = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};
// Time after the first request to end, in ns, in which a SIGINT does not count as a second request.
constexpr std::int64_t kSameRequest = 100'000'000;

// Descriptors that the signal handler writes to. They are open until the process ends.
int wake_fd = -1;
int stop_fd = -1;
int hurry_fd = -1;
std::atomic<std::int64_t> stop_time = 0;  // time of the first request to end, in ns; 0: none yet
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
// Whether a signal has arrived since the last call of ClearWake. OnSignal writes to wake_fd before
// it sets `woken`. In the other order, a ClearWake between the two steps would clear `woken`, and
// later calls would leave wake_fd readable.
std::atomic<bool> woken = false;
static_assert(std::atomic<bool>::is_always_lock_free);

std::int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Handles a signal. Only async-signal-safe functions may be called here.
void OnSignal(int number) {
  const int saved_errno = errno;
  if (number != SIGCHLD) {
    const std::int64_t now = Now();
    std::int64_t first = 0;
    if (stop_time.compare_exchange_strong(first, now)) {
      eventfd_write(stop_fd, 1);
    } else if (number == SIGINT && now - first >= kSameRequest) {
      eventfd_write(hurry_fd, 1);
      signal(SIGINT, SIG_DFL);
    }
  }
  eventfd_write(wake_fd, 1);
  woken = true;
  errno = saved_errno;
}

}  // namespace

void IgnoreFileSizeSignal() { signal(SIGXFSZ, SIG_IGN); }

absl::Status CatchSignals() {
  for (int* fd : {&wake_fd, &stop_fd, &hurry_fd}) {
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd < 0) return base::DescriptorStatus(errno, "waiting for signals: eventfd");
  }
  IgnoreFileSizeSignal();
  signal(SIGPIPE, SIG_IGN);
  struct sigaction handle = {};
  handle.sa_handler = OnSignal;
  handle.sa_flags = SA_RESTART | SA_NOCLDSTOP;
  sigaction(SIGCHLD, &handle, nullptr);
  for (const int number : kStopSignals) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &handle, nullptr);
  }
  return absl::OkStatus();
}

int WakeDescriptor() { return wake_fd; }

bool ClearWake() {
  if (!woken.exchange(false)) return false;
  eventfd_t count = 0;
  eventfd_read(wake_fd, &count);
  return true;
}

int StopDescriptor() { return stop_fd; }

bool IsStopRequested() { return stop_time != 0; }

int HurryDescriptor() { return hurry_fd; }

DefaultSignals::DefaultSignals() {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kStopSignals[i], &standard, nullptr);
  }
}

DefaultSignals::~DefaultSignals() {
  for (std::size_t i = 0; i < kStopSignals.size(); ++i) {
    sigaction(kStopSignals[i], &before_[i], nullptr);
  }
}

}  // namespace cli
