// The layouts of perf's records, and the bounds-checked parsing of each. No other file of the
// engine knows an offset in a record.
//
// All events of a session have the sample type kSampleType and sample_id_all, so that every layout
// is fixed. Numbers are in the machine's byte order:
//   SAMPLE         header, u32 pid, u32 tid, u64 time, u64 period, u32 raw size, raw bytes, and
//                  u64 cgroup id where the session has that (PERF_SAMPLE_CGROUP)
//   FORK, EXIT     header, u32 pid, u32 parent's pid, u32 tid, u32 parent's tid, u64 time, trailer
//   COMM           header, u32 pid, u32 tid, NUL-terminated name, trailer
//   MMAP           header, u32 pid, u32 tid, u64 address, u64 size, u64 offset in the file,
//                  NUL-terminated path, trailer
//   CGROUP         header, u64 id, NUL-terminated path, trailer
//   LOST           header, u64 event id, u64 number lost, trailer
// where the trailer, the end of every record but a sample, is u32 pid, u32 tid, u64 time.
#ifndef TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_
#define TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace collector {

// The period, which nobody needs, makes the kernel write one sample a hit: without it, a hit of a
// tracepoint that counts something else, such as the nanoseconds of sched_stat_runtime, makes a
// sample for each of those, until it is throttled.
inline constexpr std::uint64_t kSampleType =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
// The pid and tid that perf gives for a task that has already given up its ids.
inline constexpr std::uint32_t kExitedTask = 0xFFFFFFFF;

namespace internal {

inline constexpr std::size_t kHeaderSize = sizeof(perf_event_header);
inline constexpr std::size_t kTrailerSize = 16;
inline constexpr std::size_t kSampleFixedSize = kHeaderSize + 28;

template <typename T>
T Load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace internal

// The header that the first 8 of `bytes` are.
inline perf_event_header LoadHeader(std::span<const std::byte> bytes) {
  return internal::Load<perf_event_header>(bytes, 0);
}

// A whole record, contiguous in memory that its giver owns.
struct PerfRecord {
  std::uint64_t timestamp = 0;       // session clock, ns
  std::span<const std::byte> bytes;  // with its header

  std::uint32_t type() const { return LoadHeader(bytes).type; }
};

// Where the timestamp of a record of `type` is that has `size` bytes.
inline std::size_t TimestampOffset(std::uint32_t type, std::size_t size) {
  return type == PERF_RECORD_SAMPLE ? internal::kHeaderSize + 8 : size - 8;
}

// The least size of a record of `type` with a timestamp.
inline std::size_t MinSize(std::uint32_t type) {
  return type == PERF_RECORD_SAMPLE ? internal::kSampleFixedSize
                                    : internal::kHeaderSize + internal::kTrailerSize;
}

// Reads the timestamp of a record with a whole header; false if the record is too short for one.
inline bool ParseTimestamp(std::span<const std::byte> bytes, std::uint64_t* timestamp) {
  const std::uint32_t type = LoadHeader(bytes).type;
  if (bytes.size() < MinSize(type)) return false;
  *timestamp = internal::Load<std::uint64_t>(bytes, TimestampOffset(type, bytes.size()));
  return true;
}

// The functions below return false if the record is of another type or cut short. Views are into
// the record.

struct SampleRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::span<const std::byte> raw;  // the tracepoint's record, common fields first
  std::uint64_t cgroup = 0;        // its id; 0: not said
};
inline bool ParseSample(const PerfRecord& record, SampleRecord* sample) {
  const std::span<const std::byte> bytes = record.bytes;
  if (record.type() != PERF_RECORD_SAMPLE || bytes.size() < internal::kSampleFixedSize) {
    return false;
  }
  const auto raw_size = internal::Load<std::uint32_t>(bytes, internal::kSampleFixedSize - 4);
  if (raw_size > bytes.size() - internal::kSampleFixedSize) return false;
  sample->pid = internal::Load<std::uint32_t>(bytes, internal::kHeaderSize);
  sample->tid = internal::Load<std::uint32_t>(bytes, internal::kHeaderSize + 4);
  sample->raw = bytes.subspan(internal::kSampleFixedSize, raw_size);
  const std::size_t end = internal::kSampleFixedSize + raw_size;
  sample->cgroup =
      bytes.size() - end >= sizeof sample->cgroup ? internal::Load<std::uint64_t>(bytes, end) : 0;
  return true;
}

// The id of the tracepoint that wrote `raw`, which the kernel puts first; false if that is too
// short.
inline bool ParseTracepointId(std::span<const std::byte> raw, std::uint16_t* id) {
  if (raw.size() < sizeof *id) return false;
  *id = internal::Load<std::uint16_t>(raw, 0);
  return true;
}

// The creation (FORK) or the end (EXIT) of a thread.
struct TaskRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t parent_tid = 0;
};
bool ParseFork(const PerfRecord& record, TaskRecord* task);
bool ParseExit(const PerfRecord& record, TaskRecord* task);

// A thread's new name.
struct CommRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::string_view name;
  bool executes = false;  // it has it because it runs another program
};
bool ParseComm(const PerfRecord& record, CommRecord* comm);

// A process has mapped a file as code. Other mappings are left out: false for those without a file,
// and for those of a thread other than the main one, which is what loads a program.
struct CodeRecord {
  std::uint32_t pid = 0;
  std::string_view path;
};
bool ParseCode(const PerfRecord& record, CodeRecord* code);

// A cgroup has been made.
struct CgroupRecord {
  std::uint64_t id = 0;
  std::string_view path;
};
bool ParseCgroup(const PerfRecord& record, CgroupRecord* cgroup);

// `*lost`: the number of records that the ring had no space for before this one.
bool ParseLost(const PerfRecord& record, std::uint64_t* lost);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_
