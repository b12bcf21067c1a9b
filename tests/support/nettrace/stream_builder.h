// Builds correct or incorrect NetTrace V6 bytes by hand, for tests. Shares only the format's
// numbers with the library.
#ifndef TESTS_SUPPORT_NETTRACE_STREAM_BUILDER_H_
#define TESTS_SUPPORT_NETTRACE_STREAM_BUILDER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/format.h"

namespace nettrace {

class Bytes {
 public:
  template <typename T>
  Bytes& Number(T value) {
    for (std::size_t i = 0; i < sizeof value; ++i) {
      data_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
    return *this;
  }
  Bytes& U8(unsigned value) { return Number(static_cast<std::uint8_t>(value)); }
  Bytes& U16(unsigned value) { return Number(static_cast<std::uint16_t>(value)); }
  Bytes& U32(std::uint64_t value) { return Number(static_cast<std::uint32_t>(value)); }
  Bytes& U64(std::uint64_t value) { return Number(value); }
  Bytes& Var(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) U8(static_cast<unsigned>(value & 0x7F) | 0x80);
    return U8(static_cast<unsigned>(value));
  }
  Bytes& Raw(std::string_view text) {
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    data_.insert(data_.end(), raw.begin(), raw.end());
    return *this;
  }
  Bytes& Append(const Bytes& bytes) {
    data_.insert(data_.end(), bytes.data_.begin(), bytes.data_.end());
    return *this;
  }
  Bytes& String(std::string_view text) { return Var(text.size()).Raw(text); }
  // Appends a row after its size, a u16.
  Bytes& Row(const Bytes& row) { return U16(static_cast<unsigned>(row.size())).Append(row); }
  std::size_t size() const { return data_.size(); }
  std::span<const std::byte> span() const { return data_; }

 private:
  std::vector<std::byte> data_;
};

inline Bytes Block(BlockKind kind, const Bytes& content) {
  return Bytes().U32(content.size() | static_cast<std::uint64_t>(kind) << 24).Append(content);
}

struct TraceFields {
  int month = 11;
  std::int64_t sync_ticks = 1000;
  std::int64_t frequency = 1'000'000'000;
  unsigned year = 2026;
};

inline Bytes TraceContent(const TraceFields& fields = {}) {
  return Bytes()
      .U16(fields.year)
      .U16(static_cast<unsigned>(fields.month))
      .U16(6)
      .U16(21)
      .U16(10)
      .U16(0)
      .U16(0)
      .U16(500)
      .Number(fields.sync_ticks)
      .Number(fields.frequency)
      .U32(8)
      .U32(1)
      .String("HardwareThreadCount")
      .String("4");
}

inline Bytes StreamHeader() { return Bytes().Raw("Nettrace").U32(0).U32(6).U32(0); }
inline Bytes Start(const TraceFields& fields = {}) {
  return StreamHeader().Append(Block(BlockKind::kTrace, TraceContent(fields)));
}
inline Bytes End() { return Block(BlockKind::kEndOfStream, {}); }

// Returns a field description with its size.
inline Bytes FieldRow(std::string_view name, const Bytes& type) {
  return Bytes().Row(Bytes().String(name).Append(type));
}
inline Bytes Code(TypeCode code) { return Bytes().U8(static_cast<unsigned>(code)); }

struct MetadataFields {
  std::uint64_t id = 1;
  std::string provider = "Provider";
  std::uint64_t event_id = 7;
  std::string name = "Event";
  std::vector<Bytes> fields = {};
  Bytes optional = {};
};

inline Bytes MetadataRowBytes(const MetadataFields& fields) {
  Bytes row;
  row.Var(fields.id).String(fields.provider).Var(fields.event_id).String(fields.name);
  row.U16(static_cast<unsigned>(fields.fields.size()));
  for (const Bytes& field : fields.fields) row.Append(field);
  return row.Row(fields.optional);
}
inline Bytes MetadataBlock(std::initializer_list<MetadataFields> rows) {
  Bytes content;
  content.U16(0);
  for (const MetadataFields& row : rows) content.Row(MetadataRowBytes(row));
  return Block(BlockKind::kMetadata, content);
}

inline Bytes ThreadRowBytes(std::uint64_t index, std::uint64_t process, std::uint64_t thread,
                            std::string_view name = "worker") {
  return Bytes().Var(index).U8(1).String(name).U8(2).Var(process).U8(3).Var(thread);
}
inline Bytes ThreadBlock(std::initializer_list<std::uint64_t> indices) {
  Bytes content;
  for (std::uint64_t index : indices) content.Row(ThreadRowBytes(index, 4242, 4242 + index));
  return Block(BlockKind::kThread, content);
}

struct EventFields {
  std::uint32_t metadata_id = 1;
  std::uint32_t sequence = 1;
  std::uint64_t capture_thread = 1;
  std::uint64_t thread = 1;
  std::uint32_t processor = 0;
  std::uint32_t stack_id = 0;
  std::uint64_t timestamp = 2000;
  std::uint32_t label_list_id = 0;
  bool sorted = false;
  Bytes payload = {};
};

inline Bytes EventHeader(std::uint64_t min, std::uint64_t max, unsigned flags = 1) {
  return Bytes().U16(20).U16(flags).U64(min).U64(max);
}

// Returns an event block in which every row has every column.
inline Bytes EventBlock(const std::vector<EventFields>& events) {
  std::uint64_t min = events.front().timestamp;
  std::uint64_t max = min;
  for (const EventFields& event : events) {
    min = std::min(min, event.timestamp);
    max = std::max(max, event.timestamp);
  }
  Bytes content = EventHeader(min, max);
  std::uint32_t sequence = 0;
  std::uint64_t timestamp = 0;
  for (const EventFields& event : events) {
    content.U8(1u | 2 | 4 | 8 | 16 | (event.sorted ? 64u : 0) | 128).Var(event.metadata_id);
    content.Var(static_cast<std::uint32_t>(event.sequence - 1 - sequence))
        .Var(event.capture_thread)
        .Var(event.processor);
    content.Var(event.thread).Var(event.stack_id).Var(event.timestamp - timestamp);
    content.Var(event.label_list_id).Var(event.payload.size()).Append(event.payload);
    sequence = event.sequence;
    timestamp = event.timestamp;
  }
  return Block(BlockKind::kEvent, content);
}

inline Bytes SequencePointBlock(
    std::uint64_t timestamp, std::uint32_t flags = 0,
    std::initializer_list<std::pair<std::uint64_t, std::uint32_t>> threads = {}) {
  Bytes content;
  content.U64(timestamp).U32(flags).U32(threads.size());
  for (const auto& [thread, sequence] : threads) content.Var(thread).Var(sequence);
  return Block(BlockKind::kSequencePoint, content);
}

// Returns a block with one list: an activity id and a level of 2.
inline Bytes LabelBlock(std::uint32_t first) {
  return Block(BlockKind::kLabelList, Bytes()
                                          .U32(first)
                                          .U32(1)
                                          .U8(1)
                                          .U64(0x1111111111111111)
                                          .U64(0x2222222222222222)
                                          .U8(9 | 0x80)
                                          .U8(2));
}

inline Bytes StackBlock(std::uint32_t first, std::initializer_list<std::uint64_t> frames) {
  Bytes content;
  content.U32(first).U32(1).U32(frames.size() * 8);
  for (std::uint64_t frame : frames) content.U64(frame);
  return Block(BlockKind::kStack, content);
}

// Returns a complete, correct stream with a block of each kind except kRemoveThread. It has two
// intervals, 5 events and no losses.
inline Bytes GoodStream() {
  const Bytes int32 = FieldRow("count", Code(TypeCode::kInt32));
  Bytes stream = Start();
  stream.Append(MetadataBlock({{.fields = {int32}, .optional = Bytes().U8(8).U8(4)},
                               {.id = 2, .event_id = 8, .name = "Other"}}));
  stream.Append(ThreadBlock({1, 2}));
  stream.Append(LabelBlock(1)).Append(StackBlock(1, {0x401000, 0x402000}));
  stream.Append(
      EventBlock({{.label_list_id = 1, .payload = Bytes().U32(11)},
                  {.sequence = 2, .stack_id = 1, .timestamp = 2010, .payload = Bytes().U32(12)}}));
  stream.Append(
      EventBlock({{.metadata_id = 2, .capture_thread = 2, .thread = 2, .timestamp = 2005}}));
  stream.Append(SequencePointBlock(2010, 0, {{1, 2}, {2, 1}}));
  stream.Append(EventBlock({{.sequence = 3, .timestamp = 2020, .payload = Bytes().U32(13)}}));
  stream.Append(EventBlock(
      {{.metadata_id = 2, .sequence = 2, .capture_thread = 2, .thread = 2, .timestamp = 2015}}));
  stream.Append(SequencePointBlock(2030, kSequencePointFlushThreads, {{1, 3}, {2, 2}}));
  return stream.Append(End());
}

}  // namespace nettrace

#endif  // TESTS_SUPPORT_NETTRACE_STREAM_BUILDER_H_
