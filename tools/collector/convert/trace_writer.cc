#include "tools/collector/convert/trace_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "tools/base/status_macros.h"
#include "tools/trace/ring_positions.h"

namespace collector {
namespace {

// Returns whether `status` means that the file cannot hold a row or a stack, either permanently or
// until a sequence point makes room. The trace continues then, because any process can cause this.
bool HasNoPlace(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
}

}  // namespace

TraceWriter::TraceWriter(nettrace::Writer* writer, const TaskTracker* tasks, std::uint64_t start,
                         CollectorEvents* account)
    : writer_(writer),
      tasks_(tasks),
      processes_(writer, start),
      account_(account),
      interval_start_(start) {
  if (account_ != nullptr) account_->Begin(start);
  if (tasks->code() != nullptr) code_.emplace(writer, tasks->code(), start);
}

void TraceWriter::AddCpu(int number) {
  Cpu& cpu = cpus_.emplace_back();
  cpu.number = number;
  cpu.row.processor = static_cast<std::uint32_t>(number);
}

void TraceWriter::SetRingThread(std::size_t index, std::string name, std::string source) {
  if (index == cpus_.size()) cpus_.emplace_back();
  Cpu& cpu = cpus_[index];
  replaced_events_ += cpu.events;
  replaced_lost_ += cpu.lost;
  cpu = Cpu();
  cpu.number = CollectorEvents::kNoCpu;
  cpu.name = std::move(name);
  cpu.row.processor = nettrace::kNoProcessor;
  cpu.source = std::move(source);
  // The number of the first unit (tools/trace/ring_positions.h) of this ring thread is above the
  // numbers of all earlier units. Units of an earlier ring thread with the same source therefore
  // have lower numbers.
  if (!cpu.source.empty()) cpu.first_unit = writer_->stats().events + writer_->stats().lost + 1;
}

// Sets the members of the row in place instead of copying a row that was just built. The copy would
// load wider words than those just stored. The processor cannot forward such stores to the loads,
// and would wait until they are complete.
absl::Status TraceWriter::WriteOther(Cpu* cpu, const ConvertedEvent& event) {
  nettrace::EventRow& row = cpu->row;
  if (event.timestamp < std::max(row.timestamp, interval_start_)) [[unlikely]]
    return WriteLate(cpu, event);
  row.timestamp = event.timestamp;
  cpu->kind.form = event.kind.form;
  row.metadata_id = forms_.Find(event.kind.form);
  cpu->kind.thread = event.kind.thread;
  row.thread = threads_.Find(event.kind.thread);
  bool lacks_labels = event.own_labels != nullptr;
  cpu->kind.labels = event.kind.labels;
  row.label_list_id = nettrace::kNoLabels;
  if (event.kind.labels.valid()) {
    row.label_list_id = labels_.Find(event.kind.labels);
    lacks_labels = row.label_list_id == nettrace::kNoLabels;
  }
  if (row.metadata_id == nettrace::kNoMetadata || row.thread == nettrace::kNoThread ||
      row.capture_thread == nettrace::kNoThread || lacks_labels) [[unlikely]] {
    return WriteWithRows(cpu, event, lacks_labels);
  }
  return Append(cpu, event);
}

absl::Status TraceWriter::WriteWithStack(Cpu* cpu, const ConvertedEvent& event) {
  const EventStack& stack = *event.stack;
  const absl::StatusOr<nettrace::StackId> id = writer_->InternStack(stack.frames);
  if (!id.ok() && !HasNoPlace(id.status())) return id.status();
  cpu->row.stack_id = id.value_or(nettrace::kNoStack);
  if (stack.is_cut && id.ok()) {
    ConvertedEvent labeled = event;
    nettrace::Labels labels =
        event.own_labels != nullptr ? *event.own_labels : event.source->ListedLabels(event);
    labels.integers.emplace_back(kStackCutLabel, static_cast<std::int64_t>(stack.frames.size()));
    labeled.own_labels = &labels;
    labeled.kind.labels = Slot();
    RETURN_IF_ERROR(WriteRow(cpu, labeled));
  } else {
    RETURN_IF_ERROR(WriteRow(cpu, event));
  }
  if (code_ && id.ok()) code_->Use(stack, *id, event.timestamp, cpu->row.thread);
  cpu->row.stack_id = nettrace::kNoStack;
  return absl::OkStatus();
}

absl::Status TraceWriter::WriteWithRows(Cpu* cpu, const ConvertedEvent& event, bool lacks_labels) {
  nettrace::EventRow& row = cpu->row;
  cpu->kind = EventKind();
  if (row.capture_thread == nettrace::kNoThread) RETURN_IF_ERROR(AddCaptureThread(cpu));
  ASSIGN_OR_RETURN(row.thread, ThreadRow(event.kind.thread));
  if (lacks_labels) {
    ASSIGN_OR_RETURN(const nettrace::LabelListId list, InternFor(event));
    row.label_list_id = list;
    if (event.kind.labels.valid()) labels_.Set(event.kind.labels, list);
  }
  absl::Status set = SetMetadata(event, &row);
  if (set.ok()) return Append(cpu, event);
  if (!HasNoPlace(set)) return set;
  const ConvertedEvent undecoded = event.source->AsUndecoded(
      event,
      absl::IsInvalidArgument(set) ? "the schema cannot be stored in the file"
                                   : "the trace has too many kinds of events at a time",
      &undecoded_payload_);
  set = SetMetadata(undecoded, &row);
  if (set.ok()) return Append(cpu, undecoded);
  if (!HasNoPlace(set)) return set;
  ++cpu->lost;
  ++cpu->pending_lost;
  return writer_->AddLost(row.capture_thread, 1);
}

absl::Status TraceWriter::WriteLate(Cpu* cpu, const ConvertedEvent& event) {
  ++stats_.late;
  cpu->row.timestamp = std::max(cpu->row.timestamp, interval_start_);
  nettrace::Labels labels =
      event.own_labels != nullptr ? *event.own_labels : event.source->ListedLabels(event);
  labels.integers.emplace_back(kLateLabel, static_cast<std::int64_t>(event.timestamp));
  ASSIGN_OR_RETURN(cpu->row.label_list_id, Intern(labels));
  return WriteWithRows(cpu, event, /*lacks_labels=*/false);
}

absl::Status TraceWriter::SetMetadata(const ConvertedEvent& event, nettrace::EventRow* row) {
  row->metadata_id = forms_.Find(event.kind.form);
  if (row->metadata_id != nettrace::kNoMetadata) return absl::OkStatus();
  if (unusable_forms_.Find(event.kind.form)) return absl::InvalidArgumentError("");
  constexpr std::size_t kMaxUndecoded = kMaxMetadata - kMetadataRowsOfCollector;
  constexpr std::size_t kMaxDecoded = kMaxUndecoded - kMetadataRowsOfUndecoded;
  if (metadata_rows() >= (event.undecoded ? kMaxUndecoded : kMaxDecoded)) {
    return absl::ResourceExhaustedError(
        "the maximum number of metadata rows is reached; a sequence point must flush them first");
  }
  absl::StatusOr<nettrace::MetadataId> added = AddRow(event.source->MetadataFor(event));
  // Remembers that the file cannot hold the metadata row of this form: the row is invalid, or
  // longer than a row may be.
  if (absl::IsInvalidArgument(added.status()) || absl::IsOutOfRange(added.status())) {
    unusable_forms_.Set(event.kind.form, true);
    return absl::InvalidArgumentError(added.status().message());
  }
  if (!added.ok()) return added.status();
  forms_.Set(event.kind.form, *added);
  row->metadata_id = *added;
  return absl::OkStatus();
}

absl::StatusOr<nettrace::MetadataId> TraceWriter::AddRow(nettrace::EventMetadata metadata) {
  const std::optional<std::uint32_t> id = writer_->ChooseEventId(metadata);
  if (!id) {
    metadata_is_full_ = true;
    return absl::ResourceExhaustedError(
        "no event id of the provider is left; a sequence point must flush the metadata rows first");
  }
  metadata.event_id = *id;
  absl::StatusOr<nettrace::MetadataId> row = writer_->AddMetadata(metadata);
  if (metadata_rows() >= kMetadataRowsPerFlush ||
      writer_->stats().metadata_bytes - metadata_bytes_flushed_ >= kMetadataBytesPerFlush) {
    metadata_is_full_ = true;
  }
  return row;
}

absl::StatusOr<nettrace::LabelListId> TraceWriter::Intern(const nettrace::Labels& labels) {
  ++labels_in_interval_;
  return writer_->InternLabels(labels);
}

absl::StatusOr<nettrace::LabelListId> TraceWriter::InternFor(const ConvertedEvent& event) {
  // Passes own_labels directly. A conditional expression would copy them.
  if (event.own_labels != nullptr) return Intern(*event.own_labels);
  return Intern(event.source->ListedLabels(event));
}

absl::StatusOr<nettrace::ThreadIndex> TraceWriter::ThreadRow(Slot thread) {
  const nettrace::ThreadIndex known = threads_.Find(thread);
  if (known != nettrace::kNoThread) return known;
  const nettrace::ThreadInfo& info = tasks_->InfoOf(thread);
  ASSIGN_OR_RETURN(const nettrace::ThreadIndex added, writer_->AddThread(info));
  for (const auto& [key, value] : info.key_values) thread_bytes_ += key.size() + value.size();
  threads_.Set(thread, added);
  ++thread_rows_;
  return added;
}

absl::Status TraceWriter::AddCaptureThread(Cpu* cpu) {
  nettrace::ThreadInfo info;
  info.name =
      cpu->number == CollectorEvents::kNoCpu ? cpu->name : absl::StrCat("CPU ", cpu->number);
  if (!cpu->source.empty()) {
    info.key_values.emplace_back(trace::kRingThreadKey,
                                 trace::RingThreadValue(cpu->source, cpu->ring_number,
                                                        cpu->first_unit + cpu->events + cpu->lost));
  }
  absl::StatusOr<nettrace::ThreadIndex> index = writer_->AddThread(info);
  if (index.ok()) cpu->row.capture_thread = *index;
  return index.status();
}

absl::Status TraceWriter::AddLost(std::size_t cpu_index, std::uint64_t count) {
  Cpu& cpu = cpus_[cpu_index];
  if (cpu.row.capture_thread == nettrace::kNoThread) RETURN_IF_ERROR(AddCaptureThread(&cpu));
  constexpr std::uint64_t kMaxPart = nettrace::internal::kMaxGap / 2;
  while (count != 0) {
    const std::uint64_t part = std::min(count, kMaxPart);
    absl::Status added = writer_->AddLost(cpu.row.capture_thread, part);
    if (added.ok()) {
      count -= part;
      cpu.lost += part;
      cpu.pending_lost += part;
      cpu.ring_number += part;
    } else if (absl::IsOutOfRange(added)) {
      // The gap in the sequence numbers of one capture thread would be too large, so a new capture
      // thread begins with a new gap.
      RETURN_IF_ERROR(AddCaptureThread(&cpu));
    } else {
      return added;
    }
  }
  return absl::OkStatus();
}

absl::Status TraceWriter::WriteProcessEvent(const ProcessEvent& event, Slot thread) {
  ASSIGN_OR_RETURN(const nettrace::ThreadIndex row, ThreadRow(thread));
  ++process_events_in_interval_;
  return processes_.Write(event, row);
}

absl::Status TraceWriter::EndInterval(std::uint64_t timestamp, bool starts_section) {
  processes_.EndInterval(timestamp);
  if (code_) RETURN_IF_ERROR(code_->EndInterval(timestamp));
  if (account_ != nullptr) RETURN_IF_ERROR(account_->Write(timestamp));
  const bool flush_threads = starts_section || threads_are_full();
  const bool flush_metadata = starts_section || metadata_is_full_;
  RETURN_IF_ERROR(
      starts_section
          ? writer_->StartSection(timestamp)
          : writer_->WriteSequencePoint(
                timestamp, (flush_threads ? nettrace::kSequencePointFlushThreads : 0) |
                               (flush_metadata ? nettrace::kSequencePointFlushMetadata : 0)));
  if (flush_metadata) ForgetMetadata();
  if (flush_threads) ForgetThreads();
  if (starts_section && code_) code_->ForgetCode();
  for (Cpu& cpu : cpus_) {
    cpu.kind = EventKind();
    cpu.pending_lost = 0;
  }
  interval_start_ = timestamp;
  labels_.Clear();
  labels_in_interval_ = 0;
  events_in_interval_ = 0;
  process_events_in_interval_ = 0;
  return absl::OkStatus();
}

void TraceWriter::ForgetMetadata() {
  forms_.Clear();
  unusable_forms_.Clear();
  processes_.ForgetMetadata();
  if (code_) code_->ForgetMetadata();
  if (account_ != nullptr) account_->ForgetMetadata();
  metadata_flushed_ = writer_->stats().metadata;
  metadata_bytes_flushed_ = writer_->stats().metadata_bytes;
  metadata_is_full_ = false;
}

void TraceWriter::ForgetThreads() {
  threads_.Clear();
  thread_rows_ = thread_bytes_ = 0;
  processes_.ForgetRows();
  if (code_) code_->ForgetThreads();
  if (account_ != nullptr) account_->ForgetThreads();
  for (Cpu& cpu : cpus_) cpu.row.capture_thread = nettrace::kNoThread;
}

}  // namespace collector
