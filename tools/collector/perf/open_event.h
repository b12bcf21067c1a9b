// Opens one perf event: sets its attributes and explains errors.
#ifndef TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
#define TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "tools/base/unique_fd.h"

namespace collector {

// Returns the attributes that all events of a session share. perf_records.h relies on them.
perf_event_attr BaseAttributes(std::size_t ring_size);
// Returns the attributes of a tracepoint, which is disabled.
perf_event_attr TracepointAttributes(int id);

// Calls perf_event_open without a group. `pid` and `flags` have the same meaning as there: -1 is
// all tasks, and with PERF_FLAG_PID_CGROUP `pid` is the descriptor of a cgroup. If the result is
// invalid, errno says why.
base::UniqueFd OpenEvent(perf_event_attr* attr, int pid, int cpu, unsigned long flags);

// Returns an error that says why `what` failed with this errno, and what to do. The code is
// ResourceExhausted if there are too few descriptors.
absl::Status OpenError(int error, const std::string& what);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
