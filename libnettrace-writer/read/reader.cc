#include "nettrace/reader.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/read/block_reader.h"
#include "libnettrace-writer/read/event_rows.h"
#include "libnettrace-writer/read/id_table.h"
#include "libnettrace-writer/read/metadata_table.h"
#include "libnettrace-writer/read/parse_rows.h"
#include "libnettrace-writer/read/row_cost.h"
#include "libnettrace-writer/read/traceevent_refusal.h"

namespace nettrace {
namespace {

using internal::Block;
using internal::BlockReader;
using internal::ByteReader;
using internal::EventRowHeader;
using internal::EventRows;
using internal::IdTable;
using internal::MetadataTable;
using internal::ShortRow;

struct KnownThread {
  ThreadInfo info;
  std::uint32_t last_sequence = 0;
  std::size_t cost = 0;
};

struct Stack {
  explicit operator bool() const { return is_there; }
  std::span<const std::byte> frames;
  bool is_there = false;
};

template <typename Id, typename Value>
using Table = IdTable<Id, std::unique_ptr<Value>>;

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
  Impl(std::unique_ptr<Source> source, const ReaderOptions& reader_options)
      : options(reader_options),
        blocks(std::move(source), reader_options.max_legacy_block_size, reader_options.waits) {}

  bool legacy() const { return blocks.legacy(); }

  absl::Status Open();
  void ContinueOpening();
  bool ReadTrace();
  Step Next();
  bool NextBlock();
  bool OpenBlock();
  bool ReadMetadata();
  bool ReadLegacyMetadata();
  bool AddMetadata(MetadataId id, EventMetadata row, std::size_t size, std::uint64_t offset);
  bool ReadThreads();
  bool ReadLabels();
  bool ReadStacks();
  bool ReadSequencePoint();
  bool NextEvent();
  Step NextOther();
  void TakeShortEvent(const ShortRow& row);
  bool NextRemovedThread();
  bool ResolveEvent();
  bool ResolveMetadata(std::uint64_t offset);
  bool StopUndefined(std::uint64_t offset, const char* what, std::uint64_t id);
  KnownThread* FindThread(ThreadIndex index, std::uint32_t last_sequence_if_new);
  std::uint64_t CountLost(KnownThread* thread, std::uint32_t last_sequence);
  void FinishStep();
  bool Charge(std::size_t cost, std::uint64_t offset);

  // Returns the offset in the stream of the next byte that `reader` reads from the block.
  std::uint64_t OffsetOf(const ByteReader& reader) const {
    return block.content_offset + block.content.size() - reader.size();
  }

  // Returns the number of bytes of the block from `offset` in the stream to the position of
  // `reader`.
  std::size_t SizeSince(std::uint64_t offset, const ByteReader& reader) const {
    return static_cast<std::size_t>(OffsetOf(reader) - offset);
  }

  // Ends reading with the error `reason`. Returns false, so that callers can return the result.
  bool Stop(std::uint64_t offset, const std::string& reason);
  // With skip_damage, skips the rest of the block; otherwise calls Stop(). Returns false.
  bool StopInBlock(std::uint64_t offset, const std::string& reason);
  void AddSkipped(std::uint64_t offset, std::uint64_t bytes, const std::string& reason);
  // Estimates how many events the latest skipped part contained, from its bytes and the average
  // size of an event in this stream.
  void EstimateSkipped();
  // With skip_damage: truncates `block`, an event block, at its first bad row.
  void CutAtBadRow();
  bool StopAtBlocks();

  ReaderOptions options;
  BlockReader blocks;
  TraceInfo trace;
  // Process id for threads whose rows have none.
  std::optional<std::uint64_t> process_id;

  MetadataTable metadata;
  Table<ThreadIndex, KnownThread> threads;
  // Threads that were removed or defined again. Kept until the next sequence point, because events
  // of the interval refer to them.
  std::vector<std::unique_ptr<KnownThread>> removed_threads;
  Table<LabelListId, Labels> labels;
  IdTable<StackId, Stack> stacks;
  std::vector<std::vector<std::byte>> stack_blocks;  // data of the stacks of the current interval
  std::size_t table_bytes = 0;
  std::size_t metadata_bytes = 0;
  internal::TraceEventRefusal refusal;
  std::size_t interval_bytes = 0;  // the part of table_bytes that a sequence point frees

  // Kind of the block that Next() reads row by row. Blocks of other kinds are read completely at
  // once.
  enum class InBlock { kNothing, kEvents, kRemovedThreads };
  InBlock open = InBlock::kNothing;
  Block block;
  EventRows rows;
  ByteReader removed_rows;

  Step step = Step::kEnd;
  bool ended = false;
  bool has_header = false;
  bool has_trace = false;   // the Trace block, or its error, was read
  bool is_waiting = false;  // the source has no more bytes yet
  Event event;
  KnownThread* event_capture_thread = nullptr;
  Labels legacy_labels;
  const Labels no_labels;
  SequencePoint sequence_point;
  RemovedThread removed;
  absl::Status status;
  std::optional<Damage> damage;
  // State for ReaderOptions::skip_damage.
  std::vector<SkippedPart> skipped;
  std::vector<std::uint64_t> estimates;  // estimated events in each skipped part; 0: no estimate
  // True while CountLost() adds lost events to the latest skipped part. Becomes true when a part of
  // an event block or bytes between blocks are skipped. Becomes false at the next sequence point,
  // or when a block of another kind is skipped.
  bool counts_skipped = false;
  bool lacks_rows = false;  // metadata or threads were skipped
  // A sequence point may have been skipped, so ids may be redefined.
  bool lacks_sequence_point = false;
  std::uint64_t event_bytes = 0;  // bytes of the blocks whose events `stats.events` counts
  // Rows whose ids were defined again. Kept until the next sequence point, because events of the
  // interval refer to them.
  std::vector<std::unique_ptr<Labels>> replaced_labels;
  std::vector<MetadataTable> replaced_metadata;
  Stats stats;
  // Minimum and maximum timestamp of all events; valid if stats.events is not 0.
  std::uint64_t first_timestamp = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last_timestamp = 0;
};

bool Reader::Impl::Stop(std::uint64_t offset, const std::string& reason) {
  ended = true;
  rows = EventRows();
  const std::uint64_t start = std::max(block.offset, blocks.stop_offset());
  const std::uint64_t end = blocks.DrainToEnd();
  damage = Damage{offset, end - start, reason};
  const std::string message =
      absl::StrCat("offset ", offset, ": ", reason, " (", end - start, " bytes not read)");
  status = blocks.source_status().ok() ? absl::DataLossError(message)
                                       : absl::Status(blocks.source_status().code(), message);
  return false;
}

void Reader::Impl::AddSkipped(std::uint64_t offset, std::uint64_t bytes,
                              const std::string& reason) {
  const auto kind = static_cast<BlockKind>(block.kind);
  counts_skipped = kind == BlockKind::kEvent;
  if (skipped.size() < kMaxSkipped) {
    skipped.push_back({offset, bytes, reason, 0});
  } else {
    skipped.back().bytes += bytes;
  }
}

void Reader::Impl::EstimateSkipped() {
  if (event_bytes == 0) return;
  estimates.resize(skipped.size());
  estimates.back() = skipped.back().bytes * stats.events / event_bytes;
}

bool Reader::Impl::StopInBlock(std::uint64_t offset, const std::string& reason) {
  if (!options.skip_damage) return Stop(offset, reason);
  const std::uint64_t end = block.content_offset + block.content.size();
  AddSkipped(offset, end - std::min(offset, end), reason);
  const auto kind = static_cast<BlockKind>(block.kind);
  if (kind == BlockKind::kMetadata || kind == BlockKind::kThread) lacks_rows = true;
  if (kind == BlockKind::kSequencePoint) lacks_sequence_point = true;
  rows = EventRows();
  open = InBlock::kNothing;
  event = Event();
  return false;
}

void Reader::Impl::CutAtBadRow() {
  // A bad row may look like a valid row, but have a time outside the range in the block header, or
  // a sequence number far above the previous number. Such a row is only suspect. The block is cut
  // at this row if a later row is certainly bad.
  constexpr std::uint32_t kMaxGapInBadBlock = 1 << 20;
  EventRows check(block, legacy());
  std::optional<std::uint64_t> suspect;
  std::uint64_t bad = 0;
  std::string reason;
  const bool has_times = !legacy() && check.min_timestamp() <= check.max_timestamp();
  EventRowHeader before;
  for (std::uint64_t events = 0; !check.AtEnd() && reason.empty(); ++events) {
    const std::uint64_t start = block.content_offset + block.content.size() - check.bytes_left();
    if (!check.Next()) {
      bad = start;
      reason = "an event row does not fit its block";
      break;
    }
    const EventRowHeader& row = check.header();
    const auto undefined = [&](const char* what, std::uint64_t id) {
      if (lacks_rows) return;
      bad = start;
      reason = absl::StrCat("an event refers to ", what, " ", id, ", which is not defined");
    };
    if (metadata.Find(row.metadata_id) == nullptr) undefined("metadata", ToNumber(row.metadata_id));
    for (const ThreadIndex thread : {row.capture_thread, row.thread}) {
      if (!legacy() && threads.Find(thread) == nullptr) undefined("thread", ToNumber(thread));
    }
    const bool is_late = has_times && (row.timestamp < check.min_timestamp() ||
                                       row.timestamp > check.max_timestamp());
    const bool is_far = events != 0 && row.capture_thread == before.capture_thread &&
                        row.sequence - before.sequence > kMaxGapInBadBlock;
    if (!suspect && (is_late || is_far)) suspect = start;
    before = row;
  }
  if (reason.empty()) return;
  const std::uint64_t cut = std::min(bad, suspect.value_or(bad));
  AddSkipped(cut, block.content_offset + block.content.size() - cut, reason);
  EstimateSkipped();
  block.content = block.content.first(static_cast<std::size_t>(cut - block.content_offset));
}

bool Reader::Impl::StopAtBlocks() {
  return Stop(blocks.stop_offset(), blocks.stop_reason().empty()
                                        ? "the stream ends without an EndOfStream block"
                                        : blocks.stop_reason());
}

bool Reader::Impl::Charge(std::size_t cost, std::uint64_t offset) {
  table_bytes += cost;
  if (table_bytes <= options.max_table_bytes) return true;
  return Stop(offset,
              absl::StrCat("the reader's tables would hold more than ", options.max_table_bytes,
                           " bytes of metadata, threads, labels and stacks, the limit of this "
                           "reader"));
}

absl::Status Reader::Impl::Open() {
  if (absl::Status header = blocks.ReadHeader(); !header.ok()) return header;
  if (!blocks.source_status().ok()) return blocks.source_status();
  is_waiting = blocks.is_waiting();
  has_header = !is_waiting;
  if (has_header) ReadTrace();
  if (options.skip_damage && !legacy()) blocks.SetSkipsDamage();
  return absl::OkStatus();
}

// Continues Open(), which returned before it had read the Trace block because the source had no
// more bytes yet.
void Reader::Impl::ContinueOpening() {
  if (!has_header) {
    if (absl::Status opened = Open(); !opened.ok()) {
      status = opened;
      ended = true;
    }
  } else {
    ReadTrace();
  }
}

bool Reader::Impl::ReadTrace() {
  const bool has_block = blocks.Next(&block);
  is_waiting = blocks.is_waiting();
  has_trace = !is_waiting;
  if (is_waiting) return false;
  if (!has_block) return StopAtBlocks();
  if (block.kind != static_cast<std::uint8_t>(BlockKind::kTrace)) {
    return Stop(block.offset, "the first block is not a Trace block");
  }
  ++stats.blocks[block.kind];
  ByteReader reader(block.content);
  const char* error = legacy() ? internal::ParseLegacyTraceBlock(reader, &trace)
                               : internal::ParseTraceBlock(reader, &trace);
  if (error != nullptr) {
    trace = TraceInfo();
    return Stop(block.offset, absl::StrCat("Trace block: ", error));
  }
  const auto key = std::find_if(trace.key_values.begin(), trace.key_values.end(),
                                [](const auto& pair) { return pair.first == kKeyProcessId; });
  std::uint64_t number = 0;
  if (key != trace.key_values.end() && absl::SimpleAtoi(key->second, &number)) {
    process_id = number;
  } else if (legacy()) {
    process_id = 0;
  }
  return true;
}

Reader::Step Reader::Impl::Next() {
  FinishStep();
  step = Step::kEnd;
  is_waiting = false;
  while (!ended && !is_waiting && step == Step::kEnd) {
    switch (open) {
      case InBlock::kNothing:
        if (has_trace) {
          NextBlock();
        } else {
          ContinueOpening();
        }
        break;
      case InBlock::kEvents:
        NextEvent();
        break;
      case InBlock::kRemovedThreads:
        NextRemovedThread();
        break;
    }
  }
  return step;
}

// Updates the tables after the previous step: removes the thread that the step reported, or frees
// the data of the interval that the reported sequence point ended.
void Reader::Impl::FinishStep() {
  if (step == Step::kRemovedThread) {
    removed_threads.push_back(threads.Remove(removed.thread_index));
    interval_bytes += removed_threads.back()->cost;
  }
  if (step != Step::kSequencePoint) return;
  labels.Clear();
  stacks.Clear();
  stack_blocks.clear();
  removed_threads.clear();
  replaced_labels.clear();
  replaced_metadata.clear();
  counts_skipped = false;
  lacks_sequence_point = false;
  table_bytes -= interval_bytes;
  interval_bytes = 0;
  if (sequence_point.flags & kSequencePointFlushThreads) {
    threads.ForEach([this](const auto& thread) { table_bytes -= thread->cost; });
    threads.Clear();
  }
  if (sequence_point.flags & kSequencePointFlushMetadata) {
    metadata.Clear();
    refusal.SeeMetadataFlush();
    table_bytes -= metadata_bytes;
    metadata_bytes = 0;
  }
  event = Event();  // makes ResolveEvent look up all ids again: the tables have changed
}

bool Reader::Impl::NextBlock() {
  // V4 and V5 have no thread rows. FindThread adds a thread when it first occurs, and does not
  // check the limit of the tables. The call of Charge() checks the limit here.
  if (legacy() && !Charge(0, blocks.position())) return false;
  const bool has_block = blocks.Next(&block);
  is_waiting = blocks.is_waiting();
  if (!has_block) return !is_waiting && StopAtBlocks();
  if (const BlockReader::Gap& gap = blocks.gap(); gap.bytes != 0) {
    AddSkipped(gap.offset, gap.bytes, "no block begins here");
    counts_skipped = true;
    EstimateSkipped();
    lacks_rows = lacks_sequence_point = true;
  }
  ++stats.blocks[block.kind];
  switch (static_cast<BlockKind>(block.kind)) {
    case BlockKind::kEndOfStream:
      stats.complete = true;
      ended = true;
      return true;
    case BlockKind::kTrace:
      return StopInBlock(block.offset, "a second Trace block");
    case BlockKind::kEvent:
      if (options.skip_damage) CutAtBadRow();
      rows = EventRows(block, legacy());
      if (!rows.ok()) return StopInBlock(block.offset, "the event block's header is malformed");
      event_bytes += block.content.size();
      if (rows.AtEnd() && !legacy()) refusal.SeeEmptyEventBlock(block.offset);
      open = InBlock::kEvents;
      return true;
    case BlockKind::kMetadata:
      return legacy() ? ReadLegacyMetadata() : ReadMetadata();
    case BlockKind::kSequencePoint:
      return ReadSequencePoint();
    case BlockKind::kStack:
      return ReadStacks();
    case BlockKind::kThread:
      return ReadThreads();
    case BlockKind::kRemoveThread:
      removed_rows = ByteReader(block.content);
      open = InBlock::kRemovedThreads;
      return true;
    case BlockKind::kLabelList:
      return ReadLabels();
  }
  return true;
}

bool Reader::Impl::AddMetadata(MetadataId id, EventMetadata row, std::size_t size,
                               std::uint64_t offset) {
  const std::size_t cost = internal::MetadataRowCost(row, size);
  if (!legacy()) refusal.SeeRow(row);
  if (legacy() || !options.skip_damage) {
    if (!metadata.Add(id, std::move(row))) {
      if (legacy()) return true;  // the .NET runtime may repeat a row
      return StopInBlock(offset, absl::StrCat("metadata id ", ToNumber(id), " is defined twice"));
    }
  } else {
    if (metadata.Find(id) != nullptr) {
      if (!lacks_sequence_point) {
        AddSkipped(offset, 0, absl::StrCat("metadata id ", ToNumber(id), " is defined twice"));
        return true;
      }
      // The skipped sequence point may have flushed the metadata, so this row may validly define
      // the id again.
      replaced_metadata.push_back(std::exchange(metadata, MetadataTable()));
      lacks_rows = true;
      event = Event();
    }
    metadata.Add(id, std::move(row));
  }
  ++stats.metadata;
  metadata_bytes += cost;
  return Charge(cost, offset);
}

bool Reader::Impl::ReadMetadata() {
  ByteReader reader(block.content);
  reader.Bytes(reader.Number<std::uint16_t>());
  while (!reader.empty()) {
    const std::uint64_t offset = OffsetOf(reader);
    MetadataId id{};
    EventMetadata row;
    if (const char* error = internal::ParseMetadataRow(&reader, &id, &row))
      return StopInBlock(offset, error);
    if (!AddMetadata(id, std::move(row), SizeSince(offset, reader), offset)) return false;
  }
  return reader.ok() || StopInBlock(block.offset, "the metadata block's header is cut short");
}

bool Reader::Impl::ReadLegacyMetadata() {
  EventRows blobs(block, true);
  if (!blobs.ok()) return StopInBlock(block.offset, "the metadata block's header is cut short");
  while (!blobs.AtEnd()) {
    if (!blobs.Next()) return StopInBlock(blobs.offset(), "a metadata row does not fit its block");
    MetadataId id{};
    EventMetadata row;
    if (const char* error =
            internal::ParseLegacyMetadataRow(ByteReader(blobs.payload()), &id, &row)) {
      return StopInBlock(blobs.offset(), error);
    }
    if (!AddMetadata(id, std::move(row), blobs.payload().size(), blobs.offset())) return false;
  }
  return true;
}

bool Reader::Impl::ReadThreads() {
  ByteReader reader(block.content);
  while (!reader.empty()) {
    const std::uint64_t offset = OffsetOf(reader);
    ThreadIndex index{};
    ThreadInfo row;
    if (const char* error = internal::ParseThreadRow(&reader, &index, &row))
      return StopInBlock(offset, error);
    if (!row.process_id) row.process_id = process_id;
    const std::size_t cost = internal::ThreadRowCost(row, SizeSince(offset, reader));
    if (options.skip_damage && threads.Find(index) != nullptr) {
      if (!lacks_sequence_point) {
        AddSkipped(offset, 0, absl::StrCat("thread index ", ToNumber(index), " is defined twice"));
      }
      removed_threads.push_back(threads.Remove(index));
      interval_bytes += removed_threads.back()->cost;
      event = Event();
    }
    if (!threads.Add(index, std::make_unique<KnownThread>(KnownThread{std::move(row), 0, cost}))) {
      return StopInBlock(offset,
                         absl::StrCat("thread index ", ToNumber(index), " is defined twice"));
    }
    ++stats.threads;
    if (!Charge(cost, offset)) return false;
  }
  return true;
}

bool Reader::Impl::ReadLabels() {
  ByteReader reader(block.content);
  const auto first = reader.Number<std::uint32_t>();
  const auto count = reader.Number<std::uint32_t>();
  if (!reader.ok()) return StopInBlock(block.offset, "the label list block's header is cut short");
  if (first == 0) return StopInBlock(block.offset, "the label list block's first index is 0");
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    auto list = std::make_unique<Labels>();
    if (const char* error = internal::ParseLabelList(&reader, list.get()))
      return StopInBlock(offset, error);
    const std::size_t cost = internal::LabelListCost(*list, SizeSince(offset, reader));
    interval_bytes += cost;
    const LabelListId id{first + i};
    if (ToNumber(id) < first) return StopInBlock(offset, "a label list's index is over 2^32 - 1");
    if (options.skip_damage && labels.Find(id) != nullptr) {
      if (!lacks_sequence_point) {
        AddSkipped(offset, 0, absl::StrCat("label list ", ToNumber(id), " is defined twice"));
      }
      replaced_labels.push_back(labels.Remove(id));
    }
    if (!labels.Add(id, std::move(list))) {
      return StopInBlock(offset, absl::StrCat("label list ", ToNumber(id), " is defined twice"));
    }
    if (!Charge(cost, offset)) return false;
  }
  return true;
}

bool Reader::Impl::ReadStacks() {
  ByteReader reader(block.content);
  const auto first = reader.Number<std::uint32_t>();
  const auto count = reader.Number<std::uint32_t>();
  if (!reader.ok()) return StopInBlock(block.offset, "the stack block's header is cut short");
  const std::span<const std::byte> content = reader.rest();
  const std::vector<std::byte>& kept = stack_blocks.emplace_back(content.begin(), content.end());
  const std::size_t block_cost = internal::kStackBlockCost + content.size();
  interval_bytes += block_cost;
  if (!Charge(block_cost, block.offset)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    const auto frames = reader.Bytes(reader.Number<std::uint32_t>());
    if (!reader.ok()) return StopInBlock(offset, "a stack does not fit its block");
    const StackId id{first + i};  // modulo 2^32, like the ids in events
    const std::size_t start = content.size() - reader.size() - frames.size();
    if (options.skip_damage && stacks.Find(id) != nullptr) stacks.Remove(id);
    if (!stacks.Add(id, {std::span(kept).subspan(start, frames.size()), true})) {
      return StopInBlock(offset, absl::StrCat("stack ", ToNumber(id), " is defined twice"));
    }
    interval_bytes += internal::kStackCost;
    if (!Charge(internal::kStackCost, offset)) return false;
  }
  return true;
}

// Returns the thread; null if it is not defined. V4 and V5 have no thread rows. In these versions,
// adds the thread when it first occurs. `last_sequence_if_new` becomes its last sequence number,
// because the losses before its first event are not known.
KnownThread* Reader::Impl::FindThread(ThreadIndex index, std::uint32_t last_sequence_if_new) {
  if (const auto* found = threads.Find(index)) return found->get();
  if (!legacy()) return nullptr;
  auto thread = std::make_unique<KnownThread>();
  thread->info.process_id = process_id;
  thread->info.thread_id = ToNumber(index);
  thread->last_sequence = last_sequence_if_new;
  thread->cost = internal::kRowCost;
  ++stats.threads;
  table_bytes += thread->cost;  // if this exceeds the limit, the next call of Charge() ends reading
  threads.Add(index, std::move(thread));
  return threads.Find(index)->get();
}

std::uint64_t Reader::Impl::CountLost(KnownThread* thread, std::uint32_t last_sequence) {
  // Before V6, a new OS thread may have the id of a thread that has ended. Its sequence numbers
  // begin at 1 again, and this step back is no loss.
  const bool restarted = legacy() && last_sequence == 0;
  const std::uint64_t lost =
      restarted ? 0 : internal::LostBetween(thread->last_sequence, last_sequence);
  thread->last_sequence = last_sequence;
  stats.lost += lost;
  if (counts_skipped) skipped.back().events += lost;
  return lost;
}

bool Reader::Impl::ReadSequencePoint() {
  ByteReader reader(block.content);
  const internal::SequencePointHeader header =
      internal::ParseSequencePointHeader(&reader, legacy());
  if (!reader.ok()) return StopInBlock(block.offset, "a sequence point is cut short");
  sequence_point = {block.offset, header.timestamp, header.flags, {}};
  for (std::uint32_t i = 0; i < header.threads; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    const internal::ThreadSequence entry = internal::ParseThreadSequence(&reader, legacy());
    if (!reader.ok()) return StopInBlock(offset, "a sequence point's list of threads is cut short");
    KnownThread* thread = FindThread(entry.thread, entry.sequence);
    if (thread == nullptr && lacks_rows) continue;
    if (thread == nullptr) {
      return StopInBlock(offset, absl::StrCat("a sequence point lists thread ",
                                              ToNumber(entry.thread), ", which is not defined"));
    }
    const std::uint64_t lost = CountLost(thread, entry.sequence);
    if (lost > 0) sequence_point.losses.push_back({entry.thread, lost, &thread->info});
  }
  ++stats.sequence_points;
  stats.last_sequence_point = header.timestamp;
  step = Step::kSequencePoint;
  return true;
}

bool Reader::Impl::NextEvent() {
  if (rows.AtEnd()) {
    open = InBlock::kNothing;
    return true;
  }
  if (!rows.Next()) return StopInBlock(rows.offset(), "an event row does not fit its block");
  if (!ResolveEvent()) return false;
  const EventRowHeader& row = rows.header();
  event.offset = rows.offset();
  event.sequence_number = row.sequence;
  event.lost_before = CountLost(event_capture_thread, row.sequence - 1);
  event_capture_thread->last_sequence = row.sequence;
  event.processor = row.processor;
  event.timestamp = row.timestamp;
  event.is_sorted = row.sorted;
  event.payload = rows.payload();
  event.payload_encoding = legacy() ? PayloadEncoding::kLegacy : PayloadEncoding::kV6;
  first_timestamp = std::min(first_timestamp, row.timestamp);
  last_timestamp = std::max(last_timestamp, row.timestamp);
  ++stats.events;
  step = Step::kEvent;
  return true;
}

bool Reader::Impl::StopUndefined(std::uint64_t offset, const char* what, std::uint64_t id) {
  event = Event();
  if (options.skip_damage && lacks_rows) {
    // Skips only this event, because it probably refers to a skipped row. `event` is empty now, so
    // ForbidShort makes the next row resolve all of its ids.
    if (!skipped.empty() && !counts_skipped) ++skipped.back().events;
    rows.ForbidShort();
    return false;
  }
  return StopInBlock(offset,
                     absl::StrCat("an event refers to ", what, " ", id, ", which is not defined"));
}

inline bool Reader::Impl::ResolveMetadata(std::uint64_t offset) {
  const MetadataId id = rows.header().metadata_id;
  if (event.metadata_id == id && event.metadata != nullptr) return true;
  const EventMetadata* const found = metadata.Find(id);
  if (found == nullptr) return StopUndefined(offset, "metadata", ToNumber(id));
  event.metadata_id = id;
  event.metadata = found;
  return true;
}

// Looks up the ids of the row, and stores pointers to their objects in `event`. Most ids are the
// same as in the previous event. These ids are not looked up again.
bool Reader::Impl::ResolveEvent() {
  const EventRowHeader& row = rows.header();
  const auto undefined = [&](const char* what, std::uint64_t id) {
    return StopUndefined(rows.offset(), what, id);
  };
  if (!ResolveMetadata(rows.offset())) return false;
  if (event.capture_thread == nullptr || event.capture_thread_index != row.capture_thread) {
    event_capture_thread = FindThread(row.capture_thread, row.sequence - 1);
    if (event_capture_thread == nullptr) return undefined("thread", ToNumber(row.capture_thread));
    event.capture_thread_index = row.capture_thread;
    event.capture_thread = &event_capture_thread->info;
  }
  if (event.thread == nullptr || event.thread_index != row.thread) {
    const KnownThread* thread = FindThread(row.thread, 0);
    if (thread == nullptr) return undefined("thread", ToNumber(row.thread));
    event.thread_index = row.thread;
    event.thread = &thread->info;
  }
  event.labels = &no_labels;
  if (legacy()) {
    const auto set = [](std::optional<Guid>* to, const Guid& from) {
      to->reset();
      if (from != Guid{}) *to = from;
    };
    set(&legacy_labels.activity_id, row.activity_id);
    set(&legacy_labels.related_activity_id, row.related_activity_id);
    event.labels = &legacy_labels;
  } else if (row.label_list_id != kNoLabels) {
    const auto* found = labels.Find(row.label_list_id);
    if (found == nullptr && !options.skip_damage) {
      return undefined("label list", ToNumber(row.label_list_id));
    }
    if (found != nullptr) event.labels = found->get();
  }
  event.stack = {};
  if (row.stack_id != kNoStack) {
    // An event whose stack is not defined is returned without a stack. TraceEvent does the same.
    if (const Stack* found = stacks.Find(row.stack_id)) event.stack = found->frames;
  }
  return true;
}

bool Reader::Impl::NextRemovedThread() {
  if (removed_rows.empty()) {
    open = InBlock::kNothing;
    return true;
  }
  const std::uint64_t offset = OffsetOf(removed_rows);
  const internal::ThreadSequence entry = internal::ParseThreadSequence(&removed_rows, false);
  if (!removed_rows.ok()) return StopInBlock(offset, "a removed thread does not fit its block");
  KnownThread* thread = FindThread(entry.thread, entry.sequence);
  if (thread == nullptr && lacks_rows) return true;
  if (thread == nullptr) {
    return StopInBlock(
        offset, absl::StrCat("thread ", ToNumber(entry.thread), " is removed and was not defined"));
  }
  removed = {entry.thread, CountLost(thread, entry.sequence), &thread->info};
  event = Event();
  step = Step::kRemovedThread;
  return true;
}

// Stores a row in `event`. Its sequence number follows that of the previous row, so no event was
// lost.
inline void Reader::Impl::TakeShortEvent(const ShortRow& row) {
  const EventRowHeader& header = rows.header();
  event.offset = row.offset;
  event.sequence_number = header.sequence;
  event.lost_before = 0;
  event_capture_thread->last_sequence = header.sequence;
  event.timestamp = header.timestamp;
  event.is_sorted = header.sorted;
  event.payload = row.payload;
  last_timestamp = std::max(last_timestamp, header.timestamp);
  ++stats.events;
}

Reader::Step Reader::Impl::NextOther() {
  ShortRow row;
  if (!rows.NextWithMetadata(&row) || !ResolveMetadata(row.offset)) return Next();
  TakeShortEvent(row);
  return Step::kEvent;
}

absl::StatusOr<std::unique_ptr<Reader>> Reader::Open(std::unique_ptr<Source> source,
                                                     const ReaderOptions& options) {
  auto impl = std::make_unique<Impl>(std::move(source), options);
  if (absl::Status status = impl->Open(); !status.ok()) return status;
  return std::unique_ptr<Reader>(new Reader(std::move(impl)));
}

Reader::Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Reader::~Reader() = default;

std::uint32_t Reader::major_version() const { return impl_->blocks.major_version(); }
std::uint32_t Reader::minor_version() const { return impl_->blocks.minor_version(); }
const TraceInfo& Reader::trace() const { return impl_->trace; }

Reader::Step Reader::Next() {
  // Most events refer to the same rows of the tables as the event before them. Most others refer to
  // another metadata row only.
  ShortRow row;
  if (impl_->rows.NextLikePrevious(&row)) [[likely]] {
    impl_->TakeShortEvent(row);
    return Step::kEvent;
  }
  return impl_->NextOther();
}

bool Reader::is_waiting() const { return impl_->is_waiting; }
const Event& Reader::event() const { return impl_->event; }
const SequencePoint& Reader::sequence_point() const { return impl_->sequence_point; }
const RemovedThread& Reader::removed_thread() const { return impl_->removed; }
const absl::Status& Reader::status() const { return impl_->status; }
const std::optional<Damage>& Reader::damage() const { return impl_->damage; }
const std::string& Reader::traceevent_refusal() const { return impl_->refusal.why(); }
const std::vector<SkippedPart>& Reader::skipped() const {
  // If the lost events are more than this many times the estimate, the skipped part cannot have
  // contained all of them. `events` is then the estimate instead of the number of lost events. It
  // is also the estimate if no lost events were counted.
  constexpr std::uint64_t kFarFromEstimate = 4;
  for (std::size_t i = 0; i < impl_->estimates.size(); ++i) {
    const bool is_counting = i + 1 == impl_->skipped.size() && !impl_->ended;
    const std::uint64_t estimate = impl_->estimates[i];
    std::uint64_t& events = impl_->skipped[i].events;
    if (estimate != 0 && !is_counting && (events == 0 || events / kFarFromEstimate > estimate)) {
      events = estimate;
    }
  }
  return impl_->skipped;
}

const Reader::Stats& Reader::stats() const {
  Stats& stats = impl_->stats;
  stats.bytes = impl_->blocks.position();
  if (stats.events > 0) {
    stats.first_timestamp = impl_->first_timestamp;
    stats.last_timestamp = impl_->last_timestamp;
  }
  return stats;
}

absl::Time Reader::TimeOf(std::uint64_t ticks) const {
  // Most values fit in 64 bits. A division of 64 bits takes a tenth of the time of a division of
  // 128 bits.
  constexpr std::int64_t kMaxTicks = std::int64_t{1} << 62;
  constexpr std::int64_t kMaxFrequency = std::int64_t{1} << 33;  // times 10^9 fits in 63 bits
  const TraceInfo& trace = impl_->trace;
  if (ticks < std::uint64_t{kMaxTicks} && trace.sync_ticks >= 0 && trace.sync_ticks < kMaxTicks &&
      trace.ticks_per_second <= kMaxFrequency) {
    const std::int64_t since = static_cast<std::int64_t>(ticks) - trace.sync_ticks;
    return trace.sync_time + absl::Seconds(since / trace.ticks_per_second) +
           absl::Nanoseconds(since % trace.ticks_per_second * 1'000'000'000 /
                             trace.ticks_per_second);
  }
  // Uses integers of 128 bits. A double cannot represent single nanoseconds beyond 2^53 ns, which
  // is 104 days.
  const absl::int128 since = absl::int128(ticks) - impl_->trace.sync_ticks;
  const absl::int128 frequency = impl_->trace.ticks_per_second;
  return impl_->trace.sync_time + absl::Seconds(static_cast<std::int64_t>(since / frequency)) +
         absl::Nanoseconds(
             static_cast<std::int64_t>(since % frequency * 1'000'000'000 / frequency));
}

}  // namespace nettrace
