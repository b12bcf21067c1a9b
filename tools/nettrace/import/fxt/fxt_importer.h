// Converts a trace of the Fuchsia trace format to a V6 file.
//
// An event's category becomes its provider. Its arguments become its fields. The type of the event
// adds a field or an opcode:
//
//   instant                   nothing
//   counter                   counter.id
//   duration begin, end       opcode start, stop
//   duration complete         duration.end, in ticks
//   async begin, end          opcode start, stop; async.id
//   async instant             async.id
//   flow begin, step, end     flow.id
//   context switch record     the event Fuchsia/ContextSwitch
//   log record                the event Fuchsia/Log
//
// The key kKeyType of the metadata row holds the type of an event record. Events of a trace that
// `nettrace export` has written are converted back. Arguments that represent properties of an event
// become these properties again, and events that report losses become lost events again.
//
// The records may be in any order of time. Memory holds a record, the tables of strings and
// threads, and the data of TraceOutput.
#ifndef TOOLS_NETTRACE_IMPORT_FXT_FXT_IMPORTER_H_
#define TOOLS_NETTRACE_IMPORT_FXT_FXT_IMPORTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"
#include "tools/nettrace/import/fxt/fxt_reader.h"
#include "tools/nettrace/import/trace_output.h"

namespace tools::importing::fxt {

inline constexpr char kKeyType[] = "Fuchsia.Type";  // for example, "async begin"
// Maximum number of entries of process_names_, and of thread_names_. A table with this number of
// entries is cleared before a further name is added.
inline constexpr std::size_t kMaxNames = 1 << 16;

class FxtImporter {
 public:
  // Called repeatedly while records are read. If the function returns an error, Run returns that
  // error.
  using Check = std::function<absl::Status()>;

  explicit FxtImporter(std::unique_ptr<FxtReader> reader, Check check = nullptr)
      : check_(std::move(check)), reader_(std::move(reader)) {}

  // Writes the trace to `sink`. Returns the errors of the sink and of `check`; damage is reported
  // by damages().
  absl::Status Run(std::unique_ptr<nettrace::Sink> sink);

  // The first kMaxDamages errors in records, with their offsets.
  static constexpr std::size_t kMaxDamages = 20;
  const std::vector<absl::Status>& damages() const { return damages_; }
  std::uint64_t damage_count() const { return damage_count_; }
  // Number of records that a V6 file cannot represent, and number of times that a provider's buffer
  // was full.
  std::uint64_t skipped() const { return skipped_; }
  std::uint64_t buffers_full() const { return buffers_full_; }
  // Must be called only after Run has succeeded.
  const TraceOutput& output() const { return *output_; }

 private:
  using Ids = std::pair<std::uint64_t, std::uint64_t>;  // process and thread

  // An event of the output file that is being assembled.
  struct Row {
    nettrace::EventMetadata metadata;
    nettrace::Labels labels;
    std::uint32_t processor = nettrace::kNoProcessor;
  };

  absl::Status Step(FxtReader::Step step);
  absl::Status OnEvent();
  absl::Status OnContextSwitch();
  absl::Status OnLog();
  void OnKernelObject();
  absl::Status OnLoss();
  // Stores an argument in `row` if `nettrace export` wrote it for a property of the event, such as
  // its level. `is_stop` means that the event ends a slice, so its name and provider may be
  // arguments. Returns false if the argument is a field.
  bool TakeOurs(const Argument& argument, bool is_stop, Row* row);
  void PutField(const Argument& argument, Row* row);
  void PutType(const Event& event, Row* row);
  void PutNumber(std::string_view name, std::uint64_t number, Row* row);
  absl::Status Write(const Row& row, const Thread& thread, std::uint64_t timestamp);
  nettrace::ThreadInfo ThreadInfoOf(const Thread& thread) const;
  // Converts a timestamp to ticks of the output file. Later times than TraceEvent supports become
  // the latest supported time.
  std::uint64_t TicksOf(std::uint64_t timestamp) const;
  absl::Status CreateOutput();

  const Check check_;
  std::unique_ptr<FxtReader> reader_;
  std::unique_ptr<nettrace::Sink> sink_;
  std::unique_ptr<TraceOutput> output_;
  std::uint64_t ticks_per_second_ = 0;
  absl::flat_hash_map<std::uint64_t, std::string> process_names_;
  absl::flat_hash_map<Ids, std::string> thread_names_;
  nettrace::internal::ByteWriter payload_;
  std::vector<absl::Status> damages_;
  std::uint64_t damage_count_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t buffers_full_ = 0;
};

}  // namespace tools::importing::fxt

#endif  // TOOLS_NETTRACE_IMPORT_FXT_FXT_IMPORTER_H_
