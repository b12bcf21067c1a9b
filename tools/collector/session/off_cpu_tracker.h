// Finds the times in which threads had no CPU, from the records of their switches.
//
// Input: the switches of all CPUs, and the times in which switches may be missing. Output: an
// interval for each thread that was switched out and in again, with the stack of where it was
// switched out, in the order of the times at which the threads were switched in.
//
// Guarantees: No interval contains a time in which its thread had a CPU, if the missing switches
// are reported: a thread whose switches may be missing has no interval until it is switched out
// again. Each switch out is part of an interval or counts as lost, except the last one of each
// thread. Memory is bounded by the number of threads and by kMaxBytes.
#ifndef TOOLS_COLLECTOR_SESSION_OFF_CPU_TRACKER_H_
#define TOOLS_COLLECTOR_SESSION_OFF_CPU_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// A table of the threads without a CPU. Times are in ns of the session clock. Not thread-safe.
class OffCpuTracker {
 public:
  // Maximum bytes of the stacks of threads without a CPU. Above it, switches count as lost.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  // A time in which a thread had no CPU. It lasted `duration` ns and ended at `timestamp`, when the
  // thread was switched in on the CPU at index `cpu`.
  struct Interval {
    std::size_t cpu = 0;
    std::uint64_t timestamp = 0;
    std::uint64_t duration = 0;
    // Thread, cgroup and stack of the switch out; valid only during the call of `consume`.
    SampleRecord sample;
  };

  // `tasks` must outlive this object.
  explicit OffCpuTracker(const TaskTracker* tasks) : tasks_(tasks) {}

  // Forgets all threads, and ignores all switches before `timestamp`.
  void StartAt(std::uint64_t timestamp);
  // Adds a switch, which is of kind kSwitchOut or kSwitchIn. The order of calls has no effect.
  void Add(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp);
  // Records that switches between `from` and `until` may be missing.
  void Miss(std::uint64_t from, std::uint64_t until);
  // Passes the intervals that end no later than `limit` to `consume`. All switches up to `limit`
  // must have been added.
  void Process(std::uint64_t limit, absl::FunctionRef<void(const Interval&)> consume);
  // Returns the number of switches out that Process has counted as lost since the last call.
  std::uint64_t TakeLost() { return std::exchange(lost_, 0); }

  // Number of threads in the table.
  std::size_t threads() const { return threads_.size(); }

 private:
  enum class Step : std::uint8_t { kOut, kIn, kMissing };
  // A switch, or the start of a time in which switches may be missing.
  struct Waiting {
    std::uint64_t timestamp = 0;
    Step step = Step::kOut;
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::size_t cpu = 0;
    std::uint64_t cgroup = 0;
    std::uint64_t until = 0;  // for kMissing: end of the time
    std::size_t stack = 0;    // place of the stack in stacks_, and its size, in bytes
    std::size_t stack_size = 0;
    bool is_cut = false;  // whether the stack is cut
  };
  struct Thread {
    std::uint64_t out = 0;  // time at which its current interval began; 0: none
    std::uint32_t pid = 0;
    std::uint64_t cgroup = 0;
    std::vector<std::byte> stack;  // keeps its memory for the next switch
    bool is_cut = false;           // whether the stack is cut
  };

  void SwitchOut(const Waiting& waiting);
  void SwitchIn(const Waiting& waiting, absl::FunctionRef<void(const Interval&)> consume);
  void MissUntil(std::uint64_t timestamp);
  // Removes the threads that have ended, if there are many more than at the last call.
  void DropEnded(std::uint64_t timestamp);
  // Removes the switches before index `first` from waiting_, and their stacks from stacks_.
  void Keep(std::size_t first);

  const TaskTracker* tasks_;
  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by tid
  std::size_t bytes_ = 0;                               // memory of the stacks in threads_
  std::size_t next_drop_ = 1024;  // minimum number of threads at which DropEnded removes threads
  std::vector<Waiting> waiting_;
  std::vector<std::byte> stacks_;       // stacks of waiting_
  std::vector<std::byte> kept_stacks_;  // used by Keep only
  std::uint64_t started_ = 0;
  std::uint64_t missing_until_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_OFF_CPU_TRACKER_H_
