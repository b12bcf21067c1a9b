// Reads the perf records that are not samples: the creation, naming and end of threads, the
// mappings of code, and new cgroups.
#ifndef TOOLS_COLLECTOR_PERF_TASK_RINGS_H_
#define TOOLS_COLLECTOR_PERF_TASK_RINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// Holds a ring for each CPU, in addition to the CPU's ring for samples. Because the rings are
// separate, names of threads are not lost when a ring for samples is full, and each loss that the
// kernel counts in a ring for samples is the loss of a sample.
//
// A thread may be created on one CPU and named on another, so the records of all CPUs are delivered
// in the order of time. Records of all processes are delivered, also of those outside the target.
// Not thread-safe.
class TaskRings {
 public:
  // CPUs have the indices 0 to `cpus` - 1. `sample_ring_size` is the size of the rings of samples,
  // in bytes. `cgroups` selects whether new cgroups are recorded, which the kernel must support.
  // `all_code` selects whether all mappings of code are delivered, or only those for which
  // ParseCode returns true.
  TaskRings(std::size_t cpus, std::size_t sample_ring_size, bool cgroups, bool all_code = false);

  // Opens a ring on the CPU with this number. Fails with NotFound if the CPU is offline.
  absl::StatusOr<EventRing> Open(int cpu) const;
  // Begins to read `ring` for the CPU at `index`, which must not have a ring.
  void Begin(std::size_t index, EventRing ring) { rings_[index].emplace(std::move(ring)); }
  // Copies the records in the ring at `index`, so that Drain still delivers them, and closes the
  // ring.
  void End(std::size_t index);
  // Descriptor of the perf event that owns the ring at `index`. Begin must have been called for
  // this index.
  const base::UniqueFd& event(std::size_t index) const { return rings_[index]->event; }

  // Passes the records that have not been consumed to `look`, and leaves them in the rings. Records
  // of one CPU come in the order of its ring.
  void Peek(absl::FunctionRef<void(const PerfRecord&)> look);
  // Passes the FORK, COMM, MMAP, MMAP2, EXIT, CGROUP and LOST records of all CPUs up to now to
  // `consume`, sorted by time. The bytes are valid only during the call of `consume`.
  //
  // Returns true if records may be missing: the kernel has counted losses since the last call, a
  // ring was closed, or SetMissing was called. Kernels before 6.0 do not count losses: only a LOST
  // record, which comes later, reports them.
  bool Drain(absl::FunctionRef<void(const PerfRecord&)> consume);
  // Makes the next Drain return true. Must be called when a CPU was without a ring for some time.
  void SetMissing() { are_missing_ = true; }

 private:
  struct Ring : EventRing {
    explicit Ring(EventRing opened) : EventRing(std::move(opened)) {}
    std::uint64_t lost = 0;  // lost records, by the kernel's count at the last check
  };

  // Appends the records of the ring to waiting_.
  void Take(Ring* ring);

  std::size_t ring_size_;
  bool cgroups_;
  bool all_code_;
  std::vector<std::optional<Ring>> rings_;  // by index of the CPU
  bool are_missing_ = false;                // whether records may be missing since the last Drain
  // Copies of the records that Drain sorts, with their timestamps.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> waiting_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_TASK_RINGS_H_
