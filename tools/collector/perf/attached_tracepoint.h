// Attaches one tracepoint on all CPUs, and counts its hits and losses.
#ifndef TOOLS_COLLECTOR_PERF_ATTACHED_TRACEPOINT_H_
#define TOOLS_COLLECTOR_PERF_ATTACHED_TRACEPOINT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/cpu_rings.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/perf/target_events.h"

namespace collector {

// Holds the perf events of a tracepoint on all CPUs. A CPU has one perf event for each task or
// cgroup of the target, and none while it is offline. The counts include those of closed events.
//
// If the target is a list of processes, threads inherit the events from the threads that create
// them. Inherited events are enabled when they are opened, because the kernel cannot enable them in
// all threads at once. They write samples only while they are redirected to a ring, and only hits
// in this time count. Not thread-safe.
class AttachedTracepoint {
 public:
  // Creates a tracepoint without events, for targets of the kind `target` and for `cpus` CPUs.
  AttachedTracepoint(PerfTracepoint tracepoint, PerfTarget::Kind target, std::size_t cpus)
      : tracepoint_(std::move(tracepoint)),
        inherits_(target == PerfTarget::Kind::kProcesses),
        cpus_(cpus) {}

  // Checks whether the kernel accepts the filter for the tracepoint. Fails with InvalidArgument,
  // without details, if it does not, and with another error if the check is not possible. Takes 40
  // ms if no process has the tracepoint attached.
  static absl::Status CheckFilter(int id, const std::string& filter);

  int id() const { return tracepoint_.id; }

  // Opens events for the target on the CPUs at `indices` of `rings`, which must have no events of
  // this tracepoint. Also enables them if Enable has been called and Disable has not.
  //
  // Fails with ResourceExhausted if there are too few descriptors, with Unavailable if a process
  // creates threads too fast, and with another error if the kernel refuses an event. None of the
  // events is open after these errors. Also fails if the events cannot be enabled; they then stay
  // open.
  absl::Status Open(const PerfTarget& target, const std::vector<std::size_t>& indices,
                    CpuRings* rings);
  // Sets the events of the CPU at `index`. They must be in the state in which OpenTargetEvents
  // returns events.
  void SetEvents(std::size_t index, std::vector<base::UniqueFd> events) {
    cpus_[index].events = std::move(events);
  }
  // Starts to record. Does nothing after Disable. Fails if an event cannot be enabled; events of
  // other CPUs may then be enabled already.
  absl::Status Enable(const std::vector<CpuRing>& rings);
  // Stops recording for good. No sample is written after the function has returned.
  void Disable();
  bool is_disabled() const { return state_ == State::kDisabled; }
  // Stops recording on the CPU at `index`, keeps its counts, and moves its descriptors to
  // `*closing`. Returns the number of samples that the tracepoint has lost on the CPU so far.
  std::uint64_t Close(std::size_t index, std::vector<base::UniqueFd>* closing);

  // Returns the number of samples lost on the CPU at `index` since the last call. Fails with
  // Unimplemented if the kernel does not count losses, and with another error if the counts cannot
  // be read.
  absl::StatusOr<std::uint64_t> TakeLosses(std::size_t index);
  // Returns the hits and losses on all CPUs. Fails with Unimplemented if the kernel does not count
  // losses, and with another error if the counts cannot be read.
  absl::StatusOr<EventCounts> ReadTotals() const;
  // Returns false if the target is a list of processes and the tracepoint was hit during Enable or
  // Disable. In that case, the number of hits between Enable and Disable is not known exactly.
  bool hits_are_known() const { return hits_are_known_; }

 private:
  enum class State { kAttached, kEnabled, kDisabled };
  // The tracepoint on one CPU.
  struct Cpu {
    std::vector<base::UniqueFd> events;
    EventCounts closed;           // counts of closed events
    std::uint64_t lost_read = 0;  // losses at the last TakeLosses
    // For a target of processes, the hits of the events when they were redirected to a ring, and
    // when the redirection ended. No value before that.
    std::optional<std::uint64_t> hits_before = std::nullopt;
    std::optional<std::uint64_t> hits_at_end = std::nullopt;
  };

  absl::Status EnableOn(Cpu* cpu, const CpuRing& ring);
  void DisableOn(Cpu* cpu);
  absl::StatusOr<EventCounts> ReadCountsOn(const Cpu& cpu) const;

  PerfTracepoint tracepoint_;
  bool inherits_;
  State state_ = State::kAttached;
  std::vector<Cpu> cpus_;
  bool hits_are_known_ = true;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_ATTACHED_TRACEPOINT_H_
