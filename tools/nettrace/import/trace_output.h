// Writes the V6 file of an import.
//
// A metadata row or thread row is written before the first event that needs it. After a sequence
// point, readers forget all rows, so that their memory stays bounded; a row is written again when
// an event needs it. An event that V6 cannot represent counts as lost.
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
  std::string_view row_key;  // identifies the metadata row; equal for all events of one row
  absl::FunctionRef<nettrace::EventMetadata()> make_row;  // called if the row is not written yet
  const nettrace::ThreadInfo* thread = nullptr;           // the thread that the event belongs to
  const nettrace::ThreadInfo* capture = nullptr;          // the thread that numbers the event
  std::uint32_t processor = nettrace::kNoProcessor;
  std::uint64_t timestamp = 0;  // ticks
  const nettrace::Labels* labels = nullptr;
  std::span<const std::uint64_t> stack;  // addresses, from the innermost function outwards
  std::span<const std::byte> payload;
};

enum class EventOrder : std::uint8_t {
  kByTime,  // no event is earlier than the previous event
  kAny,     // readers sort the whole file, which is one interval
};

class TraceOutput {
 public:
  static absl::StatusOr<std::unique_ptr<TraceOutput>> Create(std::unique_ptr<nettrace::Sink> sink,
                                                             const nettrace::TraceInfo& info,
                                                             EventOrder order);

  // Writes an event, or counts it as lost if V6 cannot represent it. Fails if the sink fails.
  absl::Status Write(const ImportedEvent& event);
  // Records that `count` events are missing after the last event of `capture`. If V6 does not allow
  // so large a gap, adds `count` to lost_beyond() instead.
  absl::Status AddLost(const nettrace::ThreadInfo& capture, std::uint64_t count);
  // Counts an event of `capture` as lost, because it cannot be written for the reason `why`.
  absl::Status Refuse(const nettrace::ThreadInfo& capture, std::string_view why);
  // Writes an event of Universal.System at `timestamp` that names the process, as recordings do.
  // Does nothing if the last call of NameProcess or NoteProcess for this process had this name.
  absl::Status NameProcess(std::uint64_t pid, std::string_view name, std::uint64_t timestamp);
  // Records that an event of the input names the process, so that NameProcess writes no further
  // event with this name.
  void NoteProcess(std::uint64_t pid, std::string_view name);
  absl::Status Finish();

  // Number of events of the input that were written.
  std::uint64_t events() const { return events_; }
  std::uint64_t lost() const { return lost_; }
  // Number of lost events that the file does not show, because NetTrace V6 limits the gap between
  // two sequence numbers; lost() does not include them.
  std::uint64_t lost_beyond() const { return lost_beyond_; }
  std::uint64_t bytes() const { return writer_->stats().bytes; }
  // Number of events that were left out because NetTrace V6 cannot represent them, and the reason
  // for the first of them.
  std::uint64_t not_kept() const { return not_kept_; }
  const std::string& why_not_kept() const { return why_not_kept_; }

 private:
  struct Thread {
    nettrace::ThreadIndex index;
    std::uint64_t last_timestamp = 0;  // time of the last event that the thread numbered, in ticks
  };

  TraceOutput(std::unique_ptr<nettrace::Writer> writer, EventOrder order)
      : writer_(std::move(writer)), order_(order) {}

  absl::Status TryWrite(const ImportedEvent& event);
  absl::StatusOr<nettrace::MetadataId> RowOf(const ImportedEvent& event);
  absl::StatusOr<Thread*> ThreadOf(const nettrace::ThreadInfo& info);
  absl::StatusOr<Thread*> CaptureThreadOf(const nettrace::ThreadInfo& info,
                                          std::uint64_t timestamp);
  // Writes a sequence point, which frees space for rows of all kinds, and returns true. Writes none
  // and returns false if the order is kAny, or if no event is later than the last sequence point.
  absl::StatusOr<bool> EndInterval();

  std::unique_ptr<nettrace::Writer> writer_;
  const EventOrder order_;
  absl::flat_hash_map<std::string, nettrace::MetadataId> rows_;
  absl::flat_hash_map<std::string, Thread> threads_;
  absl::flat_hash_map<std::uint64_t, std::string> process_names_;
  std::string key_;  // key in threads_ of the thread that ThreadOf has returned last
  std::uint64_t last_timestamp_ = 0;  // latest time of an event, in ticks
  std::uint64_t last_point_ = 0;      // time of the last sequence point, in ticks
  std::uint64_t events_since_point_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t lost_beyond_ = 0;
  std::uint64_t not_kept_ = 0;
  std::string why_not_kept_;
};

}  // namespace tools::importing

#endif  // TOOLS_NETTRACE_IMPORT_TRACE_OUTPUT_H_
