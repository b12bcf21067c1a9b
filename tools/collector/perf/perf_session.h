// The floor of perf events: what the kernel records, taken out of its rings in order, and the exact
// account of what the rings had no space for.
//
// In: tracepoint ids and filters, and the numbers of the CPUs to record on (cpu_list.h). Out: the
// samples of each CPU in the order of their timestamps, up to a limit that the caller sets; the
// creation, naming and end of threads, of all CPUs in one order of time; the number of samples
// lost, where they were lost. The layouts of the records are in perf_records.h, the reading of one
// ring is in perf_ring.h; PerfSession, below, owns the rings and the tracepoints that write to
// them.
//
// Promises: samples handed out + samples that ReadLosses says were lost = samples that the kernel
// made, for each tracepoint once it is disabled. Nothing is allocated for a sample once the buffers
// are warm. A record that the kernel cannot have written ends nothing: it is counted, and the ring
// goes on at its head. The floor knows pids, tids and raw bytes; who they are and what they mean is
// the business of the floors above.
#ifndef TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
#define TOOLS_COLLECTOR_PERF_PERF_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/perf/inherited_events.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/perf_ring.h"
#include "tools/collector/perf/perf_target.h"

namespace collector {

// Raises RLIMIT_NOFILE to its hard limit: a session holds a descriptor per CPU and tracepoint.
void RaiseDescriptorLimit();
// Raises the hard limit, too, as far as the kernel usually allows, if this process may.
void RaiseHardDescriptorLimit();

// Two rings a CPU: one takes every tracepoint's samples, the other takes thread creation, naming
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
    std::uint64_t lost = 0;        // samples, by the LOST records of its ring
    std::uint64_t lost_read = 0;   // the same when ReadLosses ran last
    std::uint64_t tasks_lost = 0;  // records of its other ring
  };
  // The kernel's counts for a tracepoint.
  struct Counts {
    std::uint64_t hits = 0;  // lost ones included
    std::uint64_t lost = 0;
  };

  // Opens rings on `cpus`, for what Attach is to record of the target.
  static absl::StatusOr<PerfSession> Open(const std::vector<int>& cpus, PerfOptions options);

  // Attaches the tracepoint `id` on every CPU, still disabled. `name` is for messages. `filter` is
  // in the kernel's filter language, "" for none. On an error nothing of it stays.
  // ResourceExhausted if there are not enough descriptors, Unavailable if a process creates threads
  // too fast.
  absl::Status Attach(int id, const std::string& name, const std::string& filter);
  // Whether the kernel takes the filter for the tracepoint. InvalidArgument if it does not; it says
  // no more of it, and takes 40 ms where nobody has the tracepoint attached.
  static absl::Status CheckFilter(int id, const std::string& filter);
  // How many descriptors Attach needs, for a process as many as its threads now do.
  std::size_t DescriptorsPerTracepoint() const;
  // Begins to record all that is attached.
  absl::Status Enable();
  // Ends the recording of a tracepoint: none of its records is written after it returns.
  void Disable(int id);
  // Gives it up. What ReadLosses has not said of it is forgotten.
  void Detach(int id);

  const std::vector<Cpu>& cpus() const { return cpus_; }
  // Waits until a ring has filled past its watermark, or a signal, or `timeout_ms`.
  void Wait(int timeout_ms);
  // Also wakes Wait when `fd` is readable.
  absl::Status WakeOn(int fd);

  // Hands the FORK, COMM, MMAP, EXIT and LOST records of all CPUs up to now to `consume`, in the
  // order of time: a thread may be created on one CPU and named on another. The bytes are valid
  // during the call of `consume` only. Returns true if the kernel's counts say that records were
  // lost since the last call; a LOST record says it later, and kernels before 6.0 do not count.
  bool DrainTasks(const std::function<void(const PerfRecord&)>& consume);

  // Hands every sample with a timestamp up to `limit` to `on_sample(index, sample, timestamp)`,
  // each CPU's oldest first, where index is that in cpus(); and calls `on_lost(index, total)` where
  // samples are missing: so many have been lost on that CPU so far.
  template <typename OnSample, typename OnLost>
  void Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);

  // Calls `on_lost(index, id, count)` for each tracepoint of which samples have been lost on a CPU
  // since the last call, by the kernel's counts; with kWhereReported only for the CPUs whose rings
  // have had a LOST record since then. Unimplemented if the kernel does not count (before 6.0).
  enum class Losses { kWhereReported, kAll };
  absl::Status ReadLosses(
      absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost,
      Losses which = Losses::kAll);
  // Bytes of samples that wait in the rings.
  std::size_t waiting_bytes() const;
  // A ring of samples is more than half full.
  bool IsPressed() const;

  // Totals of a tracepoint over all CPUs since it was attached. The kernel counts losses per event
  // since 6.0; Unimplemented before.
  absl::StatusOr<Counts> ReadCounts(int id) const;
  // False if the hits of processes cannot be told from those before Enable and after Disable, as
  // there were some just then.
  bool hits_are_known() const { return hits_are_known_; }

  std::size_t tracepoints() const { return tracepoints_.size(); }

 private:
  // A tracepoint's events on one CPU, for each part of the target; none where it is offline.
  using CpuEvents = std::vector<UniqueFd>;
  struct Slot {
    CpuEvents fds;
    std::uint64_t lost_read = 0;  // when ReadLosses ran last
    // Of a process: the hits when its output began, and when it ended.
    std::uint64_t hits_before = 0;
    std::optional<std::uint64_t> hits_at_end = std::nullopt;
  };
  struct Tracepoint {
    int id = 0;
    std::string name;
    std::vector<Slot> slots;  // in the order of cpus_
    bool enabled = false;
  };
  // What is opened: a tracepoint's attributes, and for messages what is done with it.
  struct Opening {
    perf_event_attr attr;
    std::string filter;
    std::string what;
  };

  explicit PerfSession(PerfTarget target) : target_(std::move(target)) {}

  // Opens an event of a task, of a cgroup or (-1) of all tasks, on `cpu`, which counts its losses
  // where the kernel can.
  UniqueFd OpenCounting(perf_event_attr* attr, int pid, int cpu, unsigned long flags = 0);
  // Opens the events of a tracepoint for the whole target on the CPUs at `indices` of cpus_: those
  // of each CPU, in that order.
  absl::StatusOr<std::vector<CpuEvents>> OpenForTarget(Opening* opening,
                                                       const std::vector<std::size_t>& indices);
  // Opens them for one part of it. A task or a CPU that is not there any more has none.
  absl::Status OpenPart(Opening* opening, int pid, unsigned long flags,
                        const std::vector<std::size_t>& indices, std::vector<CpuEvents>* events);
  absl::Status OpenProcess(Opening* opening, pid_t pid, const std::vector<std::size_t>& indices,
                           std::vector<CpuEvents>* events);
  // Opens them for the threads that the process has now, and for those that come meanwhile.
  // Unavailable if it cannot be told of a thread whether it has them.
  absl::Status TryOpenProcess(Opening* opening, pid_t pid, const std::vector<std::size_t>& indices,
                              std::vector<CpuEvents>* events);
  // Tells it of the creations of threads whose records wait.
  void PeekCreations(InheritedEvents* inherited);
  absl::Status EnableSlot(Tracepoint& tracepoint, std::size_t index);
  // Has the events of a process, which are on all the time, write to the ring of `cpu`, or to none,
  // and notes their hits.
  absl::Status BeginOutput(Slot* slot, const Cpu& cpu, const std::string& what);
  void EndOutput(Slot* slot);
  // The hits of all its events; no value where the kernel does not say it.
  std::optional<std::uint64_t> ReadHits(const Slot& slot) const;
  absl::StatusOr<Counts> ReadCountsOf(const UniqueFd& fd) const;
  absl::StatusOr<Counts> ReadCountsOf(const Slot& slot) const;
  // The tracepoint that is attached with this id; end() if there is none.
  std::vector<Tracepoint>::iterator Find(int id);

  PerfTarget target_;
  UniqueFd epoll_;
  bool counts_lost_ = true;       // the kernel knows PERF_FORMAT_LOST
  bool inherits_threads_ = true;  // and attr.inherit_thread, since 5.13
  std::vector<Cpu> cpus_;
  std::vector<Tracepoint> tracepoints_;
  bool hits_are_known_ = true;
  // Copies of the records that DrainTasks puts in order, with their timestamps.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> tasks_;
};

// The session's clock now, in ns.
std::uint64_t SessionClockNow();

template <typename OnSample, typename OnLost>
void PerfSession::Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost) {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    cpus_[i].ring.Drain(limit, [&, i](const PerfRecord& record) {
      SampleRecord sample;
      std::uint64_t lost = 0;
      if (ParseSample(record, &sample)) {
        on_sample(i, sample, record.timestamp);
      } else if (ParseLost(record, &lost)) {
        cpus_[i].lost += lost;
        on_lost(i, cpus_[i].lost);
      }
    });
  }
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
