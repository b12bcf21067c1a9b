// Opens, waits for and drains the perf rings of all CPUs, and follows which CPUs are online.
//
// Input: the numbers of the possible CPUs (cpu_list.h). Output:
// - the samples of each CPU in the order of their timestamps, up to a limit that the caller sets,
//   and the places where samples were lost (cpu_ring.h);
// - the records of threads on all CPUs, in the order of time (task_rings.h);
// - the CPUs that came online or went offline;
// - whether a tracepoint of user_events may have been registered (registration_probe.h).
//
// Guarantees: No memory is allocated for a sample once the buffers have grown. A record that the
// kernel cannot have written is counted and skipped. This layer handles pids, tids and raw bytes;
// other layers interpret them.
#ifndef TOOLS_COLLECTOR_PERF_CPU_RINGS_H_
#define TOOLS_COLLECTOR_PERF_CPU_RINGS_H_

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/cpu_ring.h"
#include "tools/collector/perf/registration_probe.h"
#include "tools/collector/perf/task_rings.h"

namespace collector {

// A CPU that has come online or gone offline. Times are in ns of the session clock.
struct CpuChange {
  int number = 0;
  bool online = false;
  // A CPU went offline at some time between `since` and `until`. A CPU that came online may not
  // have been recorded between these times; it is recorded from `until` on.
  std::uint64_t since = 0;
  std::uint64_t until = 0;
  // Reason why a CPU that came online cannot be recorded; `until` is 0 in that case. When the
  // CPU can be recorded later, another change is reported.
  std::string error = {};
};

// Holds the rings of all CPUs that have been passed to Open, and the descriptors that wake the
// caller. CPUs keep their index, also while they are offline. Not thread-safe.
class CpuRings {
 public:
  // Opens rings on those of `cpus` that are online. `ring_size` is the size of a ring of samples,
  // in bytes. `cgroups` selects whether new cgroups are recorded, which the kernel must support.
  // `stacks` and `copied_bytes` have the meaning that they have in PerfOptions. Fails with
  // Unavailable if no CPU is online, and with another error if a ring cannot be opened.
  static absl::StatusOr<CpuRings> Open(const std::vector<int>& cpus, std::size_t ring_size,
                                       bool cgroups, bool stacks, std::size_t copied_bytes = 0);

  // Returns an object without rings, for a collector that has no access to perf.
  static absl::StatusOr<CpuRings> OpenNone();

  // Returns all CPUs that were passed to Open, online or not, in that order.
  const std::vector<CpuRing>& cpus() const { return cpus_; }
  // Returns the indices of the CPUs that are online.
  std::vector<std::size_t> FindOnline() const;
  TaskRings& tasks() { return tasks_; }

  // A function that opens the caller's perf events on the CPU at `index`. CpuRings calls it after
  // it has opened the rings of the CPU.
  using OpenEvents = absl::FunctionRef<absl::Status(std::size_t index)>;
  // A function that closes the caller's perf events on the CPU at `index`, and the descriptor
  // `probe` if it is valid. Returns the number of samples that the CPU has lost so far, by the
  // counts of the perf events.
  using CloseEvents = absl::FunctionRef<std::uint64_t(std::size_t index, base::UniqueFd probe)>;
  // Checks which CPUs are online, and starts to record those that have come online. Returns the
  // changes since the last call; none if sysfs cannot be read. If `suspect` is true, also finds
  // CPUs that have gone offline and come back since the last call. For this, it checks whether the
  // events of each CPU still run, which interrupts the CPU.
  std::vector<CpuChange> Follow(bool suspect, OpenEvents open_events, CloseEvents close_events);
  // Returns whether the events of a ring have ended since the last call, because its CPU went
  // offline. The caller must then call Follow.
  bool TakeEnded() { return std::exchange(ended_, false); }

  // Makes Wait return when a tracepoint of user_events has been registered. Fails if the kernel has
  // no kprobes or does not permit them to this process.
  absl::Status WatchRegistrations();
  // Returns whether all CPUs report registrations. Becomes false if a CPU cannot report them any
  // more, or comes online later and cannot report them.
  bool watches_registrations() const { return watches_registrations_; }
  // Returns whether a registration may have been made since ArmRegistrations.
  bool registrations() const { return registrations_; }
  // Makes Wait return again at the next registration on each CPU. Must be called before the caller
  // reads the list of registered tracepoints, so that no registration is missed.
  void ArmRegistrations();

  // Waits until a ring is filled beyond its watermark, a tracepoint is registered, a descriptor
  // that was passed to WakeOn is readable, or a signal arrives; at most `timeout_ms`. Returns
  // whether a descriptor that was passed to WakeOn is readable.
  bool Wait(int timeout_ms);
  // Makes Wait also return when `fd` is readable.
  absl::Status WakeOn(int fd) { return WakeOn(fd, WakeKind::kOther, 0); }

  // Passes every sample with a timestamp up to `limit` to `on_sample(index, sample, timestamp)`,
  // the oldest of each CPU first. `index` is the index in cpus(). Where samples are missing, calls
  // `on_lost(index, total)` with the number of samples lost on that CPU so far.
  template <typename OnSample, typename OnLost>
  void Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost);
  // Passes the records that wait in the rings to `look(record)`, and leaves them there.
  template <typename Look>
  void Peek(const Look& look) {
    for (CpuRing& cpu : cpus_) cpu.Peek(look);
  }
  // Does the work of Peek for the CPU at `index`.
  template <typename Look>
  void PeekOf(std::size_t index, const Look& look) {
    cpus_[index].Peek(look);
  }
  // Returns whether samples of the CPU at `index` may have been lost since the last call. This
  // includes losses that no LOST record has reported yet, because the kernel writes a LOST record
  // only with the next record.
  bool TakeMayHaveLost(std::size_t index) { return cpus_[index].TakeMayHaveLost(); }

  // Returns the THROTTLE records of the CPU at `index` since the last call.
  CpuRing::Throttled TakeThrottled(std::size_t index) { return cpus_[index].TakeThrottled(); }

  // Bytes of samples that wait in the rings.
  std::size_t waiting_bytes() const;
  // Returns whether a ring of samples is more than half full.
  bool IsPressed() const { return AnyWaits(ring_size_ / 2); }
  // Returns whether a ring contains enough bytes that the collector should drain it before it
  // sleeps. A collector that sleeps while other threads want its CPU gets the CPU back too late.
  bool IsWorthDraining() const;

 private:
  // The state of a CPU, for Follow and ArmRegistrations.
  struct State {
    std::uint64_t gone_at = 0;    // time at which the CPU was found offline, in ns; 0: never
    bool error_reported = false;  // whether an error was reported since the CPU was last recorded
    std::optional<RegistrationProbe> probe = std::nullopt;
    // Whether the probe has woken Wait since the last call of ArmRegistrations. It wakes Wait at
    // most once after each of these calls.
    bool probe_woke = false;
  };
  // Kind of a descriptor in epoll data, which also contains the CPU's index.
  enum class WakeKind : std::uint32_t { kOther, kRing, kProbe };

  CpuRings(const std::vector<int>& cpus, std::size_t ring_size, bool cgroups, bool stacks,
           std::size_t copied_bytes = 0);

  // Opens the rings of the CPU at `index`. Fails with NotFound if it is offline.
  absl::Status OpenRings(std::size_t index);
  absl::Status OpenProbe(std::size_t index);
  // Closes everything of the CPU at `index` except its rings of samples, which may have samples
  // that have not been read.
  void Depart(std::size_t index, CloseEvents close_events);
  absl::Status WakeOn(int fd, WakeKind kind, std::size_t index, int operation = EPOLL_CTL_ADD);
  // Removes the descriptors of the CPU at `index` from the set that Wait waits for.
  void StopWaking(std::size_t index);
  bool AnyWaits(std::size_t bytes) const;

  base::UniqueFd epoll_;
  std::size_t ring_size_;
  std::vector<CpuRing> cpus_;
  TaskRings tasks_;
  std::vector<State> states_;  // by index of the CPU
  bool watches_registrations_ = false;
  bool registrations_ = false;
  bool ended_ = false;
};

template <typename OnSample, typename OnLost>
void CpuRings::Drain(std::uint64_t limit, const OnSample& on_sample, const OnLost& on_lost) {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    cpus_[i].Drain(
        limit,
        [&on_sample, i](const SampleRecord& sample, std::uint64_t timestamp) {
          on_sample(i, sample, timestamp);
        },
        [&on_lost, i](std::uint64_t total) { on_lost(i, total); });
  }
}

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_CPU_RINGS_H_
