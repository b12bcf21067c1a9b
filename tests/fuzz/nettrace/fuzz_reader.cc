// Reads hostile streams of any version to their end, by file order and by time, payloads included.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/time_order.h"
#include "read/block_reader.h"
#include "read/event_rows.h"

namespace {

using nettrace::Reader;

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// Touches every byte that it is shown, for the sanitizers.
class Toucher : public nettrace::PayloadVisitor {
 public:
  void Name(std::string_view name) override { Add(name.size()); }
  void BeginObject() override { ++depth_; }
  void EndObject() override { --depth_; }
  void BeginArray() override { ++depth_; }
  void EndArray() override { --depth_; }
  void Int(std::int64_t value) override { Add(static_cast<std::uint64_t>(value)); }
  void UInt(std::uint64_t value) override { Add(value); }
  void Single(float value) override { Add(value > 0 ? 1 : 0); }
  void Double(double value) override { Add(value > 0 ? 1 : 0); }
  void Bool(bool value) override { Add(value ? 1 : 0); }
  void GuidValue(const nettrace::Guid& value) override { Touch(value); }
  void DateTime(absl::Time utc) override { Add(utc > absl::UnixEpoch() ? 1 : 0); }
  void Decimal(std::span<const std::byte> bytes) override { Touch(bytes); }
  void Utf8(std::span<const std::byte> units) override { Touch(units); }
  void Utf16(std::span<const std::byte> units) override { Touch(units); }

  void Touch(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) Add(static_cast<std::uint64_t>(byte));
  }
  bool balanced() const { return depth_ == 0; }

 private:
  void Add(std::uint64_t value) { sum_ = sum_ + value; }
  volatile std::uint64_t sum_ = 0;
  int depth_ = 0;
};

constexpr nettrace::ReaderOptions kOptions = {.max_table_bytes = std::size_t{16} << 20};

std::unique_ptr<Reader> Open(std::span<const std::byte> bytes) {
  auto reader = Reader::Open(std::make_unique<nettrace::MemorySource>(bytes), kOptions);
  return reader.ok() ? *std::move(reader) : nullptr;
}

template <typename AnyReader>
std::uint64_t ReadAll(AnyReader* reader) {
  std::uint64_t events = 0;
  for (auto step = reader->Next(); step != Reader::Step::kEnd; step = reader->Next()) {
    if (step != Reader::Step::kEvent) continue;
    ++events;
    const nettrace::Event& event = reader->event();
    Toucher toucher;
    nettrace::VisitPayload(event.metadata->fields, event.payload, &toucher, event.payload_encoding)
        .IgnoreError();
    Require(toucher.balanced());
    toucher.Touch(event.stack);
    toucher.Touch(event.payload);
    toucher.Name(event.thread->name.value_or(""));
    toucher.UInt(event.keywords());
  }
  return events;
}

// Rows read the short way, where that can be, are the same as all read the long way.
void CompareRows(nettrace::EventRows rows) {
  nettrace::EventRows expected = rows;
  while (rows.ok() && !rows.AtEnd()) {
    nettrace::ShortRow row;
    if (!rows.NextLikePrevious(&row) && !rows.NextOfOtherKind(&row)) {
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
  nettrace::BlockReader blocks(std::make_unique<nettrace::MemorySource>(bytes), bytes.size());
  if (!blocks.ReadHeader().ok()) return;
  nettrace::Block block;
  while (blocks.Next(&block)) {
    if (block.kind != static_cast<std::uint8_t>(nettrace::BlockKind::kEvent)) continue;
    CompareRows(nettrace::EventRows(block, blocks.legacy()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  CompareRowsOfAllBlocks(bytes);
  auto reader = Open(bytes);
  if (reader == nullptr) return 0;
  const std::uint64_t events = ReadAll(reader.get());
  Require(events == reader->stats().events);
  // A stream ends at its end or at its damage, and nowhere else.
  Require(reader->status().ok() == reader->stats().complete);
  Require(reader->damage().has_value() != reader->stats().complete);
  nettrace::TimeOrderedReader ordered(Open(bytes));
  Require(ReadAll(&ordered) == events);
  return 0;
}
