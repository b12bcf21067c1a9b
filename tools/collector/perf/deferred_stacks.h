// Joins samples with the user parts of their stacks, if the kernel has deferred these parts.
//
// From Linux 6.19 on, the kernel can read the user part of a stack when the thread returns to user
// space, not while it takes the sample. The sample then has a cookie, and a later record has the
// cookie and the user part. The thread may return on another CPU, so the record may be in another
// ring. All samples of a thread between two returns to user space share one record.
//
// Input: the records that wait in the rings of all CPUs. Output: the time up to which the rings can
// be drained, and the complete stacks of the drained samples. Samples wait in the rings, so their
// order does not change, and they are not copied.
//
// Guarantees: A sample waits for at most kLongestWait. If its record has not arrived by then, the
// sample keeps only the kernel part, is marked by SampleRecord::lacks_user_frames, and is counted.
// Memory is bounded by the size of the rings.
#ifndef TOOLS_COLLECTOR_PERF_DEFERRED_STACKS_H_
#define TOOLS_COLLECTOR_PERF_DEFERRED_STACKS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// Holds the user parts that have arrived. Not thread-safe.
class DeferredStacks {
 public:
  // Maximum time that a sample waits for its user part, in ns. If the thread blocks in a system
  // call after the sample, it may return to user space later.
  static constexpr std::uint64_t kLongestWait = 100'000'000;

  // Reads the records that wait in the rings. Calls `peek` with a function; `peek` must call this
  // function with each waiting record. Returns the time up to which the rings can be drained, in
  // ns: `now`, or the time before the first sample that still waits for its user part.
  template <typename Peek>
  std::uint64_t Collect(std::uint64_t now, const Peek& peek) {
    Clear();
    peek([this](const PerfRecord& record) { Add(record); });
    return FindReady(now);
  }

  // Replaces kDeferredMark and the cookie at the end of the sample's stack with the user part. If
  // the user part has not arrived, removes the mark and the cookie, sets `lacks_user_frames`, and
  // counts the sample. Does nothing if the user part was not deferred. The new stack is valid until
  // the next call. Collect must have been called since the sample's ring was last drained.
  void Join(SampleRecord* sample);

  // Number of samples without their user part so far.
  std::uint64_t missing() const { return missing_; }

 private:
  struct Key {
    std::uint32_t tid = 0;
    std::uint64_t cookie = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.tid, key.cookie);
    }
  };
  struct Part {
    std::size_t first = 0;  // index in frames_
    std::size_t count = 0;
  };
  struct Waiting {
    std::uint64_t timestamp = 0;
    Key key;
  };

  void Clear();
  void Add(const PerfRecord& record);
  std::uint64_t FindReady(std::uint64_t now) const;

  absl::flat_hash_map<Key, Part> parts_;
  std::vector<std::uint64_t> frames_;  // frames of all parts_
  std::vector<Waiting> waiting_;       // the samples of the last Collect whose part was deferred
  std::vector<std::uint64_t> joined_;  // the stack of the last Join
  std::uint64_t missing_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_DEFERRED_STACKS_H_
