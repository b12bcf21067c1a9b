// Reads hostile streams of any version to their end, by file order and by time, payloads included.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "nettrace/payload.h"
#include "nettrace/reader.h"
#include "nettrace/time_order.h"

namespace {

using nettrace::Reader;

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
    if (!toucher.balanced()) __builtin_trap();
    toucher.Touch(event.stack);
    toucher.Touch(event.payload);
    toucher.Name(event.thread->name.value_or(""));
    toucher.UInt(event.keywords());
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto reader = Open(bytes);
  if (reader == nullptr) return 0;
  const std::uint64_t events = ReadAll(reader.get());
  if (events != reader->stats().events) __builtin_trap();
  // A stream ends at its end or at its damage, and nowhere else.
  if (reader->status().ok() != reader->stats().complete) __builtin_trap();
  if (reader->damage().has_value() == reader->stats().complete) __builtin_trap();
  nettrace::TimeOrderedReader ordered(Open(bytes));
  if (ReadAll(&ordered) != events) __builtin_trap();
  return 0;
}
