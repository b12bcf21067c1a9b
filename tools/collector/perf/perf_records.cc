#include "tools/collector/perf/perf_records.h"

namespace collector {
namespace {

using internal::kHeaderSize;
using internal::kTrailerSize;
using internal::Load;

// Returns the text from `offset` to its NUL, or to the trailer.
std::string_view TextAt(const PerfRecord& record, std::size_t offset) {
  const char* text = reinterpret_cast<const char*>(record.bytes.data()) + offset;
  return {text, strnlen(text, record.bytes.size() - offset - kTrailerSize)};
}

bool ParseTask(const PerfRecord& record, std::uint32_t type, TaskRecord* task) {
  if (record.type() != type || record.bytes.size() < kHeaderSize + 24) return false;
  task->pid = Load<std::uint32_t>(record.bytes, kHeaderSize);
  task->parent_pid = Load<std::uint32_t>(record.bytes, kHeaderSize + 4);
  task->tid = Load<std::uint32_t>(record.bytes, kHeaderSize + 8);
  task->parent_tid = Load<std::uint32_t>(record.bytes, kHeaderSize + 12);
  return true;
}

}  // namespace

bool ParseFork(const PerfRecord& record, TaskRecord* task) {
  return ParseTask(record, PERF_RECORD_FORK, task);
}

bool ParseExit(const PerfRecord& record, TaskRecord* task) {
  return ParseTask(record, PERF_RECORD_EXIT, task);
}

bool ParseComm(const PerfRecord& record, CommRecord* comm) {
  constexpr std::size_t kNameOffset = kHeaderSize + 8;
  if (record.type() != PERF_RECORD_COMM || record.bytes.size() < kNameOffset + kTrailerSize) {
    return false;
  }
  comm->pid = Load<std::uint32_t>(record.bytes, kHeaderSize);
  comm->tid = Load<std::uint32_t>(record.bytes, kHeaderSize + 4);
  comm->name = TextAt(record, kNameOffset);
  comm->executes = (LoadHeader(record.bytes).misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
  return true;
}

bool ParseCode(const PerfRecord& record, CodeRecord* code) {
  constexpr std::size_t kPathOffset = kHeaderSize + 32;
  if (record.type() != PERF_RECORD_MMAP || record.bytes.size() < kPathOffset + kTrailerSize) {
    return false;
  }
  code->pid = Load<std::uint32_t>(record.bytes, kHeaderSize);
  code->path = TextAt(record, kPathOffset);
  // Memory without a file has names like "//anon" and "[vdso]".
  const bool is_file = code->path.starts_with('/') && !code->path.starts_with("//");
  return is_file && Load<std::uint32_t>(record.bytes, kHeaderSize + 4) == code->pid;
}

bool ParseCgroup(const PerfRecord& record, CgroupRecord* cgroup) {
  constexpr std::size_t kPathOffset = kHeaderSize + 8;
  if (record.type() != PERF_RECORD_CGROUP || record.bytes.size() < kPathOffset + kTrailerSize) {
    return false;
  }
  cgroup->id = Load<std::uint64_t>(record.bytes, kHeaderSize);
  cgroup->path = TextAt(record, kPathOffset);
  // The kernel writes "//" at the start of a path that it could not determine.
  return cgroup->path.starts_with('/') && !cgroup->path.starts_with("//");
}

bool ParseLost(const PerfRecord& record, std::uint64_t* lost) {
  if (record.type() != PERF_RECORD_LOST || record.bytes.size() < kHeaderSize + 16) return false;
  *lost = Load<std::uint64_t>(record.bytes, kHeaderSize + 8);
  return true;
}

}  // namespace collector
