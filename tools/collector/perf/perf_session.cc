#include "tools/collector/perf/perf_session.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/perf/open_event.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)  // Linux 6.0
#endif

namespace collector {
namespace {

constexpr std::size_t kMinSideBandRingSize = 32 * 1024;

// The attributes that all events of a session share; perf_records.h relies on them.
perf_event_attr BaseAttributes(std::size_t ring_size) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.sample_type = kSampleType;
  attr.sample_id_all = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;
  attr.watermark = 1;
  attr.wakeup_watermark = static_cast<__u32>(ring_size / 4);
  return attr;
}

perf_event_attr DummyAttributes(std::size_t ring_size) {
  perf_event_attr attr = BaseAttributes(ring_size);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  return attr;
}

perf_event_attr TracepointAttributes(int id) {
  perf_event_attr attr = BaseAttributes(/*ring_size=*/0);
  attr.type = PERF_TYPE_TRACEPOINT;
  attr.config = static_cast<__u64>(id);
  attr.sample_period = 1;
  attr.disabled = 1;
  return attr;
}

}  // namespace

std::uint64_t SessionClockNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void RaiseDescriptorLimit() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);  // on failure, Attach reports EMFILE
  }
}

void RaiseHardDescriptorLimit() {
  // What fs.nr_open is unless somebody has changed it; no file can be opened to see.
  constexpr rlim_t kAllowed = 1 << 20;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kAllowed) return;
  limit.rlim_cur = limit.rlim_max = kAllowed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

UniqueFd PerfSession::OpenCounting(perf_event_attr* attr, int pid, int cpu, unsigned long flags) {
  attr->read_format = counts_lost_ ? PERF_FORMAT_LOST : 0;
  UniqueFd fd = OpenEvent(attr, pid, cpu, flags);
  if (!fd.valid() && errno == EMFILE) {
    RaiseHardDescriptorLimit();
    fd = OpenEvent(attr, pid, cpu, flags);
  }
  if (!fd.valid() && errno == EINVAL && counts_lost_) {
    attr->read_format = 0;
    fd = OpenEvent(attr, pid, cpu, flags);
    if (fd.valid()) counts_lost_ = false;
  }
  return fd;
}

absl::StatusOr<PerfSession> PerfSession::Open(const std::vector<int>& cpus, PerfOptions options) {
  const std::size_t ring_size = options.ring_size;
  PerfSession session(std::move(options.target));
  session.epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!session.epoll_.valid()) return ErrnoStatus(errno, "epoll_create1");

  if (session.target_.kind == PerfTarget::Kind::kProcesses) {
    perf_event_attr attr = DummyAttributes(ring_size);
    attr.inherit = attr.inherit_thread = 1;
    const UniqueFd fd = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1, 0);
    session.inherits_threads_ = fd.valid() || errno != EINVAL;
  }

  const std::size_t side_band_size = std::max(kMinSideBandRingSize, ring_size / 4);
  for (int number : cpus) {
    const std::string what = absl::StrCat("opening perf events on CPU ", number);
    perf_event_attr leader_attr = DummyAttributes(ring_size);
    UniqueFd leader = OpenEvent(&leader_attr, -1, number, 0);
    if (!leader.valid()) {
      if (errno == ENODEV) continue;  // went offline since the list was read
      return OpenError(errno, what);
    }
    perf_event_attr side_attr = DummyAttributes(side_band_size);
    side_attr.comm = 1;
    side_attr.comm_exec = 1;
    side_attr.task = 1;
    // Code that is mapped from a file: the executable of a process, whose path no other record has.
    // Four records of some 110 bytes for a program that runs, as many as it has shared objects.
    side_attr.mmap = 1;
    UniqueFd side_band = session.OpenCounting(&side_attr, -1, number);
    if (!side_band.valid()) return OpenError(errno, what);

    absl::StatusOr<PerfRing> ring = PerfRing::Map(leader.get(), ring_size);
    if (!ring.ok()) return ring.status();
    absl::StatusOr<PerfRing> side_ring = PerfRing::Map(side_band.get(), side_band_size);
    if (!side_ring.ok()) return side_ring.status();
    COLLECTOR_RETURN_IF_ERROR(session.WakeOn(leader.get()));
    COLLECTOR_RETURN_IF_ERROR(session.WakeOn(side_band.get()));
    session.cpus_.push_back(Cpu{number, std::move(leader), std::move(side_band), *std::move(ring),
                                *std::move(side_ring)});
  }
  if (session.cpus_.empty()) return absl::UnavailableError("no CPU is online");
  return session;
}

absl::Status PerfSession::WakeOn(int fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return ErrnoStatus(errno, "epoll_ctl");
  }
  return absl::OkStatus();
}

void PerfSession::Wait(int timeout_ms) {
  epoll_event events[16];
  epoll_wait(epoll_.get(), events, 16, timeout_ms);  // EINTR is a reason to look around as well
}

absl::Status PerfSession::Attach(int id, const std::string& name, const std::string& filter) {
  Opening opening = {TracepointAttributes(id), filter, absl::StrCat("opening tracepoint ", name)};
  std::vector<std::size_t> all(cpus_.size());
  std::iota(all.begin(), all.end(), 0);
  absl::StatusOr<std::vector<CpuEvents>> events = OpenForTarget(&opening, all);
  if (!events.ok()) return events.status();
  Tracepoint& tracepoint = tracepoints_.emplace_back();
  tracepoint.id = id;
  tracepoint.name = name;
  for (CpuEvents& of_cpu : *events) tracepoint.slots.emplace_back().fds = std::move(of_cpu);
  return absl::OkStatus();
}

absl::Status PerfSession::CheckFilter(int id, const std::string& filter) {
  perf_event_attr attr = TracepointAttributes(id);
  const UniqueFd fd = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1, 0);
  if (!fd.valid()) return OpenError(errno, "opening it to check the filter");
  if (ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) return absl::OkStatus();
  // EPERM is its answer to some operators that it does not know.
  if (errno == EINVAL || errno == EPERM) return absl::InvalidArgumentError("Invalid argument");
  return ErrnoStatus(errno, absl::StrCat("setting the filter '", filter, "'"));
}

absl::Status PerfSession::Enable() {
  for (Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.enabled) continue;
    tracepoint.enabled = true;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      COLLECTOR_RETURN_IF_ERROR(EnableSlot(tracepoint, i));
    }
  }
  return absl::OkStatus();
}

absl::Status PerfSession::EnableSlot(Tracepoint& tracepoint, std::size_t index) {
  Slot& slot = tracepoint.slots[index];
  const std::string what = absl::StrCat("enabling tracepoint ", tracepoint.name);
  if (target_.kind == PerfTarget::Kind::kProcesses) return BeginOutput(&slot, cpus_[index], what);
  for (const UniqueFd& fd : slot.fds) {
    if (ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return ErrnoStatus(errno, what);
  }
  return absl::OkStatus();
}

std::vector<PerfSession::Tracepoint>::iterator PerfSession::Find(int id) {
  return std::find_if(tracepoints_.begin(), tracepoints_.end(),
                      [id](const Tracepoint& tracepoint) { return tracepoint.id == id; });
}

void PerfSession::Disable(int id) {
  const auto tracepoint = Find(id);
  if (tracepoint == tracepoints_.end()) return;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    Slot& slot = tracepoint->slots[i];
    for (const UniqueFd& fd : slot.fds) ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
    // Threads that are being created just now may still have it on.
    if (target_.kind == PerfTarget::Kind::kProcesses) EndOutput(&slot);
  }
}

void PerfSession::Detach(int id) {
  Disable(id);
  std::erase_if(tracepoints_, [id](const Tracepoint& tracepoint) { return tracepoint.id == id; });
}

bool PerfSession::DrainTasks(const std::function<void(const PerfRecord&)>& consume) {
  // A record that comes after its CPU's ring was looked at may be earlier than one that is found in
  // another's: what is later than this moment is kept until all that is earlier is there.
  const std::uint64_t limit = SessionClockNow();
  for (Cpu& cpu : cpus_) {
    cpu.side_band_ring.Drain(PerfRing::kNoLimit, [this](const PerfRecord& record) {
      CodeRecord code;
      if (record.type() == PERF_RECORD_MMAP && !ParseCode(record, &code)) return;
      tasks_.emplace_back(record.timestamp,
                          std::vector<std::byte>(record.bytes.begin(), record.bytes.end()));
    });
  }
  std::stable_sort(tasks_.begin(), tasks_.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  auto task = tasks_.begin();
  for (; task != tasks_.end() && task->first <= limit; ++task) {
    consume(PerfRecord{task->first, task->second});
  }
  tasks_.erase(tasks_.begin(), task);

  bool lost = false;
  for (Cpu& cpu : cpus_) {
    const absl::StatusOr<Counts> counts = ReadCountsOf(cpu.side_band);
    if (!counts.ok()) break;
    lost = lost || counts->lost != cpu.tasks_lost;
    cpu.tasks_lost = counts->lost;
  }
  return lost;
}

absl::StatusOr<PerfSession::Counts> PerfSession::ReadCountsOf(const UniqueFd& fd) const {
  if (!counts_lost_) {
    return absl::UnimplementedError("this kernel does not count losses per event (before 6.0)");
  }
  struct {
    std::uint64_t value;
    std::uint64_t lost;
  } counts;
  if (read(fd.get(), &counts, sizeof counts) != sizeof counts) {
    return ErrnoStatus(errno, "reading the counts of a perf event");
  }
  return Counts{counts.value, counts.lost};
}

absl::StatusOr<PerfSession::Counts> PerfSession::ReadCountsOf(const Slot& slot) const {
  Counts total;
  for (const UniqueFd& fd : slot.fds) {
    const absl::StatusOr<Counts> counts = ReadCountsOf(fd);
    if (!counts.ok()) return counts;
    total.hits += counts->hits;
    total.lost += counts->lost;
  }
  total.hits = slot.hits_at_end.value_or(total.hits) - slot.hits_before;
  return total;
}

std::size_t PerfSession::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const Cpu& cpu : cpus_) bytes += cpu.ring.fill();
  return bytes;
}

bool PerfSession::IsPressed() const {
  return std::any_of(cpus_.begin(), cpus_.end(),
                     [](const Cpu& cpu) { return cpu.ring.fill() > cpu.ring.size() / 2; });
}

absl::Status PerfSession::ReadLosses(
    absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost, Losses which) {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (which == Losses::kWhereReported && cpus_[i].lost == cpus_[i].lost_read) continue;
    for (Tracepoint& tracepoint : tracepoints_) {
      Slot& slot = tracepoint.slots[i];
      const absl::StatusOr<Counts> counts = ReadCountsOf(slot);
      if (!counts.ok()) return counts.status();
      const std::uint64_t lost = counts->lost - slot.lost_read;
      if (lost != 0) on_lost(i, tracepoint.id, lost);
      slot.lost_read = counts->lost;
    }
    cpus_[i].lost_read = cpus_[i].lost;
  }
  return absl::OkStatus();
}

absl::StatusOr<PerfSession::Counts> PerfSession::ReadCounts(int id) const {
  Counts total;
  for (const Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.id != id) continue;
    for (const Slot& slot : tracepoint.slots) {
      const absl::StatusOr<Counts> counts = ReadCountsOf(slot);
      if (!counts.ok()) return counts;
      total.hits += counts->hits;
      total.lost += counts->lost;
    }
  }
  return total;
}

}  // namespace collector
