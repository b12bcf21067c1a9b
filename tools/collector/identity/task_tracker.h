// Determines the thread that a pid and a tid refer to at a given time, the contents of its row in a
// trace, and the process events of traces (process_tracker.h).
//
// Input: the machine's threads in /proc at the start, then perf's records of their creation, naming
// and end. Output: for a pid, a tid and a timestamp, the slot (tools/collector/system/slots.h) of
// the thread's identity, which is its process and its name at that time. Each trace finds its row
// for the thread by this slot. A thread that is renamed and a tid that is reused get a new slot. An
// event that is older than the change gets the old slot, even if it arrives after the change.
//
// If requested, rows also contain the executable and the cgroup, with the names that the cgroup's
// path contains (see cgroup_path.h). In that case, a thread that executes another program or moves
// to another cgroup gets a new slot, too. The kernel writes the cgroup into each sample, so the
// cgroup is correct even if the thread has been moved. Events that are not samples have no cgroup.
//
// Guarantees: Find, which runs for every sample, does not read threads from /proc. If records of
// threads were lost, CatchUp reads the missing information from /proc. The caller calls CatchUp
// after draining the records of threads and before draining samples. CatchUp does nothing if no
// information is missing. A thread without a record that CatchUp does not find in /proc has the
// name of its process's main thread. Ended threads are dropped once none of their events can arrive
// any more.
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
#include "tools/collector/identity/cgroup_table.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/collector/identity/process_tracker.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/system/slots.h"

namespace collector {

// A table of the machine's threads. Not thread-safe.
class TaskTracker {
 public:
  // Makes thread rows contain the executable and, if samples contain a cgroup id, the cgroup. Must
  // be called before LoadFromProc.
  void DescribeThreads(CgroupTable cgroups) { cgroups_.emplace(std::move(cgroups)); }

  // Adds every thread and process in /proc, at `timestamp`. Marks known threads and processes that
  // are not in /proc as ended.
  void LoadFromProc(std::uint64_t timestamp);

  // Also tracks the code that processes map. Must be called before LoadFromProc. Reads the symbols
  // of the kernel, which takes about 100 ms.
  void TrackCode() { code_ = std::make_unique<CodeTracker>(KernelSymbols::Load()); }
  // Returns the mapped code; null if it is not tracked.
  CodeTracker* code() const { return code_.get(); }

  // Applies a FORK, COMM, MMAP, MMAP2, EXIT or CGROUP record. A LOST record makes is_behind() true.
  // Other records are ignored.
  void Apply(const PerfRecord& record);
  // Makes is_behind() true. Must be called when records were lost.
  void RecordsWereLost() { lost_records_ = true; }

  // Reads from /proc what lost records would have contained. If records were lost, loads all of
  // /proc, but so seldom that the loads take at most a tenth of the time. Also reads the names of
  // the threads that Find has added because no record had announced them.
  void CatchUp(std::uint64_t timestamp);
  // Returns whether CatchUp has work to do.
  bool is_behind() const { return lost_records_ || !unannounced_.empty(); }

  // Returns the slot of the identity that the thread had at `timestamp` in the cgroup with the id
  // `cgroup`. With kNoCgroup, the slot's thread row states no cgroup.
  Slot Find(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
            std::uint64_t cgroup = kNoCgroup) {
    const Slot slot = FindRecent(pid, tid, timestamp, cgroup);
    return slot.valid() ? slot : FindInTable(pid, tid, timestamp, cgroup);
  }
  // Returns the slot that Find() would return if it is cached; else a slot that is not valid.
  Slot FindRecent(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
                  std::uint64_t cgroup) {
    const Recent& recent = RecentOf(tid);
    const bool is_same = recent.tid == tid && recent.pid == pid && recent.cgroup == cgroup &&
                         timestamp >= recent.from;
    return is_same ? recent.slot : Slot();
  }

  // Does the work of Find for a sample of an exiting thread whose ids the kernel has already
  // released, so that perf reports the tid kExitedTask. `tid` is its tid from another source, if
  // known. Returns the slot of the last identity with that tid that ended no later than
  // `timestamp`. If there is none, returns a slot whose row has the name "(exited)" and no ids.
  Slot FindExited(std::uint32_t pid, std::optional<std::uint32_t> tid, std::uint64_t timestamp,
                  std::uint64_t cgroup = kNoCgroup);

  // Adds a thread of the process `pid`. The thread's events come by `transport` and not through the
  // kernel, so the tid is only a claim of the process. If the process has a thread with this tid in
  // its pid namespace, the row has the name of this thread, and its tid in the collector's pid
  // namespace. Otherwise the row has the name of the process and the claimed tid. The row has the
  // key trace::kTransportKey. Returns a slot, which the caller must release.
  Slot AddClaimed(std::uint32_t pid, std::uint32_t tid, const char* transport);
  // Adds the process `pid`. Its events come by `transport` and not through the kernel, from a
  // source that knows the process. `name` is the name of the process at the time of its event; ""
  // if it is not known. In all other respects, it works like AddClaimed.
  Slot AddReported(std::uint32_t pid, const std::string& name, const char* transport);
  void ReleaseClaimed(Slot* slot) { slots_.Release(slot); }
  // Adds the process and its threads from /proc if the process is not known.
  void Announce(std::uint32_t pid, std::uint64_t timestamp);

  // Returns whether the tracker has an identity of the thread.
  bool Knows(std::uint32_t tid) const { return threads_.contains(tid); }
  // Returns whether the last thread that had this tid up to `timestamp` had ended by then. Returns
  // false if the tid is not known.
  bool HasEnded(std::uint32_t tid, std::uint64_t timestamp) const;

  // Returns the contents of the row for a slot that Find, FindExited, AddClaimed or AddReported
  // returned.
  const nettrace::ThreadInfo& InfoOf(Slot slot) const { return infos_[slot.index()]; }

  // Drops the threads that ended, and the identities that were replaced, no later than `timestamp`.
  // The caller must have converted all events up to that time.
  void DropEnded(std::uint64_t timestamp);

  // Number of earlier identities of all threads; for tests.
  std::size_t past_identities() const { return past_identities_; }

  ProcessTracker& processes() { return processes_; }
  const ProcessTracker& processes() const { return processes_; }

 private:
  // Returns the name of a thread of the process `pid`; "" if it is not known.
  std::string FindName(std::uint32_t pid, std::uint32_t tid) const;
  // Adds the row of a thread whose events do not come from the kernel.
  Slot AddRow(std::uint32_t pid, std::uint32_t tid, std::string name, const char* transport);

  // Maximum number of earlier identities of a thread; older ones are dropped.
  static constexpr std::size_t kMaxPast = 64;
  static constexpr std::uint64_t kNoCgroup = 0;
  // When all threads together have this number of earlier identities, a thread that gets a new
  // identity keeps only one earlier identity.
  static constexpr std::size_t kMaxPastOfAll = 65536;

  struct Identity {
    std::uint32_t pid = 0;
    std::string name;
    // Path of the executable, if thread rows contain it; null or "" if not known. Threads of a
    // process share it.
    std::shared_ptr<const std::string> executable = {};
    Slot slot = {};              // none until the first lookup
    std::uint64_t cgroup = 0;    // id of the cgroup in the row of the slot; 0: none
    std::uint64_t ended = 0;     // time of the thread's end or next identity, in ns; 0: none
    std::uint64_t replaced = 0;  // time from which the tid has another identity, in ns; 0: never
  };
  struct Thread {
    Identity now;                // the current identity, or the last one if ended
    std::vector<Identity> past;  // oldest first
    std::uint64_t loaded = 0;    // ns; time of the last load from /proc
  };

  // A cached result of FindInTable: the slot of the thread's current identity, which is valid for
  // times from `from` on. The result is removed when the identity changes.
  struct Recent {
    std::uint32_t pid = 0;
    std::uint32_t tid = 0;
    std::uint64_t cgroup = 0;
    Slot slot = {};
    std::uint64_t from = 0;
  };
  // Number of cached results. Tids of running threads are often close to each other, and then have
  // different entries.
  static constexpr std::size_t kRecent = 1024;

  Recent& RecentOf(std::uint32_t tid) { return recent_[tid % kRecent]; }
  void ForgetRecent(std::uint32_t tid) { RecentOf(tid).slot = Slot(); }
  Slot FindInTable(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
                   std::uint64_t cgroup);
  void Replace(Thread* thread, Identity identity, std::uint64_t timestamp);
  static Identity* AtTime(Thread* thread, std::uint64_t timestamp);
  // Returns the latest identity that had ended by `timestamp`; null if there is none.
  static Identity* LastEnded(Thread* thread, std::uint64_t timestamp);
  // Returns a slot of `identity` whose row states `cgroup`. `identity` belongs to the thread `tid`.
  // Takes a new slot if the identity has none, or if the row of its slot states another cgroup.
  Slot SlotOf(Identity* identity, std::uint32_t tid, std::uint64_t cgroup);
  void Describe(const Identity& identity, nettrace::ThreadInfo* info);
  // Returns the current identity of the thread `tid`; an empty one if it is not known.
  const Identity& Now(std::uint32_t tid) const;
  // Returns the current name of the thread `tid`; "" if it is not known.
  std::string_view NameOf(std::uint32_t tid) const { return Now(tid).name; }
  // Returns the executable in a description; null if thread rows do not contain executables, or if
  // the description has no path.
  std::shared_ptr<const std::string> ExecutableOf(
      const ProcessTracker::Description& description) const;
  // Sets the executable of a thread, and releases its slot, so that later events get a new row.
  // Does nothing if `executable` is null or the thread is not known.
  void SetExecutable(std::uint32_t tid, std::shared_ptr<const std::string> executable);
  void Created(const TaskRecord& task, std::uint64_t timestamp);
  void Named(const CommRecord& comm, std::uint64_t timestamp);
  void Ended(const TaskRecord& task, std::uint64_t timestamp);
  // Sets the identity of the thread from `timestamp` on, if it differs from the current one. If
  // `identity` has no executable and the process is still the same, keeps the current executable.
  Thread* Set(std::uint32_t tid, Identity identity, std::uint64_t timestamp);
  void MarkEnded(std::uint32_t tid, std::uint64_t timestamp);
  // Adds a process and its threads from /proc. Also adds the tid of each thread that has not ended
  // to `alive`.
  void LoadProcess(std::uint32_t pid, std::uint64_t timestamp,
                   absl::flat_hash_set<std::uint32_t>* alive);

  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by tid
  ProcessTracker processes_;
  std::unique_ptr<CodeTracker> code_;  // null: code is not tracked
  bool code_is_loaded_ = false;        // whether code_ has read /proc
  std::array<Recent, kRecent> recent_;
  std::size_t past_identities_ = 0;  // past identities of all threads
  SlotAllocator slots_;
  std::vector<nettrace::ThreadInfo> infos_;  // by slot index
  std::optional<CgroupTable> cgroups_;       // no value: rows have no executable and no cgroup
  bool any_ended_ = false;
  bool lost_records_ = false;    // whether records were lost since CatchUp last read all of /proc
  std::uint64_t next_load_ = 0;  // earliest time at which CatchUp reads all of /proc again, in ns
  // Tids that Find has added since the last CatchUp, because no record had announced them.
  std::vector<std::uint32_t> unannounced_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_TASK_TRACKER_H_
