// The floor of identity: who a pid and a tid are at a moment, what a trace's row of each says, and
// what traces say of processes (process_tracker.h).
//
// In: the machine's threads as /proc shows them at the start, then perf's records of their
// creation, naming and end. Out: for a pid, a tid and a timestamp, the slot of the thread's
// identity (tools/collector/base/slots.h), by which each trace knows the row that it has for it. A
// thread that is renamed, and a tid that is used again, get a new one; events from before that may
// still come, and get that of their time.
//
// Where it is asked for, rows also say the executable and the cgroup, and what that tells (see
// cgroup_path.h). A thread that runs another program, and one that is in another cgroup, get a new
// slot, too. The cgroup is that which the kernel writes into each sample, so that it is right
// whatever moved the thread and whoever created it where; an event that is no sample has none.
//
// Promises: Find, which runs for every sample, reads nothing but the table. Where records of
// threads were lost, CatchUp reads from /proc what they would have said; it is called between
// draining the records of threads and draining samples, and does nothing otherwise. A thread that
// no record announced and that CatchUp has not found goes by the name of its process. Threads that
// ended are dropped once no event of theirs can come any more.
#ifndef TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
#define TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "nettrace/schema.h"
#include "tools/collector/base/slots.h"
#include "tools/collector/identity/cgroup_table.h"
#include "tools/collector/identity/process_tracker.h"
#include "tools/collector/perf/perf_records.h"

namespace collector {

// Keys of thread rows. None is there with an empty value.
inline constexpr char kExecutableKey[] = "Executable";  // the path, as its process sees it
inline constexpr char kCgroupKey[] = "Cgroup";          // the path in the hierarchy of version 2
inline constexpr char kUnitKey[] = "Unit";              // these three as in CgroupNames
inline constexpr char kUserUnitKey[] = "UserUnit";
inline constexpr char kContainerKey[] = "Container";

// The table of the machine's tasks. Not thread-safe.
class TaskTracker {
 public:
  // Rows say the executable, and the cgroup where samples name one. To be called before
  // LoadFromProc.
  void DescribeThreads(CgroupTable cgroups) { cgroups_.emplace(std::move(cgroups)); }

  // Adds every thread and process that /proc shows, at `timestamp`; those that are known and that
  // it does not show have ended.
  void LoadFromProc(std::uint64_t timestamp);

  // Applies a FORK, COMM, MMAP, EXIT or CGROUP record. After a LOST record CatchUp has work; others
  // are ignored.
  void Apply(const PerfRecord& record);
  // Records were lost: CatchUp has work.
  void RecordsWereLost() { lost_records_ = true; }

  // Reads from /proc what lost records would have said: all of /proc, for which it takes no more
  // than a tenth of the time, and the names of those that Find met unannounced.
  void CatchUp(std::uint64_t timestamp);
  // CatchUp has work.
  bool is_behind() const { return lost_records_ || !unannounced_.empty(); }

  // The slot of the identity that the thread had at `timestamp`, when it was in this cgroup.
  Slot Find(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
            std::uint64_t cgroup = kNoCgroup) {
    const Recent& recent = RecentOf(tid);
    if (recent.tid == tid && recent.pid == pid && recent.cgroup == cgroup &&
        timestamp >= recent.from && recent.slot.valid()) [[likely]] {
      return recent.slot;
    }
    return FindInTable(pid, tid, timestamp, cgroup);
  }

  // As Find, for a sample of a thread that has already given up its ids, for which perf gives the
  // tid kExitedTask. `tid` is what else is known of its tid: the identity is that of the thread
  // that had it last, up to `timestamp`, if that has ended.
  Slot FindExited(std::uint32_t pid, std::optional<std::uint32_t> tid, std::uint64_t timestamp,
                  std::uint64_t cgroup = kNoCgroup);

  // What the row of an identity says, for a slot that came from one of the two last.
  const nettrace::ThreadInfo& InfoOf(Slot slot) const { return infos_[slot.index()]; }

  // Drops threads and names that ended up to `timestamp`: no event of then can come any more.
  void DropEnded(std::uint64_t timestamp);

  // Identities that threads had before the one they have now.
  std::size_t past_identities() const { return past_identities_; }

  ProcessTracker& processes() { return processes_; }
  const ProcessTracker& processes() const { return processes_; }

 private:
  // Earlier identities kept of each thread; older ones are forgotten.
  static constexpr std::size_t kMaxPast = 64;
  static constexpr std::uint64_t kNoCgroup = 0;
  // And of all together: beyond, a thread that is renamed keeps one.
  static constexpr std::size_t kMaxPastOfAll = 65536;

  struct Identity {
    std::uint32_t pid = 0;
    std::string name;
    // Where rows say it; null or "" if it is not known. Threads of a process share it.
    std::shared_ptr<const std::string> executable = {};
    Slot slot = {};              // none until it is looked for
    std::uint64_t cgroup = 0;    // what the slot is for
    std::uint64_t ended = 0;     // timestamp of its end; 0: it is the thread's now
    std::uint64_t replaced = 0;  // timestamp from which the tid has another one; 0: it has not
  };
  struct Thread {
    Identity now;                // or the last one, if it has ended
    std::vector<Identity> past;  // the earlier ones, oldest first
    std::uint64_t loaded = 0;    // when /proc has shown it last
  };

  // A slot that FindInTable returned, and would return again for all times since `from`: that of
  // the thread's identity now. It is forgotten when that changes.
  struct Recent {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint64_t cgroup = 0;
    Slot slot = {};
    std::uint64_t from = 0;
  };
  // Tids that run at a time are often near one another, and then have places of their own.
  static constexpr std::size_t kRecent = 1024;

  Recent& RecentOf(std::uint32_t tid) { return recent_[tid % kRecent]; }
  void ForgetRecent(std::uint32_t tid) { RecentOf(tid).slot = Slot(); }
  Slot FindInTable(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
                   std::uint64_t cgroup);
  void Replace(Thread* thread, Identity identity, std::uint64_t timestamp);
  static Identity* AtTime(Thread* thread, std::uint64_t timestamp);
  // The last identity that had ended at `timestamp`; null if there is none.
  static Identity* LastEnded(Thread* thread, std::uint64_t timestamp);
  // The slot of one identity of the thread `tid` in a cgroup.
  Slot SlotOf(Identity* identity, std::uint32_t tid, std::uint64_t cgroup);
  void Describe(const Identity& identity, nettrace::ThreadInfo* info);
  // The identity now of the thread `tid`; an empty one if it is not known.
  const Identity& Now(std::uint32_t tid) const;
  // The name now of the thread `tid`, "" if it is not known.
  std::string_view NameOf(std::uint32_t tid) const { return Now(tid).name; }
  // The executable that a process is found to have; null if that is not asked for, or not known.
  std::shared_ptr<const std::string> ExecutableOf(
      const ProcessTracker::Description& description) const;
  // It is known now which one a thread has: its row is another one from here on. Ignored if null.
  void SetExecutable(std::uint32_t tid, std::shared_ptr<const std::string> executable);
  void Created(const TaskRecord& task, std::uint64_t timestamp);
  void Named(const CommRecord& comm, std::uint64_t timestamp);
  void Ended(const TaskRecord& task, std::uint64_t timestamp);
  // The thread is `identity` from `timestamp` on, if it is not yet. One without an executable is
  // taken to have the same.
  Thread* Set(std::uint32_t tid, Identity identity, std::uint64_t timestamp);
  void MarkEnded(std::uint32_t tid, std::uint64_t timestamp);
  // Adds the threads of a process as /proc shows them, and to `alive` their tids.
  void LoadProcess(std::uint32_t pid, std::uint64_t timestamp,
                   absl::flat_hash_set<std::uint32_t>* alive);

  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by tid
  ProcessTracker processes_;
  std::array<Recent, kRecent> recent_;
  std::size_t past_identities_ = 0;  // of all threads
  SlotAllocator slots_;
  std::vector<nettrace::ThreadInfo> infos_;  // by the index of the identity's slot
  std::optional<CgroupTable> cgroups_;       // none: rows say no more than the thread's name
  bool any_ended_ = false;
  bool lost_records_ = false;               // since CatchUp has read all of /proc
  std::uint64_t next_load_ = 0;             // when CatchUp may do that again
  std::vector<std::uint32_t> unannounced_;  // tids that Find met first, since the last CatchUp
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
