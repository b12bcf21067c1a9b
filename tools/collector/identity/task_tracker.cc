#include "tools/collector/identity/task_tracker.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "tools/collector/identity/cgroup_path.h"
#include "tools/collector/identity/proc_files.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/trace/thread_keys.h"

namespace collector {
namespace {

constexpr std::string_view kIdleName = "swapper";

}  // namespace

void TaskTracker::LoadFromProc(std::uint64_t timestamp) {
  // Process 0 is the idle task of each CPU, which /proc does not show.
  processes_.Exists(0, {.name = std::string(kIdleName)}, timestamp, timestamp);
  absl::flat_hash_set<std::uint32_t> alive;
  for (const std::uint32_t pid : ProcPids()) LoadProcess(pid, timestamp, &alive);
  for (const std::uint32_t tid : processes_.EndAllBut(alive, timestamp)) {
    MarkEnded(tid, timestamp);
    if (code_ != nullptr && !processes_.IsKnown(tid)) code_->Ended(tid, timestamp);
  }
  // The first load uses the time 0, because the code that exists when the capture begins was mapped
  // earlier.
  if (code_ != nullptr) code_->LoadFromProc(std::exchange(code_is_loaded_, true) ? timestamp : 0);
}

void TaskTracker::LoadProcess(std::uint32_t pid, std::uint64_t timestamp,
                              absl::flat_hash_set<std::uint32_t>* alive) {
  std::vector<std::pair<std::uint32_t, ProcThread>> threads;
  std::string main_thread;
  bool any_alive = false;
  for (const std::uint32_t tid : ProcTids(pid)) {
    std::optional<ProcThread> thread = ReadProcThread(pid, tid);
    if (!thread) continue;
    if (tid == pid) main_thread = thread->name;
    any_alive = any_alive || !thread->ended;
    threads.emplace_back(tid, *std::move(thread));
  }
  if (!any_alive) return;
  ProcessTracker::Description description = ProcessTracker::ReadProc(pid, main_thread);
  const std::shared_ptr<const std::string> executable = ExecutableOf(description);
  const std::uint64_t loaded = SessionClockNow();
  processes_.Exists(pid, std::move(description), timestamp, loaded);
  for (auto& [tid, thread] : threads) {
    // Keeps a main thread that has ended, because it represents the process while other threads are
    // alive.
    if (thread.ended && tid != pid) continue;
    Set(tid, {pid, std::move(thread.name), executable}, timestamp)->loaded = loaded;
    if (thread.ended) continue;
    processes_.AddThread(pid, tid);
    alive->insert(tid);
  }
}

void TaskTracker::Replace(Thread* thread, Identity identity, std::uint64_t timestamp) {
  const std::size_t kept = past_identities_ < kMaxPastOfAll ? kMaxPast : 1;
  while (thread->past.size() >= kept) {
    slots_.Release(&thread->past.front().slot);
    thread->past.erase(thread->past.begin());
    --past_identities_;
  }
  thread->past.push_back(std::move(thread->now));
  ++past_identities_;
  Identity& past = thread->past.back();
  past.replaced = timestamp;
  if (past.ended == 0) past.ended = timestamp;
  thread->now = std::move(identity);
}

TaskTracker::Identity* TaskTracker::AtTime(Thread* thread, std::uint64_t timestamp) {
  for (Identity& past : thread->past) {
    if (timestamp < past.replaced) return &past;
  }
  return &thread->now;
}

TaskTracker::Identity* TaskTracker::LastEnded(Thread* thread, std::uint64_t timestamp) {
  const auto has_ended = [timestamp](const Identity& identity) {
    return identity.ended != 0 && identity.ended <= timestamp;
  };
  if (has_ended(thread->now)) return &thread->now;
  const auto last = std::find_if(thread->past.rbegin(), thread->past.rend(), has_ended);
  return last == thread->past.rend() ? nullptr : &*last;
}

bool TaskTracker::HasEnded(std::uint32_t tid, std::uint64_t timestamp) const {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) return false;
  const Thread& thread = found->second;
  const auto past =
      std::find_if(thread.past.begin(), thread.past.end(),
                   [timestamp](const Identity& each) { return timestamp < each.replaced; });
  const Identity& identity = past == thread.past.end() ? thread.now : *past;
  return identity.ended != 0 && identity.ended <= timestamp;
}

const TaskTracker::Identity& TaskTracker::Now(std::uint32_t tid) const {
  static const Identity kUnknown = {};
  const auto thread = threads_.find(tid);
  return thread == threads_.end() ? kUnknown : thread->second.now;
}

std::shared_ptr<const std::string> TaskTracker::ExecutableOf(
    const ProcessTracker::Description& description) const {
  if (!cgroups_ || !description.has_path) return nullptr;
  return std::make_shared<const std::string>(description.name);
}

void TaskTracker::SetExecutable(std::uint32_t tid, std::shared_ptr<const std::string> executable) {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end() || executable == nullptr) return;
  thread->second.now.executable = std::move(executable);
  slots_.Release(&thread->second.now.slot);
  ForgetRecent(tid);
}

TaskTracker::Thread* TaskTracker::Set(std::uint32_t tid, Identity identity,
                                      std::uint64_t timestamp) {
  const auto [entry, added] = threads_.try_emplace(tid);
  Thread* thread = &entry->second;
  if (added) {
    thread->now = std::move(identity);
    return thread;
  }
  const Identity& now = thread->now;
  const bool is_same = now.ended == 0 && now.pid == identity.pid;
  if (is_same && identity.executable == nullptr) identity.executable = now.executable;
  const auto text = [](const Identity& each) {
    return each.executable == nullptr ? std::string_view() : std::string_view(*each.executable);
  };
  const bool runs_same = now.executable == identity.executable || text(now) == text(identity);
  if (!is_same || !runs_same || now.name != identity.name) {
    Replace(thread, std::move(identity), timestamp);
    ForgetRecent(tid);
    any_ended_ = true;
  }
  return thread;
}

void TaskTracker::MarkEnded(std::uint32_t tid, std::uint64_t timestamp) {
  const auto thread = threads_.find(tid);
  if (thread == threads_.end() || thread->second.now.ended != 0) return;
  thread->second.now.ended = timestamp;
  any_ended_ = true;
}

void TaskTracker::Apply(const PerfRecord& record) {
  TaskRecord task;
  CommRecord comm;
  MappingRecord mapping;
  CodeRecord code;
  CgroupRecord cgroup;
  std::uint64_t lost = 0;
  if (ParseFork(record, &task)) {
    Created(task, record.timestamp);
  } else if (ParseComm(record, &comm)) {
    Named(comm, record.timestamp);
  } else if (ParseMapping(record, &mapping)) {
    if (code_ != nullptr) code_->Maps(mapping, record.timestamp);
    if (!ParseCode(record, &code)) return;
    if (processes_.MapsCode(code.pid, code.path) && cgroups_) {
      SetExecutable(code.pid, std::make_shared<const std::string>(WithoutDeleted(code.path)));
    }
  } else if (ParseExit(record, &task)) {
    Ended(task, record.timestamp);
  } else if (ParseLost(record, &lost)) {
    lost_records_ = true;
  } else if (cgroups_ && ParseCgroup(record, &cgroup)) {
    cgroups_->Add(cgroup.id, cgroup.path);
  }
}

void TaskTracker::Created(const TaskRecord& task, std::uint64_t timestamp) {
  if (code_ != nullptr && task.pid != task.parent_pid) {
    code_->Created(task.pid, task.parent_pid, timestamp);
  }
  const Identity& parent = Now(task.parent_tid);
  Identity identity = {task.pid, parent.name, parent.executable};
  const auto known = threads_.find(task.tid);
  if (known != threads_.end() && known->second.now.ended == 0) {
    const Thread& thread = known->second;
    const bool shown_since = thread.now.pid == task.pid && timestamp < thread.loaded;
    if (shown_since) identity = {task.pid, thread.now.name, thread.now.executable};
    // If /proc was last read before this creation, the known thread is an earlier thread with this
    // tid, and the record of its end was lost.
    if (!shown_since) processes_.EndThread(thread.now.pid, task.tid, timestamp);
  }
  if (task.tid == task.pid) processes_.Created(task.pid, task.parent_pid, identity.name, timestamp);
  processes_.AddThread(task.pid, task.tid);
  Set(task.tid, std::move(identity), timestamp);
}

void TaskTracker::Named(const CommRecord& comm, std::uint64_t timestamp) {
  if (comm.executes) {
    if (code_ != nullptr) code_->Executes(comm.pid, timestamp);
    for (const std::uint32_t tid : processes_.Executes(comm.pid, comm.name, timestamp)) {
      MarkEnded(tid, timestamp);
    }
  } else if (comm.tid == comm.pid) {
    processes_.Renamed(comm.pid, comm.name, timestamp);
  }
  std::shared_ptr<const std::string> executable = Now(comm.pid).executable;
  // Clears the executable, so that the thread gets a new identity even if its name is the same. An
  // MMAP record with the path of the new program follows.
  if (comm.executes && cgroups_) executable = std::make_shared<const std::string>();
  Set(comm.tid, {comm.pid, std::string(comm.name), std::move(executable)}, timestamp);
}

void TaskTracker::Ended(const TaskRecord& task, std::uint64_t timestamp) {
  const bool was_last = processes_.EndThread(task.pid, task.tid, timestamp);
  // A main thread that ends before other threads keeps its tid, and represents the process until
  // they have ended.
  if (task.tid != task.pid || was_last || !processes_.IsKnown(task.pid)) {
    MarkEnded(task.tid, timestamp);
  }
  if (!was_last) return;
  MarkEnded(task.pid, timestamp);
  if (code_ != nullptr) code_->Ended(task.pid, timestamp);
}

void TaskTracker::CatchUp(std::uint64_t timestamp) {
  if (lost_records_ && timestamp >= next_load_) {
    lost_records_ = false;
    const std::uint64_t begin = SessionClockNow();
    LoadFromProc(timestamp);
    next_load_ = timestamp + 10 * (SessionClockNow() - begin);
  }
  for (const std::uint32_t tid : std::exchange(unannounced_, {})) {
    const auto found = threads_.find(tid);
    if (found == threads_.end()) continue;
    Identity& now = found->second.now;
    std::optional<ProcThread> thread = ReadProcThread(now.pid, tid);
    if (!thread) continue;
    // Sets the correct name, and releases the slot, so that later events get a row with this name.
    if (thread->name != now.name) {
      now.name = std::move(thread->name);
      slots_.Release(&now.slot);
      ForgetRecent(tid);
    }
    if (thread->ended) continue;
    found->second.loaded = timestamp;
    if (!processes_.IsKnown(now.pid)) {
      const std::uint32_t pid = now.pid;
      ProcessTracker::Description description = ProcessTracker::ReadProc(pid, NameOf(pid));
      SetExecutable(tid, ExecutableOf(description));
      processes_.Exists(pid, std::move(description), timestamp, timestamp);
    }
    processes_.AddThread(now.pid, tid);
  }
}

Slot TaskTracker::FindInTable(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp,
                              std::uint64_t cgroup) {
  const auto [entry, added] = threads_.try_emplace(tid);
  Identity* thread = AtTime(&entry->second, timestamp);
  if (added || thread->pid != pid) {
    if (!added && thread == &entry->second.now) processes_.EndThread(thread->pid, tid, timestamp);
    // Sets the identity of a thread that is not known: the record of its creation was lost, or
    // /proc does not show it.
    thread->pid = pid;
    thread->executable = tid == pid ? nullptr : Now(pid).executable;
    if (tid == 0) {
      thread->name = kIdleName;
    } else if (tid == kExitedTask) {
      thread->name = "(exited)";
    } else {
      thread->name = tid == pid ? "" : NameOf(pid);
      unannounced_.push_back(tid);
    }
    slots_.Release(&thread->slot);
    if (thread == &entry->second.now) thread->ended = 0;
  }
  const Slot slot = SlotOf(thread, tid, cgroup);
  if (thread == &entry->second.now) {
    Recent recent = {pid, tid, cgroup, slot};
    for (const Identity& past : entry->second.past)
      recent.from = std::max(recent.from, past.replaced);
    RecentOf(tid) = recent;
  }
  return slot;
}

Slot TaskTracker::FindExited(std::uint32_t pid, std::optional<std::uint32_t> tid,
                             std::uint64_t timestamp, std::uint64_t cgroup) {
  if (const auto known = tid ? threads_.find(*tid) : threads_.end(); known != threads_.end()) {
    if (Identity* identity = LastEnded(&known->second, timestamp)) {
      return SlotOf(identity, *tid, cgroup);
    }
  }
  return Find(pid, kExitedTask, timestamp, cgroup);
}

Slot TaskTracker::SlotOf(Identity* identity, std::uint32_t tid, std::uint64_t cgroup) {
  // Only the slot of the last cgroup is kept. When a thread moves to another cgroup, its samples
  // seldom alternate between the old and the new one.
  if (identity->cgroup != cgroup) slots_.Release(&identity->slot);
  identity->cgroup = cgroup;
  if (!identity->slot.valid()) {
    identity->slot = slots_.Take();
    if (identity->slot.index() >= infos_.size()) infos_.resize(identity->slot.index() + 1);
    nettrace::ThreadInfo& info = infos_[identity->slot.index()];
    info = {};
    if (!identity->name.empty()) info.name = identity->name;
    if (tid != kExitedTask) {
      info.process_id = identity->pid;
      info.thread_id = tid;
    }
    if (cgroups_) Describe(*identity, &info);
  }
  return identity->slot;
}

void TaskTracker::Describe(const Identity& identity, nettrace::ThreadInfo* info) {
  const auto add = [info](const char* key, std::string_view value) {
    if (!value.empty()) info->key_values.emplace_back(key, value);
  };
  if (identity.executable != nullptr) add(trace::kExecutableKey, *identity.executable);
  if (identity.cgroup == kNoCgroup) return;
  const std::string_view path = cgroups_->Find(identity.cgroup);
  const CgroupNames names = ParseCgroupPath(path);
  add(trace::kCgroupKey, path);
  add(trace::kUnitKey, names.unit);
  add(trace::kUserUnitKey, names.user_unit);
  add(trace::kContainerKey, names.container);
}

namespace {

// Returns the tid, in the pid namespace of the collector, of the thread of `pid` whose tid in its
// own pid namespace is `claimed`. Returns `claimed` if the process is not in another namespace, or
// if no such thread is found.
std::uint32_t FindClaimedTid(std::uint32_t pid, std::uint32_t claimed) {
  if (ReadProcNamespacePid(pid) == pid) return claimed;
  // Maximum number of threads that are searched. A limit is needed because the process chooses how
  // many threads it has, and how often this function is called.
  constexpr std::size_t kMaxThreads = 256;
  const std::vector<std::uint32_t> tids = ProcTids(pid);
  for (std::size_t i = 0; i < std::min(tids.size(), kMaxThreads); ++i) {
    if (ReadProcNamespacePid(tids[i]) == claimed) return tids[i];
  }
  return claimed;
}

}  // namespace

Slot TaskTracker::AddClaimed(std::uint32_t pid, std::uint32_t tid, const char* transport) {
  tid = FindClaimedTid(pid, tid);
  return AddRow(pid, tid, FindName(pid, tid), transport);
}

Slot TaskTracker::AddReported(std::uint32_t pid, const std::string& name, const char* transport) {
  return AddRow(pid, pid, name.empty() ? FindName(pid, pid) : name, transport);
}

std::string TaskTracker::FindName(std::uint32_t pid, std::uint32_t tid) const {
  if (std::optional<ProcThread> thread = ReadProcThread(pid, tid)) return std::move(thread->name);
  std::string name(NameOf(pid));
  if (const auto ended = threads_.find(tid); ended != threads_.end()) {
    // The thread has ended. Uses the name of an identity only if it is of this process, because
    // another process may have had the tid earlier, or have it now.
    for (const Identity& past : ended->second.past) {
      if (past.pid == pid) name = past.name;
    }
    if (ended->second.now.pid == pid) name = ended->second.now.name;
  }
  return name;
}

Slot TaskTracker::AddRow(std::uint32_t pid, std::uint32_t tid, std::string name,
                         const char* transport) {
  const Slot slot = slots_.Take();
  if (slot.index() >= infos_.size()) infos_.resize(slot.index() + 1);
  nettrace::ThreadInfo info;
  info.process_id = pid;
  info.thread_id = tid;
  if (!name.empty()) info.name = std::move(name);
  info.key_values.emplace_back(trace::kTransportKey, transport);
  if (cgroups_) {
    Describe({pid, "", Now(pid).executable}, &info);
  }
  infos_[slot.index()] = std::move(info);
  return slot;
}

void TaskTracker::Announce(std::uint32_t pid, std::uint64_t timestamp) {
  if (processes_.IsKnown(pid)) return;
  absl::flat_hash_set<std::uint32_t> alive;
  LoadProcess(pid, timestamp, &alive);
}

void TaskTracker::DropEnded(std::uint64_t timestamp) {
  if (code_ != nullptr) code_->DropEnded(timestamp);
  if (!any_ended_) return;
  any_ended_ = false;
  absl::erase_if(threads_, [this, timestamp](auto& entry) {
    Thread& thread = entry.second;
    std::erase_if(thread.past, [this, timestamp](Identity& past) {
      const bool is_over = past.replaced <= timestamp;
      if (!is_over) return false;
      slots_.Release(&past.slot);
      --past_identities_;
      return true;
    });
    const std::uint64_t ended = thread.now.ended;
    if (ended > timestamp || !thread.past.empty()) any_ended_ = true;
    const bool is_gone = ended != 0 && ended <= timestamp;
    if (!is_gone) return false;
    ForgetRecent(entry.first);
    slots_.Release(&thread.now.slot);
    for (Identity& past : thread.past) slots_.Release(&past.slot);
    past_identities_ -= thread.past.size();
    return true;
  });
}

}  // namespace collector
