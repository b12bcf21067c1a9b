// Opens perf events: sets their attributes, explains errors, maps their rings and reads their
// counts.
#ifndef TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
#define TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// Raises the soft limit of RLIMIT_NOFILE to the hard limit, because a capture needs a descriptor
// for each CPU and tracepoint.
void RaiseDescriptorLimit();
// Raises both limits of RLIMIT_NOFILE to 1,048,576, the usual maximum of the kernel (fs.nr_open).
// Has no effect if this process may not raise the hard limit.
void RaiseHardDescriptorLimit();

// Returns the attributes of an event that writes no samples, but can write records of tasks to a
// ring of `ring_size` bytes; 0: it has no ring. perf_records.h relies on the attributes.
perf_event_attr DummyAttributes(std::size_t ring_size);
// Returns whether the kernel reports the build ids of mapped files (since 5.12).
bool KernelReportsBuildIds();
// Makes the kernel defer the user part of the event's stacks until the thread returns to user space
// (since 6.19; deferred_stacks.h). Older kernels reject the event with EINVAL.
void DeferStacks(perf_event_attr* attr);
// Makes the event, which must be of all tasks on one CPU, write the records of deferred user parts.
// Older kernels reject the event with EINVAL.
void WriteDeferredStacks(perf_event_attr* attr);
// Returns whether the kernel can defer the user part of stacks. A kernel that accepts the
// attributes may still not do so. The first call therefore makes the kernel record a stack of the
// calling thread, and returns false unless the user part of this stack arrives. Needs the right to
// record all tasks.
bool KernelDefersStacks();
// Returns the maximum number of frames of a stack: kernel.perf_event_max_stack, but at most 8190.
std::uint16_t KernelMaxFrames();
// Returns the attributes of an event for the tracepoint `id`. The event is disabled at first,
// counts its losses, and must be redirected to a ring. perf_records.h relies on the attributes.
perf_event_attr TracepointAttributes(int id);
// Returns the attributes of an event that samples the CPU time of threads, `rate` times per second.
// The samples have stacks and the id kCpuTimeId. The idle task is not sampled. The other attributes
// are those of TracepointAttributes.
//
// The event counts cycles of the CPU, so that kernel code with interrupts disabled is sampled, too.
// UseCpuClock makes it use a clock instead.
perf_event_attr CpuTimeAttributes(std::uint32_t rate);
// Makes an event of CpuTimeAttributes use the kernel's clock instead of cycles, which most virtual
// machines cannot count. Returns false if the event uses the clock already.
bool UseCpuClock(perf_event_attr* attr);
// Returns the attributes of an event that records the switches of threads: a sample with the id
// kSwitchesId and a stack when a thread is switched out, and a SWITCH record when it is switched
// in. The other attributes are those of TracepointAttributes.
perf_event_attr SwitchAttributes();
// Returns whether `capability`, such as CAP_PERFMON, is an effective capability of this process.
bool HasCapability(unsigned capability);
// Returns the maximum rate of CpuTimeAttributes (kernel.perf_event_max_sample_rate).
std::uint32_t KernelMaxSampleRate();
// Makes the event count its losses, if the kernel can.
void CountLosses(perf_event_attr* attr);

// Calls perf_event_open without a group. `pid` and `flags` have the meaning that the system call
// gives them: a `pid` of -1 is all tasks, and with PERF_FLAG_PID_CGROUP `pid` is the descriptor of
// a cgroup. If the process has too few descriptors (EMFILE), raises its limits and tries again.
// If the result is invalid, errno says why.
base::UniqueFd OpenEvent(perf_event_attr* attr, int pid, int cpu, unsigned long flags = 0);
// Returns an error that says why `what` failed with the errno `error`, and what to do. The code is
// ResourceExhausted if there are too few descriptors, and NotFound if the CPU is offline.
absl::Status OpenError(int error, const std::string& what);

// An event of one CPU, and the ring that it owns.
struct EventRing {
  // Opens the event for all tasks, and maps a ring of `size` bytes. Fails with NotFound if the CPU
  // is offline.
  static absl::StatusOr<EventRing> Open(perf_event_attr attr, int cpu, std::size_t size);

  base::UniqueFd event;
  PerfRing ring;
};

// The kernel's counts of hits and losses, for one perf event or the sum of several.
struct EventCounts {
  // Value of the kernel's counter. Most tracepoints add 1 at each hit, even if its sample is lost.
  std::uint64_t hits = 0;
  std::uint64_t lost = 0;  // samples that were lost
};
// Fails with Unimplemented if the kernel does not count losses for each event (before 6.0).
absl::Status CheckLossesAreCounted();
// Reads the counts of an event that was opened with CountLosses. Fails with Unimplemented if the
// kernel does not count its losses, and with another error if the counts cannot be read.
absl::StatusOr<EventCounts> ReadCounts(const base::UniqueFd& event);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_OPEN_EVENT_H_
