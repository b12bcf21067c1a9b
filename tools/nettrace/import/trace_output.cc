#include "tools/nettrace/import/trace_output.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/traceevent.h"
#include "nettrace/payload_encoder.h"
#include "tools/base/status_macros.h"

namespace tools::importing {
namespace {

// With EventOrder::kByTime, the number of events after which a sequence point is written. It limits
// the events that readers keep for sorting.
constexpr std::uint64_t kIntervalEvents = 1 << 20;
constexpr std::size_t kMaxProcesses = 1 << 16;  // entries of process_names_ at which it is cleared

// Names of events of Universal.System. The index of a name is the id by which TraceEvent recognizes
// the event.
constexpr std::string_view kProcessEvents[] = {"ExistingProcess", "ProcessCreate", "ProcessExit"};

std::optional<std::uint32_t> SystemEventId(const nettrace::EventMetadata& row) {
  if (row.provider != nettrace::internal::traceevent::kUniversalSystem) return std::nullopt;
  const auto* const found =
      std::find(std::begin(kProcessEvents), std::end(kProcessEvents), row.name);
  if (found == std::end(kProcessEvents)) return std::nullopt;
  return static_cast<std::uint32_t>(found - std::begin(kProcessEvents));
}

const std::vector<nettrace::Field>& ProcessFields() {
  static const std::vector<nettrace::Field> kFields = {
      {"NamespaceId", nettrace::Type::Simple(nettrace::TypeCode::kVarUInt)},
      nettrace::MakeField<std::string_view>("Name"),
      nettrace::MakeField<std::string_view>("NamespaceName")};
  return kFields;
}

void AppendKey(const std::optional<std::uint64_t>& id, std::string* key) {
  absl::StrAppend(key, id.has_value() ? 1 : 0, ":", id.value_or(0), ":");
}

nettrace::WriterOptions OptionsFor(EventOrder order) {
  nettrace::WriterOptions options;
  options.first_thread_index =
      nettrace::ThreadIndex{nettrace::internal::traceevent::kMinRemovableThreadIndex};
  if (order == EventOrder::kAny) {
    // Events may be in any order, so the file has no sequence points within it. Only sequence
    // points free labels, so the limits must be large enough for all labels of the file.
    options.max_labels = 1 << 20;
    options.max_label_bytes = std::size_t{256} << 20;
  }
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TraceOutput>> TraceOutput::Create(
    std::unique_ptr<nettrace::Sink> sink, const nettrace::TraceInfo& info, EventOrder order) {
  ASSIGN_OR_RETURN(auto writer, nettrace::Writer::Create(std::move(sink), info, OptionsFor(order)));
  return std::unique_ptr<TraceOutput>(new TraceOutput(std::move(writer), order));
}

absl::StatusOr<bool> TraceOutput::EndInterval() {
  if (order_ == EventOrder::kAny || last_timestamp_ <= last_point_) return false;
  const absl::Status status =
      writer_->WriteSequencePoint(last_timestamp_, nettrace::kSequencePointFlushThreads |
                                                       nettrace::kSequencePointFlushMetadata);
  if (!status.ok()) return status;
  last_point_ = last_timestamp_;
  events_since_point_ = 0;
  rows_.clear();
  threads_.clear();
  return true;
}

absl::StatusOr<nettrace::MetadataId> TraceOutput::RowOf(const ImportedEvent& event) {
  const auto known = rows_.find(absl::string_view(event.row_key.data(), event.row_key.size()));
  if (known != rows_.end()) return known->second;
  nettrace::EventMetadata row = event.make_row();
  // A missing opcode means 0: the input omits the opcode, or the format of the input has no
  // opcodes. Stores the 0 where TraceEvent would derive an opcode from the name, and for events of
  // Universal.System.
  if (!row.opcode && (nettrace::internal::traceevent::TakesOpcodeFrom(row.name) ||
                      row.provider == nettrace::internal::traceevent::kUniversalSystem)) {
    row.opcode = 0;
  }
  std::optional<std::uint32_t> id = SystemEventId(row);
  if (!id) id = writer_->ChooseEventId(row);
  if (!id) {
    return absl::ResourceExhaustedError(
        absl::StrCat("provider ", row.provider.substr(0, 64),
                     " has more kinds of events than a NetTrace file has ids for them"));
  }
  row.event_id = *id;
  absl::StatusOr<nettrace::MetadataId> added = writer_->AddMetadata(row);
  if (added.ok()) rows_.emplace(std::string(event.row_key), *added);
  return added;
}

absl::StatusOr<TraceOutput::Thread*> TraceOutput::ThreadOf(const nettrace::ThreadInfo& info) {
  key_.clear();
  AppendKey(info.process_id, &key_);
  AppendKey(info.thread_id, &key_);
  absl::StrAppend(&key_, info.name ? 1 : 0, info.name.value_or(""));
  const auto known = threads_.find(key_);
  if (known != threads_.end()) return &known->second;
  ASSIGN_OR_RETURN(const nettrace::ThreadIndex index, writer_->AddThread(info));
  return &threads_.emplace(key_, Thread{index}).first->second;
}

// Returns the capture thread for an event at `timestamp`. No event of a capture thread may be
// earlier than the previous one. If this event is earlier, removes the thread and adds it again.
absl::StatusOr<TraceOutput::Thread*> TraceOutput::CaptureThreadOf(const nettrace::ThreadInfo& info,
                                                                  std::uint64_t timestamp) {
  absl::StatusOr<Thread*> thread = ThreadOf(info);
  if (!thread.ok() || timestamp >= (*thread)->last_timestamp) return thread;
  RETURN_IF_ERROR(writer_->RemoveThread((*thread)->index));
  threads_.erase(key_);
  return ThreadOf(info);
}

absl::Status TraceOutput::TryWrite(const ImportedEvent& event) {
  ASSIGN_OR_RETURN(const nettrace::MetadataId metadata, RowOf(event));
  ASSIGN_OR_RETURN(Thread* const capture, CaptureThreadOf(*event.capture, event.timestamp));
  nettrace::EventRow row;
  row.metadata_id = metadata;
  row.capture_thread = capture->index;
  // ThreadOf may add a thread, which invalidates `capture`.
  ASSIGN_OR_RETURN(Thread* const thread, ThreadOf(*event.thread));
  row.thread = thread->index;
  ASSIGN_OR_RETURN(const nettrace::LabelListId labels, writer_->InternLabels(*event.labels));
  row.label_list_id = labels;
  ASSIGN_OR_RETURN(const nettrace::StackId stack, writer_->InternStack(event.stack));
  row.stack_id = stack;
  row.processor = event.processor;
  row.timestamp = event.timestamp;
  RETURN_IF_ERROR(writer_->WriteEvent(row, event.payload));
  const absl::StatusOr<Thread*> captured = ThreadOf(*event.capture);
  if (captured.ok()) (*captured)->last_timestamp = event.timestamp;
  return absl::OkStatus();
}

absl::Status TraceOutput::Write(const ImportedEvent& event) {
  if (events_since_point_ >= kIntervalEvents) {
    RETURN_IF_ERROR(EndInterval().status());
  }
  absl::Status status = TryWrite(event);
  if (absl::IsResourceExhausted(status)) {
    ASSIGN_OR_RETURN(const bool ended, EndInterval());
    if (ended) status = TryWrite(event);
  }
  if (status.ok()) {
    ++events_;
    ++events_since_point_;
    last_timestamp_ = std::max(last_timestamp_, event.timestamp);
    return absl::OkStatus();
  }
  if (!absl::IsInvalidArgument(status) && !absl::IsOutOfRange(status) &&
      !absl::IsResourceExhausted(status)) {
    return status;
  }
  return Refuse(*event.capture, std::string(status.message()));
}

absl::Status TraceOutput::Refuse(const nettrace::ThreadInfo& capture, std::string_view why) {
  if (not_kept_++ == 0) why_not_kept_ = std::string(why);
  return AddLost(capture, 1);
}

absl::Status TraceOutput::AddLost(const nettrace::ThreadInfo& capture, std::uint64_t count) {
  absl::StatusOr<Thread*> thread = ThreadOf(capture);
  if (absl::IsResourceExhausted(thread.status())) {
    RETURN_IF_ERROR(EndInterval().status());
    thread = ThreadOf(capture);
  }
  if (!thread.ok()) return thread.status();
  absl::Status status = writer_->AddLost((*thread)->index, count);
  if (absl::IsOutOfRange(status)) {
    // V6 limits the gap between two sequence numbers, but a counter in the input may have any
    // value.
    status = absl::OkStatus();
    lost_beyond_ += count;
    count = 0;
  }
  lost_ += count;
  return status;
}

void TraceOutput::NoteProcess(std::uint64_t pid, std::string_view name) {
  if (process_names_.size() >= kMaxProcesses) process_names_.clear();
  process_names_[pid] = std::string(name);
}

absl::Status TraceOutput::NameProcess(std::uint64_t pid, std::string_view name,
                                      std::uint64_t timestamp) {
  const auto known = process_names_.find(pid);
  if (known != process_names_.end() && known->second == name) return absl::OkStatus();
  NoteProcess(pid, name);
  constexpr std::size_t kMaxName = std::numeric_limits<std::int16_t>::max();
  nettrace::PayloadEncoder payload(&ProcessFields());
  ASSIGN_OR_RETURN(const auto bytes,
                   payload.UInt(pid).Utf8(name.substr(0, kMaxName)).Utf8("").Finish());
  const auto make_row = [] {
    nettrace::EventMetadata row;
    row.provider = std::string(nettrace::internal::traceevent::kUniversalSystem);
    row.name = std::string(kProcessEvents[0]);
    row.opcode = 0;
    row.fields = ProcessFields();
    return row;
  };
  static const nettrace::ThreadInfo* const kCapture = [] {
    auto* const info = new nettrace::ThreadInfo;
    info->name = "processes";
    return info;
  }();
  static const nettrace::Labels kNoLabels;
  nettrace::ThreadInfo thread;
  thread.process_id = pid;
  const std::uint64_t before = events_;
  absl::Status status = Write({.row_key = "process",
                               .make_row = make_row,
                               .thread = &thread,
                               .capture = kCapture,
                               .timestamp = timestamp,
                               .labels = &kNoLabels,
                               .stack = {},
                               .payload = bytes});
  events_ = before;
  return status;
}

absl::Status TraceOutput::Finish() {
  // The last sequence point holds the final sequence numbers, which include losses at the end.
  std::uint64_t end = last_timestamp_;
  if (end <= last_point_) end = last_point_ + 1;
  if (events_since_point_ > 0 || lost_ > 0) {
    RETURN_IF_ERROR(writer_->WriteSequencePoint(end));
  }
  return writer_->Finish();
}

}  // namespace tools::importing
