#include "tests/support/nettrace/random_schema.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "libnettrace-writer/core/traceevent.h"

namespace nettrace::testing {
namespace {

struct Piece {
  std::string_view utf8;
  std::u16string_view utf16;
};
constexpr Piece kPieces[] = {{"a", u"a"},
                             {"Zz", u"Zz"},
                             {"\xC3\xA9", u"\u00E9"},
                             {"\xE2\x82\xAC", u"\u20AC"},
                             {"\xF0\x9F\x98\x80", u"\U0001F600"},
                             {"\"\\\n", u"\"\\\n"},
                             {"Start", u"Start"},
                             {std::string_view("\0", 1), std::u16string_view(u"\0", 1)}};
constexpr std::size_t kPiecesWithoutNul = std::size(kPieces) - 1;

// Codes (nettrace::TypeCode) of all types that may be written and have no elements. Types of a
// fixed size are first.
constexpr int kScalars[] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 17, 23, 26, 18, 20, 21};
constexpr std::size_t kFixedSizeScalars = 15;
constexpr int kMaxDepth = 4;

}  // namespace

std::string Randomly::Text() {
  std::string text;
  const std::size_t pieces = for_traceevent() ? kPiecesWithoutNul : std::size(kPieces);
  for (std::uint64_t n = Below(OneIn(10) ? 200 : 6); n > 0; --n) {
    text += kPieces[Below(pieces)].utf8;
  }
  return text;
}

std::u16string Randomly::Text16() {
  std::u16string text;
  const std::size_t pieces = for_traceevent() ? kPiecesWithoutNul : std::size(kPieces);
  for (std::uint64_t n = Below(OneIn(10) ? 200 : 6); n > 0; --n) {
    text += kPieces[Below(pieces)].utf16;
  }
  return text;
}

std::array<std::byte, 16> Randomly::Sixteen() {
  std::array<std::byte, 16> bytes;
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  return bytes;
}

nettrace::KeyValues Randomly::KeyValues() {
  nettrace::KeyValues key_values(OneIn(3) ? CountBelow(4) : 0);
  for (auto& [key, value] : key_values) {
    key = Text();
    value = Text();
  }
  return key_values;
}

std::vector<std::byte> Randomly::Bytes() {
  std::vector<std::byte> bytes(CountBelow(OneIn(20) ? 5000 : 60));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  return bytes;
}

nettrace::Type Randomly::Scalar() {
  return nettrace::Type::Simple(static_cast<TypeCode>(kScalars[Below(std::size(kScalars))]));
}

nettrace::Type Randomly::FixedSizeType(int depth) {
  if (depth < kMaxDepth && OneIn(4)) {
    std::vector<Field> fields(1 + CountBelow(3));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      fields[i] = {std::to_string(i), FixedSizeType(depth + 1)};
    }
    return nettrace::Type::Object(std::move(fields));
  }
  return nettrace::Type::Simple(static_cast<TypeCode>(kScalars[Below(kFixedSizeScalars)]));
}

// Returns the type of an array's elements. For TraceEvent, it is neither an empty object nor an
// array, except of text, because TraceEvent cannot read arrays of these types.
nettrace::Type Randomly::ArrayElement(int depth) {
  if (!for_traceevent()) return Type(depth);
  switch (Below(4)) {
    case 0:
      return nettrace::Type::Object(Fields(depth + 1, 1));
    case 1: {
      const TypeCode unit = OneIn(2) ? TypeCode::kUtf8CodeUnit : TypeCode::kUtf16CodeUnit;
      return OneIn(2)
                 ? nettrace::Type::Array(nettrace::Type::Simple(unit))
                 : nettrace::Type::FixedLengthArray(nettrace::Type::Simple(unit), FixedCount());
    }
    default:
      return Scalar();
  }
}

std::uint16_t Randomly::FixedCount() {
  if (for_traceevent()) return static_cast<std::uint16_t>(1 + Below(5));
  return static_cast<std::uint16_t>(OneIn(20) ? Below(65536) : Below(5));
}

nettrace::Type Randomly::Type(int depth) {
  if (depth > kMaxDepth || !OneIn(3)) return Scalar();
  switch (Below(5)) {
    case 0:
      return nettrace::Type::Array(ArrayElement(depth + 1));
    case 1:
      return nettrace::Type::FixedLengthArray(ArrayElement(depth + 1), FixedCount());
    case 2:
      return nettrace::Type::RelLoc(FixedSizeType(depth + 1));
    case 3:
      return nettrace::Type::DataLoc(FixedSizeType(depth + 1));
    default:
      return nettrace::Type::Object(Fields(depth + 1));
  }
}

std::vector<Field> Randomly::Fields(int depth, std::size_t least) {
  std::vector<Field> fields(least + CountBelow(6 - least));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // Tests compare values by the names of their fields, so the names must be unique.
    fields[i] = {Text() + std::to_string(i), Type(depth)};
  }
  return fields;
}

EventMetadata Randomly::Metadata() {
  EventMetadata metadata;
  metadata.provider = Text();
  metadata.event_id = static_cast<std::uint32_t>(Number());
  metadata.name = Text();
  metadata.fields = Fields(1);
  Maybe(&metadata.opcode, [&] { return Number(); });
  Maybe(&metadata.keywords, [&] { return Number(); });
  Maybe(&metadata.level, [&] { return Number(); });
  Maybe(&metadata.version, [&] { return Number(); });
  Maybe(&metadata.message_template, [&] { return Text(); });
  Maybe(&metadata.description, [&] { return Text(); });
  Maybe(&metadata.provider_guid, [&] { return Sixteen(); });
  metadata.key_values = KeyValues();
  return metadata;
}

ThreadInfo Randomly::Thread() {
  ThreadInfo thread;
  // For TraceEvent, which has 32 bits for an id, ids are less than the maximum of Linux.
  const auto id = [&] {
    return for_traceevent() ? Below(internal::traceevent::kMaxOsThreadId) : Number();
  };
  Maybe(&thread.name, [&] { return Text(); });
  Maybe(&thread.process_id, id);
  Maybe(&thread.thread_id, id);
  thread.key_values = KeyValues();
  return thread;
}

nettrace::Labels Randomly::Labels() {
  nettrace::Labels labels;
  if (OneIn(3)) return labels;
  Maybe(&labels.activity_id, [&] { return Sixteen(); });
  Maybe(&labels.related_activity_id, [&] { return Sixteen(); });
  Maybe(&labels.trace_id, [&] { return Sixteen(); });
  Maybe(&labels.span_id, [&] { return Number(); });
  Maybe(&labels.opcode, [&] { return Number(); });
  Maybe(&labels.keywords, [&] { return Number(); });
  Maybe(&labels.level, [&] { return Below(6); });
  Maybe(&labels.version, [&] { return Number(); });
  labels.strings = KeyValues();
  labels.integers.resize(CountBelow(3));
  for (auto& [key, value] : labels.integers) {
    key = Text();
    value = static_cast<std::int64_t>(OneIn(2) ? Number() : ~Number());
  }
  return labels;
}

std::vector<std::uint64_t> Randomly::Stack() {
  std::vector<std::uint64_t> stack(OneIn(2) ? 0 : CountBelow(30));
  for (std::uint64_t& frame : stack) frame = Number();
  return stack;
}

}  // namespace nettrace::testing
