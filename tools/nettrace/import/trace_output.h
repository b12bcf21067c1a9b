// The V6 file that an import writes.
//
// Rows are written when they are first needed, and again after a sequence point has made room for
// more. An event that no V6 file can have counts as lost.
#ifndef TOOLS_NETTRACE_IMPORT_TRACE_OUTPUT_H_
#define TOOLS_NETTRACE_IMPORT_TRACE_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/format.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"

namespace tools::importing {

struct ImportedEvent {
  std::string_view row_key;  // the same for all events of one row
  absl::FunctionRef<nettrace::EventMetadata()> make_row;
  const nettrace::ThreadInfo* thread = nullptr;   // the one it is about
  const nettrace::ThreadInfo* capture = nullptr;  // the one that numbers it
  std::uint32_t processor = nettrace::kNoProcessor;
  std::uint64_t timestamp = 0;  // ticks
  const nettrace::Labels* labels = nullptr;
  std::span<const std::uint64_t> stack;  // leaf first
  std::span<const std::byte> payload;
};

enum class EventOrder : std::uint8_t {
  kByTime,  // no event is earlier than one before it
  kAny,     // readers sort all of the file: it is one interval
};

class TraceOutput {
 public:
  static absl::StatusOr<std::unique_ptr<TraceOutput>> Create(std::unique_ptr<nettrace::Sink> sink,
                                                             const nettrace::TraceInfo& info,
                                                             EventOrder order);

  absl::Status Write(const ImportedEvent& event);
  // So many events are missing after the last one of `capture`.
  absl::Status AddLost(const nettrace::ThreadInfo& capture, std::uint64_t count);
  // An event of `capture` cannot be written, for this reason: it counts as lost.
  absl::Status Refuse(const nettrace::ThreadInfo& capture, std::string_view why);
  // The process has this name from `timestamp` on, as far as is known: an event says it as those of
  // recordings do. Nothing happens if the last name is this one, or Noted so.
  absl::Status NameProcess(std::uint64_t pid, std::string_view name, std::uint64_t timestamp);
  // An event that was written has named the process.
  void NoteProcess(std::uint64_t pid, std::string_view name);
  absl::Status Finish();

  // Events of the input that were written.
  std::uint64_t events() const { return events_; }
  std::uint64_t lost() const { return lost_; }
  // Lost events that are not in lost(), as a gap of a V6 file cannot be so large.
  std::uint64_t lost_beyond() const { return lost_beyond_; }
  std::uint64_t bytes() const { return writer_->stats().bytes; }
  // Events that no V6 file can have, and why the first of them cannot.
  std::uint64_t not_kept() const { return not_kept_; }
  const std::string& why_not_kept() const { return why_not_kept_; }

 private:
  struct Thread {
    nettrace::ThreadIndex index;
    std::uint64_t last_timestamp = 0;  // of the events that it has numbered
  };

  TraceOutput(std::unique_ptr<nettrace::Writer> writer, EventOrder order)
      : writer_(std::move(writer)), order_(order) {}

  absl::Status TryWrite(const ImportedEvent& event);
  absl::StatusOr<nettrace::MetadataId> RowOf(const ImportedEvent& event);
  absl::StatusOr<Thread*> ThreadOf(const nettrace::ThreadInfo& info);
  absl::StatusOr<Thread*> CaptureThreadOf(const nettrace::ThreadInfo& info,
                                          std::uint64_t timestamp);
  // Makes room for rows of all kinds; false if that cannot be.
  absl::StatusOr<bool> EndInterval();

  std::unique_ptr<nettrace::Writer> writer_;
  const EventOrder order_;
  absl::flat_hash_map<std::string, nettrace::MetadataId> rows_;
  absl::flat_hash_map<std::string, Thread> threads_;
  absl::flat_hash_map<std::uint64_t, std::string> process_names_;
  std::string key_;  // of a thread
  std::uint64_t last_timestamp_ = 0;
  std::uint64_t last_point_ = 0;
  std::uint64_t events_since_point_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_beyond_ = 0;
  std::uint64_t not_kept_ = 0;
  std::string why_not_kept_;
};

}  // namespace tools::importing

#endif  // TOOLS_NETTRACE_IMPORT_TRACE_OUTPUT_H_
