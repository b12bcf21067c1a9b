// Reads a trace of the Fuchsia trace format into a V6 file.
//
// An event's category is its provider. Its arguments are its fields, after which comes what its
// type has beside them:
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
// The type is a key of the metadata row (kKeyType). In what nettrace export has written, arguments
// that stand for what an event has beside its fields are that again, and lost events are losses.
//
// The records may be in any order of time. Memory: a record, the tables of strings and threads, and
// what TraceOutput takes.
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

inline constexpr char kKeyType[] = "Fuchsia.Type";  // "async begin"
// So many names of processes, and of threads, are remembered. Beyond it all are forgotten.
inline constexpr std::size_t kMaxNames = 1 << 16;

class FxtImporter {
 public:
  // Called now and then; an error of it ends Run.
  using Check = std::function<absl::Status()>;

  explicit FxtImporter(std::unique_ptr<FxtReader> reader, Check check = nullptr)
      : check_(std::move(check)), reader_(std::move(reader)) {}

  // Errors are those of the sink and of `check`; for damage see damages().
  absl::Status Run(std::unique_ptr<nettrace::Sink> sink);

  // What was wrong with records, with their offsets; the first kMaxDamages of them.
  static constexpr std::size_t kMaxDamages = 20;
  const std::vector<absl::Status>& damages() const { return damages_; }
  std::uint64_t damage_count() const { return damage_count_; }
  // Records that no V6 file has a place for, and how often one of a provider's buffers was full.
  std::uint64_t skipped() const { return skipped_; }
  std::uint64_t buffers_full() const { return buffers_full_; }
  // After Run.
  const TraceOutput& output() const { return *output_; }

 private:
  using Ids = std::pair<std::uint64_t, std::uint64_t>;  // of process and thread

  // An event of the file that is being put together.
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
  // Whether an argument is no field of an event of nettrace export.
  bool TakeOurs(const Argument& argument, Row* row);
  void PutField(const Argument& argument, Row* row);
  void PutType(const Event& event, Row* row);
  void PutNumber(std::string_view name, std::uint64_t number, Row* row);
  absl::Status Write(const Row& row, const Thread& thread, std::uint64_t timestamp);
  nettrace::ThreadInfo ThreadInfoOf(const Thread& thread) const;
  // In the ticks of the file that is written.
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
