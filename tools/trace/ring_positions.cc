#include "tools/trace/ring_positions.h"

#include <algorithm>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nettrace/format.h"
#include "nettrace/payload.h"
#include "nettrace/payload_encoder.h"
#include "tools/base/guid_text.h"
#include "tools/base/text.h"
#include "tools/trace/account.h"

namespace trace {
namespace {

constexpr char kName[] = "RingPositions";
constexpr std::uint32_t kEventId = 10;  // not an AccountEvent::Kind
constexpr std::uint8_t kPositionsLevel = 4;
constexpr std::size_t kNumbers = 6;  // numbers that an event RingPositions has for each writer
// Maximum number of writers in an event RingPositions. A payload has at most 65535 bytes.
constexpr std::size_t kWritersOfEvent = 1024;
// Maximum number of a file's writers whose positions are kept. Further writers are ignored.
constexpr std::size_t kMaxWriters = std::size_t{4} * kMaxRingPositions;
// Maximum number of a file's thread rows that are kept. At the limit, all of them are forgotten.
constexpr std::size_t kMaxRows = std::size_t{1} << 20;
// The end mark (EndRecord) in a record. No service has this writer, because ordinals begin with 1.
constexpr RingWriterId kEndMark = {};

const std::vector<nettrace::Field>& Fields() {
  static const std::vector<nettrace::Field> fields = {
      nettrace::MakeField<nettrace::Guid>("Region"),
      nettrace::MakeField<std::uint32_t>("Remaining"),
      {"Positions", nettrace::Type::Array(nettrace::Type::Simple(nettrace::TypeCode::kUInt64))}};
  return fields;
}

// A part of a record: positions of one region.
struct Part {
  RingRegionId region = {};
  std::vector<std::uint64_t> numbers;
};

std::vector<Part> Split(const RingRecord& record) {
  std::vector<Part> parts;
  std::size_t left = kMaxRingPositions;
  for (const auto& [writer, entry] : record) {
    if (left-- == 0) break;
    if (parts.empty() || parts.back().region != writer.region ||
        parts.back().numbers.size() == kWritersOfEvent * kNumbers) {
      parts.push_back({writer.region, {}});
    }
    parts.back().numbers.insert(
        parts.back().numbers.end(),
        {writer.ordinal, entry.number, entry.units, entry.pending, entry.skip, entry.owed});
  }
  if (parts.empty()) parts.emplace_back();
  return parts;
}

class PartVisitor : public nettrace::PayloadVisitor {
 public:
  void OnGuid(const nettrace::Guid& value) override { part.region = value; }
  void OnBeginArray() override { in_array_ = true; }
  void OnUInt(std::uint64_t value) override {
    if (in_array_) {
      part.numbers.push_back(value);
    } else {
      remaining = value;
    }
  }

  Part part;
  std::uint64_t remaining = 0;

 private:
  bool in_array_ = false;
};

struct Source {
  RingWriterId writer;
  std::uint64_t number = 0;
  std::uint64_t units = 0;
};

// Parses the value of kRingThreadKey. Returns nullopt if the thread's row does not have the key, or
// its value is invalid.
std::optional<Source> ParseSource(const nettrace::ThreadInfo& thread) {
  const auto found = std::find_if(thread.key_values.begin(), thread.key_values.end(),
                                  [](const auto& each) { return each.first == kRingThreadKey; });
  if (found == thread.key_values.end()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(found->second, '/');
  Source source;
  if (parts.size() != 4 || !absl::SimpleAtoi(parts[1], &source.writer.ordinal) ||
      !absl::SimpleAtoi(parts[2], &source.number) || !absl::SimpleAtoi(parts[3], &source.units)) {
    return std::nullopt;
  }
  const std::optional<RingRegionId> region = base::ParseHex128(parts[0]);
  if (!region) return std::nullopt;
  source.writer.region = *region;
  return source;
}

}  // namespace

std::string RingThreadSource(const RingWriterId& writer) {
  return absl::StrCat(base::FormatHex(writer.region), "/", writer.ordinal);
}

std::string RingThreadValue(std::string_view source, std::uint64_t number, std::uint64_t units) {
  return absl::StrCat(std::string(source), "/", number, "/", units);
}

nettrace::EventMetadata RingPositionsMetadata() {
  nettrace::EventMetadata metadata;
  metadata.provider = std::string(kAccountProvider);
  metadata.event_id = kEventId;
  metadata.name = kName;
  metadata.fields = Fields();
  metadata.opcode = 0;
  metadata.level = kPositionsLevel;
  return metadata;
}

std::vector<std::vector<std::byte>> RingPositionsPayloads(const RingRecord& record) {
  const std::vector<Part> parts = Split(record);
  std::vector<std::vector<std::byte>> payloads;
  for (const Part& part : parts) {
    nettrace::PayloadEncoder encoder(&Fields());
    encoder.GuidValue(part.region).UInt(parts.size() - payloads.size() - 1);
    encoder.BeginArray(part.numbers.size());
    for (const std::uint64_t number : part.numbers) encoder.UInt(number);
    encoder.EndArray();
    const absl::StatusOr<std::span<const std::byte>> payload = encoder.Finish();
    if (payload.ok()) payloads.emplace_back(payload->begin(), payload->end());
  }
  return payloads;
}

RingRecord RecordOf(const RecordedRings& recorded) {
  RingRecord record;
  if (recorded.ending != RecordedRings::Ending::kInterrupted) record = EndRecord();
  for (const auto& [writer, position] : recorded.positions) {
    record[writer] = {position.number, kAllUnits, 0, position.skip, position.owed};
  }
  return record;
}

RingRecord EndRecord() { return {{kEndMark, {}}}; }

bool IsRingPositions(const nettrace::Event& event) {
  return IsAccount(event) && event.metadata->name == kName;
}

void RingPositionReader::Add(const nettrace::Reader& reader, nettrace::Reader::Step step) {
  if (step == nettrace::Reader::Step::kEvent) {
    const nettrace::Event& event = reader.event();
    if (IsRingPositions(event)) {
      AddRecord(event);
    } else {
      AddUnits(event.capture_thread_index, event.capture_thread, event.lost_before + 1);
    }
  } else if (step == nettrace::Reader::Step::kRemovedThread) {
    const nettrace::RemovedThread& removed = reader.removed_thread();
    AddUnits(removed.thread_index, removed.thread, removed.lost);
    rows_.erase(ToNumber(removed.thread_index));
  } else if (step == nettrace::Reader::Step::kSequencePoint) {
    const nettrace::SequencePoint& point = reader.sequence_point();
    for (const nettrace::SequencePoint::Loss& loss : point.losses) {
      AddUnits(loss.thread_index, loss.thread, loss.count);
    }
    if ((point.flags & nettrace::kSequencePointFlushThreads) != 0) rows_.clear();
  }
}

void RingPositionReader::AddUnits(nettrace::ThreadIndex index, const nettrace::ThreadInfo* thread,
                                  std::uint64_t count) {
  Row& row = FindRow(index, thread);
  if (row.writer == nullptr) return;
  row.units += count;
  row.writer->units = std::max(row.writer->units, row.units);
}

RingPositionReader::Row& RingPositionReader::FindRow(nettrace::ThreadIndex index,
                                                     const nettrace::ThreadInfo* thread) {
  // Forgets all rows at the limit, which only a hostile file reaches.
  if (rows_.size() >= kMaxRows) rows_.clear();
  const auto [entry, is_new] = rows_.try_emplace(ToNumber(index));
  Row& row = entry->second;
  if (!is_new || thread == nullptr) return row;
  const std::optional<Source> source = ParseSource(*thread);
  if (!source) return row;
  if (writers_.size() >= kMaxWriters && !writers_.contains(source->writer)) return row;
  Writer& writer = writers_[source->writer];
  row = {&writer, source->units};
  // The position moves to the first unit of the row, unless a record states a later position. A row
  // after that record may begin with losses that are older than the record.
  if (!writer.entry || (writer.entry->units <= source->units)) {
    writer.entry = {source->number, source->units, 0, 0, 0};
  }
  return row;
}

void RingPositionReader::AddRecord(const nettrace::Event& event) {
  PartVisitor visitor;
  const bool is_read = event.metadata->fields == Fields() &&
                       nettrace::VisitPayload(event.metadata->fields, event.payload, &visitor,
                                              event.payload_encoding)
                           .ok();
  const std::vector<std::uint64_t>& numbers = visitor.part.numbers;
  if (!is_read || numbers.size() % kNumbers != 0 || record_.size() > kMaxRingPositions) {
    record_.clear();
    return;
  }
  for (std::size_t i = 0; i < numbers.size(); i += kNumbers) {
    record_[{visitor.part.region, numbers[i]}] = {numbers[i + 1], numbers[i + 2], numbers[i + 3],
                                                  numbers[i + 4], numbers[i + 5]};
  }
  if (visitor.remaining != 0) return;
  has_record_ = true;
  has_ended_ = record_.erase(kEndMark) != 0;
  for (const auto& [writer, entry] : record_) {
    if (writers_.size() < kMaxWriters || writers_.contains(writer)) writers_[writer].entry = entry;
  }
  record_.clear();
}

RingPositions RingPositionReader::Positions() const {
  RingPositions positions;
  for (const auto& [id, writer] : writers_) {
    if (!writer.entry) continue;
    const RingPositionEntry& entry = *writer.entry;
    RingPosition position = {entry.number, entry.skip, entry.owed};
    if (writer.units >= entry.units) {
      position.skip += writer.units - entry.units;
    } else {
      position.owed += entry.pending;
    }
    positions[id] = position;
  }
  return positions;
}

}  // namespace trace
