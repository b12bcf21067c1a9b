#include "tools/collector/perf/target_events.h"

#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/inherited_events.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/perf/user_registers.h"

namespace collector {
namespace {

// Maximum number of retries while it is unclear which threads have inherited an event.
constexpr int kAttempts = 50;
// Number of times that the threads of a process are checked in each attempt.
constexpr int kLooks = 10;
// Pause between two checks. In this time, a new thread usually ends, or the record of its creation
// appears.
constexpr timespec kPause = {0, 100'000};

// Returns the current threads of a process; none if it has ended.
std::vector<pid_t> ReadThreads(pid_t pid) {
  std::vector<pid_t> tids;
  std::error_code error;
  const std::string path = absl::StrCat("/proc/", pid, "/task");
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    pid_t tid = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &tid)) tids.push_back(tid);
  }
  return tids;
}

// Returns whether the task has ended; false if the kernel has no descriptor for it.
bool HasEnded(const base::UniqueFd& task) {
  pollfd descriptor = {task.get(), POLLIN, 0};
  return task.valid() && poll(&descriptor, 1, 0) > 0;
}

// Returns whether the kernel supports attr.inherit_thread (5.13).
bool KernelInheritsToThreads() {
  static const bool inherits = [] {
    perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
    attr.inherit = attr.inherit_thread = 1;
    return OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1).valid() || errno != EINVAL;
  }();
  return inherits;
}

perf_event_attr AttributesOf(const PerfTracepoint& source) {
  if (source.id == kCpuTimeId) return CpuTimeAttributes(source.rate);
  if (source.id == kSwitchesId) return SwitchAttributes();
  return TracepointAttributes(source.id);
}

// Opens the events of one tracepoint; see OpenTargetEvents.
class Opener {
 public:
  // The arguments must outlive this object.
  Opener(const PerfTarget& target, const PerfTracepoint& tracepoint,
         const std::vector<std::size_t>& indices, CpuRings* rings)
      : target_(target),
        filter_(tracepoint.filter),
        indices_(indices),
        rings_(rings),
        samples_cpu_time_(tracepoint.id == kCpuTimeId),
        what_(absl::StrCat(IsTracepointId(tracepoint.id) ? "opening tracepoint " : "opening ",
                           tracepoint.name)),
        attr_(AttributesOf(tracepoint)),
        events_(indices.size()) {
    if (tracepoint.stacks.any()) {
      attr_.sample_type |= kStackSampleType;
      attr_.exclude_callchain_user = tracepoint.stacks.user ? 0 : 1;
      attr_.exclude_callchain_kernel = tracepoint.stacks.kernel ? 0 : 1;
      attr_.sample_max_stack = tracepoint.stacks.max_frames;
      if (tracepoint.stacks.user && tracepoint.stacks.copied_bytes != 0) {
        attr_.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        attr_.sample_regs_user = kUserRegisterMask;
        attr_.sample_stack_user = tracepoint.stacks.copied_bytes;
        attr_.exclude_callchain_user = 1;
      }
    }
    if (DefersStacks(tracepoint)) DeferStacks(&attr_);
    if (tracepoint.cgroups) attr_.sample_type |= PERF_SAMPLE_CGROUP;
  }

  absl::Status OpenAll();
  TargetEvents TakeEvents() { return std::move(events_); }

 private:
  // Opens the events for the task at `index` of the target. Opens none if the task has ended,
  // because another task may have the id now.
  absl::Status OpenTask(std::size_t index);
  // Opens one event. Sets errno if the result is invalid.
  base::UniqueFd Open(int pid, int cpu, unsigned long flags);
  // Opens the events for a task, a cgroup or the whole machine. `pid` and `flags` select it as in
  // OpenEvent.
  absl::Status OpenPart(int pid, unsigned long flags);
  absl::Status OpenProcess(pid_t pid);
  // Opens the events for the current threads of the process, and for threads that it creates during
  // this call. Fails with Unavailable if it is unclear whether a thread has the events.
  absl::Status TryOpenProcess(pid_t pid);
  // Opens the events for those of `threads` that have not inherited them. Returns whether all
  // threads have them now.
  absl::StatusOr<bool> OpenMissing(const std::vector<pid_t>& threads, InheritedEvents* inherited);
  absl::Status OpenThread(pid_t tid, InheritedEvents* inherited);
  // Adds the creations of threads to `inherited`. Takes them from the records that wait in the
  // rings, without consuming the records.
  void PeekCreations(InheritedEvents* inherited);

  // CountOpen returns the number of open events on each CPU. CloseAllBut closes the events that
  // were opened after CountOpen returned `counts`.
  std::vector<std::size_t> CountOpen() const;
  void CloseAllBut(const std::vector<std::size_t>& counts);

  const PerfTarget& target_;
  const std::string& filter_;
  const std::vector<std::size_t>& indices_;
  CpuRings* rings_;
  bool samples_cpu_time_;
  std::string what_;  // for messages
  perf_event_attr attr_;
  TargetEvents events_;
};

absl::Status Opener::OpenAll() {
  switch (target_.kind) {
    case PerfTarget::Kind::kMachine:
      return OpenPart(-1, 0);
    case PerfTarget::Kind::kProcesses:
    case PerfTarget::Kind::kThreads:
      for (std::size_t i = 0; i < target_.ids.size(); ++i) RETURN_IF_ERROR(OpenTask(i));
      break;
    case PerfTarget::Kind::kCgroups:
      for (const base::UniqueFd& cgroup : target_.cgroups) {
        RETURN_IF_ERROR(OpenPart(cgroup.get(), PERF_FLAG_PID_CGROUP));
      }
      break;
  }
  return absl::OkStatus();
}

std::vector<std::size_t> Opener::CountOpen() const {
  std::vector<std::size_t> counts;
  for (const std::vector<base::UniqueFd>& events : events_) counts.push_back(events.size());
  return counts;
}

void Opener::CloseAllBut(const std::vector<std::size_t>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) events_[i].resize(counts[i]);
}

absl::Status Opener::OpenTask(std::size_t index) {
  if (HasEnded(target_.descriptors[index])) return absl::OkStatus();
  const std::vector<std::size_t> before = CountOpen();
  const pid_t id = target_.ids[index];
  absl::Status opened =
      target_.kind == PerfTarget::Kind::kProcesses ? OpenProcess(id) : OpenPart(id, 0);
  if (!HasEnded(target_.descriptors[index])) return opened;
  CloseAllBut(before);
  return absl::OkStatus();
}

base::UniqueFd Opener::Open(int pid, int cpu, unsigned long flags) {
  base::UniqueFd event = OpenEvent(&attr_, pid, cpu, flags);
  const bool cannot_count = !event.valid() && (errno == ENOENT || errno == EOPNOTSUPP);
  if (!cannot_count || !samples_cpu_time_) return event;
  // This CPU cannot count cycles, so its event uses the kernel's clock. attr_ stays unchanged,
  // because another CPU may be able to count cycles.
  perf_event_attr clock = attr_;
  if (!UseCpuClock(&clock)) return event;
  return OpenEvent(&clock, pid, cpu, flags);
}

absl::Status Opener::OpenPart(int pid, unsigned long flags) {
  const bool is_task = pid > 0 && flags == 0;
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    const CpuRing& cpu = rings_->cpus()[indices_[i]];
    base::UniqueFd event = Open(pid, cpu.number(), flags);
    if (!event.valid()) {
      if (errno == ENODEV) continue;                           // the CPU is offline
      if (errno == ESRCH && is_task) return absl::OkStatus();  // the task has ended
      return OpenError(errno, what_);
    }
    if (target_.kind != PerfTarget::Kind::kProcesses) {
      RETURN_IF_ERROR(cpu.Redirect(event, what_));
    }
    if (!filter_.empty() && ioctl(event.get(), PERF_EVENT_IOC_SET_FILTER, filter_.c_str()) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat(what_, ": setting the filter '", filter_, "'"));
    }
    events_[i].push_back(std::move(event));
  }
  return absl::OkStatus();
}

absl::Status Opener::OpenProcess(pid_t pid) {
  // The kernel may miss a thread that is being created when an inherited event is enabled.
  // Therefore the event is enabled from the start in each thread, and writes nothing until it is
  // redirected to a ring. Only the parent event must be redirected.
  attr_.disabled = 0;
  attr_.inherit = 1;
  attr_.inherit_thread = KernelInheritsToThreads() ? 1 : 0;
  // `holder` stays open between two attempts. Without an open event, the kernel would unregister
  // perf from the tracepoint each time, which takes about 35 ms.
  base::UniqueFd holder;
  const std::vector<std::size_t> before = CountOpen();
  for (int attempt = 0;; ++attempt) {
    absl::Status status = TryOpenProcess(pid);
    if (!absl::IsUnavailable(status) || attempt == kAttempts) return status;
    if (!holder.valid()) {
      perf_event_attr attr = attr_;
      attr.inherit = attr.inherit_thread = 0;
      attr.disabled = 1;
      holder = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1);
    }
    CloseAllBut(before);
  }
}

absl::Status Opener::TryOpenProcess(pid_t pid) {
  InheritedEvents inherited;
  // Threads that exist before the event is first opened cannot inherit it, so it is opened for each
  // of them.
  for (const pid_t tid : ReadThreads(pid)) RETURN_IF_ERROR(OpenThread(tid, &inherited));
  for (int look = 0; look < kLooks; ++look) {
    if (look != 0) nanosleep(&kPause, nullptr);
    // The records of created threads are read after the list of threads, so that they contain most
    // threads of the list.
    const std::vector<pid_t> threads = ReadThreads(pid);
    PeekCreations(&inherited);
    ASSIGN_OR_RETURN(const bool all_have_it, OpenMissing(threads, &inherited));
    if (all_have_it) return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat(what_, ": process ", pid,
                   " creates threads faster than they can be attached to; select its cgroup"));
}

absl::StatusOr<bool> Opener::OpenMissing(const std::vector<pid_t>& threads,
                                         InheritedEvents* inherited) {
  bool all_have_it = true;
  for (const pid_t tid : threads) {
    const InheritedEvents::State state = inherited->Find(tid);
    if (state == InheritedEvents::State::kHas) continue;
    all_have_it = false;
    if (state == InheritedEvents::State::kLacks) RETURN_IF_ERROR(OpenThread(tid, inherited));
  }
  return all_have_it;
}

absl::Status Opener::OpenThread(pid_t tid, InheritedEvents* inherited) {
  const std::uint64_t before = SessionClockNow();
  RETURN_IF_ERROR(OpenPart(tid, 0));
  inherited->Opened(tid, before, SessionClockNow());
  return absl::OkStatus();
}

void Opener::PeekCreations(InheritedEvents* inherited) {
  rings_->tasks().Peek([inherited](const PerfRecord& record) {
    TaskRecord task;
    if (!ParseFork(record, &task)) return;
    inherited->Created(static_cast<pid_t>(task.tid), static_cast<pid_t>(task.parent_tid),
                       record.timestamp);
  });
}

}  // namespace

bool DefersStacks(const PerfTracepoint& tracepoint) {
  const bool returns_soon =
      tracepoint.id == kCpuTimeId ||
      (IsTracepointId(tracepoint.id) && tracepoint.name.starts_with("user_events"));
  return tracepoint.stacks.user && tracepoint.stacks.copied_bytes == 0 && returns_soon &&
         KernelDefersStacks();
}

std::size_t CountParts(const PerfTarget& target) {
  std::size_t threads = 0;
  switch (target.kind) {
    case PerfTarget::Kind::kMachine:
      return 1;
    case PerfTarget::Kind::kProcesses:
      for (const pid_t pid : target.ids) threads += ReadThreads(pid).size();
      return threads;
    case PerfTarget::Kind::kThreads:
      return target.ids.size();
    case PerfTarget::Kind::kCgroups:
      return std::max<std::size_t>(target.cgroups.size(), 1);
  }
  return 0;
}

absl::Status CheckCgroups(const PerfTarget& target, int cpu) {
  for (const base::UniqueFd& cgroup : target.cgroups) {
    perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
    if (OpenEvent(&attr, cgroup.get(), cpu, PERF_FLAG_PID_CGROUP).valid()) continue;
    if (errno == ENOENT) {
      return absl::FailedPreconditionError(
          "the cgroup does not have the perf_event controller; if 'mount -t cgroup' shows this "
          "controller in a hierarchy of cgroup v1, run 'umount /sys/fs/cgroup/perf_event'; else "
          "run 'echo +pids > /sys/fs/cgroup/cgroup.subtree_control', which also delegates "
          "perf_event");
    }
    if (errno == EINVAL) {
      return absl::UnimplementedError(
          "this kernel has no perf events for cgroups (CONFIG_CGROUP_PERF); select processes with "
          "--pid, or with pids in the settings of nettraced");
    }
    return OpenError(errno, "opening perf events of the cgroup");
  }
  return absl::OkStatus();
}

absl::StatusOr<TargetEvents> OpenTargetEvents(const PerfTarget& target,
                                              const PerfTracepoint& tracepoint,
                                              const std::vector<std::size_t>& indices,
                                              CpuRings* rings) {
  Opener opener(target, tracepoint, indices, rings);
  RETURN_IF_ERROR(opener.OpenAll());
  return opener.TakeEvents();
}

}  // namespace collector
