#include "tools/collector/perf/perf_records.h"

#include "tools/collector/perf/user_registers.h"

#ifndef PERF_RECORD_MISC_MMAP_BUILD_ID
#define PERF_RECORD_MISC_MMAP_BUILD_ID (1 << 14)  // since Linux 5.12; older headers lack it
#endif

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

// Parses the end of a sample with a stack, which follows the raw data or the copy of the stack.
// `is_empty` states whether the raw data are 4 bytes that are 0. If it is false, the sample is of a
// tracepoint, and cannot be of a thread that is switched out.
bool ParseEnd(std::span<const std::byte> rest, bool is_empty, SampleRecord* sample) {
  sample->kind = SampleRecord::Kind::kEvent;
  sample->cgroup = 0;
  if (is_empty && rest.size() >= 8 && Load<std::uint64_t>(rest, 0) == 0) {
    sample->kind = SampleRecord::Kind::kSwitchOut;
    rest = rest.subspan(8);
  }
  if (rest.empty()) return true;
  if (rest.size() != sizeof sample->cgroup) return false;
  sample->cgroup = Load<std::uint64_t>(rest, 0);
  return sample->cgroup != 0;
}

// Parses the registers and the copy of the stack at the start of `*rest`, and removes them. An
// empty copy has an ABI of 0 and a size of 0. A sample without a copy has at most one u64 of 0
// there (ParseEnd), so it is not mistaken for a sample with an empty copy.
bool ParseCopy(std::span<const std::byte>* rest, SampleStack* stack) {
  constexpr std::size_t kRegistersSize = 8 * kUserRegisters.size();
  if (rest->size() < 16) return false;
  const auto abi = Load<std::uint64_t>(*rest, 0);
  *rest = rest->subspan(8);
  if (abi > PERF_SAMPLE_REGS_ABI_64) return false;
  UserCopy copy;
  if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
    if (rest->size() < kRegistersSize + 8) return false;
    copy.registers = rest->first(kRegistersSize);
    *rest = rest->subspan(kRegistersSize);
  }
  const auto size = Load<std::uint64_t>(*rest, 0);
  *rest = rest->subspan(8);
  if (size != 0) {
    if (size > rest->size() || rest->size() - size < 8 || size % 8 != 0) return false;
    const auto room = static_cast<std::size_t>(size);
    const auto copied = Load<std::uint64_t>(*rest, room);
    if (copied > size) return false;
    copy.stack = rest->first(static_cast<std::size_t>(copied));
    *rest = rest->subspan(room + 8);
  }
  copy.has_64_bits = abi == PERF_SAMPLE_REGS_ABI_64;
  stack->copy = copy;
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

bool ParseStackSample(std::span<const std::byte> bytes, SampleRecord* sample) {
  constexpr std::size_t kCountOffset = kHeaderSize + 32;
  constexpr std::size_t kEntriesOffset = kCountOffset + 8;
  constexpr std::size_t kRawSize = 4;  // bytes of the size of the raw data
  if (bytes.size() < kEntriesOffset + kRawSize) return false;
  const auto count = Load<std::uint64_t>(bytes, kCountOffset);
  if (count > (bytes.size() - kEntriesOffset - kRawSize) / 8) return false;
  const std::size_t entries_size = static_cast<std::size_t>(count) * 8;
  // A stack that has entries begins with the mark of the kernel's or the user's part. Otherwise,
  // the bytes are not a stack.
  constexpr auto kLowestMark = static_cast<std::uint64_t>(PERF_CONTEXT_MAX);
  if (count != 0 && Load<std::uint64_t>(bytes, kEntriesOffset) < kLowestMark) return false;
  const std::size_t raw_offset = kEntriesOffset + entries_size + kRawSize;
  const auto raw_size = Load<std::uint32_t>(bytes, raw_offset - kRawSize);
  if (raw_size > bytes.size() - raw_offset) return false;
  const bool is_empty = raw_size == 4 && Load<std::uint32_t>(bytes, raw_offset) == 0;
  std::span<const std::byte> rest = bytes.subspan(raw_offset + raw_size);
  SampleRecord parsed;
  SampleStack& stack = parsed.stack.emplace();
  if (!ParseEnd(rest, is_empty, &parsed) &&
      (!ParseCopy(&rest, &stack) || !ParseEnd(rest, is_empty, &parsed))) {
    return false;
  }
  parsed.pid = Load<std::uint32_t>(bytes, kHeaderSize);
  parsed.tid = Load<std::uint32_t>(bytes, kHeaderSize + 4);
  parsed.raw = bytes.subspan(raw_offset, raw_size);
  stack.entries = bytes.subspan(kEntriesOffset, entries_size);
  *sample = parsed;
  return true;
}

bool ParseSwitchIn(const PerfRecord& record, SampleRecord* sample) {
  const std::uint32_t type = record.type();
  if (type != PERF_RECORD_SWITCH && type != PERF_RECORD_SWITCH_CPU_WIDE) return false;
  if (record.bytes.size() < kHeaderSize + kTrailerSize) return false;
  if ((LoadHeader(record.bytes).misc & PERF_RECORD_MISC_SWITCH_OUT) != 0) return false;
  const std::size_t trailer = record.bytes.size() - kTrailerSize;
  *sample = {};
  sample->kind = SampleRecord::Kind::kSwitchIn;
  sample->pid = Load<std::uint32_t>(record.bytes, trailer);
  sample->tid = Load<std::uint32_t>(record.bytes, trailer + 4);
  return true;
}

bool ParseDeferredStack(const PerfRecord& record, DeferredStackRecord* stack) {
  constexpr std::size_t kCountOffset = kHeaderSize + 8;
  constexpr std::size_t kEntriesOffset = kCountOffset + 8;
  const std::span<const std::byte> bytes = record.bytes;
  if (record.type() != kDeferredStackType || bytes.size() < kEntriesOffset + kTrailerSize) {
    return false;
  }
  const auto count = Load<std::uint64_t>(bytes, kCountOffset);
  const std::size_t trailer = bytes.size() - kTrailerSize;
  if (count > (trailer - kEntriesOffset) / 8) return false;
  stack->tid = Load<std::uint32_t>(bytes, trailer + 4);
  stack->cookie = Load<std::uint64_t>(bytes, kHeaderSize);
  stack->entries = bytes.subspan(kEntriesOffset, static_cast<std::size_t>(count) * 8);
  return true;
}

bool ParseMapping(const PerfRecord& record, MappingRecord* mapping) {
  constexpr std::size_t kFileOffset = kHeaderSize + 32;
  constexpr std::size_t kFileSize = 32;  // bytes of the file's identity, protection and flags
  const bool has_file = record.type() == PERF_RECORD_MMAP2;
  if (!has_file && record.type() != PERF_RECORD_MMAP) return false;
  const std::size_t path_offset = kFileOffset + (has_file ? kFileSize : 0);
  if (record.bytes.size() < path_offset + kTrailerSize) return false;
  mapping->pid = Load<std::uint32_t>(record.bytes, kHeaderSize);
  mapping->tid = Load<std::uint32_t>(record.bytes, kHeaderSize + 4);
  mapping->address = Load<std::uint64_t>(record.bytes, kHeaderSize + 8);
  mapping->size = Load<std::uint64_t>(record.bytes, kHeaderSize + 16);
  mapping->offset = Load<std::uint64_t>(record.bytes, kHeaderSize + 24);
  mapping->path = TextAt(record, path_offset);
  mapping->build_id = {};
  if (has_file && (LoadHeader(record.bytes).misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    constexpr std::size_t kMaxBuildId = 20;
    const std::size_t size = Load<std::uint8_t>(record.bytes, kFileOffset);
    mapping->build_id = record.bytes.subspan(kFileOffset + 4, size <= kMaxBuildId ? size : 0);
  }
  return true;
}

bool ParseCode(const PerfRecord& record, CodeRecord* code) {
  MappingRecord mapping;
  if (!ParseMapping(record, &mapping)) return false;
  code->pid = mapping.pid;
  code->path = mapping.path;
  // Memory without a file has names like "//anon" and "[vdso]".
  const bool is_file = code->path.starts_with('/') && !code->path.starts_with("//");
  return is_file && mapping.tid == code->pid;
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
