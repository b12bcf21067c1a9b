// Describes the code at the addresses of stacks, as events of the provider Universal.System:
// 3 ProcessMapping, 4 ProcessSymbol and 5 ProcessMappingMetadata. TraceEvent and `nettrace dump`
// take the names of frames from them.
//
// Only mappings that a stack of the trace has an address of are written, at the end of the interval
// of the stack. Their time is that of the mapping, or the start of the interval if that is later,
// so they come before the event with the stack. The functions of the kernel are written by name.
// Each section describes again what its stacks need.
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
  // Not copyable, because the encoders refer to the fields.
  CodeWriter(const CodeWriter&) = delete;
  CodeWriter& operator=(const CodeWriter&) = delete;

  // Notes the code of a stack of an event at `timestamp`. `id` is that of the stack in the trace,
  // and `thread` the row of a thread of the process.
  void Use(const EventStack& stack, nettrace::StackId id, std::uint64_t timestamp,
           nettrace::ThreadIndex thread);
  // Writes the code that has been noted. Must be called before a sequence point at `timestamp`.
  absl::Status EndInterval(std::uint64_t timestamp);
  // Must be called when the trace's thread rows have been flushed.
  void ForgetThreads() { capture_thread_ = nettrace::kNoThread; }
  // Must be called when the trace's metadata rows have been flushed.
  void ForgetMetadata() {
    for (Row& row : rows_) row.id = nettrace::kNoMetadata;
  }
  // Must be called when a section begins.
  void ForgetCode();

  // Number of events written so far.
  std::uint64_t written() const { return written_; }

 private:
  // Maximum number of mappings and of functions that are remembered as written. Above it, they are
  // written again.
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
  // A mapping or function that the end of the interval writes.
  struct Waiting {
    std::uint64_t timestamp = 0;
    nettrace::ThreadIndex thread = nettrace::kNoThread;
    CodeMapping mapping;        // for a function, its addresses and the id of its mapping
    std::string_view function;  // empty: this is a mapping
  };
  // The code of a stack of a process has been noted for events from one time to another, if the
  // mappings of the process have not changed since.
  struct Noted {
    std::uint64_t changes = 0;
    std::uint64_t from = 0;
    std::uint64_t until = 0;
  };
  // A mapping of a program that a process executes: pid, start of the program, id.
  using MappingKey = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;

  void UseKernel(std::uint64_t address, std::uint64_t program_from, std::uint32_t pid,
                 nettrace::ThreadIndex thread);
  void UseMapping(const CodeMapping& mapping, std::uint64_t program_from, std::uint32_t pid,
                  nettrace::ThreadIndex thread);
  absl::Status Write(RowKind kind, std::uint64_t timestamp, nettrace::ThreadIndex thread,
                     std::span<const std::byte> payload);
  absl::Status WriteMapping(const Waiting& waiting);
  absl::Status WriteFunction(const Waiting& waiting);
  // Writes the build id of the mapping's file. Returns the id of the row; 0 if there is none.
  absl::StatusOr<std::uint64_t> WriteMetadata(const Waiting& waiting);

  nettrace::Writer* writer_;
  CodeTracker* code_;
  std::vector<Row> rows_;  // by RowKind
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  std::vector<Waiting> waiting_;
  // Stacks that have been noted in this interval, by pid and id of the stack.
  absl::flat_hash_map<std::pair<std::uint32_t, nettrace::StackId>, Noted> noted_;
  absl::flat_hash_set<MappingKey> mappings_;  // written or waiting, in this section
  // Ids of the mappings of the kernel, by pid and start of the program.
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> kernels_;
  // Functions of the kernel that are written or wait: id of the mapping, first address.
  absl::flat_hash_set<std::pair<std::uint64_t, std::uint64_t>> functions_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::uint64_t> metadata_;
  std::uint64_t interval_start_;
  std::uint64_t written_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_CODE_WRITER_H_
