// The layouts of perf records, and their parsing with bounds checks. No other file of the collector
// depends on offsets in a record.
//
// Events with the attributes of open_event.h have sample_id_all and the sample type kSampleType, to
// which PERF_SAMPLE_CGROUP is added if the capture records cgroups. Every layout is therefore
// fixed. Numbers are in the machine's byte order:
//   SAMPLE         header, u32 pid, u32 tid, u64 time, u64 period, u32 raw size, raw bytes, and
//                  u64 cgroup id if the capture records cgroups (PERF_SAMPLE_CGROUP)
//   SAMPLE with a stack: header, u32 pid, u32 tid, u64 time, u64 address, which is 0, u64 period,
//                  u64 number of entries, u64 entries of the stack; from raw size on like SAMPLE
//   SAMPLE of CPU time: as a sample with a stack; the raw data are 4 bytes that are 0
//   SAMPLE of a thread that is switched out: as a sample of CPU time; u64 0 follows the raw data
//   SAMPLE with a copy of the stack: as a sample with a stack, of CPU time or of a thread that is
//                  switched out; after the raw data, it has u64 ABI; unless that is 0, a u64 for
//                  each of kUserRegisters (user_registers.h); u64 size; and unless that is 0, the
//                  bytes of the stack, and u64 number of bytes that were copied
//   FORK, EXIT     header, u32 pid, u32 parent's pid, u32 tid, u32 parent's tid, u64 time, trailer
//   COMM           header, u32 pid, u32 tid, NUL-terminated name, trailer
//   MMAP           header, u32 pid, u32 tid, u64 address, u64 size, u64 offset in the file,
//                  NUL-terminated path, trailer
//   MMAP2          MMAP up to the offset; then either u32 major, u32 minor, u64 inode and u64
//                  generation, or u8 size of the build id, 3 reserved bytes and 20 bytes of build
//                  id; then u32 protection, u32 flags, NUL-terminated path, trailer
//   CGROUP         header, u64 id, NUL-terminated path, trailer
//   LOST           header, u64 event id, u64 number lost, trailer
//   SWITCH         header, trailer; a switch out if the header has PERF_RECORD_MISC_SWITCH_OUT
//   SWITCH_CPU_WIDE  header, u32 pid and u32 tid of the other thread, trailer
//   THROTTLE       header, u64 time, u64 event id, u64 stream id, trailer
//   CALLCHAIN_DEFERRED  header, u64 cookie, u64 number of entries, u64 entries of the stack,
//                  trailer
// The trailer at the end of every record except a sample is u32 pid, u32 tid, u64 time.
#ifndef TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_
#define TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace collector {

// Fields of every sample. The collector does not read the period, but with it the kernel writes one
// sample for each hit. Without it, a tracepoint that counts another quantity than hits writes one
// sample for each unit until the kernel throttles it: sched_stat_runtime counts nanoseconds.
inline constexpr std::uint64_t kSampleType =
    PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
// Fields of a sample with a stack. It has an address, which is 0, at the offset at which a sample
// without a stack has its period. By this 0, ParseSample detects a sample with a stack. It also
// checks the form of the stack, because a period can be 0 if the tracepoint counts another quantity
// than hits.
inline constexpr std::uint64_t kStackSampleType =
    kSampleType | PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN;
// Fields of a sample of a thread that is switched out. The transaction, which is 0, distinguishes
// the sample from a sample of CPU time. A sample of CPU time has nothing in this place, or the id
// of a cgroup, which is never 0.
inline constexpr std::uint64_t kSwitchSampleType = kStackSampleType | PERF_SAMPLE_TRANSACTION;
// Ids of the samples of CPU time and of switches, in place of the id of a tracepoint. The raw data
// of both is a 0, so ParseTracepointId returns kCpuTimeId for both. Tracepoints that can be
// recorded have higher ids.
inline constexpr int kCpuTimeId = 0;
inline constexpr int kSwitchesId = 1;
inline constexpr bool IsTracepointId(int id) { return id > kSwitchesId; }
// Mark in a stack, since Linux 6.19; older headers lack it. After the mark, the last entry of the
// stack is the cookie of the record that has the user part.
inline constexpr auto kDeferredMark = static_cast<std::uint64_t>(-640);
// Type of the record that has the deferred user part of a stack. Newer headers define it as
// PERF_RECORD_CALLCHAIN_DEFERRED.
inline constexpr std::uint32_t kDeferredStackType = 22;
// Pid and tid that perf reports for a task whose ids have already been released.
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

// Returns the header of a record, which is in the first 8 bytes of `bytes`.
inline perf_event_header LoadHeader(std::span<const std::byte> bytes) {
  return internal::Load<perf_event_header>(bytes, 0);
}

// A complete record. Its bytes are contiguous in memory that the source of the record owns.
struct PerfRecord {
  std::uint64_t timestamp = 0;       // session clock, ns
  std::span<const std::byte> bytes;  // including the header

  std::uint32_t type() const { return LoadHeader(bytes).type; }
};

// Returns the offset of the timestamp in a record of `type` with `size` bytes.
inline std::size_t TimestampOffset(std::uint32_t type, std::size_t size) {
  return type == PERF_RECORD_SAMPLE ? internal::kHeaderSize + 8 : size - 8;
}

// Returns the minimum size of a record of `type` with a timestamp, in bytes.
inline std::size_t MinSize(std::uint32_t type) {
  return type == PERF_RECORD_SAMPLE ? internal::kSampleFixedSize
                                    : internal::kHeaderSize + internal::kTrailerSize;
}

// Reads the timestamp of a record with a complete header. Returns false if the record is too short
// to contain it.
inline bool ParseTimestamp(std::span<const std::byte> bytes, std::uint64_t* timestamp) {
  const std::uint32_t type = LoadHeader(bytes).type;
  if (bytes.size() < MinSize(type)) return false;
  *timestamp = internal::Load<std::uint64_t>(bytes, TimestampOffset(type, bytes.size()));
  return true;
}

// The functions below return false if the record is of another type or truncated. Views refer to
// the record.

// The registers and the stack of user space. Both are empty for threads of the kernel.
struct UserCopy {
  std::span<const std::byte> registers;  // in the order of kUserRegisters, each a u64
  std::span<const std::byte> stack;      // the bytes from the stack pointer on
  bool has_64_bits = false;              // whether the thread executes 64-bit code
};

// The stack of a sample.
struct SampleStack {
  // Entries, each a u64: PERF_CONTEXT_KERNEL or PERF_CONTEXT_USER, then the addresses of that part,
  // innermost frame first. May be empty. May end with kDeferredMark and a cookie, which
  // DeferredStacks::Join replaces.
  std::span<const std::byte> entries;
  bool lacks_user_frames = false;  // the user part was deferred and has not arrived
  // Whether StackUnwinder has not reached the thread's outermost frame, so that `entries` may lack
  // frames. Not set for a stack that the kernel has cut at the maximum number of frames.
  bool is_cut = false;
  // Registers and a copy of the user stack, which replace the user part of `entries`; no value if
  // the sample has no copy.
  std::optional<UserCopy> copy;
};

struct SampleRecord {
  enum class Kind : std::uint8_t {
    kEvent,      // sample of a tracepoint, or of CPU time
    kSwitchOut,  // the thread is switched out
    kSwitchIn,   // the thread has been switched in; it has no raw data and no stack
  };
  Kind kind = Kind::kEvent;
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::span<const std::byte> raw;    // record of the tracepoint, common fields first
  std::uint64_t cgroup = 0;          // id of the thread's cgroup; 0: not reported
  std::optional<SampleStack> stack;  // no value if the sample has no stack
};
// ParseSample parses a sample with or without a stack. ParseStackSample parses the bytes of a
// sample with a stack, and returns false if the sample has none. Both set every member of `*sample`
// or none, so that a caller can use one SampleRecord for many records.
bool ParseStackSample(std::span<const std::byte> bytes, SampleRecord* sample);
inline bool ParseSample(const PerfRecord& record, SampleRecord* sample) {
  const std::span<const std::byte> bytes = record.bytes;
  if (record.type() != PERF_RECORD_SAMPLE || bytes.size() < internal::kSampleFixedSize) {
    return false;
  }
  if (internal::Load<std::uint64_t>(bytes, internal::kHeaderSize + 16) == 0) [[unlikely]] {
    if (ParseStackSample(bytes, sample)) return true;
  }
  const auto raw_size = internal::Load<std::uint32_t>(bytes, internal::kSampleFixedSize - 4);
  if (raw_size > bytes.size() - internal::kSampleFixedSize) return false;
  sample->kind = SampleRecord::Kind::kEvent;
  sample->pid = internal::Load<std::uint32_t>(bytes, internal::kHeaderSize);
  sample->tid = internal::Load<std::uint32_t>(bytes, internal::kHeaderSize + 4);
  sample->raw = bytes.subspan(internal::kSampleFixedSize, raw_size);
  sample->stack.reset();
  const std::size_t end = internal::kSampleFixedSize + raw_size;
  sample->cgroup =
      bytes.size() - end >= sizeof sample->cgroup ? internal::Load<std::uint64_t>(bytes, end) : 0;
  return true;
}

// Parses a SWITCH record of a thread that has been switched in. Returns false for a record of a
// thread that is switched out, because a sample reports that.
bool ParseSwitchIn(const PerfRecord& record, SampleRecord* sample);

// A record with the user part of stacks of a thread.
struct DeferredStackRecord {
  std::uint32_t tid = 0;
  std::uint64_t cookie = 0;
  std::span<const std::byte> entries;  // each a u64: an address, or a mark
};
bool ParseDeferredStack(const PerfRecord& record, DeferredStackRecord* stack);

// Reads the id of the tracepoint from the start of `raw`. Returns false if `raw` is too short.
inline bool ParseTracepointId(std::span<const std::byte> raw, std::uint16_t* id) {
  if (raw.size() < sizeof *id) return false;
  *id = internal::Load<std::uint16_t>(raw, 0);
  return true;
}

// A record of the creation (FORK) or the end (EXIT) of a thread.
struct TaskRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint32_t parent_pid = 0;
  std::uint32_t parent_tid = 0;
};
bool ParseFork(const PerfRecord& record, TaskRecord* task);
bool ParseExit(const PerfRecord& record, TaskRecord* task);

// A record of a thread's new name.
struct CommRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::string_view name;
  bool executes = false;  // the name changed because the thread executed another program
};
bool ParseComm(const PerfRecord& record, CommRecord* comm);

// A record that a process has mapped memory as code (MMAP or MMAP2).
struct MappingRecord {
  std::uint32_t pid = 0;
  std::uint32_t tid = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;    // bytes
  std::uint64_t offset = 0;  // position of the mapping in the file, in bytes
  // Path of the file in the mount namespace of the process, or a name such as "//anon" or "[vdso]".
  std::string_view path;
  std::span<const std::byte> build_id;  // empty: not reported
};
bool ParseMapping(const PerfRecord& record, MappingRecord* mapping);

// A record that a process has mapped a file as code. ParseCode returns false for mappings without a
// file, and for those of threads other than the main thread, which loads the program.
struct CodeRecord {
  std::uint32_t pid = 0;
  std::string_view path;
};
bool ParseCode(const PerfRecord& record, CodeRecord* code);

// A record that a cgroup has been created. ParseCgroup returns false if the kernel could not
// determine the path.
struct CgroupRecord {
  std::uint64_t id = 0;
  std::string_view path;
};
bool ParseCgroup(const PerfRecord& record, CgroupRecord* cgroup);

// Sets `*lost` to the number of records that the ring had no space for before this record.
bool ParseLost(const PerfRecord& record, std::uint64_t* lost);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_RECORDS_H_
