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
// Promises: samples handed out + samples reported as lost = samples that the kernel made, once
// AccountLost has run after Disable. Nothing is allocated for a sample once the buffers are warm. A
// record that the kernel cannot have written ends nothing: it is counted, and the ring goes on at
// its head. The floor knows pids, tids and raw bytes; who they are and what they mean is the
// business of the floors above.
#ifndef TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
#define TOOLS_COLLECTOR_PERF_PERF_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/base/status_util.h"
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
    std::uint64_t reported = 0;    // of the lost samples, those that the caller knows of
    std::uint64_t tasks_lost = 0;  // records of its other ring
  };
  // The kernel's counts for all tracepoints, on one CPU.
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
  // Ends the recording: no record is written after it returns.
  void Disable();

  const std::vector<Cpu>& cpus() const { return cpus_; }
  // Waits until a ring has filled past its watermark, or a signal, or `timeout_ms`.
  void Wait(int timeout_ms);
  // Also wakes Wait when `fd` is readable.
  absl::Status WakeOn(int fd);

  // Hands the FORK, COMM, MMAP, EXIT and LOST records of all CPUs that wait to `consume`, in the
  // order of time: a thread may be created on one CPU and named on another. The bytes are valid
  // during the call of `consume` only. Returns true if the kernel's counts say that records were
  // lost since the last call; a LOST record says it later, and kernels before 6.0 do not count.
  bool DrainTasks(const std::function<void(const PerfRecord&)>& consume);

  // Hands every sample with a timestamp up to `limit` to `on_sample(index, sample, timestamp)`,
  // each CPU's oldest first, where index is that in cpus(); and reports `on_lost(index, count)`
  // where samples are missing. Both return a status; the first error comes back once all is
  // drained.
  template <typename OnSample, typename OnLost>
  absl::Status Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);
  // Reports the losses that no record says, as nothing came after them in their ring, by the counts
  // of the kernel. Kernels before 6.0 have none: then nothing is reported.
  template <typename OnLost>
  absl::Status AccountLost(const OnLost& on_lost);
  // Bytes of samples that wait in the rings.
  std::size_t waiting_bytes() const;
  // A ring of samples is more than half full.
  bool IsPressed() const;

  // Totals of the CPU at `index` of cpus() since the start, over all tracepoints. The kernel counts
  // losses per event since 6.0; Unimplemented before.
  absl::StatusOr<Counts> ReadCounts(std::size_t index) const;
  // False if the hits of processes cannot be told from those before Enable and after Disable, as
  // there were some just then.
  bool hits_are_known() const { return hits_are_known_; }

  std::size_t tracepoints() const { return tracepoints_.size(); }

 private:
  // A tracepoint's events on one CPU, for each part of the target; none where it is offline.
  using CpuEvents = std::vector<UniqueFd>;
  struct Tracepoint {
    std::string name;
    std::vector<CpuEvents> cpus;  // in the order of cpus_
    bool enabled = false;
    // Of a process, on each CPU: hits before Enable, and all until Disable, which is none until
    // then.
    std::vector<std::uint64_t> hits_before = {};
    std::vector<std::uint64_t> hits_at_end = {};
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
  // Has the events of a tracepoint, which are on all the time, write to the rings, or to none, and
  // notes their hits.
  absl::Status SwitchOutput(Tracepoint* tracepoint, bool on);
  // The hits of events, in their order; none where the kernel does not count them by event.
  std::vector<std::uint64_t> ReadHits(const CpuEvents& events) const;
  absl::StatusOr<Counts> ReadCountsOf(const UniqueFd& fd) const;
  // `total` samples of the CPU at `index` have been lost: reports those not yet reported.
  template <typename OnLost>
  absl::Status ReportLost(std::size_t index, std::uint64_t total, const OnLost& on_lost);

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

template <typename OnLost>
absl::Status PerfSession::ReportLost(std::size_t index, std::uint64_t total,
                                     const OnLost& on_lost) {
  Cpu& cpu = cpus_[index];
  if (total <= cpu.reported) return absl::OkStatus();
  absl::Status status = on_lost(index, total - cpu.reported);
  cpu.reported = total;
  return status;
}

template <typename OnSample, typename OnLost>
absl::Status PerfSession::Drain(std::uint64_t limit, const OnSample& on_sample,
                                const OnLost& on_lost) {
  absl::Status status;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    cpus_[i].ring.Drain(limit, [&, i](const PerfRecord& record) {
      SampleRecord sample;
      std::uint64_t lost = 0;
      if (ParseSample(record, &sample)) {
        status.Update(on_sample(i, sample, record.timestamp));
      } else if (ParseLost(record, &lost)) {
        cpus_[i].lost += lost;
        status.Update(ReportLost(i, cpus_[i].lost, on_lost));
      }
    });
  }
  return status;
}

template <typename OnLost>
absl::Status PerfSession::AccountLost(const OnLost& on_lost) {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const absl::StatusOr<Counts> counts = ReadCounts(i);
    if (absl::IsUnimplemented(counts.status())) return absl::OkStatus();
    if (!counts.ok()) return counts.status();
    COLLECTOR_RETURN_IF_ERROR(ReportLost(i, counts->lost, on_lost));
  }
  return absl::OkStatus();
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
