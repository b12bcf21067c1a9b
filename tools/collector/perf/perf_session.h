// The kernel's side of a recording: rings on every CPU and the tracepoints that write to them.
#ifndef TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
#define TOOLS_COLLECTOR_PERF_PERF_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// Raises RLIMIT_NOFILE to its hard limit: a session holds a descriptor per CPU and tracepoint.
void RaiseDescriptorLimit();

// Two rings a CPU. One takes every tracepoint's samples; the other takes thread creation, naming
// and exit, so that names survive when samples are lost, and so that what the kernel counts as lost
// in the first ring are samples and nothing else.
//
// Timestamps are CLOCK_MONOTONIC. Not thread-safe.
class PerfSession {
 public:
  struct Cpu {
    int number;
    UniqueFd leader;
    UniqueFd side_band;
    PerfRing ring;
    PerfRing side_band_ring;
  };
  // What the kernel counted for a tracepoint, or for all of them, on one CPU.
  struct Counts {
    std::uint64_t hits = 0;  // lost ones included
    std::uint64_t lost = 0;
  };

  // Opens rings of `ring_size` bytes (a power of two of whole pages) on `cpus`.
  static absl::StatusOr<PerfSession> Open(const std::vector<int>& cpus, std::size_t ring_size);

  // Attaches the tracepoint `id` on every CPU, still disabled. `name` is for messages. `filter` is
  // in the kernel's filter language, "" for none. On an error nothing of it stays.
  absl::Status Attach(int id, const std::string& name, const std::string& filter);
  // Begins to record all that is attached.
  absl::Status Enable();
  // Ends the recording: no record is written after it returns.
  void Disable();

  std::vector<Cpu>& cpus() { return cpus_; }
  // Waits until a ring has filled past its watermark, or a signal, or `timeout_ms`.
  void Wait(int timeout_ms);
  // Also wakes Wait when `fd` is readable.
  absl::Status WakeOn(int fd);

  // Totals of the CPU at `index` of cpus() since the start, over all tracepoints. The kernel counts
  // losses per event since 6.0; Unimplemented before.
  absl::StatusOr<Counts> ReadCounts(std::size_t index) const;

  std::size_t tracepoints() const { return tracepoints_.size(); }

 private:
  struct Tracepoint {
    std::string name;
    std::vector<UniqueFd> fds;  // one per CPU, in the order of cpus_; invalid where it is offline
    bool enabled = false;
  };

  PerfSession() = default;

  UniqueFd epoll_;
  bool counts_lost_ = true;  // the kernel knows PERF_FORMAT_LOST
  std::vector<Cpu> cpus_;
  std::vector<Tracepoint> tracepoints_;
};

// The session's clock now, in ns.
std::uint64_t SessionClockNow();

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
