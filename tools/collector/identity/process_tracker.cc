#include "tools/collector/identity/process_tracker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "tools/collector/identity/proc_files.h"

namespace collector {
namespace {

void SortByPid(std::vector<ProcessEvent>* events) {
  std::sort(events->begin(), events->end(),
            [](const ProcessEvent& a, const ProcessEvent& b) { return a.pid < b.pid; });
}

}  // namespace

ProcessTracker::Description ProcessTracker::ReadProc(std::uint32_t pid,
                                                     std::string_view main_thread) {
  Description description;
  description.name = ReadProcExecutable(pid);
  description.has_path = !description.name.empty();
  if (!description.has_path) description.name = std::string(main_thread);
  description.namespace_pid = ReadProcNamespacePid(pid);
  return description;
}

void ProcessTracker::Add(ProcessEvent::Kind kind, std::uint32_t pid, const Description& description,
                         std::uint64_t timestamp) {
  ++last_number_;
  waiting_.push_back(
      {kind, pid, description.namespace_pid, timestamp, description.name, last_number_});
}

void ProcessTracker::Begin(ProcessEvent::Kind kind, std::uint32_t pid, Process* process,
                           std::uint64_t timestamp) {
  Add(kind, pid, process->description, timestamp);
  process->beginning = last_number_;
}

ProcessEvent* ProcessTracker::WaitingBeginning(const Process& process) {
  if (process.beginning <= last_existing_) return nullptr;
  const auto found = std::lower_bound(
      waiting_.begin(), waiting_.end(), process.beginning,
      [](const ProcessEvent& event, std::uint64_t number) { return event.number < number; });
  const bool waits = found != waiting_.end() && found->number == process.beginning;
  return waits ? &*found : nullptr;
}

void ProcessTracker::SetName(std::uint32_t pid, Process* process, std::string_view name,
                             std::uint64_t timestamp) {
  if (process->description.name == name) return;
  process->description.name = std::string(name);
  if (ProcessEvent* beginning = WaitingBeginning(*process)) {
    beginning->name = process->description.name;
  } else {
    Begin(ProcessEvent::Kind::kExists, pid, process, timestamp);
  }
}

void ProcessTracker::SetProgram(std::uint32_t pid, Process* process, std::string_view name,
                                std::uint64_t timestamp) {
  if (WaitingBeginning(*process) != nullptr) return SetName(pid, process, name, timestamp);
  if (process->description.name == name) return;
  Add(ProcessEvent::Kind::kExited, pid, process->description, timestamp);
  process->description.name = std::string(name);
  Begin(ProcessEvent::Kind::kCreated, pid, process, timestamp);
}

void ProcessTracker::Exists(std::uint32_t pid, Description description, std::uint64_t timestamp,
                            std::uint64_t loaded) {
  if (first_existed_ == 0) first_existed_ = timestamp;
  const auto [entry, added] = processes_.try_emplace(pid);
  Process& process = entry->second;
  process.loaded = loaded;
  if (added) {
    process.description = std::move(description);
    Begin(ProcessEvent::Kind::kExists, pid, &process, timestamp);
  } else if (description.has_path) {
    process.description.has_path = true;
    process.executing.reset();
    SetName(pid, &process, description.name, timestamp);
  }
}

void ProcessTracker::Created(std::uint32_t pid, std::uint32_t parent, std::string_view main_thread,
                             std::uint64_t timestamp) {
  if (const auto known = processes_.find(pid); known != processes_.end()) {
    if (timestamp < known->second.loaded) {
      // /proc was read after this creation, so the process is known. Its waiting event becomes
      // kCreated, unless the process existed before the recording.
      ProcessEvent* beginning = WaitingBeginning(known->second);
      if (beginning != nullptr && timestamp >= first_existed_) {
        beginning->kind = ProcessEvent::Kind::kCreated;
        beginning->timestamp = timestamp;
      }
      return;
    }
    End(pid, timestamp);  // the record of the earlier process's end was lost
  }
  // Ignores a process that began and ended before the recording. If it had not ended, /proc would
  // have shown it.
  if (timestamp < first_existed_) return;
  Process process;
  if (const auto known = processes_.find(parent); known != processes_.end()) {
    process.description = known->second.description;
  } else {
    process.description.name = std::string(main_thread);
  }
  process.description.namespace_pid = pid;
  Begin(ProcessEvent::Kind::kCreated, pid, &process, timestamp);
  process.tids.insert(pid);
  processes_.insert_or_assign(pid, std::move(process));
}

std::vector<std::uint32_t> ProcessTracker::Executes(std::uint32_t pid, std::string_view main_thread,
                                                    std::uint64_t timestamp) {
  if (!IsKnown(pid)) Created(pid, /*parent=*/pid, main_thread, timestamp);
  std::vector<std::uint32_t> ended;
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return ended;
  Process& process = known->second;
  std::copy_if(process.tids.begin(), process.tids.end(), std::back_inserter(ended),
               [pid](std::uint32_t tid) { return tid != pid; });
  process.tids = {pid};
  process.executing = Program{std::string(main_thread), timestamp};
  if (!process.description.has_path) SetProgram(pid, &process, main_thread, timestamp);
  return ended;
}

bool ProcessTracker::MapsCode(std::uint32_t pid, std::string_view path) {
  const auto known = processes_.find(pid);
  if (known == processes_.end() || !known->second.executing) return false;
  const Program program = *std::exchange(known->second.executing, std::nullopt);
  known->second.description.has_path = true;
  SetProgram(pid, &known->second, WithoutDeleted(path), program.timestamp);
  return true;
}

void ProcessTracker::Renamed(std::uint32_t pid, std::string_view main_thread,
                             std::uint64_t timestamp) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  Process& process = known->second;
  if (process.executing) process.executing->name = std::string(main_thread);
  if (!process.description.has_path) SetName(pid, &process, main_thread, timestamp);
}

void ProcessTracker::AddThread(std::uint32_t pid, std::uint32_t tid) {
  if (const auto known = processes_.find(pid); known != processes_.end()) {
    known->second.tids.insert(tid);
  }
}

bool ProcessTracker::EndThread(std::uint32_t pid, std::uint32_t tid, std::uint64_t timestamp) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return false;
  if (known->second.tids.erase(tid) == 0 || !known->second.tids.empty()) return false;
  End(pid, timestamp);
  return true;
}

void ProcessTracker::End(std::uint32_t pid, std::uint64_t timestamp) {
  auto process = processes_.extract(pid);
  // If the path of the program is still not known, names the process after its main thread. The
  // path stays unknown if the record of its mapping was lost, or if the process has not mapped it.
  if (const std::optional<Program> program = std::move(process.mapped().executing)) {
    SetProgram(pid, &process.mapped(), program->name, program->timestamp);
  }
  Add(ProcessEvent::Kind::kExited, pid, process.mapped().description, timestamp);
}

std::vector<std::uint32_t> ProcessTracker::EndAllBut(
    const absl::flat_hash_set<std::uint32_t>& alive, std::uint64_t timestamp) {
  std::vector<std::uint32_t> ended;
  std::vector<std::uint32_t> ended_processes;
  for (auto& [pid, process] : processes_) {
    const bool had_threads = !process.tids.empty();
    absl::erase_if(process.tids, [&alive, &ended](std::uint32_t tid) {
      if (alive.contains(tid)) return false;
      ended.push_back(tid);
      return true;
    });
    if (had_threads && process.tids.empty()) ended_processes.push_back(pid);
  }
  for (const std::uint32_t pid : ended_processes) End(pid, timestamp);
  return ended;
}

std::vector<ProcessEvent> ProcessTracker::Take(std::uint64_t limit) {
  const auto rest = std::stable_partition(
      waiting_.begin(), waiting_.end(),
      [limit](const ProcessEvent& event) { return event.timestamp <= limit; });
  std::vector<ProcessEvent> taken(std::make_move_iterator(waiting_.begin()),
                                  std::make_move_iterator(rest));
  waiting_.erase(waiting_.begin(), rest);
  std::stable_sort(taken.begin(), taken.end(), [](const ProcessEvent& a, const ProcessEvent& b) {
    return a.timestamp < b.timestamp;
  });
  return taken;
}

std::vector<ProcessEvent> ProcessTracker::Alive(std::uint64_t timestamp) const {
  std::vector<ProcessEvent> alive;
  absl::flat_hash_set<std::uint32_t> waiting;  // pids
  for (const ProcessEvent& event : waiting_) {
    // If the first waiting event of a pid is kExited, the trace has received the beginning of the
    // process but not yet its end, so the process is added to the result. If the first waiting
    // event is of another kind, it describes the process, and the trace receives it later.
    if (!waiting.insert(event.pid).second || event.kind != ProcessEvent::Kind::kExited) continue;
    alive.push_back(event);
  }
  for (const auto& [pid, process] : processes_) {
    if (waiting.contains(pid)) continue;
    const Description& description = process.description;
    alive.push_back({ProcessEvent::Kind::kExists, pid, description.namespace_pid, timestamp,
                     description.name, process.beginning});
  }
  for (ProcessEvent& event : alive) {
    event.kind = ProcessEvent::Kind::kExists;
    event.timestamp = timestamp;
  }
  SortByPid(&alive);
  return alive;
}

std::vector<ProcessEvent> ProcessTracker::Existing(std::uint64_t timestamp) {
  last_existing_ = last_number_;
  std::vector<ProcessEvent> existing;
  existing.reserve(processes_.size());
  for (const auto& [pid, process] : processes_) {
    existing.push_back({ProcessEvent::Kind::kExists, pid, process.description.namespace_pid,
                        timestamp, process.description.name, last_existing_});
  }
  SortByPid(&existing);
  return existing;
}

}  // namespace collector
