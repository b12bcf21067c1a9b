#include "libnettrace-writer/merge/stream_copier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/merge/clock.h"

namespace nettrace::internal {

StreamCopier::StreamCopier(const TraceInfo& trace, const TraceInfo& clock, std::uint64_t start,
                           KeyValues thread_keys, const CodeIds& code_ids, Writer* writer,
                           MetadataCopies* metadata)
    : trace_(trace),
      clock_(clock),
      start_(start),
      thread_keys_(std::move(thread_keys)),
      code_ids_(code_ids),
      writer_(writer),
      metadata_(metadata) {}

std::uint64_t StreamCopier::Convert(std::uint64_t ticks) const {
  return std::max(ConvertTimestamp(ticks, trace_, clock_), start_);
}

absl::StatusOr<MetadataId> StreamCopier::MetadataOf(const Event& event) {
  const auto known = metadata_ids_.find(event.metadata_id);
  if (known != metadata_ids_.end()) return known->second;
  const auto copy = metadata_->IdOf(*event.metadata, event.payload_encoding);
  return metadata_ids_.emplace(event.metadata_id, copy).first->second;
}

absl::StatusOr<ThreadIndex> StreamCopier::AddThread(const ThreadInfo& thread) {
  if (thread_keys_.empty()) return writer_->AddThread(thread);
  ThreadInfo copy = thread;
  for (const auto& [key, value] : thread_keys_) {
    const bool has_key =
        std::any_of(thread.key_values.begin(), thread.key_values.end(),
                    [&key = key](const auto& entry) { return entry.first == key; });
    if (!has_key) copy.key_values.emplace_back(key, value);
  }
  return writer_->AddThread(copy);
}

absl::StatusOr<StreamCopier::ThreadCopy*> StreamCopier::ThreadOf(const ThreadInfo* thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) return &found->second;
  absl::StatusOr<ThreadIndex> copy = AddThread(*thread);
  if (absl::IsOutOfRange(copy.status())) {
    // The row is too long for V6, because U+FFFD takes more bytes than the malformed text that it
    // replaces. Writes the row with its ids only.
    ThreadInfo nameless;
    nameless.process_id = thread->process_id;
    nameless.thread_id = thread->thread_id;
    copy = writer_->AddThread(nameless);
  }
  if (!copy.ok()) return copy.status();
  return &threads_.emplace(thread, ThreadCopy{*copy}).first->second;
}

// Returns the copy of the capture thread. The times of a capture thread's events must not go back.
// If `timestamp` is before the time of the copy's last event, the copy ends, and the capture thread
// gets another row for its further events.
absl::StatusOr<StreamCopier::ThreadCopy*> StreamCopier::CaptureThreadOf(const ThreadInfo* thread,
                                                                        std::uint64_t timestamp) {
  absl::StatusOr<ThreadCopy*> copy = ThreadOf(thread);
  if (copy.ok() && timestamp < (*copy)->last_timestamp) {
    if (absl::Status status = EndThread(thread); !status.ok()) return status;
    copy = ThreadOf(thread);
  }
  if (copy.ok()) (*copy)->last_timestamp = timestamp;
  return copy;
}

absl::StatusOr<LabelListId> StreamCopier::LabelsOf(const Event& event, std::uint64_t timestamp) {
  const std::uint64_t original = ConvertTimestamp(event.timestamp, trace_, clock_);
  if (original == timestamp) return writer_->InternLabels(*event.labels);
  Labels labels = *event.labels;
  labels.integers.emplace_back(kLabelOriginalTimestamp, static_cast<std::int64_t>(original));
  return writer_->InternLabels(labels);
}

absl::StatusOr<StackId> StreamCopier::StackOf(std::span<const std::byte> stack) {
  const auto size = static_cast<std::size_t>(trace_.pointer_size);
  frames_.clear();
  for (; stack.size() >= size; stack = stack.subspan(size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), size);
    frames_.push_back(LittleEndian(frame));
  }
  return writer_->InternStack(frames_);
}

absl::Status StreamCopier::EndThread(const ThreadInfo* thread) {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return absl::OkStatus();
  const ThreadIndex copy = found->second.index;
  threads_.erase(found);
  return writer_->RemoveThread(copy);
}

absl::Status StreamCopier::AddLost(const ThreadInfo* thread, std::uint64_t count) {
  // The reader reports a step back of the sequence numbers as kMaxGap lost events. No such loss is
  // copied, because the copy has separate sequence numbers, which do not step back.
  if (count == 0 || count == kMaxGap) return absl::OkStatus();
  absl::StatusOr<ThreadCopy*> copy = ThreadOf(thread);
  if (!copy.ok()) return copy.status();
  absl::Status status = writer_->AddLost((*copy)->index, count);
  if (!absl::IsOutOfRange(status)) return status;
  // The gap is too large for the format, because no event was written between several losses. A new
  // thread row has new sequence numbers, and therefore begins a new gap.
  threads_.erase(thread);
  copy = ThreadOf(thread);
  return copy.ok() ? writer_->AddLost((*copy)->index, count) : copy.status();
}

absl::Status StreamCopier::SkipEvent(const Event& event) {
  return AddLost(event.capture_thread, event.lost_before);
}

absl::Status StreamCopier::CopyEvent(const Event& event, std::uint64_t not_before) {
  if (absl::Status status = SkipEvent(event); !status.ok()) return status;
  absl::Status status = WriteCopy(event, not_before);
  if (!absl::IsInvalidArgument(status) && !absl::IsOutOfRange(status)) return status;
  if (not_kept_++ == 0) why_not_kept_ = std::string(status.message());
  return AddLost(event.capture_thread, 1);
}

absl::Status StreamCopier::WriteCopy(const Event& event, std::uint64_t not_before) {
  EventRow row;
  row.timestamp = std::max(Convert(event.timestamp), not_before);
  const auto metadata = MetadataOf(event);
  if (!metadata.ok()) return metadata.status();
  const auto labels = LabelsOf(event, row.timestamp);
  if (!labels.ok()) return labels.status();
  const auto stack = StackOf(event.stack);
  if (!stack.ok()) return stack.status();
  const auto capture = CaptureThreadOf(event.capture_thread, row.timestamp);
  if (!capture.ok()) return capture.status();
  const auto thread = ThreadOf(event.thread);
  if (!thread.ok()) return thread.status();
  row.metadata_id = *metadata;
  row.capture_thread = (*capture)->index;
  row.thread = (*thread)->index;
  row.processor = event.processor;
  row.stack_id = *stack;
  row.label_list_id = *labels;
  absl::Status status = writer_->WriteEvent(row, code_ids_.PayloadOf(event));
  if (status.ok() && row.timestamp != Convert(event.timestamp)) ++moved_;
  return status;
}

absl::Status StreamCopier::AddAfter(const Event& event, std::uint64_t not_before,
                                    MetadataId metadata_id, std::span<const std::byte> payload) {
  EventRow row;
  row.metadata_id = metadata_id;
  row.timestamp = std::max(Convert(event.timestamp), not_before);
  const auto capture = CaptureThreadOf(event.capture_thread, row.timestamp);
  if (!capture.ok()) return capture.status();
  const auto thread = ThreadOf(event.thread);
  if (!thread.ok()) return thread.status();
  row.capture_thread = (*capture)->index;
  row.thread = (*thread)->index;
  row.processor = event.processor;
  return writer_->WriteEvent(row, payload);
}

absl::Status StreamCopier::CopyRemovedThread(const RemovedThread& removed) {
  if (absl::Status status = AddLost(removed.thread, removed.lost); !status.ok()) return status;
  return EndThread(removed.thread);
}

absl::Status StreamCopier::CopySequencePoint(const SequencePoint& point) {
  for (const SequencePoint::Loss& loss : point.losses) {
    if (absl::Status status = AddLost(loss.thread, loss.count); !status.ok()) return status;
  }
  if (point.flags & kSequencePointFlushMetadata) metadata_ids_.clear();
  if (point.flags & kSequencePointFlushThreads) {
    for (const auto& [index, copy] : threads_) {
      if (absl::Status status = writer_->RemoveThread(copy.index); !status.ok()) return status;
    }
    threads_.clear();
  }
  return absl::OkStatus();
}

}  // namespace nettrace::internal
