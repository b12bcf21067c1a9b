// Implements the part of PerfSession that opens a tracepoint's events for its target.
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/inherited_events.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_session.h"

namespace collector {
namespace {

// Maximum number of retries while it is unclear which threads have inherited an event.
constexpr int kAttempts = 50;
// Number of times that the threads of a process are checked in each attempt.
constexpr int kLooks = 10;
// Time in which a new thread ends, or the record of its creation appears.
constexpr timespec kPause = {0, 100'000};

// Returns the current threads of a process; none if it has ended.
std::vector<pid_t> ThreadsOf(pid_t pid) {
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

}  // namespace

std::size_t PerfSession::DescriptorsPerTracepoint() const {
  std::size_t parts = 1;
  switch (target_.kind) {
    case PerfTarget::Kind::kMachine:
      break;
    case PerfTarget::Kind::kProcesses:
      parts = 0;
      for (const pid_t pid : target_.ids) parts += ThreadsOf(pid).size();
      break;
    case PerfTarget::Kind::kThreads:
      parts = target_.ids.size();
      break;
    case PerfTarget::Kind::kCgroups:
      parts = std::max<std::size_t>(target_.cgroups.size(), 1);
      break;
  }
  const auto online = std::count_if(cpus_.begin(), cpus_.end(),
                                    [](const Cpu& cpu) { return cpu.rings != nullptr; });
  return parts * static_cast<std::size_t>(online);
}

absl::Status PerfSession::OpenForTarget(Tracepoint* tracepoint,
                                        const std::vector<std::size_t>& indices) {
  Opening opening = {TracepointAttributes(tracepoint->id), &tracepoint->filter,
                     absl::StrCat("opening tracepoint ", tracepoint->name), &indices};
  if (has_cgroups_) opening.attr.sample_type |= PERF_SAMPLE_CGROUP;
  opening.fds.resize(indices.size());
  RETURN_IF_ERROR(OpenParts(&opening));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    tracepoint->slots[indices[i]].fds = std::move(opening.fds[i]);
  }
  return absl::OkStatus();
}

absl::Status PerfSession::OpenParts(Opening* opening) {
  switch (target_.kind) {
    case PerfTarget::Kind::kMachine:
      return OpenPart(opening, -1, 0);
    case PerfTarget::Kind::kProcesses:
    case PerfTarget::Kind::kThreads:
      for (std::size_t i = 0; i < target_.ids.size(); ++i) {
        RETURN_IF_ERROR(OpenTask(opening, i));
      }
      break;
    case PerfTarget::Kind::kCgroups:
      for (const base::UniqueFd& cgroup : target_.cgroups) {
        RETURN_IF_ERROR(OpenPart(opening, cgroup.get(), PERF_FLAG_PID_CGROUP));
      }
      break;
  }
  return absl::OkStatus();
}

absl::Status PerfSession::OpenTask(Opening* opening, std::size_t index) {
  if (HasEnded(target_.descriptors[index])) return absl::OkStatus();
  std::vector<std::size_t> before;
  for (const auto& fds : opening->fds) before.push_back(fds.size());
  const pid_t id = target_.ids[index];
  absl::Status opened = target_.kind == PerfTarget::Kind::kProcesses ? OpenProcess(opening, id)
                                                                     : OpenPart(opening, id, 0);
  if (!HasEnded(target_.descriptors[index])) return opened;
  for (std::size_t i = 0; i < before.size(); ++i) opening->fds[i].resize(before[i]);
  return absl::OkStatus();
}

absl::Status PerfSession::OpenPart(Opening* opening, int pid, unsigned long flags) {
  const bool is_task = pid > 0 && flags == 0;
  for (std::size_t i = 0; i < opening->indices->size(); ++i) {
    const Cpu& cpu = cpus_[(*opening->indices)[i]];
    base::UniqueFd fd = OpenCounting(&opening->attr, pid, cpu.number, flags);
    if (!fd.valid()) {
      if (errno == ENODEV) continue;                           // the CPU is offline
      if (errno == ESRCH && is_task) return absl::OkStatus();  // the task has ended
      return OpenError(errno, opening->what);
    }
    // For a process, BeginOutput does this.
    if (target_.kind != PerfTarget::Kind::kProcesses &&
        ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, cpu.rings->leader.get()) != 0) {
      return base::ErrnoStatus(
          errno, absl::StrCat(opening->what, ": redirecting it to the ring of CPU ", cpu.number));
    }
    const std::string& filter = *opening->filter;
    if (!filter.empty() && ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) != 0) {
      return base::ErrnoStatus(errno,
                               absl::StrCat(opening->what, ": setting the filter '", filter, "'"));
    }
    opening->fds[i].push_back(std::move(fd));
  }
  return absl::OkStatus();
}

absl::Status PerfSession::OpenProcess(Opening* opening, pid_t pid) {
  // The kernel may miss a thread that is being created when an inherited event is enabled.
  // Therefore the event is enabled from the start in each thread, and writes nothing until
  // BeginOutput gives it a ring. Only the parent event needs one.
  opening->attr.disabled = 0;
  opening->attr.inherit = 1;
  opening->attr.inherit_thread = inherits_threads_ ? 1 : 0;
  // While this event is open, the kernel does not remove the tracepoint between two attempts, which
  // would take some 35 ms.
  base::UniqueFd holder;
  std::vector<std::size_t> before;
  for (const auto& fds : opening->fds) before.push_back(fds.size());
  for (int attempt = 0;; ++attempt) {
    absl::Status status = TryOpenProcess(opening, pid);
    if (!absl::IsUnavailable(status) || attempt == kAttempts) return status;
    if (!holder.valid()) {
      perf_event_attr attr = opening->attr;
      attr.inherit = attr.inherit_thread = 0;
      attr.disabled = 1;
      holder = OpenCounting(&attr, /*pid=*/0, /*cpu=*/-1);
    }
    for (std::size_t i = 0; i < before.size(); ++i) opening->fds[i].resize(before[i]);
  }
}

std::optional<std::uint64_t> PerfSession::ReadHits(const Slot& slot) const {
  std::uint64_t hits = 0;
  for (const base::UniqueFd& fd : slot.fds) {
    const absl::StatusOr<Counts> counts = ReadCountsOf(fd);
    if (!counts.ok()) return std::nullopt;
    hits += counts->hits;
  }
  return hits;
}

absl::Status PerfSession::BeginOutput(Slot* slot, const Cpu& cpu, const std::string& what) {
  const std::optional<std::uint64_t> before = ReadHits(*slot);
  slot->hits_before = before.value_or(0);
  for (const base::UniqueFd& fd : slot->fds) {
    if (ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, cpu.rings->leader.get()) != 0) {
      return base::ErrnoStatus(
          errno, absl::StrCat(what, ": redirecting it to the ring of CPU ", cpu.number));
    }
  }
  // It is not known whether a hit at that moment was written.
  if (ReadHits(*slot) != before) hits_are_known_ = false;
  return absl::OkStatus();
}

void PerfSession::EndOutput(Slot* slot) {
  if (!slot->hits_before || slot->hits_at_end) return;
  constexpr long kNone = -1;  // a long, because all of its bits count
  const std::optional<std::uint64_t> before = ReadHits(*slot);
  for (const base::UniqueFd& fd : slot->fds) ioctl(fd.get(), PERF_EVENT_IOC_SET_OUTPUT, kNone);
  slot->hits_at_end = before;
  if (ReadHits(*slot) != before) hits_are_known_ = false;
}

void PerfSession::PeekCreations(InheritedEvents* inherited) {
  for (Cpu& cpu : cpus_) {
    if (cpu.rings == nullptr) continue;
    cpu.rings->side_band_ring.Peek([inherited](const PerfRecord& record) {
      TaskRecord task;
      if (!ParseFork(record, &task)) return;
      inherited->Created(static_cast<pid_t>(task.tid), static_cast<pid_t>(task.parent_tid),
                         record.timestamp);
    });
  }
}

absl::Status PerfSession::TryOpenProcess(Opening* opening, pid_t pid) {
  InheritedEvents inherited;
  const auto open = [&](pid_t tid) {
    const std::uint64_t before = SessionClockNow();
    RETURN_IF_ERROR(OpenPart(opening, tid, 0));
    inherited.Opened(tid, before, SessionClockNow());
    return absl::OkStatus();
  };
  // Threads that exist before the event is first opened cannot inherit it.
  for (const pid_t tid : ThreadsOf(pid)) RETURN_IF_ERROR(open(tid));
  for (int look = 0; look < kLooks; ++look) {
    if (look != 0) nanosleep(&kPause, nullptr);
    // The records of creations are read after the list of threads, so that most creations of these
    // threads are found.
    const std::vector<pid_t> threads = ThreadsOf(pid);
    PeekCreations(&inherited);
    bool all_have_it = true;
    for (const pid_t tid : threads) {
      const InheritedEvents::State state = inherited.Of(tid);
      if (state == InheritedEvents::State::kHas) continue;
      all_have_it = false;
      if (state == InheritedEvents::State::kLacks) RETURN_IF_ERROR(open(tid));
    }
    if (all_have_it) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      opening->what, ": process ", pid,
      " creates threads faster than they can be attached to; select its cgroup (--cgroup)"));
}

}  // namespace collector
