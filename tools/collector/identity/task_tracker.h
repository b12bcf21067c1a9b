// The floor of identity: who a pid and a tid are at a moment, the thread row of each in the trace,
// and what the trace says of processes (process_tracker.h).
//
// In: the machine's threads as /proc shows them at the start, then perf's records of their
// creation, naming and end. Out: for a pid, a tid and a timestamp, the index of the thread's row,
// which is written to the trace when the thread's first event comes. A thread that is renamed, and
// a tid that is used again, get a new row; events from before that may still come, and get the row
// of their time.
//
// Promises: Row, which runs for every sample, reads nothing but the table. Where records of threads
// were lost, CatchUp reads from /proc what they would have said; it is called between draining the
// records of threads and draining samples, and does nothing otherwise. A thread that no record
// announced and that CatchUp has not found goes by the name of its process. Threads that ended are
// dropped once no event of theirs can come any more.
#ifndef TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
#define TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "nettrace/writer.h"
#include "tools/collector/identity/process_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// The table of the machine's tasks. Not thread-safe.
class TaskTracker {
 public:
  // Adds every thread and process that /proc shows, at `timestamp`; those that are known and that
  // it does not show have ended.
  void LoadFromProc(std::uint64_t timestamp);

  // Applies a FORK, COMM, MMAP or EXIT record. After a LOST record CatchUp has work; others are
  // ignored.
  void Apply(const PerfRecord& record);
  // Records were lost: CatchUp has work.
  void RecordsWereLost() { lost_records_ = true; }

  // Reads from /proc what lost records would have said: all of /proc, for which it takes no more
  // than a tenth of the time, and the names of those that Row met unannounced.
  void CatchUp(std::uint64_t timestamp);

  // The index of the row that the thread had at `timestamp`. The row is written to `writer` unless
  // it has been since ForgetRows.
  absl::StatusOr<nettrace::ThreadIndex> Row(std::uint32_t pid, std::uint32_t tid,
                                            std::uint64_t timestamp, nettrace::Writer* writer) {
    const RecentRow& recent = RecentOf(tid);
    if (recent.tid == tid && recent.pid == pid && timestamp >= recent.from &&
        recent.row != nettrace::kNoThread) [[likely]] {
      return recent.row;
    }
    return FindRow(pid, tid, timestamp, writer);
  }

  // As Row, for a sample of a thread that has already given up its ids, for which perf gives the
  // tid kExitedTask. `tid` is what else is known of its tid: the row is that of the thread that had
  // it last, up to `timestamp`, if that has ended.
  absl::StatusOr<nettrace::ThreadIndex> ExitedRow(std::uint32_t pid,
                                                  std::optional<std::uint32_t> tid,
                                                  std::uint64_t timestamp,
                                                  nettrace::Writer* writer);

  // Drops threads and names that ended up to `timestamp`: no event of then can come any more.
  void DropEnded(std::uint64_t timestamp);
  // The trace's thread rows were flushed.
  void ForgetRows();

  // Rows written since ForgetRows.
  std::size_t rows() const { return rows_; }

  ProcessTracker& processes() { return processes_; }
  const ProcessTracker& processes() const { return processes_; }

 private:
  // Earlier identities kept of each thread; older ones are forgotten.
  static constexpr std::size_t kMaxPast = 64;

  struct Identity {
    std::uint32_t pid = 0;
    std::string name;
    nettrace::ThreadIndex row = nettrace::kNoThread;
    std::uint64_t ended = 0;     // timestamp of its end; 0: it is the thread's now
    std::uint64_t replaced = 0;  // timestamp from which the tid has another one; 0: it has not
  };
  struct Thread {
    Identity now;                // or the last one, if it has ended
    std::vector<Identity> past;  // the earlier ones, oldest first
    std::uint64_t loaded = 0;    // when /proc has shown it last
  };

  // A row that FindRow returned, and would return again for all times since `from`: that of the
  // thread's identity now. It is forgotten when that changes, or the row is.
  struct RecentRow {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    nettrace::ThreadIndex row = nettrace::kNoThread;
    std::uint64_t from = 0;
  };
  // Tids that run at a time are often near one another, and then have places of their own.
  static constexpr std::size_t kRecentRows = 1024;

  RecentRow& RecentOf(std::uint32_t tid) { return recent_[tid % kRecentRows]; }
  void ForgetRecent(std::uint32_t tid) { RecentOf(tid).row = nettrace::kNoThread; }
  absl::StatusOr<nettrace::ThreadIndex> FindRow(std::uint32_t pid, std::uint32_t tid,
                                                std::uint64_t timestamp, nettrace::Writer* writer);
  static void Replace(Thread* thread, Identity identity, std::uint64_t timestamp);
  static Identity* AtTime(Thread* thread, std::uint64_t timestamp);
  // The last identity that had ended at `timestamp`; null if there is none.
  static Identity* LastEnded(Thread* thread, std::uint64_t timestamp);
  // The row of one identity of the thread `tid`.
  absl::StatusOr<nettrace::ThreadIndex> RowOf(Identity* identity, std::uint32_t tid,
                                              nettrace::Writer* writer);
  // The name now of the thread `tid`, "" if it is not known.
  std::string_view NameOf(std::uint32_t tid) const;
  void Created(const TaskRecord& task, std::uint64_t timestamp);
  void Named(const CommRecord& comm, std::uint64_t timestamp);
  void Ended(const TaskRecord& task, std::uint64_t timestamp);
  // The thread is `identity` from `timestamp` on, if it is not yet.
  Thread* Set(std::uint32_t tid, Identity identity, std::uint64_t timestamp);
  void MarkEnded(std::uint32_t tid, std::uint64_t timestamp);
  // Adds the threads of a process as /proc shows them, and to `alive` their tids.
  void LoadProcess(std::uint32_t pid, std::uint64_t timestamp,
                   absl::flat_hash_set<std::uint32_t>* alive);

  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by tid
  ProcessTracker processes_;
  std::array<RecentRow, kRecentRows> recent_;
  std::size_t rows_ = 0;
  bool any_ended_ = false;
  bool lost_records_ = false;               // since CatchUp has read all of /proc
  std::uint64_t next_load_ = 0;             // when CatchUp may do that again
  std::vector<std::uint32_t> unannounced_;  // tids that Row met first, since the last CatchUp
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
