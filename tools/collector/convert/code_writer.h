// Describes the code at the addresses of stacks, as events of the provider Universal.System:
// ProcessMapping (event id 3), ProcessSymbol (4) and ProcessMappingMetadata (5). TraceEvent and
// `nettrace dump` take the names of frames from these events.
//
// A mapping is written only if a stack of the trace contains one of its addresses. It is written at
// the end of the stack's interval. Its event has the time at which the mapping began, or the start
// of the interval if that is later, so readers sort it before the event with the stack. Functions
// are written only for addresses of the kernel; `nettrace symbolize` adds those of user space. Each
// section describes the code of all its stacks.
#ifndef TOOLS_COLLECTOR_CONVERT_CODE_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_CODE_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/converted_event.h"
#include "tools/collector/identity/code_tracker.h"

namespace collector {

// Writes the description of code for one trace. Not thread-safe.
class CodeWriter {
 public:
  // `writer` and `code` must outlive this object. Events are written with times no earlier than
  // `start`.
  CodeWriter(nettrace::Writer* writer, CodeTracker* code, std::uint64_t start);
  // Not copyable, because the encoder of each Row refers to the Row's fields.
  CodeWriter(const CodeWriter&) = delete;
  CodeWriter& operator=(const CodeWriter&) = delete;

  // Notes the mappings and kernel functions at the addresses of `stack`, so that EndInterval()
  // writes them. `timestamp` is the event's time, `id` the id of the stack in the trace, and
  // `thread` the row of a thread of the process.
  void Use(const EventStack& stack, nettrace::StackId id, std::uint64_t timestamp,
           nettrace::ThreadIndex thread);
  // Writes events for the mappings and functions that Use() has noted. Must be called before the
  // trace writes a sequence point at `timestamp`.
  absl::Status EndInterval(std::uint64_t timestamp);
  // Forgets the row of the capture thread. Must be called when the trace's thread rows have been
  // flushed.
  void ForgetThreads() { capture_thread_ = nettrace::kNoThread; }
  // Forgets the metadata rows of these events. Must be called when the trace's metadata rows have
  // been flushed.
  void ForgetMetadata() {
    for (Row& row : rows_) row.id = nettrace::kNoMetadata;
  }
  // Forgets which mappings and functions have been written. Must be called when a section begins,
  // because each section must describe its code.
  void ForgetCode();

  // Number of events written so far.
  std::uint64_t written() const { return written_; }

 private:
  // Maximum number of mappings, of functions, and of build ids that are remembered as written. If
  // one of them is exceeded, EndInterval() forgets all, and later stacks write them again.
  static constexpr std::size_t kMaxRemembered = std::size_t{1} << 18;

  enum RowKind : std::uint8_t { kMapping, kSymbol, kMetadata };
  struct Row {
    Row(std::uint32_t event, const char* title, std::vector<nettrace::Field> its_fields)
        : event_id(event), name(title), fields(std::move(its_fields)), payload(&fields) {}
    std::uint32_t event_id;
    const char* name;
    std::vector<nettrace::Field> fields;
    nettrace::PayloadEncoder payload;
    nettrace::MetadataId id = nettrace::kNoMetadata;  // none until needed
  };
  // A mapping or function that EndInterval() will write.
  struct Waiting {
    std::uint64_t timestamp = 0;
    nettrace::ThreadIndex thread = nettrace::kNoThread;
    CodeMapping mapping;        // for a function: its addresses and the id of its mapping
    std::string_view function;  // empty: this is a mapping
  };
  // A stack of a process whose code Use() has noted. For events at times from `from` to before
  // `until`, in ns, the stack need not be noted again while CountChanges() of the process returns
  // `changes`.
  struct Noted {
    std::uint64_t changes = 0;
    std::uint64_t from = 0;
    std::uint64_t until = 0;
  };
  // Identifies a mapping: pid, time at which the process started its program, and id of the
  // mapping.
  using MappingKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

  void UseKernel(std::uint64_t address, std::uint64_t program_from, std::uint32_t pid,
                 nettrace::ThreadIndex thread);
  void UseMapping(const CodeMapping& mapping, std::uint64_t program_from, std::uint32_t pid,
                  nettrace::ThreadIndex thread);
  absl::Status Write(RowKind kind, std::uint64_t timestamp, nettrace::ThreadIndex thread,
                     std::span<const std::byte> payload);
  absl::Status WriteMapping(const Waiting& waiting);
  absl::Status WriteFunction(const Waiting& waiting);
  // Writes the build id of the mapping's file, once for each file. If the build id is not known,
  // writes an event without it for each mapping. Returns the id in the written event, which the
  // event of the mapping must contain; 0 if nothing was written, because the memory has neither a
  // build id nor a file.
  absl::StatusOr<std::uint64_t> WriteMetadata(const Waiting& waiting);

  nettrace::Writer* writer_;
  CodeTracker* code_;
  std::vector<Row> rows_;  // by RowKind
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  std::vector<Waiting> waiting_;
  // Stacks that have been noted in this interval, by pid and stack id.
  absl::flat_hash_map<std::pair<std::uint32_t, nettrace::StackId>, Noted> noted_;
  absl::flat_hash_set<MappingKey> mappings_;  // written or waiting, in this section
  // Ids of the mappings that stand for the kernel, by pid and time at which the process started its
  // program.
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> kernels_;
  // Functions of the kernel that have been written or are in waiting_. The key is the id of the
  // kernel's mapping, and the function's first address.
  absl::flat_hash_set<std::pair<std::uint64_t, std::uint64_t>> functions_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::uint64_t> metadata_;
  std::uint64_t interval_start_;
  std::uint64_t written_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_CODE_WRITER_H_
