#include "tools/collector/convert/trace_context.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "eventheader/decoder.h"

namespace collector {
namespace {

using eh::Encoding;
using eh::ItemKind;

enum class Id { kNone, kTrace, kSpan };

// Returns the kind of id that a field's name indicates. `part_a` is true for a field that is
// treated as a member of the struct PartA, and false for a field of the event itself.
Id IdOf(std::string_view name, bool part_a) {
  if (name == (part_a ? "ext_dt_traceId" : "trace_id")) return Id::kTrace;
  if (name == (part_a ? "ext_dt_spanId" : "span_id")) return Id::kSpan;
  return Id::kNone;
}

// Reads 16 hexadecimal digits. Returns false if `digits` contains another character.
bool ParseDigits(std::span<const std::byte> digits, std::uint64_t* value) {
  const absl::string_view text(reinterpret_cast<const char*>(digits.data()), digits.size());
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isxdigit(c); }) &&
         absl::SimpleHexAtoi(text, value);
}

// Reads 8 bytes, or 16 hexadecimal digits, as a big-endian number. Returns false for other sizes.
bool ParseHalf(std::span<const std::byte> bytes, std::uint64_t* value) {
  if (bytes.size() == 16) return ParseDigits(bytes, value);
  *value = eh::ReadUnsigned(bytes, /*little_endian=*/false);
  return bytes.size() == 8;
}

void SetTraceId(std::span<const std::byte> bytes, nettrace::Labels* labels) {
  const std::size_t half = bytes.size() / 2;
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  if (bytes.size() % 2 != 0 || !ParseHalf(bytes.first(half), &high) ||
      !ParseHalf(bytes.last(half), &low) || (high | low) == 0) {
    return;
  }
  labels->trace_id.emplace();
  for (std::size_t i = 0; i < 8; ++i) {
    (*labels->trace_id)[i] = static_cast<std::byte>(high >> (56 - 8 * i));
    (*labels->trace_id)[8 + i] = static_cast<std::byte>(low >> (56 - 8 * i));
  }
}

void SetLabel(Id kind, std::span<const std::byte> bytes, nettrace::Labels* labels) {
  std::uint64_t span_id = 0;
  if (kind == Id::kTrace) {
    SetTraceId(bytes, labels);
  } else if (ParseHalf(bytes, &span_id) && span_id != 0) {
    labels->span_id = span_id;
  }
}

// Holds up to 33 characters of an array. The longest id has 32, so a 33rd character shows that the
// array is too long.
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
