// Reads what the kernel records from perf's rings, in order, and counts exactly what was lost
// because the rings were full.
//
// Input: tracepoint ids and filters, and the numbers of the possible CPUs (cpu_list.h). Output:
// - the samples of each CPU in the order of their timestamps, up to a limit that the caller sets;
// - the creation, naming and end of threads on all CPUs, in the order of time;
// - the number of lost samples, and the places where they were lost;
// - the CPUs that came online or went offline.
//
// The layouts of the records are in perf_records.h, and the reading of one ring in perf_ring.h.
// PerfSession owns the rings and the tracepoints that write to them.
//
// Guarantees: Delivered samples and samples reported as lost add up to the samples that the kernel
// made, once ReadLosses has run after Disable. This includes CPUs that went offline. No memory is
// allocated for a sample once the buffers have grown. A record that the kernel cannot have written
// is counted, and the ring continues at its head. This layer handles pids, tids and raw bytes;
// other layers interpret them.
#ifndef TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
#define TOOLS_COLLECTOR_PERF_PERF_SESSION_H_

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/descriptor_closer.h"
#include "tools/collector/perf/inherited_events.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/perf_ring.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/perf/registration_probe.h"

namespace collector {

// Raises RLIMIT_NOFILE to its hard limit, because a session needs a descriptor for each CPU and
// tracepoint.
void RaiseDescriptorLimit();
// Also raises the hard limit to the kernel's usual maximum, if this process may.
void RaiseHardDescriptorLimit();

// A CPU that has come online or gone offline. Times are in ns of the session clock.
struct CpuChange {
  std::size_t index = 0;  // index in PerfSession::cpus()
  int number = 0;
  bool online = false;
  // A CPU went offline at some time between `since` and `until`. A CPU that came online may not
  // have been recorded between them; it is recorded from `until` on.
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  // Reason why a CPU that came online cannot be recorded; `until` is 0 in that case. Another change
  // is reported when it can.
  std::string error = {};
};

// Holds two rings for each CPU. One receives the samples of every tracepoint. The other receives
// the creation, naming and exit of threads, so that names are kept when samples are lost. As a
// result, all losses that the kernel counts in the first ring are samples.
//
// The perf events of a CPU end when it goes offline, and do not resume when it returns. It then
// gets new events and new rings, but keeps its entry and index in cpus().
//
// Timestamps are CLOCK_MONOTONIC. Not thread-safe.
class PerfSession {
 public:
  struct Rings {
    base::UniqueFd leader;
    base::UniqueFd side_band;
    PerfRing ring;
    PerfRing side_band_ring;
    std::uint64_t opened_at = 0;
    std::uint64_t tasks_lost = 0;  // records of side_band_ring
    std::optional<RegistrationProbe> probe = std::nullopt;
    bool probe_woke = false;  // since ArmRegistrations; it wakes only once
  };
  // Rings of a CPU from before it went offline, with samples that have not been delivered.
  struct FormerRings {
    std::unique_ptr<Rings> rings;
    std::uint64_t lost = 0;  // samples that the CPU had lost when they ended
  };
  struct Cpu {
    int number = 0;
    std::unique_ptr<Rings> rings = nullptr;  // null if the CPU is offline
    std::vector<FormerRings> former = {};
    std::uint64_t lost = 0;         // samples, by LOST records
    std::uint64_t lost_read = 0;    // value of `lost` at the last ReadLosses
    std::uint64_t last_sample = 0;  // timestamp of the last delivered sample
    std::uint64_t gone_at = 0;      // ns; when it was found offline; 0: never
    bool has_gone = false;          // offline since the last ReadLosses
    bool error_told = false;        // an error of coming online was reported
  };
  // The kernel's counts for a tracepoint.
  struct Counts {
    std::uint64_t hits = 0;  // including lost ones
    std::uint64_t lost = 0;
  };

  // Opens rings on those of `cpus` that are online, to record the events of the target that Attach
  // adds. The other CPUs are recorded when they come online; see FollowCpus.
  static absl::StatusOr<PerfSession> Open(const std::vector<int>& cpus, PerfOptions options);

  // Attaches the tracepoint `id` on every CPU, disabled. `name` is for messages; `filter` is in the
  // kernel's filter language, or "". An error leaves nothing attached. Fails with ResourceExhausted
  // if there are too few descriptors, and with Unavailable if a process creates threads too fast.
  absl::Status Attach(int id, const std::string& name, const std::string& filter);
  // Checks whether the kernel accepts the filter for the tracepoint. Fails with InvalidArgument,
  // without details, if it does not. Takes 40 ms if no process has the tracepoint attached.
  static absl::Status CheckFilter(int id, const std::string& filter);
  // Returns the number of descriptors that Attach needs. For processes, this depends on their
  // current threads.
  std::size_t DescriptorsPerTracepoint() const;
  // Starts to record all attached tracepoints.
  absl::Status Enable();
  // Stops the recording of a tracepoint. None of its records is written after this returns.
  void Disable(int id);
  // Detaches a tracepoint. Losses that ReadLosses has not reported are discarded. The closer's
  // thread, if it exists, closes the descriptors, because this takes the kernel tens of ms for each
  // tracepoint.
  void Detach(int id);
  // Starts a thread for Detach, and returns its id, so that the caller can exclude the thread's
  // system calls from the recording. Returns no value if the thread cannot be created; Detach then
  // closes the descriptors.
  std::optional<pid_t> StartCloser();

  // Returns whether samples contain the cgroups of their threads.
  bool has_cgroups() const { return has_cgroups_; }
  // Returns all CPUs that were passed to Open, online or not, in that order.
  const std::vector<Cpu>& cpus() const { return cpus_; }
  // Checks which CPUs are online, and starts to record those that have come online. Returns the
  // changes since the last call. If `suspect` is set, a CPU may have gone offline and come back
  // since then; the function checks that its events still run, which interrupts the CPU.
  std::vector<CpuChange> FollowCpus(bool suspect);
  // Replaces the target, which is a cgroup, with this one. The counts of the former cgroup, which
  // is empty, are kept. After an error, there is no target cgroup.
  absl::Status SetCgroup(base::UniqueFd cgroup);
  // Returns true once if a ring's events have ended. FollowCpus must then be called.
  bool TakeEnded() { return std::exchange(ended_, false); }

  // Makes Wait return when a tracepoint of user_events has been registered. Fails if the kernel has
  // no kprobes or does not permit them to this process.
  absl::Status WatchRegistrations();
  // Returns whether all CPUs report registrations. A CPU that comes online later may fail to do so.
  bool watches_registrations() const { return watches_registrations_; }
  // Returns whether a registration may have been made since ArmRegistrations.
  bool registrations() const { return registrations_; }
  // Makes Wait return once more, at the next registration on each CPU. Must be called before the
  // registrations are read.
  void ArmRegistrations();

  // Waits for a ring to fill past its watermark, a readable descriptor, or a signal, for up to
  // `timeout_ms`. Returns whether a descriptor of WakeOn became readable.
  bool Wait(int timeout_ms);
  // Makes Wait also return when `fd` is readable.
  absl::Status WakeOn(int fd);

  // Passes the FORK, COMM, MMAP, EXIT, CGROUP and LOST records of all CPUs up to now to `consume`,
  // in the order of time. A thread may be created on one CPU and named on another. The bytes are
  // valid only during the call of `consume`.
  //
  // Returns true if records may be missing: the kernel has counted losses since the last call, or a
  // CPU was not recorded for some time. A LOST record reports losses only later, and kernels before
  // 6.0 do not count them.
  bool DrainTasks(absl::FunctionRef<void(const PerfRecord&)> consume);

  // Passes every sample with a timestamp up to `limit` to `on_sample(index, sample, timestamp)`,
  // the oldest of each CPU first. `index` is the index in cpus(). Where samples are missing, calls
  // `on_lost(index, total)` with the number of samples lost on that CPU so far.
  template <typename OnSample, typename OnLost>
  void Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);

  // Calls `on_lost(index, id, count)` for each tracepoint whose samples have been lost on a CPU
  // since the last call, by the kernel's counts. With kWhereLikely, it reads only CPUs that have
  // gone offline since then, and CPUs whose rings contained a LOST record or had no space for a
  // large record. A ring reports its losses only when another record follows. Fails with
  // Unimplemented if the kernel does not count losses (before 6.0).
  enum class Losses { kWhereLikely, kAll };
  absl::Status ReadLosses(
      absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost,
      Losses which = Losses::kAll);
  // Bytes of samples that wait in the rings.
  std::size_t waiting_bytes() const;
  // Returns whether a ring of samples is more than half full.
  bool IsPressed() const;
  // Returns whether a ring contains enough bytes to be drained before sleeping. A recorder that
  // sleeps while other threads want its CPU gets the CPU back too late.
  bool IsWorthDraining() const;

  // Returns the totals of a tracepoint over all CPUs since it was attached. Fails with
  // Unimplemented before Linux 6.0, which does not count losses per event.
  absl::StatusOr<Counts> ReadCounts(int id) const;
  // Returns false if the hits of processes cannot be separated from those before Enable or after
  // Disable, because hits occurred at that moment.
  bool hits_are_known() const { return hits_are_known_; }

 private:
  // A tracepoint on one CPU.
  struct Slot {
    std::vector<base::UniqueFd> fds;  // one for each part of the target; none if the CPU is offline
    Counts closed;                    // counts of closed descriptors
    std::uint64_t lost_read = 0;      // losses at the last ReadLosses
    // For a process, the hits of the descriptors when its output began (no value: not yet), and
    // when it ended.
    std::optional<std::uint64_t> hits_before = std::nullopt;
    std::optional<std::uint64_t> hits_at_end = std::nullopt;
  };
  struct Tracepoint {
    int id = 0;
    std::string name;
    std::string filter;
    std::vector<Slot> slots;  // one per CPU, in the order of cpus_
    bool enabled = false;
    bool ended = false;  // whether Disable has been called
  };
  // The state of opening a tracepoint's events on some CPUs.
  struct Opening {
    perf_event_attr attr;
    const std::string* filter;
    std::string what;  // for messages
    const std::vector<std::size_t>* indices;
    std::vector<std::vector<base::UniqueFd>> fds = {};  // by index in `indices`
  };

  explicit PerfSession(PerfTarget target) : target_(std::move(target)) {}

  bool AnyWaits(std::size_t bytes) const;
  // Opens an event of a task, of a cgroup or of all tasks (-1) on `cpu`. The event counts its
  // losses if the kernel supports this.
  base::UniqueFd OpenCounting(perf_event_attr* attr, int pid, int cpu, unsigned long flags = 0);
  // Opens the events of a tracepoint for the whole target on the CPUs at `indices` of cpus_. Opens
  // none on an error, and skips tasks that have ended and CPUs that are offline.
  absl::Status OpenForTarget(Tracepoint* tracepoint, const std::vector<std::size_t>& indices);
  absl::Status OpenParts(Opening* opening);
  // Opens the events for the task at `index` of the target. Opens none if the task has ended,
  // because another task may have its number.
  absl::Status OpenTask(Opening* opening, std::size_t index);
  // Opens the events for one part of the target.
  absl::Status OpenPart(Opening* opening, int pid, unsigned long flags);
  absl::Status OpenProcess(Opening* opening, pid_t pid);
  // Opens the events for the current threads of the process, and for threads that it creates in the
  // meantime. Fails with Unavailable if it is unclear whether a thread has the events.
  absl::Status TryOpenProcess(Opening* opening, pid_t pid);
  // Adds the creations of threads in the waiting records to `inherited`.
  void PeekCreations(InheritedEvents* inherited);
  absl::Status EnableSlot(Tracepoint& tracepoint, std::size_t index);
  void EndSlot(Slot* slot);
  // Redirects the events of a process, which are always enabled, to the ring of `cpu`, and records
  // their hits. EndOutput redirects them to no ring.
  absl::Status BeginOutput(Slot* slot, const Cpu& cpu, const std::string& what);
  void EndOutput(Slot* slot);
  // Returns the hits of all events of the slot, or no value if they cannot be read.
  std::optional<std::uint64_t> ReadHits(const Slot& slot) const;
  // Checks that the cgroups of the target can have perf events.
  absl::Status CheckCgroups() const;
  // Opens the rings of the CPU at `index`. Fails with NotFound if it is offline.
  absl::StatusOr<std::unique_ptr<Rings>> OpenRings(std::size_t index);
  absl::Status OpenProbe(Rings* rings, std::size_t index);
  // Opens and enables everything on the CPU at `index`. An error leaves nothing open.
  absl::Status Arrive(std::size_t index);
  // Closes everything of the CPU at `index` except rings with samples.
  void Depart(std::size_t index);
  // Saves the counts of a slot, and moves its descriptors to `closing`.
  void CloseSlot(Slot* slot, std::vector<base::UniqueFd>* closing);
  // Closes the descriptors, on the closer's thread if it exists.
  void Close(std::vector<base::UniqueFd> fds);
  // Kind of a descriptor in epoll data, which also contains the CPU's index.
  enum class WakeKind : std::uint32_t { kOther, kRing, kProbe };
  absl::Status WakeOn(int fd, WakeKind kind, std::size_t index, int operation = EPOLL_CTL_ADD);
  void StopWaking(const Rings& rings);
  absl::StatusOr<Counts> ReadCountsOf(const base::UniqueFd& fd) const;
  absl::StatusOr<Counts> ReadCountsOf(const Slot& slot) const;
  // Appends the records of a CPU's side band to tasks_.
  void TakeSideBand(Rings* rings);
  // Returns the attached tracepoint with this id, or end().
  std::vector<Tracepoint>::iterator Find(int id);
  template <typename OnSample, typename OnLost>
  void DrainRing(std::size_t index, PerfRing* ring, std::uint64_t limit, const OnSample& on_sample,
                 const OnLost& on_lost);

  PerfTarget target_;
  base::UniqueFd epoll_;
  std::size_t ring_size_ = 0;
  bool counts_lost_ = true;       // the kernel supports PERF_FORMAT_LOST
  bool inherits_threads_ = true;  // the kernel supports attr.inherit_thread (5.13)
  bool has_cgroups_ = false;
  std::vector<Cpu> cpus_;
  std::vector<Tracepoint> tracepoints_;
  std::vector<std::uint64_t> detached_lost_;  // losses of detached tracepoints, per CPU
  bool watches_registrations_ = false;
  bool registrations_ = false;
  bool ended_ = false;
  bool tasks_missing_ = false;  // since the last DrainTasks
  bool hits_are_known_ = true;
  // Copies of the records that DrainTasks sorts, with their timestamps.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> tasks_;
  std::unique_ptr<DescriptorCloser> closer_;
};

// Returns the current time of the session clock, in ns.
std::uint64_t SessionClockNow();

template <typename OnSample, typename OnLost>
void PerfSession::DrainRing(std::size_t index, PerfRing* ring, std::uint64_t limit,
                            const OnSample& on_sample, const OnLost& on_lost) {
  Cpu& cpu = cpus_[index];
  ring->Drain(limit, [&](const PerfRecord& record) {
    SampleRecord sample;
    std::uint64_t lost = 0;
    if (ParseSample(record, &sample)) {
      cpu.last_sample = record.timestamp;
      on_sample(index, sample, record.timestamp);
    } else if (ParseLost(record, &lost)) {
      cpu.lost += lost;
      on_lost(index, cpu.lost);
    }
  });
}

template <typename OnSample, typename OnLost>
void PerfSession::Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost) {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    Cpu& cpu = cpus_[i];
    while (!cpu.former.empty()) [[unlikely]] {
        const FormerRings& former = cpu.former.front();
        DrainRing(i, &former.rings->ring, limit, on_sample, on_lost);
        if (!former.rings->ring.empty()) break;
        if (former.lost > cpu.lost) {
          // No later record has reported these losses.
          cpu.lost = former.lost;
          on_lost(i, cpu.lost);
        }
        cpu.former.erase(cpu.former.begin());
      }
    if (cpu.rings == nullptr || !cpu.former.empty() || cpu.rings->ring.empty()) continue;
    DrainRing(i, &cpu.rings->ring, limit, on_sample, on_lost);
  }
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_SESSION_H_
