// Unwinds the copied stacks of samples on a separate thread, so that the thread that drains the
// rings does not wait for it.
//
// Input: samples with a copy of the stack that still wait in the rings, and the mappings of their
// processes. Output: the same samples with their stacks, when they are read from the rings. Samples
// stay in the rings until their stacks are unwound, so the order of events does not change and the
// rings limit the memory. If samples come faster than they are unwound, the rings fill. The caller
// then reads samples that are not unwound yet: these have only the frames of the kernel and the
// innermost frame of user space, and are counted.
#ifndef TOOLS_COLLECTOR_UNWIND_STACK_UNWINDER_H_
#define TOOLS_COLLECTOR_UNWIND_STACK_UNWINDER_H_

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/unwind/module_cache.h"
#include "tools/collector/unwind/stack_walk.h"

namespace collector {

// A thread that unwinds stacks, and the samples that wait for it. All functions must be called on
// one thread, the caller's.
class StackUnwinder {
 public:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  struct Limits {
    // Maximum number of samples that Begin has accepted and Complete has not completed, and the
    // maximum bytes of their copies.
    std::size_t samples = 8192;
    std::size_t bytes = std::size_t{32} << 20;
  };

  // Starts the thread. `max_frames` is the maximum number of frames of a stack. Fails if a
  // descriptor or thread cannot be created.
  static absl::StatusOr<std::unique_ptr<StackUnwinder>> Start(std::size_t max_frames,
                                                              const Limits& limits);
  static absl::StatusOr<std::unique_ptr<StackUnwinder>> Start(std::size_t max_frames) {
    return Start(max_frames, Limits());
  }
  StackUnwinder(const StackUnwinder&) = delete;
  StackUnwinder& operator=(const StackUnwinder&) = delete;
  ~StackUnwinder();

  // Returns a descriptor that is readable when stacks have been unwound. ClearWake makes it
  // unreadable.
  int fd() const { return wake_.get(); }
  void ClearWake();

  // Returns the id of the thread that unwinds.
  pid_t tid() const { return tid_; }

  // Begins to unwind a sample that waits in the ring of the CPU at `cpu`. Does nothing if an
  // earlier call has accepted the sample, or if it has no copy of a stack. `code` returns the
  // mappings of the process; null: not known. Returns false if the limits are reached; the caller
  // must call Begin again later.
  bool Begin(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp,
             absl::FunctionRef<std::shared_ptr<const CodeSnapshot>()> code);
  // Returns the timestamp of the oldest sample that Begin has accepted and that is not unwound yet;
  // kNone if there is none.
  std::uint64_t FindOldest() const;
  // Removes the samples with timestamps up to `limit` from the queue, so that the thread does not
  // unwind them. Complete then counts these samples as skipped.
  void GiveUp(std::uint64_t limit);
  // Sets `entries` and `is_cut` of the sample's stack. The entries are valid until the next call of
  // this function. Does nothing if the sample has no copy of its stack.
  void Complete(std::size_t cpu, SampleRecord* sample, std::uint64_t timestamp);

  // Counts samples that Complete has completed without unwinding, and the times of the first and
  // the last of them, in ns.
  struct Skipped {
    std::uint64_t count = 0;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  // Returns the number and the times of the samples that were skipped since the last call.
  Skipped TakeSkipped() { return std::exchange(skipped_, {}); }
  // Returns the number of files that were not read because of their file systems (MappedFiles).
  std::size_t refused_files() const { return modules_.refused(); }

 private:
  // CPU, timestamp and tid of a sample.
  using Key = std::tuple<std::size_t, std::uint64_t, std::uint32_t>;
  struct Job {
    ThreadState state;  // `stack` refers to `copy`
    std::vector<std::byte> copy;
    bool has_64_bits = false;
    std::shared_ptr<const CodeSnapshot> code;
    // Results, which the caller's thread may read when `is_done` is set.
    std::vector<std::uint64_t> frames;
    bool is_whole = false;
    std::atomic<bool> is_done = false;
  };

  StackUnwinder(std::size_t max_frames, const Limits& limits, base::UniqueFd wake);
  void Run(std::promise<pid_t> tid);
  static bool HasCopy(const SampleRecord& sample);
  static ThreadState StateOf(const SampleRecord& sample, std::uint64_t timestamp);

  const std::size_t max_frames_;
  const Limits limits_;
  const base::UniqueFd wake_;

  // Used by the caller's thread only.
  absl::flat_hash_map<Key, std::shared_ptr<Job>> jobs_;
  std::size_t bytes_ = 0;               // size of the copies of stacks in jobs_
  std::vector<std::uint64_t> entries_;  // the stack of the last Complete
  Skipped skipped_;

  ModuleCache modules_;  // used by the thread that unwinds, except refused()

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> queue_;  // guarded by mutex_
  bool ends_ = false;                       // guarded by mutex_
  pid_t tid_ = 0;
  std::thread thread_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_UNWIND_STACK_UNWINDER_H_
