// Opens the perf events of a tracepoint for a target: for all tasks, for each thread of processes,
// for threads, or for cgroups.
#ifndef TOOLS_COLLECTOR_PERF_TARGET_EVENTS_H_
#define TOOLS_COLLECTOR_PERF_TARGET_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/cpu_rings.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/perf/stack_options.h"

namespace collector {

// A tracepoint or other source of samples, and how it is recorded.
struct PerfTracepoint {
  int id = 0;            // id of the tracepoint, or kCpuTimeId or kSwitchesId
  std::string name;      // for messages
  std::string filter;    // in the kernel's filter language; empty: none
  bool cgroups = false;  // whether samples contain the cgroups of their threads
  StackOptions stacks = {};
  std::uint32_t rate = 0;  // samples of CPU time per second; for kCpuTimeId only
};

// Returns whether the user part of the stacks is deferred (deferred_stacks.h). If the kernel can
// defer it, the collector requests this for samples of CPU time and events of user_events, after
// which a thread soon returns to user space. At another tracepoint, and when it is switched out, a
// thread may block for any time.
bool DefersStacks(const PerfTracepoint& tracepoint);

// Returns the number of events that a tracepoint needs on each CPU. Each event has a descriptor.
// For processes, this is the number of their current threads. A cgroup that does not exist yet
// counts as one event.
std::size_t CountParts(const PerfTarget& target);
// Checks, on the CPU with the number `cpu`, that the target's cgroups can have perf events. Fails
// with FailedPrecondition if a cgroup lacks the perf_event controller, and with Unimplemented if
// the kernel has no perf events for cgroups.
absl::Status CheckCgroups(const PerfTarget& target, int cpu);

// The descriptors of a tracepoint's events. The outer index is the position of the CPU in the list
// of CPUs for which they were opened.
using TargetEvents = std::vector<std::vector<base::UniqueFd>>;
// Opens the events of the tracepoint for the whole target, on the CPUs at `indices` of `rings`,
// whose rings must be open. Skips tasks that have ended and CPUs that have gone offline. Fails with
// ResourceExhausted if there are too few descriptors, and with Unavailable if a process creates
// threads too fast.
//
// The events are disabled, and their samples go to the ring of their CPU. The events of processes
// are an exception: they are enabled but have no ring yet, so they count hits and write no samples.
absl::StatusOr<TargetEvents> OpenTargetEvents(const PerfTarget& target,
                                              const PerfTracepoint& tracepoint,
                                              const std::vector<std::size_t>& indices,
                                              CpuRings* rings);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_TARGET_EVENTS_H_
