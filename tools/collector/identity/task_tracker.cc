#include "tools/collector/identity/task_tracker.h"

#include <dirent.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace collector {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Calls `each` with every entry of `path` that is a number.
template <typename Each>
void ForEachNumber(const std::string& path, Each each) {
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir(path.c_str()));
  if (directory == nullptr) return;                         // the process is gone
  while (const dirent* entry = readdir(directory.get())) {  // NOLINT(concurrency-mt-unsafe)
    const std::string_view name = entry->d_name;
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) each(number);
  }
}

std::string ReadName(std::uint32_t pid, std::uint32_t tid) {
  std::string name;
  std::ifstream file(absl::StrCat("/proc/", pid, "/task/", tid, "/comm"));
  std::getline(file, name);
  return name;
}

std::uint32_t LoadU32(const RingRecord& record, std::size_t offset) {
  std::uint32_t value;
  std::memcpy(&value, record.bytes.data() + offset, sizeof value);
  return value;
}

// What perf says for a task that has given up its ids already.
constexpr std::uint32_t kExited = 0xFFFFFFFF;
constexpr std::size_t kTaskRecordSize = 32;  // header, pid, ppid, tid, ptid, time
constexpr std::size_t kCommName = 16;        // header, pid, tid
constexpr std::size_t kTrailer = 16;         // pid, tid, time of sample_id_all

}  // namespace

void ThreadTable::LoadFromProc() {
  ForEachNumber("/proc", [this](std::uint32_t pid) {
    ForEachNumber(absl::StrCat("/proc/", pid, "/task"), [this, pid](std::uint32_t tid) {
      const auto [thread, added] = threads_.try_emplace(tid);
      if (!added) return;
      thread->second.now = {pid, ReadName(pid, tid)};
    });
  });
}

void ThreadTable::Replace(Thread* thread, Identity identity, std::uint64_t timestamp) {
  if (thread->past.size() == kMaxPast) thread->past.erase(thread->past.begin());
  thread->past.push_back(std::move(thread->now));
  thread->past.back().ended = timestamp;
  thread->now = std::move(identity);
}

ThreadTable::Identity* ThreadTable::AtTime(Thread* thread, std::uint64_t timestamp) {
  for (Identity& past : thread->past) {
    if (timestamp < past.ended) return &past;
  }
  return &thread->now;
}

void ThreadTable::Apply(const RingRecord& record) {
  switch (record.type()) {
    case PERF_RECORD_FORK: {
      if (record.bytes.size() < kTaskRecordSize) return;
      Identity identity{LoadU32(record, 8), ""};
      if (const auto parent = threads_.find(LoadU32(record, 20)); parent != threads_.end()) {
        identity.name = parent->second.now.name;
      }
      const auto [thread, added] = threads_.try_emplace(LoadU32(record, 16));
      if (added) {
        thread->second.now = std::move(identity);
      } else {
        Replace(&thread->second, std::move(identity), record.timestamp);
        any_ended_ = true;
      }
      break;
    }
    case PERF_RECORD_COMM: {
      if (record.bytes.size() < kCommName + kTrailer) return;
      const char* name = reinterpret_cast<const char*>(record.bytes.data()) + kCommName;
      Identity identity{LoadU32(record, 8),
                        {name, strnlen(name, record.bytes.size() - kCommName - kTrailer)}};
      const auto [thread, added] = threads_.try_emplace(LoadU32(record, 12));
      if (added) {
        thread->second.now = std::move(identity);
      } else if (thread->second.now.name != identity.name ||
                 thread->second.now.pid != identity.pid) {
        Replace(&thread->second, std::move(identity), record.timestamp);
        any_ended_ = true;
      }
      break;
    }
    case PERF_RECORD_EXIT: {
      if (record.bytes.size() < kTaskRecordSize) return;
      const auto thread = threads_.find(LoadU32(record, 16));
      if (thread == threads_.end()) return;
      thread->second.now.ended = record.timestamp;
      any_ended_ = true;
      break;
    }
    default:
      break;
  }
}

absl::StatusOr<nettrace::ThreadIndex> ThreadTable::Row(std::uint32_t pid, std::uint32_t tid,
                                                       std::uint64_t timestamp,
                                                       nettrace::Writer* writer) {
  const auto [entry, added] = threads_.try_emplace(tid);
  Identity& thread = *AtTime(&entry->second, timestamp);
  if (added || thread.pid != pid) {
    // Its creation was lost, or it is one of the threads that /proc does not show.
    thread.pid = pid;
    thread.name = tid == 0 ? "swapper" : tid == kExited ? "(exited)" : ReadName(pid, tid);
    thread.row = nettrace::kNoThread;
    if (&thread == &entry->second.now) thread.ended = 0;
  }
  if (thread.row == nettrace::kNoThread) {
    nettrace::ThreadInfo info;
    if (!thread.name.empty()) info.name = thread.name;
    if (tid != kExited) {
      info.process_id = pid;
      info.thread_id = tid;
    }
    absl::StatusOr<nettrace::ThreadIndex> index = writer->AddThread(info);
    if (!index.ok()) return index.status();
    thread.row = *index;
    ++rows_;
  }
  return thread.row;
}

void ThreadTable::DropEnded(std::uint64_t timestamp) {
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

void ThreadTable::ForgetRows() {
  for (auto& [tid, thread] : threads_) {
    thread.now.row = nettrace::kNoThread;
    for (Identity& past : thread.past) past.row = nettrace::kNoThread;
  }
  rows_ = 0;
}

}  // namespace collector
