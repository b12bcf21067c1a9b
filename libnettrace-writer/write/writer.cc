#include "nettrace/writer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/block_layout.h"
#include "libnettrace-writer/core/byte_writer.h"
#include "libnettrace-writer/core/check_fields.h"
#include "libnettrace-writer/core/event_ids.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/write/block_output.h"
#include "libnettrace-writer/write/copy_payload.h"
#include "libnettrace-writer/write/event_block.h"
#include "libnettrace-writer/write/intern_table.h"
#include "libnettrace-writer/write/put_rows.h"
#include "libnettrace-writer/write/row_block.h"
#include "libnettrace-writer/write/thread_table.h"

namespace nettrace {
namespace {

using internal::BlockOutput;
using internal::ByteWriter;
using internal::EventBlock;
using internal::EventIdTable;
using internal::InternTable;
using internal::kMaxGap;
using internal::RowBlock;
using internal::Thread;
using internal::ThreadTable;
namespace traceevent = internal::traceevent;

// Bytes of the first buffer of a capture thread. It is small, because there may be many capture
// threads.
constexpr std::size_t kFirstBuffer = 4096;
// Factor by which a buffer that is too small grows.
constexpr std::size_t kBufferGrowth = 8;
constexpr std::uint32_t kFirstMetadataId = 1;
constexpr std::uint32_t kMaxMetadataId = std::numeric_limits<std::int32_t>::max();
// Maximum number of threads. A sequence point must be able to list all of them.
constexpr std::size_t kMaxThreads = 1 << 20;
constexpr std::size_t kMaxRowBytes =
    kMaxBlockSize - (internal::kRowsOffset - internal::kBlockHeaderSize);
constexpr std::size_t kMaxRowPayload = kMaxRowBytes - internal::kMaxRowHeader;
constexpr std::uint32_t kKnownFlags = kSequencePointFlushThreads | kSequencePointFlushMetadata;

absl::Status CheckOptions(const WriterOptions& options) {
  if (options.event_block_size == 0 || options.event_block_size > kMaxRowBytes) {
    return absl::InvalidArgumentError(absl::StrCat("event_block_size: ", options.event_block_size,
                                                   " is not in 1..", kMaxRowBytes));
  }
  if (options.max_threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_threads: ", options.max_threads, " is more than ", kMaxThreads));
  }
  if (options.first_thread_index == kNoThread) {
    return absl::InvalidArgumentError("first_thread_index: must not be 0");
  }
  return absl::OkStatus();
}

// Returns the error for a table, or an interval, that has no room for more of `what`. `limits` is a
// text with the limits and their values.
absl::Status CacheFull(const char* what, std::string_view limits, const char* remedy) {
  return absl::ResourceExhaustedError(absl::StrCat("no room for more ", what, " (",
                                                   absl::string_view(limits.data(), limits.size()),
                                                   "); ", remedy));
}

constexpr char kNeedsSequencePoint[] = "write a sequence point";

}  // namespace

struct Writer::Impl {
  Impl(std::unique_ptr<Sink> sink, const TraceInfo& info, const WriterOptions& writer_options)
      : options(writer_options),
        pointer_size(static_cast<std::size_t>(info.pointer_size)),
        output(std::move(sink)),
        event_ids(options.max_metadata),
        labels(options.max_labels, options.max_label_bytes),
        stacks(options.max_stacks, options.max_stack_bytes),
        threads(options.first_thread_index) {}

  bool HasMetadata(MetadataId id) const {
    return ToNumber(id) - first_metadata_id < next_metadata_id - first_metadata_id;
  }

  absl::Status CheckOpen() const;
  absl::Status CheckMetadata(const EventMetadata& metadata) const;
  absl::Status CheckRow(const EventRow& row, const Thread* capture, std::size_t payload_size);

  template <typename Id>
  absl::StatusOr<Id> Intern(InternTable* table, RowBlock* block, const char* what);
  template <typename Id>
  absl::StatusOr<Id> InternNew(InternTable* table, RowBlock* block, const char* what);

  absl::Status WriteLong(EventBlock* block, const EventRow& row,
                         std::span<const std::byte> payload);
  absl::Status WriteFollowing(EventBlock* block, const EventRow& row,
                              std::span<const std::byte> payload);
  absl::Status WriteEvent(const EventRow& row, std::span<const std::byte> payload);
  absl::Status MakeRoom(Thread* capture, std::size_t payload_size);
  absl::Status GrowBuffer(Thread* capture, std::size_t needed);
  void Drop(Thread* capture);

  // Writes the rows of the tables that are not written yet. Must be called before an event block is
  // written, because rows must precede the events that refer to them.
  absl::Status WriteRows();
  absl::Status WriteEventBlock(Thread* capture);
  absl::Status WriteEventBlocks();
  absl::Status WriteAll();
  std::uint64_t LastTimestamp() const;
  void StartInterval(std::uint64_t timestamp);
  void ForgetThreads();
  void ForgetMetadata();

  const WriterOptions options;
  const std::size_t pointer_size;
  BlockOutput output;

  RowBlock metadata_rows{BlockKind::kMetadata};
  RowBlock thread_rows{BlockKind::kThread};
  RowBlock label_rows{BlockKind::kLabelList};
  RowBlock stack_rows{BlockKind::kStack};
  RowBlock removals{BlockKind::kRemoveThread};
  ByteWriter scratch;

  EventIdTable event_ids;  // rows and their EventIds; empty without traceevent_compatible
  InternTable labels;
  InternTable stacks;
  ThreadTable threads;
  // Valid ids are first_metadata_id to next_metadata_id - 1.
  std::uint32_t first_metadata_id = kFirstMetadataId;
  std::uint32_t next_metadata_id = kFirstMetadataId;

  std::vector<Thread*> buffered;  // threads whose blocks have a buffer
  std::size_t buffer_bytes = 0;   // bytes of all these buffers
  std::uint64_t removed_threads = 0;

  std::uint64_t interval_start = 0;        // earliest time that an event may have
  std::uint64_t interval_last = 0;         // latest time in the interval's written event blocks
  std::uint64_t interval_bytes = 0;        // bytes of rows in the interval's written event blocks
  std::uint64_t interval_events_left = 0;  // events that still fit before a sequence point
  // Total number of accepted events when interval_events_left reaches 0.
  std::uint64_t events_end = 0;
  bool finished = false;  // EndOfStream was written
  bool synced = false;    // the sink's Finish() succeeded
  mutable Stats stats;
};

inline absl::Status Writer::Impl::CheckOpen() const {
  return finished ? absl::FailedPreconditionError("the stream is finished; create another Writer")
                  : absl::OkStatus();
}

absl::Status Writer::Impl::CheckMetadata(const EventMetadata& metadata) const {
  const auto refuse = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("event '", metadata.provider, ":", metadata.name, "' (id ", metadata.event_id,
                     "): ", absl::string_view(why.data(), why.size())));
  };
  if (absl::Status status = internal::CheckFields(metadata.fields, options.traceevent_compatible);
      !status.ok()) {
    return refuse(std::string(status.message()));
  }
  if (!options.traceevent_compatible) return absl::OkStatus();
  if (!traceevent::IsEventId(metadata.event_id)) {
    return refuse(absl::StrCat("TraceEvent needs an id of at most ", traceevent::kMaxEventId));
  }
  if (!metadata.opcode && traceevent::TakesOpcodeFrom(metadata.name)) {
    return refuse("TraceEvent derives an opcode from the end of this name; set one (0: none)");
  }
  switch (event_ids.Find(metadata)) {
    case EventIdTable::Clash::kNone:
      return absl::OkStatus();
    case EventIdTable::Clash::kSchema:
      return refuse(
          "another event with this id has a different name, different fields or a different "
          "opcode; TraceEvent identifies events by provider and id, and two providers are the same "
          "for it if their GUIDs are equal or their names differ only in case");
    case EventIdTable::Clash::kName:
      return refuse(
          "another event with this name has a different id; TraceEvent identifies events of this "
          "provider by name, so use the same id");
  }
  return absl::OkStatus();
}

absl::StatusOr<MetadataId> Writer::AddMetadata(const EventMetadata& metadata) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  if (absl::Status status = w.CheckMetadata(metadata); !status.ok()) return status;

  if (w.next_metadata_id - w.first_metadata_id >= w.options.max_metadata ||
      w.next_metadata_id == kMaxMetadataId) {
    return CacheFull("metadata", absl::StrCat("max_metadata is ", w.options.max_metadata),
                     "write a sequence point that flushes metadata");
  }
  const MetadataId id{w.next_metadata_id};
  w.scratch.Clear();
  if (absl::Status status = internal::PutMetadataRow(id, metadata, &w.scratch); !status.ok()) {
    return status;
  }
  if (absl::Status status = w.metadata_rows.MakeRoom(w.scratch.size(), &w.output); !status.ok()) {
    return status;
  }
  if (w.options.traceevent_compatible) w.event_ids.Add(metadata);
  w.metadata_rows.Add(w.next_metadata_id, w.scratch.bytes());
  ++w.next_metadata_id;
  ++w.stats.metadata;
  w.stats.metadata_bytes += w.scratch.size();
  return id;
}

std::optional<std::uint32_t> Writer::ChooseEventId(const EventMetadata& metadata) {
  const bool has_own = metadata.event_id >= 1 && metadata.event_id <= internal::kMaxGivenEventId;
  if (has_own && impl_->event_ids.Find(metadata) == EventIdTable::Clash::kNone) {
    return metadata.event_id;
  }
  return impl_->event_ids.FreeId(metadata);
}

absl::StatusOr<ThreadIndex> Writer::AddThread(const ThreadInfo& thread) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  if (w.threads.size() >= w.options.max_threads) {
    return CacheFull("threads", absl::StrCat("max_threads is ", w.options.max_threads),
                     "remove some, or write a sequence point that flushes threads");
  }
  const ThreadIndex index = w.threads.next_index();
  w.scratch.Clear();
  if (absl::Status status = internal::PutThreadRow(index, thread, &w.scratch); !status.ok()) {
    return status;
  }
  if (absl::Status status = w.thread_rows.MakeRoom(w.scratch.size(), &w.output); !status.ok()) {
    return status;
  }
  w.thread_rows.Add(0, w.scratch.bytes());
  w.threads.Add(thread.thread_id);
  ++w.stats.threads;
  return index;
}

absl::Status Writer::RemoveThread(ThreadIndex index) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  Thread* const thread = w.threads.Find(index);
  if (thread == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("thread index ", ToNumber(index),
                     " is not defined; use an index that AddThread has returned and that neither "
                     "RemoveThread nor a flush of threads has ended"));
  }
  if (w.options.traceevent_compatible && thread->os_thread_id &&
      *thread->os_thread_id >= ToNumber(w.options.first_thread_index)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the thread's OS id, ", *thread->os_thread_id,
        ", may be the index of another thread, and TraceEvent (PerfView) would then "
        "remove that thread; set first_thread_index above all OS ids of threads, or write "
        "a sequence point that flushes threads"));
  }
  if (absl::Status status = w.WriteEventBlock(thread); !status.ok()) return status;

  // Keeps the removal until the event blocks that are open now are written, because their events
  // may refer to this thread. Later events cannot refer to it.
  w.scratch.Clear();
  w.scratch.VarUInt(ToNumber(index));
  w.scratch.VarUInt(thread->sequence());
  if (!w.removals.HasRoom(w.scratch.size())) {
    if (absl::Status status = w.WriteAll(); !status.ok()) return status;
  }
  w.removals.Add(0, w.scratch.bytes());
  w.buffer_bytes -= thread->block.capacity();
  std::erase(w.buffered, thread);
  w.threads.Remove(thread);
  ++w.removed_threads;
  return absl::OkStatus();
}

// Returns the id that `table` has for the row in `scratch`. If the row is new, adds it to `table`
// and `block`. Fails if the table is full, or if `block` must be written and the sink fails.
template <typename Id>
absl::StatusOr<Id> Writer::Impl::Intern(InternTable* table, RowBlock* block, const char* what) {
  if (const std::uint32_t id = table->Find(scratch.bytes()); id != 0) return Id{id};
  return InternNew<Id>(table, block, what);
}

// A separate function, because most rows are not new, and Intern would save registers for it.
template <typename Id>
[[gnu::noinline]] absl::StatusOr<Id> Writer::Impl::InternNew(InternTable* table, RowBlock* block,
                                                             const char* what) {
  if (!table->HasRoom(scratch.size())) {
    return CacheFull(what, table->Limits(), kNeedsSequencePoint);
  }
  if (absl::Status status = block->MakeRoom(scratch.size(), &output); !status.ok()) return status;
  const std::uint32_t id = table->Insert(scratch.bytes());
  block->Add(id, scratch.bytes());
  return Id{id};
}

absl::StatusOr<LabelListId> Writer::InternLabels(const Labels& labels) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  if (labels.empty()) return kNoLabels;
  w.scratch.Clear();
  internal::PutLabelList(labels, &w.scratch);
  return w.Intern<LabelListId>(&w.labels, &w.label_rows, "label lists");
}

absl::StatusOr<StackId> Writer::InternStack(std::span<const std::uint64_t> frames) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  if (frames.empty()) return kNoStack;
  const std::size_t max = w.options.traceevent_compatible
                              ? traceevent::kMaxStackFrames
                              : (kMaxBlockSize - 3 * sizeof(std::uint32_t)) / w.pointer_size;
  if (frames.size() > max) {
    return absl::OutOfRangeError(
        absl::StrCat("a stack of ", frames.size(), " frames: at most ", max, " can be written"));
  }
  w.scratch.Clear();
  w.scratch.Fixed(static_cast<std::uint32_t>(frames.size() * w.pointer_size));
  if (w.pointer_size == 8) {
    w.scratch.FixedAll(frames);
    return w.Intern<StackId>(&w.stacks, &w.stack_rows, "stacks");
  }
  for (const std::uint64_t frame : frames) {
    if (frame <= std::numeric_limits<std::uint32_t>::max()) {
      w.scratch.Fixed(static_cast<std::uint32_t>(frame));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("stack frame 0x", absl::Hex(frame), " does not fit a 4-byte pointer"));
    }
  }
  return w.Intern<StackId>(&w.stacks, &w.stack_rows, "stacks");
}

absl::Status Writer::WriteEvent(const EventRow& row, std::span<const std::byte> payload) {
  Impl& w = *impl_;
  // Fast path: most events are small, and differ from the previous event of their capture thread
  // only in time and payload. Their ids are valid, because that event had the same ids. Such an
  // event's row contains only time and payload. All other events, and all errors, are processed by
  // calls in tail position, so that this function does not have to save registers.
  EventBlock& block = w.threads.FindRecent(row.capture_thread)->block;
  if (!block.Follows(row, w.removed_threads, payload.size()) || w.interval_events_left == 0)
      [[unlikely]] {
    return w.WriteEvent(row, payload);
  }
  if (!block.IsLikePrevious(row, payload.size())) return w.WriteFollowing(&block, row, payload);
  if (payload.size() > internal::kMaxShortCopy) return w.WriteLong(&block, row, payload);
  block.AppendLikePrevious(row, payload, internal::CopyShort);
  --w.interval_events_left;
  return absl::OkStatus();
}

// Writes an event for which IsLikePrevious is true, and whose payload is too long for CopyShort.
absl::Status Writer::Impl::WriteLong(EventBlock* block, const EventRow& row,
                                     std::span<const std::byte> payload) {
  block->AppendLikePrevious(row, payload, internal::Copy);
  --interval_events_left;
  return absl::OkStatus();
}

// Writes an event for which Follows() is true. The event differs from the previous one in its
// thread, metadata or label list, or in the size of its payload.
absl::Status Writer::Impl::WriteFollowing(EventBlock* block, const EventRow& row,
                                          std::span<const std::byte> payload) {
  if (!threads.IsLive(row.thread) || !HasMetadata(row.metadata_id) ||
      ToNumber(row.label_list_id) > labels.size() || payload.size() > traceevent::kMaxPayloadSize)
      [[unlikely]] {
    return WriteEvent(row, payload);
  }
  block->AppendFollowing(row, payload);
  --interval_events_left;
  return absl::OkStatus();
}

inline absl::Status Writer::Impl::CheckRow(const EventRow& row, const Thread* capture,
                                           std::size_t payload_size) {
  if (absl::Status status = CheckOpen(); !status.ok()) return status;
  const auto refuse = [](auto... why) { return absl::InvalidArgumentError(absl::StrCat(why...)); };
  if (capture == nullptr) {
    return refuse("capture thread index ", ToNumber(row.capture_thread), " is not defined");
  }
  if (!threads.IsLive(row.thread)) {
    return refuse("thread index ", ToNumber(row.thread), " is not defined");
  }
  if (!HasMetadata(row.metadata_id))
    return refuse("metadata ", ToNumber(row.metadata_id), " is not defined");
  if (ToNumber(row.stack_id) > stacks.size())
    return refuse("stack ", ToNumber(row.stack_id), " is not defined");
  if (ToNumber(row.label_list_id) > labels.size()) {
    return refuse("label list ", ToNumber(row.label_list_id), " is not defined");
  }
  if (row.timestamp < interval_start) {
    return refuse("time ", row.timestamp, " is before the last sequence point, ", interval_start);
  }
  if (row.timestamp < capture->block.last_timestamp()) {
    return refuse("time ", row.timestamp, " is before the last event of its capture thread, ",
                  capture->block.last_timestamp());
  }
  if (row.timestamp > kMaxTimestamp) return refuse("time ", row.timestamp, " is over 2^63 - 1");
  if (options.traceevent_compatible && row.timestamp > traceevent::kMaxEventTimestamp) {
    return refuse("time ", row.timestamp, " is over 2^63 - 11: TraceEvent does not show the event");
  }
  const std::size_t max =
      options.traceevent_compatible ? traceevent::kMaxPayloadSize : kMaxRowPayload;
  if (payload_size > max) {
    return absl::OutOfRangeError(
        absl::StrCat("a payload of ", payload_size, " bytes: at most ", max, " can be written"));
  }
  if (interval_events_left == 0 || interval_bytes >= options.max_interval_bytes) {
    return CacheFull("events in this interval",
                     absl::StrCat("max_interval_events is ", options.max_interval_events,
                                  ", max_interval_bytes is ", options.max_interval_bytes),
                     kNeedsSequencePoint);
  }
  return absl::OkStatus();
}

absl::Status Writer::Impl::WriteEvent(const EventRow& row, std::span<const std::byte> payload) {
  Thread* const capture = threads.Find(row.capture_thread);
  if (absl::Status status = CheckRow(row, capture, payload.size()); !status.ok()) return status;
  if (!capture->captures) threads.SetCaptures(capture);
  if (!capture->block.HasRoom(payload.size())) {
    if (absl::Status status = MakeRoom(capture, payload.size()); !status.ok()) {
      Drop(capture);
      return status;
    }
  }
  capture->block.Append(row, capture->sequence() + 1, removed_threads, payload);
  capture->lost = 0;
  --interval_events_left;
  return absl::OkStatus();
}

// Counts an event that is lost because the sink has failed and the buffers are full. The event
// takes a sequence number, so readers see the gap.
void Writer::Impl::Drop(Thread* capture) {
  ++stats.events_dropped;
  capture->block.Interrupt();
  if (capture->lost < kMaxGap) ++capture->lost;
}

// Makes room for a row with a payload of `payload_size` bytes in the block of `capture`: writes the
// block, enlarges its buffer, or does both.
absl::Status Writer::Impl::MakeRoom(Thread* capture, std::size_t payload_size) {
  const std::size_t row = internal::kMaxRowHeader + payload_size;
  if (capture->block.row_bytes() + row > options.event_block_size) {
    if (absl::Status status = WriteEventBlock(capture); !status.ok()) return status;
    if (capture->block.HasRoom(payload_size)) return absl::OkStatus();
  }
  return GrowBuffer(capture, internal::kRowsOffset + capture->block.row_bytes() + row);
}

absl::Status Writer::Impl::GrowBuffer(Thread* capture, std::size_t needed) {
  const std::size_t grown =
      std::min(internal::kRowsOffset + options.event_block_size,
               std::max(kFirstBuffer, capture->block.capacity() * kBufferGrowth));
  const std::size_t size = std::max(needed, grown);
  const auto more = [&] { return size - capture->block.capacity(); };
  if (buffer_bytes + more() > options.max_buffer_bytes && buffer_bytes > 0) {
    if (absl::Status status = WriteEventBlocks(); !status.ok()) return status;
    for (Thread* thread : buffered) thread->block.Free();
    buffered.clear();
    buffer_bytes = 0;
  }
  if (capture->block.capacity() == 0) buffered.push_back(capture);
  buffer_bytes += more();
  capture->block.Allocate(size);
  return absl::OkStatus();
}

absl::Status Writer::AddLost(ThreadIndex capture_thread, std::uint64_t count) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  Thread* const capture = w.threads.Find(capture_thread);
  if (capture == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("capture thread index ", ToNumber(capture_thread), " is not defined"));
  }
  if (count == 0) return absl::OkStatus();
  if (count > kMaxGap - capture->lost) {
    return absl::OutOfRangeError(absl::StrCat(
        count, " lost events: at most ", kMaxGap,
        " can be added without an event or a sequence point in between; add them in parts"));
  }
  w.threads.SetCaptures(capture);
  capture->block.Interrupt();
  capture->lost += count;
  w.stats.lost += count;
  return absl::OkStatus();
}

void Writer::CountApart(ThreadIndex capture_thread) {
  if (Thread* const capture = impl_->threads.Find(capture_thread)) capture->apart = true;
}

absl::Status Writer::Impl::WriteRows() {
  for (RowBlock* rows : {&metadata_rows, &thread_rows, &label_rows, &stack_rows}) {
    if (absl::Status status = rows->WriteTo(&output); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Writer::Impl::WriteEventBlock(Thread* capture) {
  if (capture->block.empty()) return absl::OkStatus();
  if (absl::Status status = WriteRows(); !status.ok()) return status;
  const std::size_t bytes = capture->block.row_bytes();
  if (absl::Status status = capture->block.WriteTo(&output, capture->apart); !status.ok())
    return status;
  interval_bytes += bytes;
  interval_last = std::max(interval_last, capture->block.last_timestamp());
  return absl::OkStatus();
}

absl::Status Writer::Impl::WriteEventBlocks() {
  for (Thread* capture : buffered) {
    if (absl::Status status = WriteEventBlock(capture); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Writer::Impl::WriteAll() {
  if (absl::Status status = WriteRows(); !status.ok()) return status;
  if (absl::Status status = WriteEventBlocks(); !status.ok()) return status;
  return removals.WriteTo(&output);
}

std::uint64_t Writer::Impl::LastTimestamp() const {
  std::uint64_t last = interval_last;
  for (const Thread* capture : buffered) {
    if (!capture->block.empty()) last = std::max(last, capture->block.last_timestamp());
  }
  return last;
}

absl::Status Writer::WriteSequencePoint(std::uint64_t timestamp, std::uint32_t flags) {
  Impl& w = *impl_;
  if (absl::Status status = w.CheckOpen(); !status.ok()) return status;
  if ((flags & ~kKnownFlags) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence point flags: ", flags, " has unknown bits; the known ones are ",
                     kSequencePointFlushThreads, " and ", kSequencePointFlushMetadata));
  }
  if (w.stats.sequence_points > 0 && timestamp <= w.interval_start) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sequence point at ", timestamp, " is not after the last one, at ", w.interval_start));
  }
  if (timestamp > kMaxTimestamp) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence point at ", timestamp, " is over 2^63 - 1, the maximum"));
  }
  if (const std::uint64_t last = w.LastTimestamp(); timestamp < last) {
    return absl::InvalidArgumentError(absl::StrCat("sequence point at ", timestamp,
                                                   " is earlier than the latest event, at ", last));
  }
  if (absl::Status status = w.WriteAll(); !status.ok()) return status;

  const std::vector<Thread*>& capturing = w.threads.Capturing();
  w.scratch.Clear();
  w.scratch.Reserve(internal::kBlockHeaderSize);
  w.scratch.Fixed(timestamp);
  w.scratch.Fixed(flags);
  w.scratch.Fixed(static_cast<std::uint32_t>(capturing.size()));
  for (const Thread* capture : capturing) {
    w.scratch.VarUInt(ToNumber(capture->index));
    w.scratch.VarUInt(capture->sequence());
  }
  internal::PutBlockHeader(w.scratch.mutable_bytes(), BlockKind::kSequencePoint);
  if (absl::Status status = w.output.Append(w.scratch.bytes()); !status.ok()) return status;

  ++w.stats.sequence_points;
  for (Thread* capture : capturing) {
    capture->block.SkipSequence(capture->lost);
    capture->lost = 0;
  }
  w.StartInterval(timestamp);
  if ((flags & kSequencePointFlushThreads) != 0) w.ForgetThreads();
  if ((flags & kSequencePointFlushMetadata) != 0) w.ForgetMetadata();
  return absl::OkStatus();
}

absl::Status Writer::StartSection(std::uint64_t timestamp) {
  Impl& w = *impl_;
  if (absl::Status status = WriteSequencePoint(timestamp, kKnownFlags); !status.ok()) return status;
  w.threads.Clear(w.options.first_thread_index);
  w.first_metadata_id = w.next_metadata_id = kFirstMetadataId;
  w.output.StartSection();
  return absl::OkStatus();
}

void Writer::Impl::StartInterval(std::uint64_t timestamp) {
  labels.Clear();
  stacks.Clear();
  interval_start = timestamp;
  interval_last = 0;
  interval_bytes = 0;
  const std::uint64_t events = events_end - interval_events_left;
  const std::uint64_t max = std::numeric_limits<std::uint64_t>::max() - events;
  interval_events_left = std::min(max, options.max_interval_events);
  events_end = events + interval_events_left;
}

void Writer::Impl::ForgetThreads() {
  buffered.clear();
  buffer_bytes = 0;
  threads.Clear();
}

// Makes all ids of metadata invalid. New ids continue after the old ones, so no old id becomes
// valid again, unless StartSection resets the ids.
void Writer::Impl::ForgetMetadata() {
  event_ids.StartGeneration();
  first_metadata_id = next_metadata_id;
}

absl::Status Writer::Flush() {
  if (absl::Status status = impl_->CheckOpen(); !status.ok()) return status;
  if (absl::Status status = impl_->WriteAll(); !status.ok()) return status;
  return impl_->output.Flush();
}

absl::Status Writer::Sync() {
  if (absl::Status status = Flush(); !status.ok()) return status;
  return impl_->output.Sync();
}

absl::Status Writer::Finish() {
  Impl& w = *impl_;
  if (w.synced) return w.CheckOpen();
  if (!w.finished) {
    if (absl::Status status = w.WriteAll(); !status.ok()) return status;
    if (absl::Status status = w.output.Append(kEndOfStreamBlock); !status.ok()) return status;
    w.finished = true;
  }
  absl::Status status = w.output.Finish();
  w.synced = status.ok();
  return status;
}

const Writer::Stats& Writer::stats() const {
  Stats& stats = impl_->stats;
  stats.events = impl_->events_end - impl_->interval_events_left;
  stats.bytes = impl_->output.bytes();
  const internal::BlockOutput::Events written = impl_->output.events();
  stats.events_written = written.all;
  stats.events_written_apart = written.apart;
  return stats;
}

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Writer::~Writer() = default;

absl::StatusOr<std::unique_ptr<Writer>> Writer::Create(std::unique_ptr<Sink> sink,
                                                       const TraceInfo& info,
                                                       const WriterOptions& options) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  ByteWriter start;
  if (absl::Status status = internal::PutStreamStart(info, &start); !status.ok()) return status;

  auto impl = std::make_unique<Impl>(std::move(sink), info, options);
  if (absl::Status status = impl->output.Append(start.bytes()); !status.ok()) return status;
  impl->output.StartSection();
  if (absl::Status status = impl->output.FinishTorn(); !status.ok()) return status;
  impl->StartInterval(0);
  return std::unique_ptr<Writer>(new Writer(std::move(impl)));
}

}  // namespace nettrace
