// Opening one perf event: its attributes, and what to do where that fails.
#ifndef TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
#define TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

// The attributes that all events of a session share; perf_records.h relies on them.
perf_event_attr BaseAttributes(std::size_t ring_size);
// Those of a tracepoint, which is off.
perf_event_attr TracepointAttributes(int id);

// perf_event_open, without a group. `pid` and `flags` are its own: -1 is all tasks, and with
// PERF_FLAG_PID_CGROUP the pid is the descriptor of a cgroup. errno says why it is not valid.
UniqueFd OpenEvent(perf_event_attr* attr, int pid, int cpu, unsigned long flags);

// Why `what` failed with this errno, and the remedy. ResourceExhausted for want of descriptors.
absl::Status OpenError(int error, const std::string& what);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
