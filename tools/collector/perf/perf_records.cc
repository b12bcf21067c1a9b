#include "tools/collector/perf/perf_records.h"

namespace collector {
namespace {

using internal::kHeaderSize;
using internal::kTrailerSize;
using internal::Load;

bool ParseTask(const PerfRecord& record, std::uint32_t type, TaskRecord* task) {
  if (record.type() != type || record.bytes.size() < kHeaderSize + 24) return false;
  task->pid = Load<std::uint32_t>(record.bytes, kHeaderSize);
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
  const char* name = reinterpret_cast<const char*>(record.bytes.data()) + kNameOffset;
  comm->name = {name, strnlen(name, record.bytes.size() - kNameOffset - kTrailerSize)};
  return true;
}

bool ParseLost(const PerfRecord& record, std::uint64_t* lost) {
  if (record.type() != PERF_RECORD_LOST || record.bytes.size() < kHeaderSize + 16) return false;
  *lost = Load<std::uint64_t>(record.bytes, kHeaderSize + 8);
  return true;
}

}  // namespace collector
