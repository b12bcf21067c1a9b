#include "tools/collector/convert/trace_context.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "eventheader/decoder.h"

namespace collector {
namespace {

using eh::Encoding;
using eh::ItemKind;

enum class Id { kNone, kTrace, kSpan };

// What a field holds; `part_a` says whether it is a member of a struct PartA of the event's.
Id IdOf(std::string_view name, bool part_a) {
  if (name == (part_a ? "ext_dt_traceId" : "trace_id")) return Id::kTrace;
  if (name == (part_a ? "ext_dt_spanId" : "span_id")) return Id::kSpan;
  return Id::kNone;
}

int HexDigit(std::byte digit) {
  const auto c = static_cast<char>(digit);
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// An id of kSize bytes, as its bytes or twice as many digits.
template <std::size_t kSize>
bool TakeId(std::span<const std::byte> bytes, std::array<std::byte, kSize>* id) {
  if (bytes.size() == kSize) {
    std::copy(bytes.begin(), bytes.end(), id->begin());
  } else if (bytes.size() == 2 * kSize) {
    for (std::size_t i = 0; i < kSize; ++i) {
      const int high = HexDigit(bytes[2 * i]);
      const int low = HexDigit(bytes[2 * i + 1]);
      if (high < 0 || low < 0) return false;
      (*id)[i] = static_cast<std::byte>(high << 4 | low);
    }
  } else {
    return false;
  }
  return *id != std::array<std::byte, kSize>{};
}

void SetLabel(Id kind, std::span<const std::byte> bytes, nettrace::Labels* labels) {
  if (kind == Id::kTrace) {
    std::array<std::byte, 16> id;
    if (TakeId(bytes, &id)) labels->trace_id = id;
  } else {
    std::array<std::byte, 8> id;
    if (TakeId(bytes, &id)) labels->span_id = eh::ReadUnsigned(id, false);
  }
}

// The characters of an array; of a longer one than any id, too many to be one.
struct Characters {
  std::array<std::byte, 33> bytes;
  std::size_t size = 0;

  void Add(std::span<const std::byte> more) {
    if (size < bytes.size() && more.size() == 1) bytes[size++] = more[0];
  }
};

}  // namespace

bool NamesTraceContext(const eh::EventView& event) {
  eh::MetadataReader reader(event.metadata, event.little_endian);
  eh::FieldDefinition field;
  while (reader.Next(&field)) {
    if (field.depth <= 1 && IdOf(field.name, field.depth == 1) != Id::kNone) return true;
  }
  return false;
}

void LiftTraceContext(const eh::EventView& event, nettrace::Labels* labels) {
  eh::Decoder decoder(event);
  eh::Item item;
  Characters characters;
  int depth = 0;
  bool part_a = false;
  while (decoder.Next(&item)) {
    if (item.kind == ItemKind::kStructBegin) {
      if (depth++ == 0) part_a = !item.is_element && item.field->name == "PartA";
      continue;
    }
    if (item.kind == ItemKind::kStructEnd) {
      --depth;
      continue;
    }
    if (depth > 1 || (depth == 1 && !part_a)) continue;
    const Id kind = IdOf(item.field->name, depth == 1);
    if (kind == Id::kNone) continue;
    if (item.kind == ItemKind::kArrayBegin) {
      characters.size = 0;
    } else if (item.is_element) {
      characters.Add(item.bytes);
    } else if (item.kind == ItemKind::kArrayEnd) {
      SetLabel(kind, {characters.bytes.data(), characters.size}, labels);
    } else if (item.field->encoding == Encoding::kValue64 && kind == Id::kSpan) {
      const std::uint64_t id = eh::ReadUnsigned(item.bytes, event.little_endian);
      if (id != 0) labels->span_id = id;
    } else {
      SetLabel(kind, item.bytes, labels);
    }
  }
}

}  // namespace collector
