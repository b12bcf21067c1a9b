#include "tools/collector/perf/perf_session.h"

#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/open_event.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)  // Linux 6.0
#endif

namespace collector {
namespace {

constexpr std::size_t kMinSideBandRingSize = 32 * 1024;
// Maximum size of a tracepoint's sample, in bytes: PERF_MAX_TRACE_SIZE (8192), and what perf adds.
constexpr std::size_t kMaxSampleSize = 8192 + 256;

perf_event_attr DummyAttributes(std::size_t ring_size) {
  perf_event_attr attr = BaseAttributes(ring_size);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  return attr;
}

// Returns whether the event still counts its running time. It stops when its CPU goes offline, and
// does not resume when the CPU comes back.
bool IsRunning(const base::UniqueFd& leader) {
  struct {
    std::uint64_t value;
    std::uint64_t running;  // ns
  } first, second;
  return read(leader.get(), &first, sizeof first) == sizeof first &&
         read(leader.get(), &second, sizeof second) == sizeof second &&
         first.running != second.running;
}

absl::Status CountsUnknown() {
  return absl::UnimplementedError("this kernel does not count losses per event (before 6.0)");
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
  // Default of fs.nr_open. The file cannot be read here, because no descriptor is free.
  constexpr rlim_t kAllowed = 1 << 20;
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kAllowed) return;
  limit.rlim_cur = limit.rlim_max = kAllowed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

base::UniqueFd PerfSession::OpenCounting(perf_event_attr* attr, int pid, int cpu,
                                         unsigned long flags) {
  attr->read_format = counts_lost_ ? PERF_FORMAT_LOST : 0;
  base::UniqueFd fd = OpenEvent(attr, pid, cpu, flags);
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
  session.epoll_ = base::UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!session.epoll_.valid()) return base::ErrnoStatus(errno, "epoll_create1");
  session.ring_size_ = ring_size;

  if (session.target_.kind == PerfTarget::Kind::kProcesses) {
    perf_event_attr attr = DummyAttributes(ring_size);
    attr.inherit = attr.inherit_thread = 1;
    const base::UniqueFd fd = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1, 0);
    session.inherits_threads_ = fd.valid() || errno != EINVAL;
  }

  if (options.cgroups) {
    perf_event_attr attr = DummyAttributes(ring_size);
    attr.sample_type |= PERF_SAMPLE_CGROUP;
    attr.cgroup = 1;
    session.has_cgroups_ = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1, 0).valid();
  }

  bool any_online = false;
  for (int number : cpus) {
    Cpu& cpu = session.cpus_.emplace_back(Cpu{.number = number});
    const std::uint64_t now = SessionClockNow();
    absl::StatusOr<std::unique_ptr<Rings>> rings = session.OpenRings(session.cpus_.size() - 1);
    if (rings.ok()) {
      cpu.rings = *std::move(rings);
      any_online = true;
    } else if (absl::IsNotFound(rings.status())) {
      cpu.gone_at = now;
    } else {
      return rings.status();
    }
  }
  if (!any_online) return absl::UnavailableError("no CPU is online");
  RETURN_IF_ERROR(session.CheckCgroups());
  session.detached_lost_.resize(cpus.size());
  return session;
}

absl::Status PerfSession::CheckCgroups() const {
  const auto online =
      std::find_if(cpus_.begin(), cpus_.end(), [](const Cpu& cpu) { return cpu.rings != nullptr; });
  for (const base::UniqueFd& cgroup : target_.cgroups) {
    perf_event_attr attr = DummyAttributes(ring_size_);
    const base::UniqueFd fd = OpenEvent(&attr, cgroup.get(), online->number, PERF_FLAG_PID_CGROUP);
    if (fd.valid()) continue;
    if (errno == ENOENT) {
      return absl::FailedPreconditionError(
          "the cgroup does not have the perf_event controller; if 'mount -t cgroup' shows it in a "
          "hierarchy of cgroup v1, run 'umount /sys/fs/cgroup/perf_event'; else run 'echo +pids > "
          "/sys/fs/cgroup/cgroup.subtree_control'");
    }
    if (errno == EINVAL) {
      return absl::UnimplementedError(
          "this kernel has no perf events for cgroups (CONFIG_CGROUP_PERF); select processes with "
          "--pid");
    }
    return OpenError(errno, "opening perf events of the cgroup");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<PerfSession::Rings>> PerfSession::OpenRings(std::size_t index) {
  const int number = cpus_[index].number;
  const std::string what = absl::StrCat("opening perf events on CPU ", number);
  perf_event_attr leader_attr = DummyAttributes(ring_size_);
  leader_attr.read_format = PERF_FORMAT_TOTAL_TIME_RUNNING;
  base::UniqueFd leader = OpenEvent(&leader_attr, -1, number, 0);
  if (!leader.valid()) return OpenError(errno, what);
  const std::size_t side_band_size = std::max(kMinSideBandRingSize, ring_size_ / 4);
  perf_event_attr side_attr = DummyAttributes(side_band_size);
  side_attr.comm = 1;
  side_attr.comm_exec = 1;
  side_attr.task = 1;
  // Mappings of files as code. They contain the path of a process's executable, which no other
  // record has. A program causes as many records as it has shared objects, typically four of some
  // 110 bytes.
  side_attr.mmap = 1;
  side_attr.cgroup = has_cgroups_ ? 1 : 0;
  base::UniqueFd side_band = OpenCounting(&side_attr, -1, number);
  if (!side_band.valid()) return OpenError(errno, what);

  absl::StatusOr<PerfRing> ring = PerfRing::Map(leader.get(), ring_size_);
  if (!ring.ok()) return ring.status();
  absl::StatusOr<PerfRing> side_ring = PerfRing::Map(side_band.get(), side_band_size);
  if (!side_ring.ok()) return side_ring.status();
  RETURN_IF_ERROR(WakeOn(leader.get(), WakeKind::kRing, index));
  RETURN_IF_ERROR(WakeOn(side_band.get(), WakeKind::kRing, index));
  auto rings = std::make_unique<Rings>(
      Rings{std::move(leader), std::move(side_band), *std::move(ring), *std::move(side_ring)});
  rings->opened_at = SessionClockNow();
  if (watches_registrations_) {
    const absl::Status status = OpenProbe(rings.get(), index);
    // If the CPU is offline again, nothing can be registered on it.
    watches_registrations_ = status.ok() || absl::IsNotFound(status);
  }
  return rings;
}

absl::Status PerfSession::WakeOn(int fd) { return WakeOn(fd, WakeKind::kOther, 0); }

absl::Status PerfSession::WakeOn(int fd, WakeKind kind, std::size_t index, int operation) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (kind == WakeKind::kProbe) event.events |= EPOLLONESHOT;
  event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(kind)} << 32 | index;
  if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0)
    return base::ErrnoStatus(errno, "epoll_ctl");
  return absl::OkStatus();
}

bool PerfSession::Wait(int timeout_ms) {
  bool others = false;
  epoll_event events[16];
  // EINTR is handled like a timeout.
  const int count = epoll_wait(epoll_.get(), events, 16, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto kind = static_cast<WakeKind>(events[i].data.u64 >> 32);
    others = others || kind == WakeKind::kOther;
    if (kind == WakeKind::kOther) continue;
    Rings* rings = cpus_[events[i].data.u64 & 0xFFFFFFFF].rings.get();
    if (kind == WakeKind::kProbe) rings->probe_woke = registrations_ = true;
    if ((events[i].events & (EPOLLHUP | EPOLLERR)) == 0) continue;
    // The descriptor would stay readable.
    ended_ = true;
    StopWaking(*rings);
  }
  return others;
}

void PerfSession::StopWaking(const Rings& rings) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rings.leader.get(), nullptr);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rings.side_band.get(), nullptr);
  if (rings.probe) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, rings.probe->fd().get(), nullptr);
}

absl::Status PerfSession::OpenProbe(Rings* rings, std::size_t index) {
  absl::StatusOr<RegistrationProbe> probe = RegistrationProbe::Open(cpus_[index].number);
  if (!probe.ok()) return probe.status();
  RETURN_IF_ERROR(WakeOn(probe->fd().get(), WakeKind::kProbe, index));
  rings->probe.emplace(*std::move(probe));
  return absl::OkStatus();
}

absl::Status PerfSession::WatchRegistrations() {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i].rings == nullptr) continue;
    absl::Status status = OpenProbe(cpus_[i].rings.get(), i);
    if (status.ok() || absl::IsNotFound(status)) continue;
    for (Cpu& opened : cpus_) {
      if (opened.rings != nullptr) opened.rings->probe.reset();
    }
    return status;
  }
  watches_registrations_ = true;
  return absl::OkStatus();
}

void PerfSession::ArmRegistrations() {
  registrations_ = false;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    Rings* rings = cpus_[i].rings.get();
    if (rings == nullptr || !rings->probe || !std::exchange(rings->probe_woke, false)) continue;
    rings->probe->Clear();
    if (!WakeOn(rings->probe->fd().get(), WakeKind::kProbe, i, EPOLL_CTL_MOD).ok()) {
      watches_registrations_ = false;
    }
  }
}

absl::Status PerfSession::Attach(int id, const std::string& name, const std::string& filter) {
  Tracepoint tracepoint;
  tracepoint.id = id;
  tracepoint.name = name;
  tracepoint.filter = filter;
  tracepoint.slots.resize(cpus_.size());
  std::vector<std::size_t> online;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i].rings != nullptr) online.push_back(i);
  }
  RETURN_IF_ERROR(OpenForTarget(&tracepoint, online));
  tracepoints_.push_back(std::move(tracepoint));
  return absl::OkStatus();
}

absl::Status PerfSession::CheckFilter(int id, const std::string& filter) {
  perf_event_attr attr = TracepointAttributes(id);
  const base::UniqueFd fd = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1, 0);
  if (!fd.valid()) return OpenError(errno, "opening it to check the filter");
  if (ioctl(fd.get(), PERF_EVENT_IOC_SET_FILTER, filter.c_str()) == 0) return absl::OkStatus();
  // The kernel returns EPERM for some operators that it does not know.
  if (errno == EINVAL || errno == EPERM) return absl::InvalidArgumentError("Invalid argument");
  return base::ErrnoStatus(errno, absl::StrCat("setting the filter '", filter, "'"));
}

absl::Status PerfSession::Enable() {
  for (Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.enabled || tracepoint.ended) continue;
    tracepoint.enabled = true;
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      RETURN_IF_ERROR(EnableSlot(tracepoint, i));
    }
  }
  return absl::OkStatus();
}

absl::Status PerfSession::EnableSlot(Tracepoint& tracepoint, std::size_t index) {
  Slot& slot = tracepoint.slots[index];
  const std::string what = absl::StrCat("enabling tracepoint ", tracepoint.name);
  if (target_.kind == PerfTarget::Kind::kProcesses) return BeginOutput(&slot, cpus_[index], what);
  for (const base::UniqueFd& fd : slot.fds) {
    if (ioctl(fd.get(), PERF_EVENT_IOC_ENABLE, 0) != 0) return base::ErrnoStatus(errno, what);
  }
  return absl::OkStatus();
}

std::vector<PerfSession::Tracepoint>::iterator PerfSession::Find(int id) {
  return std::find_if(tracepoints_.begin(), tracepoints_.end(),
                      [id](const Tracepoint& tracepoint) { return tracepoint.id == id; });
}

void PerfSession::Disable(int id) {
  const auto tracepoint = Find(id);
  if (tracepoint == tracepoints_.end() || std::exchange(tracepoint->ended, true)) return;
  for (Slot& slot : tracepoint->slots) EndSlot(&slot);
}

void PerfSession::EndSlot(Slot* slot) {
  // The CPU may still be online, if one of its events could not be opened.
  for (const base::UniqueFd& fd : slot->fds) ioctl(fd.get(), PERF_EVENT_IOC_DISABLE, 0);
  // In threads that are just being created, the events may still be enabled.
  if (target_.kind == PerfTarget::Kind::kProcesses) EndOutput(slot);
}

std::optional<pid_t> PerfSession::StartCloser() {
  if (closer_ == nullptr) {
    absl::StatusOr<std::unique_ptr<DescriptorCloser>> closer = DescriptorCloser::Start();
    if (!closer.ok()) return std::nullopt;
    closer_ = *std::move(closer);
  }
  return closer_->thread_id();
}

void PerfSession::Close(std::vector<base::UniqueFd> fds) {
  if (closer_ != nullptr) closer_->Close(std::move(fds));
}

void PerfSession::CloseSlot(Slot* slot, std::vector<base::UniqueFd>* closing) {
  if (const absl::StatusOr<Counts> counts = ReadCountsOf(*slot); counts.ok()) {
    slot->closed = *counts;
  }
  closing->insert(closing->end(), std::make_move_iterator(slot->fds.begin()),
                  std::make_move_iterator(slot->fds.end()));
  slot->fds.clear();
  slot->hits_before.reset();
  slot->hits_at_end.reset();
}

void PerfSession::Detach(int id) {
  const auto tracepoint = Find(id);
  if (tracepoint == tracepoints_.end()) return;
  Disable(id);
  std::vector<base::UniqueFd> closing;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    Slot& slot = tracepoint->slots[i];
    CloseSlot(&slot, &closing);
    detached_lost_[i] += slot.closed.lost;
  }
  tracepoints_.erase(tracepoint);
  Close(std::move(closing));
}

std::vector<CpuChange> PerfSession::FollowCpus(bool suspect) {
  std::vector<CpuChange> changes;
  const std::uint64_t now = SessionClockNow();
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  if (!online.ok()) return changes;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    Cpu& cpu = cpus_[i];
    const bool is_online = std::binary_search(online->begin(), online->end(), cpu.number);
    CpuChange change = {.index = i, .number = cpu.number};
    if (cpu.rings != nullptr) {
      if (is_online && (!suspect || IsRunning(cpu.rings->leader))) continue;
      // The last sample has been delivered, or is later than this time.
      change.since = std::max(cpu.last_sample, cpu.rings->opened_at);
      Depart(i);
      change.until = SessionClockNow();
      cpu.gone_at = is_online ? change.since : now;
      changes.push_back(change);
    }
    if (!is_online) {
      cpu.gone_at = now;
      continue;
    }
    change = {.index = i, .number = cpu.number, .online = true, .since = cpu.gone_at};
    if (absl::Status status = Arrive(i); status.ok()) {
      change.until = SessionClockNow();
      cpu.error_told = false;
      changes.push_back(change);
    } else if (absl::IsNotFound(status)) {
      cpu.gone_at = now;
    } else if (!std::exchange(cpu.error_told, true)) {
      change.error = std::string(status.message());
      changes.push_back(change);
    }
  }
  return changes;
}

absl::Status PerfSession::Arrive(std::size_t index) {
  Cpu& cpu = cpus_[index];
  absl::StatusOr<std::unique_ptr<Rings>> rings = OpenRings(index);
  if (!rings.ok()) return rings.status();
  cpu.rings = *std::move(rings);
  tasks_missing_ = true;
  registrations_ = watches_registrations_;
  for (Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.ended) continue;
    // If the CPU is offline again, it gets no events, and the next FollowCpus detects it.
    absl::Status status = OpenForTarget(&tracepoint, {index});
    if (status.ok() && tracepoint.enabled) status = EnableSlot(tracepoint, index);
    if (status.ok()) continue;
    Depart(index);
    return status;
  }
  return absl::OkStatus();
}

absl::Status PerfSession::SetCgroup(base::UniqueFd cgroup) {
  target_.cgroups.clear();
  target_.cgroups.push_back(std::move(cgroup));
  RETURN_IF_ERROR(CheckCgroups());
  absl::Status status;
  std::vector<std::size_t> online;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i].rings != nullptr) online.push_back(i);
  }
  std::vector<base::UniqueFd> closing;
  for (Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.ended || !status.ok()) continue;
    for (Slot& slot : tracepoint.slots) CloseSlot(&slot, &closing);
    status = OpenForTarget(&tracepoint, online);
    for (std::size_t i = 0; status.ok() && tracepoint.enabled && i < online.size(); ++i) {
      status = EnableSlot(tracepoint, online[i]);
    }
  }
  // Closed after the others have been opened, because detaching a tracepoint completely takes the
  // kernel some 35 ms.
  Close(std::move(closing));
  if (!status.ok()) target_.cgroups.clear();
  return status;
}

void PerfSession::Depart(std::size_t index) {
  Cpu& cpu = cpus_[index];
  std::vector<base::UniqueFd> closing;
  std::uint64_t lost = detached_lost_[index];
  for (Tracepoint& tracepoint : tracepoints_) {
    Slot& slot = tracepoint.slots[index];
    EndSlot(&slot);
    CloseSlot(&slot, &closing);
    lost += slot.closed.lost;
  }
  TakeSideBand(cpu.rings.get());
  tasks_missing_ = true;
  // The rings stay mapped, which would keep their descriptors in the epoll set.
  StopWaking(*cpu.rings);
  if (cpu.rings->probe) {
    closing.push_back(cpu.rings->probe->TakeDescriptor());
    cpu.rings->probe.reset();
  }
  cpu.former.push_back({std::move(cpu.rings), lost});
  cpu.has_gone = true;
  Close(std::move(closing));
}

void PerfSession::TakeSideBand(Rings* rings) {
  PerfRing& ring = rings->side_band_ring;
  const std::size_t fill = ring.fill();
  if (fill == 0) return;
  ring.Drain(PerfRing::kNoLimit, [this](const PerfRecord& record) {
    CodeRecord code;
    if (record.type() == PERF_RECORD_MMAP && !ParseCode(record, &code)) return;
    tasks_.emplace_back(record.timestamp,
                        std::vector<std::byte>(record.bytes.begin(), record.bytes.end()));
  });
  // A record is lost when the ring has no space for it. In that case, this fill or the next is most
  // of the ring's size, because the longest record, with a path, is shorter than half of the rest.
  if (fill < ring.size() / 4) return;
  const absl::StatusOr<Counts> counts = ReadCountsOf(rings->side_band);
  if (!counts.ok() || counts->lost == rings->tasks_lost) return;
  rings->tasks_lost = counts->lost;
  tasks_missing_ = true;
}

bool PerfSession::DrainTasks(absl::FunctionRef<void(const PerfRecord&)> consume) {
  // A record that arrives after its CPU's ring was read may be earlier than one found in another
  // ring. Therefore records later than this time are kept until all earlier ones have been read.
  const std::uint64_t limit = SessionClockNow();
  for (Cpu& cpu : cpus_) {
    if (cpu.rings != nullptr) TakeSideBand(cpu.rings.get());
  }
  if (!tasks_.empty()) {
    std::stable_sort(tasks_.begin(), tasks_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    auto task = tasks_.begin();
    for (; task != tasks_.end() && task->first <= limit; ++task) {
      consume(PerfRecord{task->first, task->second});
    }
    tasks_.erase(tasks_.begin(), task);
  }
  return std::exchange(tasks_missing_, false);
}

absl::StatusOr<PerfSession::Counts> PerfSession::ReadCountsOf(const base::UniqueFd& fd) const {
  if (!counts_lost_) return CountsUnknown();
  struct {
    std::uint64_t value;
    std::uint64_t lost;
  } counts;
  if (read(fd.get(), &counts, sizeof counts) != sizeof counts) {
    return base::ErrnoStatus(errno, "reading the counts of a perf event");
  }
  return Counts{counts.value, counts.lost};
}

absl::StatusOr<PerfSession::Counts> PerfSession::ReadCountsOf(const Slot& slot) const {
  Counts open;
  for (const base::UniqueFd& fd : slot.fds) {
    const absl::StatusOr<Counts> counts = ReadCountsOf(fd);
    if (!counts.ok()) return counts.status();
    open.hits += counts->hits;
    open.lost += counts->lost;
  }
  if (target_.kind == PerfTarget::Kind::kProcesses) {
    open.hits = slot.hits_before ? slot.hits_at_end.value_or(open.hits) - *slot.hits_before : 0;
  }
  return Counts{slot.closed.hits + open.hits, slot.closed.lost + open.lost};
}

std::size_t PerfSession::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const Cpu& cpu : cpus_) {
    for (const FormerRings& former : cpu.former) bytes += former.rings->ring.fill();
    if (cpu.rings != nullptr) bytes += cpu.rings->ring.fill();
  }
  return bytes;
}

bool PerfSession::AnyWaits(std::size_t bytes) const {
  return std::any_of(cpus_.begin(), cpus_.end(), [bytes](const Cpu& cpu) {
    return cpu.rings != nullptr && cpu.rings->ring.fill() > bytes;
  });
}

bool PerfSession::IsPressed() const { return AnyWaits(ring_size_ / 2); }

bool PerfSession::IsWorthDraining() const {
  constexpr std::size_t kWorthARound = 2048;  // bytes
  return AnyWaits(std::max(ring_size_ / 16, kWorthARound));
}

absl::Status PerfSession::ReadLosses(
    absl::FunctionRef<void(std::size_t index, int id, std::uint64_t count)> on_lost, Losses which) {
  if (!counts_lost_) return CountsUnknown();
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    bool likely = std::exchange(cpus_[i].has_gone, false) || cpus_[i].lost != cpus_[i].lost_read;
    if (cpus_[i].rings != nullptr) {
      PerfRing& ring = cpus_[i].rings->ring;
      const std::uint64_t fullest = ring.TakeFullest();
      likely = likely || (fullest != 0 && fullest + kMaxSampleSize > ring.size());
    }
    if (which == Losses::kWhereLikely && !likely) continue;
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
  if (!counts_lost_) return CountsUnknown();
  Counts total;
  for (const Tracepoint& tracepoint : tracepoints_) {
    if (tracepoint.id != id) continue;
    for (const Slot& slot : tracepoint.slots) {
      const absl::StatusOr<Counts> counts = ReadCountsOf(slot);
      if (!counts.ok()) return counts.status();
      total.hits += counts->hits;
      total.lost += counts->lost;
    }
  }
  return total;
}

}  // namespace collector
