#include "nettrace/verifier.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "libnettrace-writer/core/date_time.h"
#include "libnettrace-writer/core/event_ids.h"
#include "libnettrace-writer/core/sequence_numbers.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/types.h"
#include "libnettrace-writer/core/utf.h"
#include "libnettrace-writer/read/block_reader.h"
#include "libnettrace-writer/read/event_rows.h"
#include "libnettrace-writer/read/parse_rows.h"
#include "libnettrace-writer/read/row_cost.h"
#include "libnettrace-writer/verify/verify_rules.h"
#include "nettrace/payload.h"
#include "nettrace/reader.h"

namespace nettrace {
namespace {

using internal::Block;
using internal::BlockReader;
using internal::ByteReader;
using internal::EventIdTable;
using internal::EventRowHeader;
using internal::EventRows;
using internal::IsArray;
using internal::RuleId;
using internal::ThreadSequence;
namespace traceevent = internal::traceevent;

// Maximum bytes of a string that a finding quotes.
constexpr std::size_t kMaxQuote = 256;

// Estimated bytes in memory of the index of a removed thread.
constexpr std::size_t kRemovedThreadCost = 16;

// Finds values that TraceEvent misreads: arrays of more than kMaxArrayCount elements, and values of
// Boolean32 that are true but have a low byte of 0.
class ValueChecker : public PayloadVisitor {
 public:
  bool too_long() const { return too_long_; }
  bool has_misread_boolean() const { return has_misread_boolean_; }

  void OnBeginObject() override { Begin(false); }
  void OnEndObject() override { --depth_; }
  void OnBeginArray() override { Begin(true); }
  void OnEndArray() override { --depth_; }
  void OnInt(std::int64_t) override { Count(); }
  void OnUInt(std::uint64_t) override { Count(); }
  void OnSingle(float) override { Count(); }
  void OnDouble(double) override { Count(); }
  void OnBool(bool) override { Count(); }
  void OnBool32(std::uint32_t value) override {
    Count();
    if (traceevent::IsMisreadBoolean(value)) has_misread_boolean_ = true;
  }
  void OnGuid(const Guid&) override { Count(); }
  void OnDateTime(absl::Time) override { Count(); }
  void OnDecimal(std::span<const std::byte>) override { Count(); }
  void OnUtf8(std::span<const std::byte> units) override { Text(units.size()); }
  void OnUtf16(std::span<const std::byte> units) override { Text(units.size() / 2); }

 private:
  struct Level {
    bool array;
    std::uint32_t count;
  };
  void Begin(bool array) {
    Count();
    levels_[static_cast<std::size_t>(++depth_)] = {array, 0};
  }
  void Count() {
    Level& level = levels_[static_cast<std::size_t>(depth_)];
    if (level.array && ++level.count > traceevent::kMaxArrayCount) too_long_ = true;
  }
  void Text(std::size_t units) {
    Count();
    if (units > traceevent::kMaxArrayCount) too_long_ = true;
  }

  std::array<Level, 2 * kMaxTypeDepth + 2> levels_{};
  int depth_ = 0;
  bool too_long_ = false;
  bool has_misread_boolean_ = false;
};

class Verifier {
 public:
  Verifier(std::unique_ptr<Source> source, const VerifyOptions& options)
      : options_(options), blocks_(std::move(source), options.max_table_bytes) {}

  absl::StatusOr<VerifyReport> Run();

 private:
  struct Thread {
    std::uint32_t last_sequence = 0;
    std::uint64_t last_timestamp = 0;
    std::size_t cost = 0;
  };

  void Report(RuleId rule, std::uint64_t offset, std::string explanation);
  void CheckBlock();
  void CheckTraceBlock();
  void CheckMetadataBlock();
  void CheckMetadata(MetadataId id, EventMetadata row, std::uint64_t offset);
  void CheckEventId(MetadataId id, const EventMetadata& row, std::uint64_t offset);
  void CheckFieldTypes(const std::vector<Field>& fields, std::uint64_t offset);
  void CheckFieldType(const Type& type, std::uint64_t offset);
  void CheckThreadBlock();
  void CheckRemoveThreadBlock();
  void CheckLabelListBlock();
  void CheckStackBlock();
  void CheckEventBlock();
  void CheckEventRow(const EventRows& rows);
  void CheckEventOrder(const EventRows& rows);
  void CheckEventPayload(const EventRows& rows);
  void CheckSequencePoint();
  void CheckEnd();
  std::uint64_t OffsetOf(const ByteReader& reader) const {
    return block_.content_offset + block_.content.size() - reader.size();
  }
  // Returns the number of bytes from `offset`, where a row begins, to the position of `reader`.
  std::size_t SizeSince(std::uint64_t offset, const ByteReader& reader) const {
    return static_cast<std::size_t>(OffsetOf(reader) - offset);
  }
  void ExpectEnd(const ByteReader& reader);
  // Reports the strings of one row that are not UTF-8. `offset` is that of the row.
  void ExpectUtf8(std::uint64_t offset, std::initializer_list<std::string_view> strings,
                  const KeyValues& pairs = {});
  // Adds the size of a row to the size of the tables. Returns false if the tables exceed their
  // limit, and reports a finding the first time.
  bool Charge(std::size_t bytes);

  const VerifyOptions options_;
  BlockReader blocks_;
  Block block_;
  VerifyReport report_;
  std::array<std::size_t, static_cast<std::size_t>(RuleId::kCount)> found_{};
  bool full_ = false;
  std::size_t table_bytes_ = 0;     // estimated bytes of all tables, without event_ids_
  std::size_t interval_bytes_ = 0;  // the part of table_bytes_ that any sequence point frees
  std::size_t metadata_bytes_ = 0;  // the part of table_bytes_ that only a flush of metadata frees
  std::size_t pointer_size_ = 8;

  absl::flat_hash_map<MetadataId, std::unique_ptr<EventMetadata>> metadata_;
  EventIdTable event_ids_;  // includes rows from before flushes, which TraceEvent remembers
  absl::flat_hash_map<ThreadIndex, Thread> threads_;
  // Threads removed since the last flush of threads.
  absl::flat_hash_set<ThreadIndex> removed_threads_;
  absl::flat_hash_set<LabelListId> labels_;
  absl::flat_hash_set<StackId> stacks_;

  std::uint64_t last_sequence_point_ = 0;
  std::uint64_t latest_event_ = 0;  // time of the latest event after the last sequence point
  std::uint64_t sorted_until_ = 0;  // time of the latest event with IsSorted
  ThreadIndex block_capture_thread_ = kNoThread;
};

void Verifier::Report(RuleId rule, std::uint64_t offset, std::string explanation) {
  const auto index = static_cast<std::size_t>(rule);
  const Rule& facts = VerifyRules()[index];
  ++(facts.severity == Severity::kError ? report_.errors : report_.hazards);
  if (found_[index]++ < options_.max_findings_per_rule) {
    report_.findings.push_back({&facts, offset, std::move(explanation)});
  }
}

bool Verifier::Charge(std::size_t bytes) {
  table_bytes_ += bytes;
  if (table_bytes_ + event_ids_.bytes() <= options_.max_table_bytes) return true;
  if (!full_) {
    Report(RuleId::kTableSize, block_.offset,
           absl::StrCat("the verifier's tables would hold more than ", options_.max_table_bytes,
                        " bytes of metadata, threads, labels and stacks; the rest of the file is "
                        "not checked"));
  }
  full_ = true;
  return false;
}

void Verifier::ExpectEnd(const ByteReader& reader) {
  if (reader.ok() && !reader.empty()) {
    Report(RuleId::kBlockEnd, OffsetOf(reader),
           absl::StrCat(reader.size(), " bytes after the last row of the block"));
  }
}

void Verifier::ExpectUtf8(std::uint64_t offset, std::initializer_list<std::string_view> strings,
                          const KeyValues& pairs) {
  const auto expect = [this, offset](std::string_view string) {
    if (internal::ClassifyUtf8(std::as_bytes(std::span(string))) != internal::TextKind::kInvalid)
      return;
    std::string shown = "a string is not UTF-8: ";
    internal::AppendUtf8AsValid(std::as_bytes(std::span(string.substr(0, kMaxQuote))), &shown);
    Report(RuleId::kStringUtf8, offset, std::move(shown));
  };
  for (const std::string_view string : strings) expect(string);
  for (const auto& [key, value] : pairs) {
    expect(key);
    expect(value);
  }
}

absl::StatusOr<VerifyReport> Verifier::Run() {
  if (absl::Status header = blocks_.ReadHeader(); !header.ok()) return header;
  report_.version = blocks_.major_version();
  bool first = true;
  bool has_trace = false;
  while (!full_ && blocks_.Next(&block_)) {
    const bool is_trace = block_.kind == static_cast<std::uint8_t>(BlockKind::kTrace);
    if (first && !is_trace) {
      Report(RuleId::kTraceFirst, block_.offset,
             absl::StrCat("the first block has the kind ", BlockKindName(block_.kind)));
    }
    if (is_trace && has_trace) Report(RuleId::kTraceOnce, block_.offset, "another Trace block");
    has_trace |= is_trace;
    first = false;
    if (block_.kind == static_cast<std::uint8_t>(BlockKind::kEndOfStream)) {
      CheckEnd();
      return std::move(report_);
    }
    CheckBlock();
  }
  // A source, e.g. a decompressor, may report DataLoss if its input is cut. This is a finding, not
  // an error.
  if (!blocks_.source_status().ok() && !absl::IsDataLoss(blocks_.source_status())) {
    return blocks_.source_status();
  }
  if (!blocks_.stop_reason().empty()) {
    Report(RuleId::kTruncated, blocks_.stop_offset(), blocks_.stop_reason());
  } else if (!full_) {
    Report(RuleId::kNoEndOfStream, blocks_.stop_offset(),
           "the stream ends without an EndOfStream block");
  }
  return std::move(report_);
}

void Verifier::CheckEnd() {
  if (!block_.content.empty()) {
    Report(RuleId::kEndOfStreamContent, block_.offset,
           absl::StrCat("the EndOfStream block has ", block_.content.size(), " bytes"));
  }
  const std::uint64_t end = blocks_.position();
  const std::uint64_t stream_end = blocks_.DrainToEnd();
  if (stream_end > end) {
    Report(RuleId::kTrailingBytes, end,
           absl::StrCat(stream_end - end, " bytes after the EndOfStream block"));
  }
  if (!blocks_.source_status().ok()) {
    Report(RuleId::kTruncated, stream_end, std::string(blocks_.source_status().message()));
  }
}

void Verifier::CheckBlock() {
  switch (static_cast<BlockKind>(block_.kind)) {
    case BlockKind::kTrace:
      return CheckTraceBlock();
    case BlockKind::kEvent:
      return CheckEventBlock();
    case BlockKind::kMetadata:
      return CheckMetadataBlock();
    case BlockKind::kSequencePoint:
      return CheckSequencePoint();
    case BlockKind::kStack:
      return CheckStackBlock();
    case BlockKind::kThread:
      return CheckThreadBlock();
    case BlockKind::kRemoveThread:
      return CheckRemoveThreadBlock();
    case BlockKind::kLabelList:
      return CheckLabelListBlock();
    case BlockKind::kEndOfStream:
      return;
  }
  Report(RuleId::kUnknownBlock, block_.offset,
         absl::StrCat("a block of kind ", static_cast<int>(block_.kind), ", which readers skip"));
}

void Verifier::CheckTraceBlock() {
  TraceInfo info;
  if (const char* error = internal::ParseTraceBlock(ByteReader(block_.content), &info)) {
    return Report(RuleId::kTraceFields, block_.offset, error);
  }
  pointer_size_ = static_cast<std::size_t>(info.pointer_size);
  ByteReader time(block_.content);
  const internal::DateTime sync_time = internal::ReadDateTime(&time);
  if (!internal::IsValid(sync_time)) {
    Report(RuleId::kTraceFields, block_.offset, "SyncTimeUTC is not a date and time");
  } else if (sync_time[0] < traceevent::kMinYear) {
    Report(RuleId::kTraceYear, block_.offset,
           absl::StrCat("SyncTimeUTC is in the year ", sync_time[0],
                        "; the minimum for TraceEvent is ", traceevent::kMinYear));
  }
  ExpectUtf8(block_.offset, {}, info.key_values);
}

void Verifier::CheckMetadataBlock() {
  ByteReader reader(block_.content);
  reader.Bytes(reader.Number<std::uint16_t>());
  if (!reader.ok()) {
    return Report(RuleId::kMetadataRow, block_.offset, "the block's header is cut short");
  }
  while (!reader.empty()) {
    const std::uint64_t offset = OffsetOf(reader);
    MetadataId id{};
    EventMetadata row;
    const char* error = internal::ParseMetadataRow(&reader, &id, &row);
    if (error == internal::kTypesTooDeep) {
      Report(RuleId::kReaderLimits, offset, error);
      row.fields.clear();  // without fields, the payloads of the row's events are not checked
    } else if (error != nullptr) {
      return Report(RuleId::kMetadataRow, offset, error);
    }
    const std::size_t cost = internal::MetadataRowCost(row, SizeSince(offset, reader));
    metadata_bytes_ += cost;
    if (!Charge(cost)) return;
    CheckMetadata(id, std::move(row), offset);
  }
}

void Verifier::CheckMetadata(MetadataId id, EventMetadata row, std::uint64_t offset) {
  ExpectUtf8(
      offset,
      {row.provider, row.name, row.message_template.value_or(""), row.description.value_or("")},
      row.key_values);
  CheckFieldTypes(row.fields, offset);
  CheckEventId(id, row, offset);
  if (!row.opcode && traceevent::TakesOpcodeFrom(row.name)) {
    Report(RuleId::kStartStopOpcode, offset,
           absl::StrCat("metadata ", ToNumber(id), " (", row.name,
                        ") has no opcode, so TraceEvent shows the name without its ending"));
  }
  if (!metadata_.try_emplace(id, std::make_unique<EventMetadata>(std::move(row))).second) {
    Report(RuleId::kMetadataRedefined, offset,
           absl::StrCat("metadata ", ToNumber(id), " is already defined"));
  }
}

void Verifier::CheckEventId(MetadataId id, const EventMetadata& row, std::uint64_t offset) {
  if (!traceevent::IsEventId(row.event_id)) {
    Report(
        RuleId::kEventIdRange, offset,
        absl::StrCat("metadata ", ToNumber(id), " (", row.provider, "/", row.name, ") has EventId ",
                     row.event_id, "; the maximum for TraceEvent is ", traceevent::kMaxEventId));
  }
  switch (event_ids_.Find(row)) {
    case EventIdTable::Clash::kNone:
      break;
    case EventIdTable::Clash::kSchema:
      Report(RuleId::kEventIdUnique, offset,
             absl::StrCat("metadata ", ToNumber(id), " shares provider ", row.provider,
                          " and EventId ", row.event_id,
                          " with another row, but their names, fields or opcodes differ"));
      break;
    case EventIdTable::Clash::kName:
      Report(RuleId::kEventNameUnique, offset,
             absl::StrCat("metadata ", ToNumber(id), " (", row.provider, "/", row.name,
                          ") has EventId ", row.event_id,
                          ", but another row with that name has another EventId"));
      break;
  }
  if (traceevent::IsMisreadKnownEvent(row)) {
    Report(RuleId::kKnownEvents, offset,
           absl::StrCat("TraceEvent takes metadata ", ToNumber(id), " (", row.provider, "/",
                        row.name, ", EventId ", row.event_id,
                        ") for an event that it knows, but the provider, name or fields differ; "
                        "use another provider"));
  }
  event_ids_.Add(row);
}

void Verifier::CheckFieldTypes(const std::vector<Field>& fields, std::uint64_t offset) {
  for (const Field& field : fields) {
    ExpectUtf8(offset, {field.name});
    CheckFieldType(field.type, offset);
  }
}

void Verifier::CheckFieldType(const Type& type, std::uint64_t offset) {
  CheckFieldTypes(type.fields, offset);
  if (traceevent::IsMisread(type.code)) {
    Report(RuleId::kTypeMisread, offset,
           type.code == TypeCode::kDecimal
               ? "a field is a Decimal, which V6 does not have"
               : "a field is a DateTime, which TraceEvent reads as an 8-byte FILETIME");
  }
  if (!IsArray(type)) return;
  const Type& element = type.element[0];
  CheckFieldType(element, offset);
  if (internal::IsLocation(type) && !internal::FixedSize(element)) {
    Report(RuleId::kLocationElement, offset,
           "the element type of a RelLoc or DataLoc has no fixed size");
  } else if (traceevent::IsMisreadArrayOfArrays(type)) {
    Report(RuleId::kArrayOfArrays, offset,
           "an array's elements are arrays, which TraceEvent misreads");
  }
  if (traceevent::IsMisreadArrayOfObjects(type)) {
    Report(RuleId::kArrayOfEmptyObjects, offset,
           "an array's elements are objects without fields, which TraceEvent misreads");
  }
  if (traceevent::IsMisreadFixedArray(type)) {
    const std::uint64_t bytes = type.count * internal::FixedSize(element).value_or(0);
    Report(RuleId::kFixedArraySize, offset,
           absl::StrCat("a fixed-length array of ", type.count, " elements, ", bytes,
                        " bytes; TraceEvent needs 1 element or more, and at most ",
                        traceevent::kMaxFixedArrayBytes, " bytes"));
  }
}

void Verifier::CheckThreadBlock() {
  ByteReader reader(block_.content);
  while (!reader.empty()) {
    const std::uint64_t offset = OffsetOf(reader);
    ThreadIndex index{};
    ThreadInfo row;
    if (const char* error = internal::ParseThreadRow(&reader, &index, &row)) {
      return Report(RuleId::kThreadRow, offset, error);
    }
    ExpectUtf8(offset, {row.name.value_or("")}, row.key_values);
    const std::size_t cost = internal::ThreadRowCost(row, SizeSince(offset, reader));
    if (!Charge(cost)) return;
    if (!threads_.try_emplace(index, Thread{.cost = cost}).second) {
      table_bytes_ -= cost;
      Report(RuleId::kThreadRedefined, offset,
             absl::StrCat("thread index ", ToNumber(index), " is already defined"));
    } else if (removed_threads_.contains(index)) {
      Report(RuleId::kThreadIndexReused, offset,
             absl::StrCat("thread index ", ToNumber(index),
                          " was removed and is defined again without a flush of threads"));
    }
  }
}

void Verifier::CheckRemoveThreadBlock() {
  ByteReader reader(block_.content);
  while (!reader.empty()) {
    const std::uint64_t offset = OffsetOf(reader);
    const ThreadSequence entry = internal::ParseThreadSequence(&reader, false);
    if (!reader.ok())
      return Report(RuleId::kThreadRow, offset, "a RemoveThread row does not fit its block");
    if (ToNumber(entry.thread) < traceevent::kMinRemovableThreadIndex) {
      Report(
          RuleId::kRemoveThreadIndex, offset,
          absl::StrCat("thread index ", ToNumber(entry.thread),
                       " is one that TraceEvent may take for the OS id of a thread; use at least ",
                       traceevent::kMinRemovableThreadIndex));
    }
    const auto thread = threads_.find(entry.thread);
    if (thread == threads_.end()) {
      Report(RuleId::kThreadRemoved, offset,
             absl::StrCat("thread index ", ToNumber(entry.thread),
                          " is removed, but was never defined, or was already removed or flushed"));
      continue;
    }
    if (internal::IsStepBack(thread->second.last_sequence, entry.sequence)) {
      Report(RuleId::kSequencePointNumber, offset,
             absl::StrCat("thread ", ToNumber(entry.thread), " is removed with sequence number ",
                          entry.sequence, ", below that of its last event, ",
                          thread->second.last_sequence));
    }
    interval_bytes_ += thread->second.cost;
    threads_.erase(thread);
    if (removed_threads_.insert(entry.thread).second && !Charge(kRemovedThreadCost)) return;
  }
}

void Verifier::CheckLabelListBlock() {
  ByteReader reader(block_.content);
  const auto first = reader.Number<std::uint32_t>();
  const auto count = reader.Number<std::uint32_t>();
  if (!reader.ok()) {
    return Report(RuleId::kLabelRow, block_.offset, "the block's header is cut short");
  }
  if (first == 0)
    Report(RuleId::kLabelFirstIndex, block_.offset, "the label list block's first index is 0");
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    Labels list;
    if (const char* error = internal::ParseLabelList(&reader, &list)) {
      return Report(RuleId::kLabelRow, offset, error);
    }
    ExpectUtf8(offset, {}, list.strings);
    for (const auto& [key, value] : list.integers) ExpectUtf8(offset, {key});
    const LabelListId id{first + i};
    if (ToNumber(id) < first)
      return Report(RuleId::kLabelRow, offset, "a label list's index is over 2^32 - 1");
    const std::size_t cost = internal::LabelListCost(list, SizeSince(offset, reader));
    interval_bytes_ += cost;
    if (!Charge(cost)) return;
    if (!labels_.insert(id).second) {
      Report(RuleId::kLabelRedefined, offset,
             absl::StrCat("label list ", ToNumber(id), " is already defined"));
    }
  }
  ExpectEnd(reader);
}

void Verifier::CheckStackBlock() {
  ByteReader reader(block_.content);
  const auto first = reader.Number<std::uint32_t>();
  const auto count = reader.Number<std::uint32_t>();
  if (!reader.ok()) {
    return Report(RuleId::kStackRow, block_.offset, "the block's header is cut short");
  }
  // The verifier keeps only the ids of stacks, but a Reader keeps the bytes of the block. The bytes
  // count here, too, so that a file over the limit of a Reader is also over that of the verifier.
  const std::size_t block_cost = internal::kStackBlockCost + reader.size();
  interval_bytes_ += block_cost;
  if (!Charge(block_cost)) return;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    const StackId id{first + i};  // modulo 2^32, like the ids in events
    const auto bytes = reader.Bytes(reader.Number<std::uint32_t>());
    if (!reader.ok()) return Report(RuleId::kStackRow, offset, "a stack does not fit its block");
    if (bytes.size() % pointer_size_ != 0) {
      Report(RuleId::kStackSize, offset,
             absl::StrCat("a stack of ", bytes.size(), " bytes, which is not a multiple of the ",
                          pointer_size_, " bytes of a pointer"));
    }
    if (bytes.size() / pointer_size_ > traceevent::kMaxStackFrames) {
      Report(RuleId::kStackFrames, offset,
             absl::StrCat("a stack of ", bytes.size() / pointer_size_,
                          " frames; the maximum for TraceEvent is ", traceevent::kMaxStackFrames));
    }
    interval_bytes_ += internal::kStackCost;
    if (!Charge(internal::kStackCost)) return;
    if (!stacks_.insert(id).second) {
      Report(RuleId::kStackRedefined, offset,
             absl::StrCat("stack ", ToNumber(id), " is already defined"));
    }
  }
  ExpectEnd(reader);
}

void Verifier::CheckEventBlock() {
  EventRows rows(block_, false);
  if (!rows.ok()) {
    return Report(RuleId::kEventBlockHeader, block_.offset, "the block's header is cut short");
  }
  if (!rows.compressed()) {
    Report(RuleId::kUncompressedRows, block_.offset,
           "the rows are not compressed; readers disagree on IsSorted in such rows");
  }
  if (rows.AtEnd())
    return Report(RuleId::kEventBlockEmpty, block_.offset, "the block has no events");
  std::uint64_t min = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t max = 0;
  bool first = true;
  while (!rows.AtEnd()) {
    if (!rows.Next()) {
      return Report(RuleId::kEventRow, rows.offset(), "an event row does not fit its block");
    }
    if (first) block_capture_thread_ = rows.header().capture_thread;
    first = false;
    min = std::min(min, rows.header().timestamp);
    max = std::max(max, rows.header().timestamp);
    CheckEventRow(rows);
  }
  if (min != rows.min_timestamp() || max != rows.max_timestamp()) {
    Report(RuleId::kBlockTimestamps, block_.offset,
           absl::StrCat("the header has the times ", rows.min_timestamp(), "..",
                        rows.max_timestamp(), ", but the events have ", min, "..", max));
  }
}

void Verifier::CheckEventRow(const EventRows& rows) {
  ++report_.events;
  const EventRowHeader& row = rows.header();
  if (!threads_.contains(row.thread)) {
    Report(
        RuleId::kThreadDefined, rows.offset(),
        absl::StrCat("an event is about thread ", ToNumber(row.thread), ", which is not defined"));
  }
  if (row.label_list_id != kNoLabels && !labels_.contains(row.label_list_id)) {
    Report(RuleId::kLabelsDefined, rows.offset(),
           absl::StrCat("an event has label list ", ToNumber(row.label_list_id),
                        ", which is not defined"));
  }
  if (row.stack_id != kNoStack && !stacks_.contains(row.stack_id)) {
    Report(RuleId::kStackDefined, rows.offset(),
           absl::StrCat("an event has stack ", ToNumber(row.stack_id), ", which is not defined"));
  }
  if (row.capture_thread != block_capture_thread_ &&
      !traceevent::MayChangeCaptureThread(row.sorted)) {
    Report(RuleId::kCaptureThreadChange, rows.offset(),
           absl::StrCat("capture thread ", ToNumber(row.capture_thread), " follows ",
                        ToNumber(block_capture_thread_), " at an event without IsSorted"));
  }
  block_capture_thread_ = row.capture_thread;
  if (!traceevent::IsProcessor(row.processor)) {
    Report(RuleId::kProcessorNumber, rows.offset(),
           absl::StrCat("processor ", row.processor, "; TraceEvent reads only its low byte"));
  }
  if (row.timestamp > traceevent::kMaxEventTimestamp) {
    Report(RuleId::kEventTimestamp, rows.offset(),
           absl::StrCat("an event at ", row.timestamp, "; the maximum for TraceEvent is ",
                        traceevent::kMaxEventTimestamp));
  }
  CheckEventOrder(rows);
  CheckEventPayload(rows);
}

void Verifier::CheckEventOrder(const EventRows& rows) {
  const EventRowHeader& row = rows.header();
  const auto earlier = [&](RuleId rule, const char* what, std::uint64_t time) {
    if (row.timestamp >= time) return;
    Report(rule, rows.offset(), absl::StrCat("an event at ", row.timestamp, " ", what, " ", time));
  };
  earlier(RuleId::kAfterSequencePoint, "is earlier than the sequence point before it, at",
          last_sequence_point_);
  earlier(RuleId::kSortedFlag, "is earlier than an event with IsSorted before it, at",
          sorted_until_);
  latest_event_ = std::max(latest_event_, row.timestamp);
  if (row.sorted) sorted_until_ = std::max(sorted_until_, row.timestamp);

  const auto thread = threads_.find(row.capture_thread);
  if (thread == threads_.end()) {
    return Report(RuleId::kThreadDefined, rows.offset(),
                  absl::StrCat("an event was captured by thread ", ToNumber(row.capture_thread),
                               ", which is not defined"));
  }
  Thread& last = thread->second;
  earlier(RuleId::kCaptureThreadOrder,
          "is earlier than the previous event of its capture thread, at", last.last_timestamp);
  if (internal::IsStepBack(last.last_sequence, row.sequence - 1)) {
    Report(RuleId::kSequenceOrder, rows.offset(),
           absl::StrCat("event ", row.sequence, " of capture thread ", ToNumber(row.capture_thread),
                        " follows event ", last.last_sequence));
  }
  last.last_sequence = row.sequence;
  last.last_timestamp = row.timestamp;
}

void Verifier::CheckEventPayload(const EventRows& rows) {
  const std::span<const std::byte> payload = rows.payload();
  if (payload.size() > traceevent::kMaxPayloadSize) {
    Report(RuleId::kPayloadSize, rows.offset(),
           absl::StrCat("a payload of ", payload.size(), " bytes; the maximum for TraceEvent is ",
                        traceevent::kMaxPayloadSize));
  }
  const auto metadata = metadata_.find(rows.header().metadata_id);
  if (metadata == metadata_.end()) {
    return Report(RuleId::kMetadataDefined, rows.offset(),
                  absl::StrCat("an event has metadata ", ToNumber(rows.header().metadata_id),
                               ", which is not defined"));
  }
  ValueChecker checker;
  const absl::Status status = VisitPayload(metadata->second->fields, payload, &checker);
  if (absl::IsResourceExhausted(status)) {
    const absl::string_view why = status.message();
    Report(RuleId::kReaderLimits, rows.offset(),
           absl::StrCat("the payload cannot be shown: ", why));
  } else if (!status.ok()) {
    const absl::string_view why = status.message();
    Report(RuleId::kPayload, rows.offset(),
           absl::StrCat("the payload does not fit the fields of metadata ",
                        ToNumber(rows.header().metadata_id), ": ", why));
  }
  if (checker.too_long()) {
    Report(RuleId::kArrayCount, rows.offset(),
           absl::StrCat("an array has more than ", traceevent::kMaxArrayCount,
                        " elements, the maximum for TraceEvent"));
  }
  if (checker.has_misread_boolean()) {
    Report(RuleId::kBooleanValue, rows.offset(),
           "a Boolean32 is not 0, but its low byte is, so TraceEvent shows false");
  }
}

void Verifier::CheckSequencePoint() {
  ByteReader reader(block_.content);
  const internal::SequencePointHeader header = internal::ParseSequencePointHeader(&reader, false);
  if (!reader.ok()) {
    return Report(RuleId::kSequencePointRow, block_.offset, "the sequence point is cut short");
  }
  if (header.timestamp < last_sequence_point_) {
    Report(RuleId::kSequencePointOrder, block_.offset,
           absl::StrCat("a sequence point at ", header.timestamp,
                        " is earlier than the previous one, at ", last_sequence_point_));
  }
  if (latest_event_ > header.timestamp) {
    Report(RuleId::kBeforeSequencePoint, block_.offset,
           absl::StrCat("an event at ", latest_event_,
                        " is later than the sequence point after it, at ", header.timestamp));
  }
  for (std::uint32_t i = 0; i < header.threads; ++i) {
    const std::uint64_t offset = OffsetOf(reader);
    const ThreadSequence entry = internal::ParseThreadSequence(&reader, false);
    if (!reader.ok()) {
      Report(RuleId::kSequencePointRow, offset, "the list of threads is cut short");
      break;
    }
    const auto thread = threads_.find(entry.thread);
    if (thread == threads_.end()) {
      Report(RuleId::kSequencePointThread, offset,
             absl::StrCat("thread ", ToNumber(entry.thread), " is listed but not defined"));
    } else if (internal::IsStepBack(thread->second.last_sequence, entry.sequence)) {
      Report(RuleId::kSequencePointNumber, offset,
             absl::StrCat("thread ", ToNumber(entry.thread), " is listed with sequence number ",
                          entry.sequence, ", below that of its last event, ",
                          thread->second.last_sequence));
    } else {
      thread->second.last_sequence = entry.sequence;
    }
  }
  ExpectEnd(reader);
  last_sequence_point_ = std::max(last_sequence_point_, header.timestamp);
  latest_event_ = 0;
  table_bytes_ -= std::exchange(interval_bytes_, 0);
  labels_.clear();
  stacks_.clear();
  if (header.flags & kSequencePointFlushThreads) {
    for (const auto& [index, thread] : threads_) table_bytes_ -= thread.cost;
    threads_.clear();
    table_bytes_ -= kRemovedThreadCost * removed_threads_.size();
    removed_threads_.clear();
  }
  if (header.flags & kSequencePointFlushMetadata) {
    metadata_.clear();
    table_bytes_ -= std::exchange(metadata_bytes_, 0);
  }
}

// Checks only that a V4 or V5 stream is readable, because no program except the .NET runtime writes
// V4 and V5.
VerifyReport VerifyLegacy(Reader* reader) {
  while (reader->Next() != Reader::Step::kEnd) {
  }
  VerifyReport report;
  report.version = reader->major_version();
  report.events = reader->stats().events;
  if (const std::optional<Damage>& damage = reader->damage()) {
    const bool is_limit = damage->reason == internal::kTypesTooDeep;
    const RuleId id = is_limit ? RuleId::kReaderLimits : RuleId::kDamagedLegacy;
    ++(is_limit ? report.hazards : report.errors);
    report.findings.push_back(
        {&VerifyRules()[static_cast<std::size_t>(id)], damage->offset, damage->reason});
  }
  return report;
}

// A source of the bytes that were read ahead, followed by the bytes of `rest`.
class PeekedSource : public Source {
 public:
  PeekedSource(std::vector<std::byte> peeked, std::unique_ptr<Source> rest)
      : peeked_(std::move(peeked)), rest_(std::move(rest)) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    if (next_ == peeked_.size()) return rest_->Read(buffer);
    const std::size_t n = std::min(buffer.size(), peeked_.size() - next_);
    std::copy_n(peeked_.begin() + static_cast<std::ptrdiff_t>(next_), n, buffer.begin());
    next_ += n;
    return n;
  }

 private:
  std::vector<std::byte> peeked_;
  std::size_t next_ = 0;
  std::unique_ptr<Source> rest_;
};

}  // namespace

absl::StatusOr<VerifyReport> Verify(std::unique_ptr<Source> source, const VerifyOptions& options) {
  // Size of "Nettrace" and the 4 bytes after it, which are 0 in V6, and not 0 in V4 and V5.
  constexpr std::size_t kPeek = 12;
  std::vector<std::byte> head;
  while (head.size() < kPeek) {
    std::array<std::byte, kPeek> buffer{};
    const auto got = source->Read(std::span(buffer).first(kPeek - head.size()));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    head.insert(head.end(), buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(*got));
  }
  const bool legacy = head.size() == kPeek && head[8] != std::byte{0};
  auto whole = std::make_unique<PeekedSource>(std::move(head), std::move(source));
  if (!legacy) return Verifier(std::move(whole), options).Run();
  auto reader = Reader::Open(std::move(whole), {.max_table_bytes = options.max_table_bytes});
  if (!reader.ok()) return reader.status();
  return VerifyLegacy(reader->get());
}

}  // namespace nettrace
