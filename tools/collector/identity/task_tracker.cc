#include "tools/collector/identity/task_tracker.h"

#include <dirent.h>

#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace collector {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Calls `each` with every entry of the folder `path` that is a number.
template <typename Each>
void ForEachNumber(const std::string& path, Each each) {
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (directory == nullptr) return;                         // the process is gone
  while (const dirent* entry = readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    std::uint32_t number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) each(number);
  }
}

std::string ReadName(std::uint32_t pid, std::uint32_t tid) {
  std::string name;
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", tid, "/comm"));
  std::getline(file, name);
  return name;
}

}  // namespace

void TaskTracker::LoadFromProc() {
  ForEachNumber("/proc", [this](std::uint32_t pid) {
    ForEachNumber(absl::StrCat("/proc/", pid, "/task"), [this, pid](std::uint32_t tid) {
      const auto [thread, added] = threads_.try_emplace(tid);
      if (!added) return;
      thread->second.now = {pid, ReadName(pid, tid)};
    });
  });
}

void TaskTracker::Replace(Thread* thread, Identity identity, std::uint64_t timestamp) {
  if (thread->past.size() == kMaxPast) thread->past.erase(thread->past.begin());
  thread->past.push_back(std::move(thread->now));
  thread->past.back().ended = timestamp;
  thread->now = std::move(identity);
}

TaskTracker::Identity* TaskTracker::AtTime(Thread* thread, std::uint64_t timestamp) {
  for (Identity& past : thread->past) {
    if (timestamp < past.ended) return &past;
  }
  return &thread->now;
}

std::string_view TaskTracker::NameOf(std::uint32_t tid) const {
  const auto thread = threads_.find(tid);
  return thread == threads_.end() ? std::string_view() : thread->second.now.name;
}

void TaskTracker::Apply(const PerfRecord& record) {
  TaskRecord task;
  CommRecord comm;
  std::uint64_t lost = 0;
  if (ParseFork(record, &task)) {
    Identity identity{task.pid, std::string(NameOf(task.parent_tid))};
    const auto [thread, added] = threads_.try_emplace(task.tid);
    if (added) {
      thread->second.now = std::move(identity);
    } else {
      Replace(&thread->second, std::move(identity), record.timestamp);
      any_ended_ = true;
    }
  } else if (ParseComm(record, &comm)) {
    Identity identity{comm.pid, std::string(comm.name)};
    const auto [thread, added] = threads_.try_emplace(comm.tid);
    if (added) {
      thread->second.now = std::move(identity);
    } else if (thread->second.now.name != identity.name || thread->second.now.pid != identity.pid) {
      Replace(&thread->second, std::move(identity), record.timestamp);
      any_ended_ = true;
    }
  } else if (ParseExit(record, &task)) {
    const auto thread = threads_.find(task.tid);
    if (thread == threads_.end()) return;
    thread->second.now.ended = record.timestamp;
    any_ended_ = true;
  } else if (ParseLost(record, &lost)) {
    lost_records_ = true;
  }
}

void TaskTracker::CatchUp() {
  if (std::exchange(lost_records_, false)) LoadFromProc();
  for (const std::uint32_t tid : std::exchange(unannounced_, {})) {
    const auto thread = threads_.find(tid);
    if (thread == threads_.end()) continue;
    Identity& now = thread->second.now;
    std::string name = ReadName(now.pid, tid);
    if (name.empty() || name == now.name) continue;
    // Events from here on get a row with the right name.
    now.name = std::move(name);
    now.row = nettrace::kNoThread;
  }
}

absl::StatusOr<nettrace::ThreadIndex> TaskTracker::Row(std::uint32_t pid, std::uint32_t tid,
                                                       std::uint64_t timestamp,
                                                       nettrace::Writer* writer) {
  const auto [entry, added] = threads_.try_emplace(tid);
  Identity* thread = AtTime(&entry->second, timestamp);
  if (added || thread->pid != pid) {
    // The record of its creation was lost, or it is one of the threads that /proc does not show.
    thread->pid = pid;
    if (tid == 0) {
      thread->name = "swapper";
    } else if (tid == kExitedTask) {
      thread->name = "(exited)";
    } else {
      thread->name = tid == pid ? "" : NameOf(pid);
      unannounced_.push_back(tid);
    }
    thread->row = nettrace::kNoThread;
    if (thread == &entry->second.now) thread->ended = 0;
  }
  if (thread->row == nettrace::kNoThread) {
    nettrace::ThreadInfo info;
    if (!thread->name.empty()) info.name = thread->name;
    if (tid != kExitedTask) {
      info.process_id = pid;
      info.thread_id = tid;
    }
    absl::StatusOr<nettrace::ThreadIndex> index = writer->AddThread(info);
    if (!index.ok()) return index.status();
    thread->row = *index;
    ++rows_;
  }
  return thread->row;
}

void TaskTracker::DropEnded(std::uint64_t timestamp) {
  if (!any_ended_) return;
  any_ended_ = false;
  absl::erase_if(threads_, [this, timestamp](auto& entry) {
    Thread& thread = entry.second;
    std::erase_if(thread.past,
                  [timestamp](const Identity& past) { return past.ended <= timestamp; });
    const std::uint64_t ended = thread.now.ended;
    if (ended > timestamp || !thread.past.empty()) any_ended_ = true;
    return ended != 0 && ended <= timestamp;
  });
}

void TaskTracker::ForgetRows() {
  for (auto& [tid, thread] : threads_) {
    thread.now.row = nettrace::kNoThread;
    for (Identity& past : thread.past) past.row = nettrace::kNoThread;
  }
  rows_ = 0;
}

}  // namespace collector
