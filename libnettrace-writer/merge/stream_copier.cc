#include "libnettrace-writer/merge/stream_copier.h"

#include <cstring>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/merge/clock.h"

namespace nettrace::internal {

StreamCopier::StreamCopier(const Reader* reader, const TraceInfo& clock, Writer* writer,
                           MetadataCopies* metadata)
    : reader_(reader), clock_(clock), writer_(writer), metadata_(metadata) {}

std::uint64_t StreamCopier::Convert(std::uint64_t ticks) const {
  return ConvertTimestamp(ticks, reader_->trace(), clock_);
}

absl::StatusOr<ThreadIndex> StreamCopier::ThreadOf(const ThreadInfo* thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) return found->second;
  auto copy = writer_->AddThread(*thread);
  if (copy.ok()) threads_.emplace(thread, *copy);
  return copy;
}

absl::StatusOr<StackId> StreamCopier::StackOf(std::span<const std::byte> stack) {
  const auto size = static_cast<std::size_t>(reader_->trace().pointer_size);
  frames_.clear();
  for (; stack.size() >= size; stack = stack.subspan(size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), size);
    frames_.push_back(LittleEndian(frame));
  }
  return writer_->InternStack(frames_);
}

absl::Status StreamCopier::AddLost(const ThreadInfo* thread, std::uint64_t count) {
  // A step back is no loss: the copy has numbers of its own.
  if (count == 0 || count == kMaxGap) return absl::OkStatus();
  absl::StatusOr<ThreadIndex> copy = ThreadOf(thread);
  if (!copy.ok()) return copy.status();
  absl::Status status = writer_->AddLost(*copy, count);
  if (!absl::IsOutOfRange(status)) return status;
  // The gap is too large, as events in it were left out: a new thread row begins a new gap.
  threads_.erase(thread);
  copy = ThreadOf(thread);
  return copy.ok() ? writer_->AddLost(*copy, count) : copy.status();
}

absl::Status StreamCopier::SkipEvent(const Event& event) {
  return AddLost(event.capture_thread, event.lost_before);
}

absl::Status StreamCopier::CopyEvent(const Event& event) {
  if (absl::Status status = SkipEvent(event); !status.ok()) return status;
  EventRow row;
  const auto known = metadata_ids_.find(event.metadata_id);
  if (known != metadata_ids_.end()) {
    row.metadata_id = known->second;
  } else {
    const auto id = metadata_->IdOf(*event.metadata, event.payload_encoding);
    if (!id.ok()) return id.status();
    row.metadata_id = metadata_ids_[event.metadata_id] = *id;
  }
  const auto capture = ThreadOf(event.capture_thread);
  if (!capture.ok()) return capture.status();
  const auto thread = ThreadOf(event.thread);
  if (!thread.ok()) return thread.status();
  const auto labels = writer_->InternLabels(*event.labels);
  if (!labels.ok()) return labels.status();
  const auto stack = StackOf(event.stack);
  if (!stack.ok()) return stack.status();
  row.capture_thread = *capture;
  row.thread = *thread;
  row.processor = event.processor;
  row.timestamp = Convert(event.timestamp);
  row.stack_id = *stack;
  row.label_list_id = *labels;
  absl::Status status = writer_->WriteEvent(row, event.payload);
  if (absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)) {
    ++out_of_order_;
    return writer_->AddLost(*capture, 1);
  }
  return status;
}

absl::Status StreamCopier::CopyRemovedThread(const RemovedThread& removed) {
  if (absl::Status status = AddLost(removed.thread, removed.lost); !status.ok()) return status;
  const auto found = threads_.find(removed.thread);
  if (found == threads_.end()) return absl::OkStatus();
  const ThreadIndex copy = found->second;
  threads_.erase(found);
  return writer_->RemoveThread(copy);
}

absl::Status StreamCopier::CopySequencePoint(const SequencePoint& point) {
  for (const SequencePoint::Loss& loss : point.losses) {
    if (absl::Status status = AddLost(loss.thread, loss.count); !status.ok()) return status;
  }
  if (point.flags & kSequencePointFlushMetadata) metadata_ids_.clear();
  if (point.flags & kSequencePointFlushThreads) {
    for (const auto& [index, copy] : threads_) {
      if (absl::Status status = writer_->RemoveThread(copy); !status.ok()) return status;
    }
    threads_.clear();
  }
  return absl::OkStatus();
}

}  // namespace nettrace::internal
