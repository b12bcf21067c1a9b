// How the kernel tells that a tracepoint of user_events has been registered: a probe at the return
// of the function that every registration passes, `user_events_ioctl`. tracefs itself tells nobody.
#ifndef TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_
#define TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_

#include <utility>

#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// The probe of one CPU: what is registered, unregistered or deleted there makes a record in its
// ring, of one page, which makes its descriptor readable. When the ring is full, nothing more
// happens: what a process that registers in a loop costs, it pays itself.
class RegistrationProbe {
 public:
  // Errors: NotFound if the CPU is offline, and no other reason; Unimplemented where the kernel has
  // no kprobes.
  static absl::StatusOr<RegistrationProbe> Open(int cpu);

  const UniqueFd& fd() const { return fd_; }
  UniqueFd&& TakeDescriptor() { return std::move(fd_); }
  // Makes room for records in the ring.
  void Clear();

 private:
  RegistrationProbe(UniqueFd fd, PerfRing ring) : fd_(std::move(fd)), ring_(std::move(ring)) {}

  UniqueFd fd_;
  PerfRing ring_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_
