#include "nettrace/reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "nettrace/format.h"
#include "read/cursor.h"
#include "read/parse_rows.h"

namespace nettrace {
namespace {

constexpr std::size_t kStreamHeaderSize = 20;
constexpr std::size_t kBlockHeaderSize = 4;
constexpr std::int16_t kCompressedFlag = 1;

// Flags of a compressed row's header.
constexpr std::uint8_t kHasMetadataId = 1;
constexpr std::uint8_t kHasSequence = 2;  // number, capture thread, processor
constexpr std::uint8_t kHasThread = 4;
constexpr std::uint8_t kHasStack = 8;
constexpr std::uint8_t kHasLabels = 16;
constexpr std::uint8_t kIsSorted = 64;
constexpr std::uint8_t kHasPayloadSize = 128;

// The columns of an event row, which compressed rows take over from the row before.
struct EventColumns {
  std::uint32_t metadata_id = 0;
  std::uint32_t sequence_number = 0;
  std::uint64_t capture_thread = 0;
  std::uint32_t processor = 0;
  std::uint64_t thread = 0;
  std::uint32_t stack_id = 0;
  std::uint64_t timestamp = 0;
  std::uint32_t label_list_id = 0;
  std::uint32_t payload_size = 0;
  bool is_sorted = false;
};

void TakeCompressed(Cursor* cursor, EventColumns* row) {
  const auto flags = cursor->Number<std::uint8_t>();
  if ((flags & kHasMetadataId) != 0) row->metadata_id = cursor->VarUInt32();
  if ((flags & kHasSequence) != 0) {
    row->sequence_number += cursor->VarUInt32();
    row->capture_thread = cursor->VarUInt64();
    row->processor = cursor->VarUInt32();
  }
  ++row->sequence_number;
  if ((flags & kHasThread) != 0) row->thread = cursor->VarUInt64();
  if ((flags & kHasStack) != 0) row->stack_id = cursor->VarUInt32();
  row->timestamp += cursor->VarUInt64();
  if ((flags & kHasLabels) != 0) row->label_list_id = cursor->VarUInt32();
  if ((flags & kHasPayloadSize) != 0) row->payload_size = cursor->VarUInt32();
  row->is_sorted = (flags & kIsSorted) != 0;
}

void TakeUncompressed(Cursor* cursor, EventColumns* row) {
  cursor->Number<std::uint32_t>();  // the row's size, which the payload's tells, too
  const auto metadata_id = cursor->Number<std::uint32_t>();
  row->metadata_id = metadata_id & 0x7FFFFFFF;
  row->is_sorted = (metadata_id >> 31) == 0;  // the reference writer's sense of it
  row->sequence_number = cursor->Number<std::uint32_t>();
  row->thread = cursor->Number<std::uint64_t>();
  row->capture_thread = cursor->Number<std::uint64_t>();
  row->processor = cursor->Number<std::uint32_t>();
  row->stack_id = cursor->Number<std::uint32_t>();
  row->timestamp = cursor->Number<std::uint64_t>();
  row->label_list_id = cursor->Number<std::uint32_t>();
  row->payload_size = cursor->Number<std::uint32_t>();
}

}  // namespace

std::uint8_t Event::level() const { return labels->level.value_or(metadata->level.value_or(0)); }
std::uint64_t Event::keywords() const {
  return labels->keywords.value_or(metadata->keywords.value_or(0));
}
std::uint8_t Event::opcode() const { return labels->opcode.value_or(metadata->opcode.value_or(0)); }
std::uint8_t Event::version() const {
  return labels->version.value_or(metadata->version.value_or(0));
}

const char* BlockKindName(std::uint8_t kind) {
  switch (static_cast<BlockKind>(kind)) {
    case BlockKind::kEndOfStream:
      return "EndOfStream";
    case BlockKind::kTrace:
      return "Trace";
    case BlockKind::kEvent:
      return "Event";
    case BlockKind::kMetadata:
      return "Metadata";
    case BlockKind::kSequencePoint:
      return "SequencePoint";
    case BlockKind::kStack:
      return "Stack";
    case BlockKind::kThread:
      return "Thread";
    case BlockKind::kRemoveThread:
      return "RemoveThread";
    case BlockKind::kLabelList:
      return "LabelList";
  }
  return "Unknown";
}

struct Reader::Impl {
  explicit Impl(std::unique_ptr<Source> from) : source(std::move(from)) {}

  struct Thread {
    ThreadInfo info;
    std::uint32_t last_sequence = 0;
  };

  absl::Status ReadStreamHeader();
  absl::Status ReadTraceBlock();
  // Reads all of `buffer`; returns how much there was.
  absl::StatusOr<std::size_t> Fill(std::span<std::byte> buffer);
  // Reads the next block into `block`. NotFound where the stream ends between blocks.
  absl::Status ReadBlock(BlockKind* kind);
  absl::Status TakeBlock(BlockKind kind);
  const char* TakeEventHeader();
  const char* TakeTable(BlockKind kind, Cursor cursor);
  const char* TakeMetadata(Cursor cursor);
  const char* TakeThreads(Cursor cursor);
  const char* TakeRemovedThreads(Cursor cursor);
  const char* TakeStacks(Cursor cursor);
  const char* TakeLabels(Cursor cursor);
  const char* TakeSequencePoint(Cursor cursor);
  const char* TakeEvent(Event* event);
  void Account(Thread* thread, std::uint32_t sequence, std::uint32_t more);

  absl::Status Damaged(const char* why) const {
    return absl::DataLossError(
        absl::StrCat("offset ", block_offset, ": ", BlockKindName(block_kind), " block: ", why));
  }

  std::unique_ptr<Source> source;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  TraceInfo trace;
  Stats stats;

  std::vector<std::byte> block;
  std::uint64_t block_offset = 0;
  std::uint8_t block_kind = 0;
  bool ended = false;
  absl::Status error;

  Cursor events;  // what is left of the current event block
  bool compressed = false;
  EventColumns row;

  absl::flat_hash_map<std::uint32_t, std::unique_ptr<EventMetadata>> metadata;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<Thread>> threads;
  absl::flat_hash_map<std::uint32_t, std::vector<std::byte>> stacks;
  absl::flat_hash_map<std::uint32_t, std::unique_ptr<Labels>> labels;
  const Labels no_labels;
};

absl::StatusOr<std::size_t> Reader::Impl::Fill(std::span<std::byte> buffer) {
  std::size_t filled = 0;
  while (filled < buffer.size()) {
    absl::StatusOr<std::size_t> got = source->Read(buffer.subspan(filled));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    filled += *got;
  }
  stats.bytes += filled;
  return filled;
}

absl::Status Reader::Impl::ReadStreamHeader() {
  std::byte header[kStreamHeaderSize];
  absl::StatusOr<std::size_t> got = Fill(header);
  if (!got.ok()) return got.status();
  Cursor cursor(std::span<const std::byte>(header).first(*got));
  const auto magic = cursor.Bytes(8);
  if (!cursor.ok() || std::memcmp(magic.data(), kMagic, 8) != 0) {
    return absl::InvalidArgumentError("not a NetTrace file: it does not begin with 'Nettrace'");
  }
  const auto reserved = cursor.Number<std::uint32_t>();
  major = cursor.Number<std::uint32_t>();
  minor = cursor.Number<std::uint32_t>();
  if (!cursor.ok()) return absl::DataLossError("offset 8: the stream header is cut short");
  if (reserved != 0) {
    return absl::UnimplementedError(
        "a NetTrace file of version 5 or older, which this program does not read");
  }
  if (major != 6) {
    return absl::UnimplementedError(
        absl::StrCat("a NetTrace file of version ", major, ", which this program does not know"));
  }
  return absl::OkStatus();
}

absl::Status Reader::Impl::ReadBlock(BlockKind* kind) {
  block_offset = stats.bytes;
  std::byte header[kBlockHeaderSize];
  absl::StatusOr<std::size_t> got = Fill(header);
  if (!got.ok()) return got.status();
  if (*got == 0) return absl::NotFoundError("");
  if (*got < kBlockHeaderSize) {
    return absl::DataLossError(absl::StrCat(
        "offset ", block_offset, ": a block header is cut short; ", *got, " bytes are left over"));
  }
  const auto word = Cursor(header).Number<std::uint32_t>();
  const std::size_t size = word & 0xFFFFFF;
  block_kind = static_cast<std::uint8_t>(word >> 24);
  *kind = static_cast<BlockKind>(block_kind);
  // A cut file claims more than is there: the buffer grows with what comes, not with the claim.
  constexpr std::size_t kStep = std::size_t{1} << 20;
  block.clear();
  while (block.size() < size) {
    const std::size_t at = block.size();
    const std::size_t step = std::min(kStep, size - at);
    block.resize(at + step);
    got = Fill(std::span(block).subspan(at));
    if (!got.ok()) return got.status();
    if (*got < step) {
      return absl::DataLossError(absl::StrCat(
          "offset ", block_offset, ": the ", BlockKindName(block_kind), " block is cut short; ",
          kBlockHeaderSize + at + *got, " of its ", kBlockHeaderSize + size, " bytes are there"));
    }
  }
  ++stats.blocks[block_kind];
  return absl::OkStatus();
}

absl::Status Reader::Impl::ReadTraceBlock() {
  BlockKind kind = BlockKind::kTrace;
  if (absl::Status status = ReadBlock(&kind); !status.ok()) {
    return absl::IsNotFound(status)
               ? absl::DataLossError("offset 20: the stream ends behind its header")
               : status;
  }
  if (kind != BlockKind::kTrace) return Damaged("the first block is not a Trace block");
  if (const char* why = ParseTraceBlock(Cursor(block), &trace)) return Damaged(why);
  return absl::OkStatus();
}

absl::Status Reader::Impl::TakeBlock(BlockKind kind) {
  const char* why = kind == BlockKind::kEvent ? TakeEventHeader() : TakeTable(kind, Cursor(block));
  return why == nullptr ? absl::OkStatus() : Damaged(why);
}

const char* Reader::Impl::TakeTable(BlockKind kind, Cursor cursor) {
  switch (kind) {
    case BlockKind::kEndOfStream:
      ended = true;
      stats.complete = true;
      return nullptr;
    case BlockKind::kTrace:
      return "a second one";
    case BlockKind::kMetadata:
      return TakeMetadata(cursor);
    case BlockKind::kThread:
      return TakeThreads(cursor);
    case BlockKind::kRemoveThread:
      return TakeRemovedThreads(cursor);
    case BlockKind::kStack:
      return TakeStacks(cursor);
    case BlockKind::kLabelList:
      return TakeLabels(cursor);
    case BlockKind::kSequencePoint:
      return TakeSequencePoint(cursor);
    default:
      return nullptr;  // kinds to come are passed over
  }
}

const char* Reader::Impl::TakeMetadata(Cursor cursor) {
  cursor.Bytes(cursor.Number<std::uint16_t>());
  while (cursor.ok() && !cursor.empty()) {
    std::uint32_t id = 0;
    auto row_metadata = std::make_unique<EventMetadata>();
    if (const char* why = ParseMetadataRow(&cursor, &id, row_metadata.get())) return why;
    if (!metadata.emplace(id, std::move(row_metadata)).second)
      return "a metadata id is there twice";
    ++stats.metadata;
  }
  return cursor.ok() ? nullptr : "the block is cut short";
}

const char* Reader::Impl::TakeThreads(Cursor cursor) {
  while (cursor.ok() && !cursor.empty()) {
    std::uint64_t index = 0;
    auto thread = std::make_unique<Thread>();
    if (const char* why = ParseThreadRow(&cursor, &index, &thread->info)) return why;
    if (!threads.emplace(index, std::move(thread)).second) return "a thread index is there twice";
    ++stats.threads;
  }
  return cursor.ok() ? nullptr : "the block is cut short";
}

const char* Reader::Impl::TakeRemovedThreads(Cursor cursor) {
  while (cursor.ok() && !cursor.empty()) {
    const auto thread = threads.find(cursor.VarUInt64());
    const std::uint32_t sequence = cursor.VarUInt32();
    if (!cursor.ok()) break;
    if (thread == threads.end()) return "a thread that is not there is removed";
    Account(thread->second.get(), sequence, 0);
    threads.erase(thread);
  }
  return cursor.ok() ? nullptr : "the block is cut short";
}

const char* Reader::Impl::TakeStacks(Cursor cursor) {
  const auto first = cursor.Number<std::uint32_t>();
  const auto count = cursor.Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto bytes = cursor.Bytes(cursor.Number<std::uint32_t>());
    if (!cursor.ok()) return "the block is cut short";
    if (!stacks.emplace(first + i, std::vector<std::byte>(bytes.begin(), bytes.end())).second) {
      return "a stack id is there twice";
    }
  }
  return cursor.ok() ? nullptr : "the block is cut short";
}

const char* Reader::Impl::TakeLabels(Cursor cursor) {
  const auto first = cursor.Number<std::uint32_t>();
  const auto count = cursor.Number<std::uint32_t>();
  if (!cursor.ok()) return "the block is cut short";
  if (first == 0) return "the first index is 0";
  for (std::uint32_t i = 0; i < count; ++i) {
    auto list = std::make_unique<Labels>();
    if (const char* why = ParseLabelList(&cursor, list.get())) return why;
    if (!labels.emplace(first + i, std::move(list)).second) return "a label list is there twice";
  }
  return nullptr;
}

// The numbers of a thread go up by one with each event; what is left out was lost. `more` is 1 for
// an event and 0 for a statement of the last number. A step back tells nothing.
void Reader::Impl::Account(Thread* thread, std::uint32_t sequence, std::uint32_t more) {
  const std::uint32_t gap = sequence - thread->last_sequence - more;
  if (gap < 0x80000000) stats.lost += gap;
  thread->last_sequence = sequence;
}

const char* Reader::Impl::TakeSequencePoint(Cursor cursor) {
  cursor.Number<std::uint64_t>();  // its time
  const auto flags = cursor.Number<std::uint32_t>();
  const auto count = cursor.Number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto thread = threads.find(cursor.VarUInt64());
    const std::uint32_t sequence = cursor.VarUInt32();
    if (!cursor.ok()) break;
    if (thread == threads.end()) return "a thread in it is not there";
    Account(thread->second.get(), sequence, 0);
  }
  if (!cursor.ok()) return "the block is cut short";
  ++stats.sequence_points;
  stacks.clear();
  labels.clear();
  if ((flags & kSequencePointFlushThreads) != 0) threads.clear();
  if ((flags & kSequencePointFlushMetadata) != 0) metadata.clear();
  return nullptr;
}

const char* Reader::Impl::TakeEventHeader() {
  Cursor cursor{std::span<const std::byte>(block)};
  const auto header_size = cursor.Number<std::int16_t>();
  const auto flags = cursor.Number<std::int16_t>();
  constexpr std::int16_t kHeader = 20;  // size, flags, least and greatest timestamp
  if (!cursor.ok() || header_size < kHeader) return "its header is cut short";
  cursor.Bytes(static_cast<std::size_t>(header_size) - 4);
  if (!cursor.ok()) return "its header is cut short";
  compressed = (flags & kCompressedFlag) != 0;
  row = EventColumns();
  events = cursor;
  return nullptr;
}

const char* Reader::Impl::TakeEvent(Event* event) {
  if (compressed) {
    TakeCompressed(&events, &row);
  } else {
    TakeUncompressed(&events, &row);
  }
  event->payload = events.Bytes(row.payload_size);
  if (!events.ok()) return "an event is cut short";
  const auto found_metadata = metadata.find(row.metadata_id);
  if (found_metadata == metadata.end()) return "an event's metadata is not there";
  const auto thread = threads.find(row.thread);
  const auto capture_thread = threads.find(row.capture_thread);
  if (thread == threads.end() || capture_thread == threads.end()) {
    return "an event's thread is not there";
  }
  event->labels = &no_labels;
  if (row.label_list_id != 0) {
    const auto list = labels.find(row.label_list_id);
    if (list == labels.end()) return "an event's label list is not there";
    event->labels = list->second.get();
  }
  event->stack = {};
  if (const auto stack = stacks.find(row.stack_id); stack != stacks.end()) {
    event->stack = stack->second;
  } else if (row.stack_id != 0) {
    return "an event's stack is not there";
  }
  Account(capture_thread->second.get(), row.sequence_number, 1);

  event->metadata = found_metadata->second.get();
  event->metadata_id = row.metadata_id;
  event->thread = &thread->second->info;
  event->capture_thread = &capture_thread->second->info;
  event->thread_index = row.thread;
  event->capture_thread_index = row.capture_thread;
  event->sequence_number = row.sequence_number;
  event->processor = row.processor;
  event->timestamp = row.timestamp;
  event->is_sorted = row.is_sorted;
  ++stats.events;
  stats.first_timestamp = std::min(stats.first_timestamp.value_or(row.timestamp), row.timestamp);
  stats.last_timestamp = std::max(stats.last_timestamp.value_or(row.timestamp), row.timestamp);
  return nullptr;
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(std::unique_ptr<Source> source) {
  auto impl = std::make_unique<Impl>(std::move(source));
  if (absl::Status status = impl->ReadStreamHeader(); !status.ok()) return status;
  if (absl::Status status = impl->ReadTraceBlock(); !status.ok()) return status;
  return std::unique_ptr<Reader>(new Reader(std::move(impl)));
}

std::uint32_t Reader::major_version() const { return impl_->major; }
std::uint32_t Reader::minor_version() const { return impl_->minor; }
const TraceInfo& Reader::trace() const { return impl_->trace; }
const Reader::Stats& Reader::stats() const { return impl_->stats; }

absl::StatusOr<bool> Reader::Next(Event* event) {
  Impl& impl = *impl_;
  if (!impl.error.ok()) return impl.error;
  while (!impl.ended) {
    if (!impl.events.empty()) {
      const char* why = impl.TakeEvent(event);
      if (why == nullptr) return true;
      return impl.error = impl.Damaged(why);
    }
    BlockKind kind = BlockKind::kEndOfStream;
    absl::Status status = impl.ReadBlock(&kind);
    if (absl::IsNotFound(status)) {
      status = absl::DataLossError(absl::StrCat("offset ", impl.block_offset,
                                                ": the stream ends without an EndOfStream block"));
    }
    if (status.ok()) status = impl.TakeBlock(kind);
    if (!status.ok()) return impl.error = status;
  }
  return false;
}

absl::Time Reader::TimeOf(std::uint64_t ticks) const {
  const TraceInfo& trace = impl_->trace;
  const auto since =
      static_cast<std::int64_t>(ticks - static_cast<std::uint64_t>(trace.sync_ticks));
  const std::int64_t seconds = since / trace.ticks_per_second;
  const std::int64_t rest = since % trace.ticks_per_second;
  return trace.sync_time + absl::Seconds(seconds) +
         absl::Seconds(1) * rest / trace.ticks_per_second;
}

}  // namespace nettrace
