// Who is behind a pid and tid: names of threads as they come, go and are renamed.
#ifndef TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
#define TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/collector/perf/perf_ring.h"

namespace collector {

// The machine's threads, and their rows in the trace. A row is written when a thread's first event
// comes; a thread that is renamed, or a tid that is used again, gets a new one. Events from before
// that may still come, and get the row of their time. Not thread-safe.
class ThreadTable {
 public:
  // Adds every thread that /proc shows and that is not known yet.
  void LoadFromProc();

  // Takes a FORK, COMM or EXIT record; others are ignored.
  void Apply(const RingRecord& record);

  // The index of the row that the thread had at `timestamp`, written to `writer` if it has none
  // since ForgetRows.
  absl::StatusOr<nettrace::ThreadIndex> Row(std::uint32_t pid, std::uint32_t tid,
                                            std::uint64_t timestamp, nettrace::Writer* writer);

  // Drops threads and names that ended up to `timestamp`: no event of then can come any more.
  void DropEnded(std::uint64_t timestamp);
  // The trace's thread rows were flushed.
  void ForgetRows();

  // Rows written since ForgetRows.
  std::size_t rows() const { return rows_; }

 private:
  // Of each thread; older ones are forgotten.
  static constexpr std::size_t kMaxPast = 64;

  struct Identity {
    std::uint32_t pid = 0;
    std::string name;
    nettrace::ThreadIndex row = nettrace::kNoThread;  // once it is written
    std::uint64_t ended = 0;  // timestamp of its end; 0: it is the thread's now
  };
  struct Thread {
    Identity now;                // or the last one, if it has ended
    std::vector<Identity> past;  // the earlier ones, oldest first
  };

  static void Replace(Thread* thread, Identity identity, std::uint64_t timestamp);
  static Identity* AtTime(Thread* thread, std::uint64_t timestamp);

  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by tid
  std::size_t rows_ = 0;
  bool any_ended_ = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
