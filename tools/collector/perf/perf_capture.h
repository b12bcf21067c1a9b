// Records tracepoints through the perf rings of all CPUs, and counts exactly what was lost because
// the rings were full.
//
// Input: tracepoint ids and filters, and a target (perf_target.h). The samples come from the rings
// (cpu_rings.h), to which the attached tracepoints write (attached_tracepoint.h). PerfCapture
// connects rings and tracepoints: it opens the perf events of all tracepoints on a CPU that comes
// online, and adds up the losses that the tracepoints have counted on a CPU.
//
// Guarantees: Delivered samples and samples reported as lost add up to the samples that the kernel
// made, once ReadLosses has run after Disable. This includes CPUs that went offline.
#ifndef TOOLS_COLLECTOR_PERF_PERF_CAPTURE_H_
#define TOOLS_COLLECTOR_PERF_PERF_CAPTURE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/attached_tracepoint.h"
#include "tools/collector/perf/cpu_rings.h"
#include "tools/collector/perf/descriptor_closer.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/perf/stack_options.h"
#include "tools/collector/perf/target_events.h"

namespace collector {

// Holds the rings of all CPUs and the tracepoints that write to them. Timestamps are
// CLOCK_MONOTONIC. Not thread-safe.
class PerfCapture {
 public:
  // Opens rings on those of `cpus` that are online. The other CPUs are recorded when they come
  // online; see FollowCpus. The tracepoints that Attach adds are recorded for the target in
  // `options`. Fails if no CPU is online, if a ring cannot be opened, or as CheckCgroups does.
  static absl::StatusOr<PerfCapture> Open(const std::vector<int>& cpus, PerfOptions options);

  // Returns an object that records nothing, for a collector that has no access to perf.
  static absl::StatusOr<PerfCapture> OpenNone();

  // Returns whether the user parts of some stacks are deferred, so that DeferredStacks must join
  // the samples with them.
  bool defers_stacks() const { return defers_stacks_; }
  // Returns whether samples contain the cgroups of their threads.
  bool has_cgroups() const { return has_cgroups_; }
  CpuRings& rings() { return rings_; }
  const CpuRings& rings() const { return rings_; }

  // Attaches the tracepoint `id` on every CPU, but does not enable it. `name` is for messages;
  // `filter` is in the kernel's filter language, or "". PerfOptions::stacks must be set if `stacks`
  // requests any stacks. After an error, the tracepoint is not attached. Fails with
  // ResourceExhausted if there are too few descriptors, and with Unavailable if a process creates
  // threads too fast.
  absl::Status Attach(int id, const std::string& name, const std::string& filter,
                      const StackOptions& stacks = {});
  // Attaches another source of samples than a tracepoint: kCpuTimeId, with `rate` samples per
  // second on each CPU, or kSwitchesId, whose `rate` is 0. It is enabled and detached like a
  // tracepoint. PerfOptions::stacks must be set.
  absl::Status AttachSamples(int id, const std::string& name, std::uint32_t rate,
                             const StackOptions& stacks);
  // Returns the number of descriptors that Attach needs. For a target of processes, the number
  // depends on their current threads.
  std::size_t DescriptorsPerTracepoint() const;
  // Starts to record all attached tracepoints. Fails if an event cannot be enabled; other events
  // may then be enabled already.
  absl::Status Enable();
  // Stops the recording of a tracepoint. None of its samples is written after the function has
  // returned.
  void Disable(int id);
  // Detaches a tracepoint. Losses that ReadLosses has not reported are discarded. If StartCloser
  // has started a thread, this thread closes the descriptors, because that takes the kernel tens of
  // ms for each tracepoint.
  void Detach(int id);
  // Starts a thread that closes descriptors for Detach. Returns the id of the thread, so that the
  // caller can exclude the thread's system calls from the recording. Returns no value if the thread
  // cannot be created; Detach then closes the descriptors itself.
  std::optional<pid_t> StartCloser();

  // Starts to record CPUs that have come online. Returns the CPUs that have come online or gone
  // offline since the last call. If `suspect` is true, also finds CPUs that have gone offline and
  // come back since the last call.
  std::vector<CpuChange> FollowCpus(bool suspect);
  // Records `cgroup` instead of the former cgroup of the target. The target must be of the kind
  // kCgroups, and the former cgroup must have no threads any more. Keeps the counts of losses
  // of the former cgroup. After an error, the target has no cgroup.
  absl::Status SetCgroup(base::UniqueFd cgroup);

  // Calls `on_lost(index, id, count)` for each tracepoint whose samples have been lost on a CPU
  // since the last call, by the kernel's counts. With kWhereLikely, reads only the CPUs for which
  // CpuRings::TakeMayHaveLost returns true. Fails with Unimplemented if the kernel does not count
  // losses (before 6.0), and with another error if the counts cannot be read.
  enum class Losses { kWhereLikely, kAll };
  absl::Status ReadLosses(
      absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost,
      Losses which = Losses::kAll);
  // Returns the hits and losses of a tracepoint on all CPUs since it was attached; 0 if it is not
  // attached. Fails with Unimplemented if the kernel does not count losses, and with another error
  // if the counts cannot be read.
  absl::StatusOr<EventCounts> ReadCounts(int id) const;
  // Returns false if the target is a list of processes and a tracepoint was hit while it was being
  // enabled or disabled. The number of its hits is then not known exactly.
  bool hits_are_known() const;

 private:
  PerfCapture(PerfTarget target, CpuRings rings, bool has_cgroups);

  absl::Status Attach(PerfTracepoint tracepoint);
  // Returns the attached tracepoint with this id, or end().
  std::vector<AttachedTracepoint>::iterator Find(int id);
  // Opens the events of all tracepoints on the CPU at `index`. Enables the events of tracepoints
  // that are enabled on other CPUs.
  absl::Status OpenEvents(std::size_t index);
  // Closes the events of all tracepoints on the CPU at `index`, and `probe`. Returns the number of
  // samples that the CPU has lost so far.
  std::uint64_t CloseEvents(std::size_t index, base::UniqueFd probe);
  // Closes the descriptors, on the thread of closer_ if it exists.
  void Close(std::vector<base::UniqueFd> fds);

  PerfTarget target_;
  CpuRings rings_;
  bool has_cgroups_;
  bool defers_stacks_ = false;
  std::vector<AttachedTracepoint> tracepoints_;
  std::vector<std::uint64_t> detached_lost_;  // losses of detached tracepoints, by index of the CPU
  bool hits_were_known_ = true;               // whether the hits of detached tracepoints are known
  std::unique_ptr<DescriptorCloser> closer_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_CAPTURE_H_
