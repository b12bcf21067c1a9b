// Describes for users the services with rings in user space: their processes, tracepoints, events
// and losses, and the services that were refused.
#ifndef TOOLS_COLLECTOR_SESSION_RING_REPORT_H_
#define TOOLS_COLLECTOR_SESSION_RING_REPORT_H_

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/collector/ring/ring_refusals.h"

namespace collector {

struct RingReport {
  // Maximum number of tracepoints of all services together, which bounds the memory of a report.
  // Each service has an equal share of this number.
  static constexpr std::size_t kMaxTracepoints = 65536;

  // A process, as read from /proc at the first report about it. All members are empty if the
  // process had ended by then, or if the kernel provides no pid or no descriptor of it.
  struct Process {
    std::string name;
    std::string executable;
    std::string cgroup;  // path below the mount of cgroup v2
    std::optional<absl::Time> started;
  };
  // A tracepoint that the service has registered.
  struct Tracepoint {
    std::string name;
    std::vector<std::string> sessions;  // names of the sessions that have it enabled
  };
  // Lost events by reason.
  struct Losses {
    std::uint64_t full = 0;            // no chunk was free
    std::uint64_t nested = 0;          // no writer for a signal handler that interrupted a write
    std::uint64_t without_writer = 0;  // all writers were in use
  };
  struct Service {
    pid_t pid = 0;
    uid_t uid = 0;
    Process process;
    absl::Time connected;
    // Why the events come over the socket instead of in shared memory; "" if they come in shared
    // memory.
    std::string inline_reason;
    std::uint64_t ring_bytes = 0;  // bytes of the chunks that the service may use
    std::uint64_t events = 0;      // events read
    Losses lost;
    std::uint64_t corrupt = 0;            // see RingRegion::corrupt
    std::vector<Tracepoint> tracepoints;  // sorted by name; each name once
    bool has_more_tracepoints = false;    // whether tracepoints were left out
  };

  // Counts of all services since the socket was opened, including those that have ended.
  struct Totals {
    std::uint64_t events = 0;
    Losses lost;
    std::uint64_t corrupt = 0;
    std::array<std::uint64_t, kRingRefusalKinds> refused{};  // by RingRefusal
  };

  std::string socket;  // path; "" if the socket is not open
  Totals totals;
  std::vector<Service> services;
  std::vector<RingRefusalEntry> refusals;  // the latest first
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RING_REPORT_H_
