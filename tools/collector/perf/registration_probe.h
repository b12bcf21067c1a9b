// Reports registrations of user_events tracepoints, by a probe at the return of
// `user_events_ioctl`, the kernel function that handles every registration. The probe is needed
// because tracefs does not report registrations.
#ifndef TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_
#define TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_

#include <utility>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// A probe on one CPU. Each registration, unregistration and deletion on the CPU writes a record to
// the probe's ring of one page, which makes the probe's descriptor readable. When the ring is full,
// no more records are written, so a process that registers in a loop causes little work in the
// collector.
class RegistrationProbe {
 public:
  // Opens the probe. Fails with NotFound only if the CPU is offline, with Unimplemented if the
  // kernel has no kprobes, and with another error if it does not permit the probe.
  static absl::StatusOr<RegistrationProbe> Open(int cpu);

  const base::UniqueFd& fd() const { return fd_; }
  base::UniqueFd&& TakeDescriptor() { return std::move(fd_); }
  // Removes the records from the ring.
  void Clear();

 private:
  RegistrationProbe(base::UniqueFd fd, PerfRing ring)
      : fd_(std::move(fd)), ring_(std::move(ring)) {}

  base::UniqueFd fd_;
  PerfRing ring_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_REGISTRATION_PROBE_H_
