#include "tools/collector/perf/cpu_rings.h"

#include <algorithm>
#include <cerrno>

#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/session_clock.h"

namespace collector {

CpuRings::CpuRings(const std::vector<int>& cpus, std::size_t ring_size, bool cgroups, bool stacks,
                   std::size_t copied_bytes)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      ring_size_(ring_size),
      cpus_(cpus.begin(), cpus.end()),
      tasks_(cpus.size(), ring_size, cgroups, stacks),
      states_(cpus.size()) {
  if (!stacks) return;
  for (CpuRing& cpu : cpus_) cpu.ExpectStacks(KernelMaxFrames(), copied_bytes);
}

absl::StatusOr<CpuRings> CpuRings::Open(const std::vector<int>& cpus, std::size_t ring_size,
                                        bool cgroups, bool stacks, std::size_t copied_bytes) {
  CpuRings rings(cpus, ring_size, cgroups, stacks, copied_bytes);
  if (!rings.epoll_.valid())
    return base::DescriptorStatus(errno, "waiting for perf rings: epoll_create1");
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const std::uint64_t now = SessionClockNow();
    const absl::Status opened = rings.OpenRings(i);
    if (absl::IsNotFound(opened)) {
      rings.states_[i].gone_at = now;
    } else {
      RETURN_IF_ERROR(opened);
    }
  }
  if (rings.FindOnline().empty()) return absl::UnavailableError("no CPU is online");
  return rings;
}

absl::StatusOr<CpuRings> CpuRings::OpenNone() {
  CpuRings rings({}, /*ring_size=*/0, /*cgroups=*/false, /*stacks=*/false,
                 /*copied_bytes=*/0);
  if (!rings.epoll_.valid())
    return base::DescriptorStatus(errno, "waiting for perf rings: epoll_create1");
  return rings;
}

absl::Status CpuRings::OpenRings(std::size_t index) {
  CpuRing& cpu = cpus_[index];
  ASSIGN_OR_RETURN(EventRing samples, cpu.Open(ring_size_));
  ASSIGN_OR_RETURN(EventRing tasks, tasks_.Open(cpu.number()));
  RETURN_IF_ERROR(WakeOn(samples.event.get(), WakeKind::kRing, index));
  RETURN_IF_ERROR(WakeOn(tasks.event.get(), WakeKind::kRing, index));
  cpu.Begin(std::move(samples));
  tasks_.Begin(index, std::move(tasks));
  if (watches_registrations_) {
    const absl::Status status = OpenProbe(index);
    // If the CPU is offline again, no process can register tracepoints on it, so no probe is
    // needed.
    watches_registrations_ = status.ok() || absl::IsNotFound(status);
  }
  return absl::OkStatus();
}

std::vector<std::size_t> CpuRings::FindOnline() const {
  std::vector<std::size_t> online;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    if (cpus_[i].is_online()) online.push_back(i);
  }
  return online;
}

std::vector<CpuChange> CpuRings::Follow(bool suspect, OpenEvents open_events,
                                        CloseEvents close_events) {
  std::vector<CpuChange> changes;
  const std::uint64_t now = SessionClockNow();
  const absl::StatusOr<std::vector<int>> online = OnlineCpus();
  if (!online.ok()) return changes;
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const CpuRing& cpu = cpus_[i];
    State& state = states_[i];
    const bool is_online = std::binary_search(online->begin(), online->end(), cpu.number());
    CpuChange change = {.number = cpu.number()};
    if (cpu.is_online()) {
      if (is_online && (!suspect || cpu.IsActive())) continue;
      // The CPU was certainly recorded until this time. The samples that are still in the ring are
      // later, so the CPU went offline after this time.
      change.since = cpu.recorded_until();
      Depart(i, close_events);
      change.until = SessionClockNow();
      state.gone_at = is_online ? change.since : now;
      changes.push_back(change);
    }
    if (!is_online) {
      state.gone_at = now;
      continue;
    }
    change = {.number = cpu.number(), .online = true, .since = state.gone_at};
    absl::Status status = OpenRings(i);
    if (status.ok()) {
      tasks_.SetMissing();
      registrations_ = watches_registrations_;
      // If the CPU has gone offline again, open_events opens no events on it and succeeds. The next
      // call of Follow then finds the CPU offline.
      status = open_events(i);
      if (!status.ok()) Depart(i, close_events);
    }
    if (status.ok()) {
      change.until = SessionClockNow();
      state.error_reported = false;
      changes.push_back(change);
    } else if (absl::IsNotFound(status)) {
      state.gone_at = now;
    } else if (!std::exchange(state.error_reported, true)) {
      change.error = std::string(status.message());
      changes.push_back(change);
    }
  }
  return changes;
}

void CpuRings::Depart(std::size_t index, CloseEvents close_events) {
  // Removes the descriptors from the epoll set explicitly, because the mappings of the rings keep
  // the events open.
  StopWaking(index);
  base::UniqueFd probe;
  if (std::optional<RegistrationProbe>& open = states_[index].probe) {
    probe = open->TakeDescriptor();
    open.reset();
  }
  const std::uint64_t lost = close_events(index, std::move(probe));
  tasks_.End(index);
  cpus_[index].End(lost);
}

absl::Status CpuRings::OpenProbe(std::size_t index) {
  ASSIGN_OR_RETURN(RegistrationProbe probe, RegistrationProbe::Open(cpus_[index].number()));
  RETURN_IF_ERROR(WakeOn(probe.fd().get(), WakeKind::kProbe, index));
  states_[index].probe.emplace(std::move(probe));
  states_[index].probe_woke = false;
  return absl::OkStatus();
}

absl::Status CpuRings::WatchRegistrations() {
  for (const std::size_t i : FindOnline()) {
    absl::Status status = OpenProbe(i);
    if (status.ok() || absl::IsNotFound(status)) continue;
    for (State& state : states_) state.probe.reset();
    return status;
  }
  watches_registrations_ = true;
  return absl::OkStatus();
}

void CpuRings::ArmRegistrations() {
  registrations_ = false;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (!state.probe || !std::exchange(state.probe_woke, false)) continue;
    state.probe->Clear();
    if (!WakeOn(state.probe->fd().get(), WakeKind::kProbe, i, EPOLL_CTL_MOD).ok()) {
      watches_registrations_ = false;
    }
  }
}

absl::Status CpuRings::WakeOn(int fd, WakeKind kind, std::size_t index, int operation) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (kind == WakeKind::kProbe) event.events |= EPOLLONESHOT;
  event.data.u64 = std::uint64_t{static_cast<std::uint32_t>(kind)} << 32 | index;
  if (epoll_ctl(epoll_.get(), operation, fd, &event) != 0)
    return base::ErrnoStatus(errno, "waiting for perf rings: epoll_ctl");
  return absl::OkStatus();
}

bool CpuRings::Wait(int timeout_ms) {
  bool others = false;
  epoll_event events[16];
  // EINTR is handled like a timeout.
  const int count = epoll_wait(epoll_.get(), events, 16, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto kind = static_cast<WakeKind>(events[i].data.u64 >> 32);
    others = others || kind == WakeKind::kOther;
    if (kind == WakeKind::kOther) continue;
    const std::size_t index = events[i].data.u64 & 0xFFFFFFFF;
    if (kind == WakeKind::kProbe) states_[index].probe_woke = registrations_ = true;
    if ((events[i].events & (EPOLLHUP | EPOLLERR)) == 0) continue;
    // The event has ended. Its descriptor would stay readable, so Wait no longer waits for it.
    ended_ = true;
    StopWaking(index);
  }
  return others;
}

void CpuRings::StopWaking(std::size_t index) {
  const auto remove = [this](const base::UniqueFd& fd) {
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
  };
  remove(cpus_[index].event());
  remove(tasks_.event(index));
  if (states_[index].probe) remove(states_[index].probe->fd());
}

std::size_t CpuRings::waiting_bytes() const {
  std::size_t bytes = 0;
  for (const CpuRing& cpu : cpus_) bytes += cpu.waiting_bytes();
  return bytes;
}

bool CpuRings::AnyWaits(std::size_t bytes) const {
  return std::any_of(cpus_.begin(), cpus_.end(),
                     [bytes](const CpuRing& cpu) { return cpu.fill() > bytes; });
}

bool CpuRings::IsWorthDraining() const {
  constexpr std::size_t kWorthARound = 2048;  // bytes
  return AnyWaits(std::max(ring_size_ / 16, kWorthARound));
}

}  // namespace collector
