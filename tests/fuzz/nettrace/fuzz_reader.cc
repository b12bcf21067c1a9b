// Reads hostile streams of any version to their end, including payloads: in file order from memory
// and from a source that must be waited for, and by time from a source that returns a few bytes at
// a time, with events held in memory and in a temporary file. All must read the same events, and
// both readers by time must return them in order of time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "libnettrace-writer/read/block_reader.h"
#include "libnettrace-writer/read/event_rows.h"
#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/time_ordered_reader.h"

namespace {

using nettrace::Reader;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// A digest of every byte of all values.
class Digest : public nettrace::PayloadVisitor {
 public:
  void OnName(std::string_view name) override { Touch(std::as_bytes(std::span(name))); }
  void OnBeginObject() override { ++depth_; }
  void OnEndObject() override { --depth_; }
  void OnBeginArray() override { ++depth_; }
  void OnEndArray() override { --depth_; }
  void OnInt(std::int64_t value) override { Add(static_cast<std::uint64_t>(value)); }
  void OnUInt(std::uint64_t value) override { Add(value); }
  void OnSingle(float value) override { Add(value > 0 ? 1 : 0); }
  void OnDouble(double value) override { Add(value > 0 ? 1 : 0); }
  void OnBool(bool value) override { Add(value ? 1 : 0); }
  void OnGuid(const nettrace::Guid& value) override { Touch(value); }
  void OnDateTime(absl::Time utc) override { Add(utc > absl::UnixEpoch() ? 1 : 0); }
  void OnDecimal(std::span<const std::byte> bytes) override { Touch(bytes); }
  void OnUtf8(std::span<const std::byte> units) override { Touch(units); }
  void OnUtf16(std::span<const std::byte> units) override { Touch(units); }

  void Touch(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) Add(static_cast<std::uint64_t>(byte));
  }
  void Add(std::uint64_t value) { value_ = (value_ ^ value) * 0x100000001B3; }
  bool balanced() const { return depth_ == 0; }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325;
  int depth_ = 0;
};

// Returns 1 byte, then 2, up to 64, then 1 again, like a pipe in the worst case.
class PieceSource : public nettrace::Source {
 public:
  explicit PieceSource(std::span<const std::byte> bytes, bool is_late = false)
      : rest_(bytes), is_late_(is_late) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    if (is_late_ && (waits_ = !waits_)) return absl::UnavailableError("later");
    const std::size_t size = std::min({piece_, buffer.size(), rest_.size()});
    std::copy_n(rest_.begin(), size, buffer.begin());
    rest_ = rest_.subspan(size);
    piece_ = piece_ % 64 + 1;
    return size;
  }

 private:
  std::span<const std::byte> rest_;
  std::size_t piece_ = 1;
  bool is_late_;  // if true, the first call for each piece fails with Unavailable
  bool waits_ = false;
};

constexpr nettrace::ReaderOptions kOptions = {.max_table_bytes = std::size_t{16} << 20};
constexpr nettrace::ReaderOptions kWaiting = {.max_table_bytes = std::size_t{16} << 20,
                                              .waits = true};
constexpr nettrace::ReaderOptions kSkipping = {.max_table_bytes = std::size_t{16} << 20,
                                               .skip_damage = true};

std::unique_ptr<Reader> Open(std::unique_ptr<nettrace::Source> source,
                             const nettrace::ReaderOptions& options = kOptions) {
  auto reader = Reader::Open(std::move(source), options);
  return reader.ok() ? *std::move(reader) : nullptr;
}

std::uint64_t DigestOf(const nettrace::Event& event) {
  Digest digest;
  nettrace::VisitPayload(event.metadata->fields, event.payload, &digest, event.payload_encoding)
      .IgnoreError();
  Require(digest.balanced());
  digest.Touch(event.stack);
  digest.Touch(event.payload);
  digest.OnName(event.thread->name.value_or(""));
  digest.Touch(event.labels->activity_id.value_or(nettrace::Guid()));
  digest.Touch(event.labels->related_activity_id.value_or(nettrace::Guid()));
  for (const std::uint64_t value :
       {event.offset, ToNumber(event.thread_index), ToNumber(event.capture_thread_index),
        event.timestamp, event.lost_before, event.keywords(), std::uint64_t{event.sequence_number},
        std::uint64_t{ToNumber(event.metadata_id)}, std::uint64_t{event.processor},
        std::uint64_t{event.is_sorted}}) {
    digest.Add(value);
  }
  return digest.value();
}

struct Seen {
  std::uint64_t events = 0;
  std::uint64_t sum = 0;  // Sum of the events' digests, independent of their order.
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Returns a digest of all events in their order, which must be that of time within each interval.
std::uint64_t ReadInOrder(nettrace::TimeOrderedReader* reader) {
  std::uint64_t time = 0;
  std::uint64_t digest = 0;
  for (auto step = reader->Next(); step != Reader::Step::kEnd; step = reader->Next()) {
    if (step == Reader::Step::kSequencePoint) time = 0;
    if (step != Reader::Step::kEvent) continue;
    Require(reader->event().timestamp >= time);
    time = reader->event().timestamp;
    digest = digest * 31 + DigestOf(reader->event());
  }
  Require(reader->sort_status().ok());
  return digest;
}

template <typename AnyReader>
Seen ReadAll(AnyReader* reader) {
  Seen seen;
  for (auto step = reader->Next(); step != Reader::Step::kEnd; step = reader->Next()) {
    if (step != Reader::Step::kEvent) continue;
    ++seen.events;
    seen.sum += DigestOf(reader->event());
  }
  return seen;
}

// Returns whether a reader that waits for its source reads the same as `reader`, which is at its
// end. The damage that the two report may differ, because a reader that waits for more bytes does
// not know where the damage ends.
bool ReadsTheSameIfLate(std::span<const std::byte> bytes, const Reader& reader, const Seen& seen) {
  auto late = Open(std::make_unique<PieceSource>(bytes, /*is_late=*/true), kWaiting);
  Seen seen_late;
  do {
    const Seen part = ReadAll(late.get());
    seen_late.events += part.events;
    seen_late.sum += part.sum;
  } while (late->is_waiting());
  return seen_late == seen && late->status().ok() == reader.status().ok() &&
         late->stats().lost == reader.stats().lost;
}

bool Same(const Reader::Stats& a, const Reader::Stats& b) {
  return a.events == b.events && a.lost == b.lost && a.sequence_points == b.sequence_points &&
         a.threads == b.threads && a.metadata == b.metadata && a.bytes == b.bytes &&
         a.blocks == b.blocks && a.complete == b.complete;
}

// Reads the rows of a block twice, as short rows where that is possible, and as full rows. Both
// must be equal.
void CompareRows(nettrace::internal::EventRows rows) {
  nettrace::internal::EventRows expected = rows;
  while (rows.ok() && !rows.AtEnd()) {
    nettrace::internal::ShortRow row;
    if (!rows.NextLikePrevious(&row) && !rows.NextWithMetadata(&row)) {
      rows.Next();
      row = {rows.offset(), rows.payload()};
    }
    expected.Next();
    Require(rows.ok() == expected.ok());
    Require(row.offset == expected.offset());
    Require(row.payload.data() == expected.payload().data());
    Require(row.payload.size() == expected.payload().size());
    Require(rows.header() == expected.header());
  }
  Require(rows.AtEnd() == expected.AtEnd());
}

void CompareRowsOfAllBlocks(std::span<const std::byte> bytes) {
  nettrace::internal::BlockReader blocks(std::make_unique<nettrace::MemorySource>(bytes),
                                         bytes.size());
  if (!blocks.ReadHeader().ok()) return;
  nettrace::internal::Block block;
  while (blocks.Next(&block)) {
    if (block.kind != static_cast<std::uint8_t>(nettrace::BlockKind::kEvent)) continue;
    CompareRows(nettrace::internal::EventRows(block, blocks.legacy()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  CompareRowsOfAllBlocks(bytes);
  auto reader = Open(std::make_unique<nettrace::MemorySource>(bytes));
  auto from_pieces = Open(std::make_unique<PieceSource>(bytes));
  Require((reader == nullptr) == (from_pieces == nullptr));
  if (reader == nullptr) return 0;
  const Seen seen = ReadAll(reader.get());
  Require(seen.events == reader->stats().events);
  // Without an error, the reader stops only at the end of the stream; with one, only at damage.
  Require(reader->status().ok() == reader->stats().complete);
  Require(reader->damage().has_value() != reader->stats().complete);
  Require(ReadsTheSameIfLate(bytes, *reader, seen));
  nettrace::TimeOrderedReader ordered(std::move(from_pieces));
  Require(ReadAll(&ordered) == seen);
  Require(Same(ordered.reader().stats(), reader->stats()));
  // The errors, which name the damage and its offset, must be equal, too.
  Require(ordered.reader().status() == reader->status());
  nettrace::TimeOrderedReader in_memory(Open(std::make_unique<nettrace::MemorySource>(bytes)));
  nettrace::TimeOrderedReader by_file(Open(std::make_unique<nettrace::MemorySource>(bytes)),
                                      {.max_memory = 1000});
  Require(ReadInOrder(&in_memory) == ReadInOrder(&by_file));
  // A reader that skips damage must read the same events from memory and from small pieces. The
  // rows that its events refer to must stay in memory, which DigestOf checks by reading them.
  const auto skipping = Open(std::make_unique<nettrace::MemorySource>(bytes), kSkipping);
  const Seen seen_skipping = ReadAll(skipping.get());
  Require(skipping->status().ok() == skipping->stats().complete);
  // A complete stream with nothing after it is read in the same way, unless a block in it looks
  // like damage: one of an unknown kind, or with content that no writer would write.
  const bool is_whole = reader->stats().complete && reader->stats().bytes == size;
  Require(!is_whole || !skipping->skipped().empty() || seen_skipping == seen);
  nettrace::TimeOrderedReader skipping_pieces(
      Open(std::make_unique<PieceSource>(bytes), kSkipping));
  Require(ReadAll(&skipping_pieces) == seen_skipping);
  Require(skipping_pieces.reader().skipped().size() == skipping->skipped().size());
  return 0;
}
