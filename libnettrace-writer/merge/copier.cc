#include "libnettrace-writer/merge/copier.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::internal {
namespace {

constexpr char kOwnId[] = "EventHeader.Id";

// V4 and V5 have types that V6 has not, or reads otherwise; the bytes stay what they are.
void ConvertTypes(std::vector<Field>* fields, PayloadEncoding encoding);

void ConvertType(Type* type, PayloadEncoding encoding) {
  if (type->code == TypeCode::kDateTime && encoding == PayloadEncoding::kLegacy) {
    type->code = TypeCode::kUInt64;  // a FILETIME
  }
  if (type->code == TypeCode::kDecimal) {
    *type = Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 16);
  }
  for (Type& element : type->element) ConvertType(&element, encoding);
  ConvertTypes(&type->fields, encoding);
}

void ConvertTypes(std::vector<Field>* fields, PayloadEncoding encoding) {
  for (Field& field : *fields) ConvertType(&field.type, encoding);
}

constexpr absl::int128 kMostTicks = std::numeric_limits<std::int64_t>::max();

// By the sync times, which are whole milliseconds.
absl::int128 ConvertTicks(std::uint64_t ticks, const TraceInfo& from, const TraceInfo& to) {
  // No clock runs longer; and so nothing below overflows.
  const absl::int128 since =
      std::clamp(absl::int128(ticks) - from.sync_ticks, -kMostTicks, kMostTicks);
  const std::int64_t apart = absl::ToInt64Milliseconds(from.sync_time - to.sync_time);
  return to.sync_ticks + absl::int128(apart) * to.ticks_per_second / 1000 +
         since * to.ticks_per_second / from.ticks_per_second;
}

}  // namespace

WriterOptions CopyWriterOptions() {
  WriterOptions options;
  options.max_labels = options.max_stacks = options.max_metadata =
      std::numeric_limits<std::int32_t>::max();
  options.max_label_bytes = options.max_stack_bytes = options.max_metadata_bytes =
      std::numeric_limits<std::size_t>::max() / 2;
  options.max_interval_events = options.max_interval_bytes =
      std::numeric_limits<std::uint64_t>::max() / 2;
  options.first_thread_index = ThreadIndex{traceevent::kMinRemovableThreadIndex};
  options.traceevent_compatible = false;  // what was written so is copied so
  return options;
}

TraceInfo CommonClock(std::span<const TraceInfo> traces) {
  TraceInfo clock = traces.front();
  absl::int128 first = 0;
  for (const TraceInfo& trace : traces) first = std::min(first, ConvertTicks(0, trace, clock));
  // Clocks that began at the same time seem not to, by what the sync times leave out.
  if (-first < clock.ticks_per_second) return clock;
  // Half of what there is stays for the events themselves.
  clock.sync_ticks = static_cast<std::int64_t>(
      std::min(clock.sync_ticks - first, std::max(absl::int128(clock.sync_ticks), kMostTicks / 2)));
  return clock;
}

absl::StatusOr<MetadataId> MetadataCopies::IdOf(const EventMetadata& metadata,
                                                PayloadEncoding encoding) {
  Provider& provider = providers_[metadata.provider];
  const auto [first, last] = provider.copies.equal_range(metadata.event_id);
  for (auto it = first; it != last; ++it) {
    if (it->second.original == metadata) return it->second.id;
  }
  EventMetadata copy = metadata;
  ConvertTypes(&copy.fields, encoding);
  const bool good = traceevent::IsEventId(copy.provider, copy.event_id) &&
                    !provider.taken.contains(copy.event_id);
  if (!good) {
    while (provider.next_free > 0 && provider.taken.contains(provider.next_free)) {
      --provider.next_free;
    }
    if (provider.next_free == 0) {
      return absl::ResourceExhaustedError(absl::StrCat("provider ", metadata.provider,
                                                       " has more than ", traceevent::kMaxEventId,
                                                       " metadata rows"));
    }
    const bool has_own_id = std::any_of(copy.key_values.begin(), copy.key_values.end(),
                                        [](const auto& entry) { return entry.first == kOwnId; });
    if (!has_own_id) copy.key_values.emplace_back(kOwnId, absl::StrCat(copy.event_id));
    copy.event_id = provider.next_free;
  }
  const auto id = writer_->AddMetadata(copy);
  if (!id.ok()) return id.status();
  provider.taken[copy.event_id] = true;
  provider.copies.emplace(metadata.event_id, Copy{metadata, *id});
  return *id;
}

Copier::Copier(const Reader* reader, const TraceInfo& clock, Writer* writer,
               MetadataCopies* metadata)
    : reader_(reader), clock_(clock), writer_(writer), metadata_(metadata) {}

std::uint64_t Copier::Convert(std::uint64_t ticks) const {
  const absl::int128 converted = ConvertTicks(ticks, reader_->trace(), clock_);
  if (converted < 0) return 0;
  return static_cast<std::uint64_t>(std::min(converted, kMostTicks));
}

absl::StatusOr<ThreadIndex> Copier::ThreadOf(const ThreadInfo* thread) {
  const auto found = threads_.find(thread);
  if (found != threads_.end()) return found->second;
  auto copy = writer_->AddThread(*thread);
  if (copy.ok()) threads_.emplace(thread, *copy);
  return copy;
}

absl::StatusOr<StackId> Copier::StackOf(std::span<const std::byte> stack) {
  const auto size = static_cast<std::size_t>(reader_->trace().pointer_size);
  frames_.clear();
  for (; stack.size() >= size; stack = stack.subspan(size)) {
    std::uint64_t frame = 0;
    std::memcpy(&frame, stack.data(), size);
    frames_.push_back(frame);
  }
  return writer_->InternStack(frames_);
}

absl::Status Copier::AddLost(const ThreadInfo* thread, std::uint64_t count) {
  // A step back is not a loss: the copy is numbered anew.
  if (count == 0 || count == kMaxGap) return absl::OkStatus();
  absl::StatusOr<ThreadIndex> copy = ThreadOf(thread);
  if (!copy.ok()) return copy.status();
  absl::Status status = writer_->AddLost(*copy, count);
  if (!absl::IsOutOfRange(status)) return status;
  // More than one gap can tell, as events between were left out: another row has another gap.
  threads_.erase(thread);
  copy = ThreadOf(thread);
  return copy.ok() ? writer_->AddLost(*copy, count) : copy.status();
}

absl::Status Copier::SkipEvent(const Event& event) {
  return AddLost(event.capture_thread, event.lost_before);
}

absl::Status Copier::CopyEvent(const Event& event) {
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
    ++stats_.refused;
    return writer_->AddLost(*capture, 1);
  }
  if (status.ok()) ++stats_.events;
  return status;
}

absl::Status Copier::CopyRemovedThread(const RemovedThread& removed) {
  if (absl::Status status = AddLost(removed.thread, removed.lost); !status.ok()) return status;
  const auto found = threads_.find(removed.thread);
  if (found == threads_.end()) return absl::OkStatus();
  const ThreadIndex copy = found->second;
  threads_.erase(found);
  return writer_->RemoveThread(copy);
}

absl::Status Copier::CopySequencePoint(const SequencePoint& point) {
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
