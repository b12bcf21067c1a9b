// Describes the services with rings in user space for users: their processes, tracepoints, events
// and losses, and the services that were refused.
#ifndef TOOLS_COLLECTOR_SESSION_RING_REPORT_H_
#define TOOLS_COLLECTOR_SESSION_RING_REPORT_H_

#include <sys/types.h>

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
  // The services share it equally.
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
  struct Service {
    pid_t pid = 0;
    uid_t uid = 0;
    Process process;
    absl::Time connected;
    std::uint64_t ring_bytes = 0;  // bytes of the chunks that the service may use
    std::uint64_t events = 0;      // events read
    // Lost events by reason: no chunk was free, a signal handler wrote them while its thread wrote
    // an event, and all writers were in use.
    std::uint64_t lost_full = 0;
    std::uint64_t lost_nested = 0;
    std::uint64_t lost_without_writer = 0;
    std::uint64_t corrupt = 0;            // see RingRegion::corrupt
    std::vector<Tracepoint> tracepoints;  // sorted by name; each name once
    bool has_more_tracepoints = false;    // whether tracepoints were left out
  };

  std::string socket;  // path; "" if the socket is not open
  std::vector<Service> services;
  std::vector<RingRefusalEntry> refusals;  // the latest first
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RING_REPORT_H_
