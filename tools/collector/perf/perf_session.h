// The floor of perf events: what the kernel records, taken out of its rings in order, and the exact
// account of what the rings had no space for.
//
// In: tracepoint ids and filters, and the numbers of the CPUs that there can be (cpu_list.h). Out:
// the samples of each CPU in the order of their timestamps, up to a limit that the caller sets; the
// creation, naming and end of threads, of all CPUs in one order of time; the number of samples
// lost, where they were lost; which CPUs came online and went. The layouts of the records are in
// perf_records.h, the reading of one ring is in perf_ring.h; PerfSession, below, owns the rings and
// the tracepoints that write to them.
//
// Promises: samples handed out + samples reported as lost = samples that the kernel made, once
// ReadLosses has run after Disable, also of CPUs that have gone. Nothing is allocated for a sample
// once the buffers are warm. A record that the kernel cannot have written ends nothing: it is
// counted, and the ring goes on at its head. The floor knows pids, tids and raw bytes; who they are
// and what they mean is the business of the floors above.
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
#include "tools/collector/base/status_util.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/perf/descriptor_closer.h"
#include "tools/collector/perf/inherited_events.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/perf_ring.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/perf/registration_probe.h"

namespace collector {

// Raises RLIMIT_NOFILE to its hard limit: a session holds a descriptor per CPU and tracepoint.
void RaiseDescriptorLimit();
// Raises the hard limit, too, as far as the kernel usually allows, if this process may.
void RaiseHardDescriptorLimit();

// A CPU has come online, or gone. Times are of the session's clock, in ns.
struct CpuChange {
  std::size_t index = 0;  // in PerfSession::cpus()
  int number = 0;
  bool online = false;
  // It went at some time between these; or it came, and what it did between these may not have been
  // recorded: it is recorded from `until`.
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  // It came and cannot be recorded, for this reason; `until` is 0. There is another change when it
  // can.
  std::string error = {};
};

// Two rings a CPU: one takes every tracepoint's samples, the other takes thread creation, naming
// and exit, so that names survive when samples are lost, and so that what the kernel counts as lost
// in the first ring are samples and nothing else.
//
// The perf events of a CPU end when it goes offline, and do not begin again when it returns: it has
// new ones and new rings then. Its entry in cpus(), and with that its index, stays.
//
// Timestamps are CLOCK_MONOTONIC. Not thread-safe.
class PerfSession {
 public:
  struct Rings {
    UniqueFd leader;
    UniqueFd side_band;
    PerfRing ring;
    PerfRing side_band_ring;
    std::uint64_t opened_at = 0;
    std::uint64_t tasks_lost = 0;  // records of side_band_ring
    std::optional<RegistrationProbe> probe = std::nullopt;
    bool probe_woke = false;  // since ArmRegistrations; it does not wake again before
  };
  // The rings of a CPU from before it went, with samples that have not been handed out.
  struct FormerRings {
    std::unique_ptr<Rings> rings;
    std::uint64_t lost = 0;  // what the CPU had lost at their end
  };
  struct Cpu {
    int number = 0;
    std::unique_ptr<Rings> rings = nullptr;  // null: it is offline
    std::vector<FormerRings> former = {};
    std::uint64_t lost = 0;         // samples, by the LOST records of its rings
    std::uint64_t lost_read = 0;    // the same when ReadLosses ran last
    std::uint64_t last_sample = 0;  // timestamp of the sample that was handed out last
    std::uint64_t gone_at = 0;      // when it was known to be offline; 0: it has been online so far
    bool has_gone = false;          // since ReadLosses ran last
    bool error_told = false;        // of its coming online
  };
  // The kernel's counts for a tracepoint.
  struct Counts {
    std::uint64_t hits = 0;  // lost ones included
    std::uint64_t lost = 0;
  };

  // Opens rings on those of `cpus` that are online, for what Attach is to record of the target. The
  // other CPUs are recorded once they are, see FollowCpus.
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
  // Gives it up. What ReadLosses has not said of it is forgotten. Its descriptors are closed by the
  // closer's thread, if there is one: the kernel takes tens of ms for each tracepoint.
  void Detach(int id);
  // Starts a thread for Detach, and returns its id: its system calls are not to be recorded. No
  // value if there is none to be had; then Detach closes.
  std::optional<pid_t> StartCloser();

  // Samples name the cgroups of their threads.
  bool has_cgroups() const { return has_cgroups_; }
  // All CPUs that were given to Open, online or not, in that order.
  const std::vector<Cpu>& cpus() const { return cpus_; }
  // Looks which CPUs are online, and has those recorded that have come. Returns what has changed
  // since the last call. `suspect`: a CPU may have gone and come again since then, and is to be
  // asked whether its events are still there, which interrupts it.
  std::vector<CpuChange> FollowCpus(bool suspect);
  // The target, which is a cgroup, is this one from now on. The counts of the former one, in which
  // nobody is any more, are kept. On an error it is none.
  absl::Status SetCgroup(UniqueFd cgroup);
  // True, once, if a ring's events have ended: FollowCpus is to be called.
  bool TakeEnded() { return std::exchange(ended_, false); }

  // Has Wait wake when a tracepoint of user_events has been registered. Errors: the kernel has no
  // kprobes, or does not let this process have one.
  absl::Status WatchRegistrations();
  // False, too, once a CPU has come online that could not have it.
  bool watches_registrations() const { return watches_registrations_; }
  // A registration may have been made since ArmRegistrations.
  bool registrations() const { return registrations_; }
  // Has Wait wake once more, at the next registration on each CPU. To be called before looking what
  // there is.
  void ArmRegistrations();

  // Waits until a ring has filled past its watermark, or a signal, or `timeout_ms`. Returns whether
  // a descriptor of WakeOn has woken.
  bool Wait(int timeout_ms);
  // Also wakes Wait when `fd` is readable.
  absl::Status WakeOn(int fd);

  // Hands the FORK, COMM, MMAP, EXIT, CGROUP and LOST records of all CPUs up to now to `consume`,
  // in the order of time: a thread may be created on one CPU and named on another. The bytes are
  // valid during the call of `consume` only. Returns true if records may be missing: the kernel's
  // counts say that some were lost since the last call, or a CPU was not recorded for a time. A
  // LOST record says it later, and kernels before 6.0 do not count.
  bool DrainTasks(absl::FunctionRef<void(const PerfRecord&)> consume);

  // Hands every sample with a timestamp up to `limit` to `on_sample(index, sample, timestamp)`,
  // each CPU's oldest first, where index is that in cpus(); and calls `on_lost(index, total)` where
  // samples are missing: so many have been lost on that CPU so far.
  template <typename OnSample, typename OnLost>
  void Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);

  // Calls `on_lost(index, id, count)` for each tracepoint of which samples have been lost on a CPU
  // since the last call, by the kernel's counts; with kWhereLikely only for the CPUs that have gone
  // since then, or whose rings have had a LOST record, or had no space for a large record: a ring
  // can say what it lost only when something comes after it. Unimplemented if the kernel does not
  // count (before 6.0).
  enum class Losses { kWhereLikely, kAll };
  absl::Status ReadLosses(
      absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost,
      Losses which = Losses::kAll);
  // Bytes of samples that wait in the rings.
  std::size_t waiting_bytes() const;
  // A ring of samples is more than half full.
  bool IsPressed() const;
  // So much waits in a ring that it is better to drain it at once than to sleep: a recorder that
  // sleeps while others want its CPU gets that again too late.
  bool IsWorthDraining() const;

  // Totals of a tracepoint over all CPUs since it was attached. The kernel counts losses per event
  // since 6.0; Unimplemented before.
  absl::StatusOr<Counts> ReadCounts(int id) const;
  // False if the hits of processes cannot be told from those before Enable and after Disable, as
  // there were some just then.
  bool hits_are_known() const { return hits_are_known_; }

 private:
  // A tracepoint on one CPU.
  struct Slot {
    std::vector<UniqueFd> fds;    // for each part of the target; none where the CPU is offline
    Counts closed;                // of the descriptors before
    std::uint64_t lost_read = 0;  // what was lost when ReadLosses ran last
    // Of a process, by the descriptors: the hits when its output began (no value: it has not), and
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
    bool ended = false;  // Disable has been called
  };
  // A tracepoint's events while they are opened on some CPUs.
  struct Opening {
    perf_event_attr attr;
    const std::string* filter;
    std::string what;  // for messages
    const std::vector<std::size_t>* indices;
    std::vector<std::vector<UniqueFd>> fds = {};  // of each of these CPUs
  };

  explicit PerfSession(PerfTarget target) : target_(std::move(target)) {}

  bool AnyWaits(std::size_t bytes) const;
  // Opens an event of a task, of a cgroup or (-1) of all tasks, on `cpu`, which counts its losses
  // where the kernel can.
  UniqueFd OpenCounting(perf_event_attr* attr, int pid, int cpu, unsigned long flags = 0);
  // Opens the events of a tracepoint for the whole target on the CPUs at `indices` of cpus_. On an
  // error it has none. A task or a CPU that is not there any more has none.
  absl::Status OpenForTarget(Tracepoint* tracepoint, const std::vector<std::size_t>& indices);
  absl::Status OpenParts(Opening* opening);
  // Opens them for the task at `index` of the target. If that has ended, it has none: its number
  // may be another's by now.
  absl::Status OpenTask(Opening* opening, std::size_t index);
  // Opens them for one part of it.
  absl::Status OpenPart(Opening* opening, int pid, unsigned long flags);
  absl::Status OpenProcess(Opening* opening, pid_t pid);
  // Opens them for the threads that the process has now, and for those that come meanwhile.
  // Unavailable if it cannot be told of a thread whether it has them.
  absl::Status TryOpenProcess(Opening* opening, pid_t pid);
  // Tells it of the creations of threads whose records wait.
  void PeekCreations(InheritedEvents* inherited);
  absl::Status EnableSlot(Tracepoint& tracepoint, std::size_t index);
  void EndSlot(Slot* slot);
  // Has the events of a process, which are on all the time, write to the ring of `cpu`, or to none,
  // and notes their hits.
  absl::Status BeginOutput(Slot* slot, const Cpu& cpu, const std::string& what);
  void EndOutput(Slot* slot);
  // The hits of all its events; no value where the kernel does not say it.
  std::optional<std::uint64_t> ReadHits(const Slot& slot) const;
  // Whether the cgroups of the target can have perf events.
  absl::Status CheckCgroups() const;
  // Opens the rings of the CPU at `index`. NotFound if it is offline.
  absl::StatusOr<std::unique_ptr<Rings>> OpenRings(std::size_t index);
  absl::Status OpenProbe(Rings* rings, std::size_t index);
  // Opens and enables everything on the CPU at `index`. On an error nothing stays open.
  absl::Status Arrive(std::size_t index);
  // Closes everything of the CPU at `index` but rings that have samples.
  void Depart(std::size_t index);
  // Takes the counts of a slot over, and its descriptor to `closing`.
  void CloseSlot(Slot* slot, std::vector<UniqueFd>* closing);
  // Closes these on the thread for it, if there is one.
  void Close(std::vector<UniqueFd> fds);
  // What epoll tells of a descriptor, beside the CPU's index.
  enum class WakeKind : std::uint32_t { kOther, kRing, kProbe };
  absl::Status WakeOn(int fd, WakeKind kind, std::size_t index, int operation = EPOLL_CTL_ADD);
  void StopWaking(const Rings& rings);
  absl::StatusOr<Counts> ReadCountsOf(const UniqueFd& fd) const;
  absl::StatusOr<Counts> ReadCountsOf(const Slot& slot) const;
  // Passes the records of a CPU's side band to tasks_.
  void TakeSideBand(Rings* rings);
  // The tracepoint that is attached with this id; end() if there is none.
  std::vector<Tracepoint>::iterator Find(int id);
  template <typename OnSample, typename OnLost>
  void DrainRing(std::size_t index, PerfRing* ring, std::uint64_t limit, const OnSample& on_sample,
                 const OnLost& on_lost);

  PerfTarget target_;
  UniqueFd epoll_;
  std::size_t ring_size_ = 0;
  bool counts_lost_ = true;       // the kernel knows PERF_FORMAT_LOST
  bool inherits_threads_ = true;  // and attr.inherit_thread, since 5.13
  bool has_cgroups_ = false;
  std::vector<Cpu> cpus_;
  std::vector<Tracepoint> tracepoints_;
  std::vector<std::uint64_t> detached_lost_;  // by detached tracepoints, per CPU
  bool watches_registrations_ = false;
  bool registrations_ = false;
  bool ended_ = false;
  bool tasks_missing_ = false;  // since the last DrainTasks
  bool hits_are_known_ = true;
  // Copies of the records that DrainTasks puts in order, with their timestamps.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> tasks_;
  std::unique_ptr<DescriptorCloser> closer_;
};

// The session's clock now, in ns.
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
          // No record came after these losses that would have said it.
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
