// The constant part of an event whose fields are known at compile time, and the code that writes
// its values. Needs C++17.
//
// The code that is compiled for each static event is small, because a program may have many events.
// It stores the small values of fixed size one after the other, and the address and size of each
// other value. It then calls one function, shared by all events, that assembles the event
// (static_objects.h).
#ifndef EVENTHEADER_INTERNAL_STATIC_EVENT_H_
#define EVENTHEADER_INTERNAL_STATIC_EVENT_H_

#include <cstddef>
#include <cstdint>

#include "eventheader/activity.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/record.h"
#include "eventheader/internal/static_objects.h"
#include "eventheader/provider.h"
#include "eventheader/wire.h"

namespace eh::internal {

// How a value is passed to the function that assembles the event. A piece (eh_piece) is a value
// that is passed by its address and size.
enum class Way : std::uint8_t {
  kNone,   // no value
  kFixed,  // stored next to the other values of fixed size
  kBlob,   // a piece; a count before it and zeros after it are passed like kFixed
  kMade,   // a piece that Coder::Put writes into the event
};

// Maximum bytes of a value of fixed size that is passed as kFixed. These values are copied twice:
// to the stack and to the event. Larger values are passed as pieces, which are copied once.
inline constexpr std::size_t kMaxFixed = 64;

// Base of the arguments of an event that are not fields, such as its activity.
struct NoField {};

template <typename T>
constexpr Way WayOf() noexcept {
  using Code = Coder<T>;
  if constexpr (std::is_base_of_v<NoField, T>) {
    return Way::kNone;
  } else if constexpr (Code::kFixedSize != 0 && Code::kFixedSize <= kMaxFixed) {
    return Way::kFixed;
  } else {
    return kHasBlob<Code> ? Way::kBlob : Way::kMade;
  }
}

// Holds the facts about a field, a member of a struct, or an attribute of an event. The constant
// part of an event is built from a list of FieldFacts.
struct FieldFacts {
  std::string_view name;
  std::string_view attributes = {};  // as in the metadata, such as ";unit=ms"
  Encoding encoding = Encoding::kInvalid;
  Arity arity = Arity::kScalar;
  std::uint8_t format = 0;  // for a struct: the number of its members
  std::uint16_t count = 0;  // elements of a constant array
  std::uint16_t tag = 0;
  const FieldFacts* members = nullptr;
  bool has_members = false;  // true for a struct whose type lists its members

  Way way = Way::kNone;
  // Number of zero bytes after the field's piece. These bytes are passed like values of fixed size.
  std::uint8_t suffix = 0;
  // Bytes of the value if it is passed as kFixed; bytes of the count before the field's piece if it
  // is passed as kBlob; else 0.
  std::uint16_t fixed = 0;
  std::size_t minimum = 0;  // bytes of the payload if the size is constant, else 0
};

// Returns the facts about a field of type T, without its name and options.
template <typename T>
constexpr FieldFacts FactsOfType() noexcept {
  using Code = Coder<T>;
  constexpr Way kWay = WayOf<T>();
  FieldFacts facts{};
  facts.encoding = Code::kEncoding;
  facts.arity = Code::kArity;
  facts.count = Code::kCount;
  if constexpr (Code::kEncoding == Encoding::kStruct) {
    facts.format = Code::Members::kMembers;
    facts.members = Code::Members::kFacts;
    facts.has_members = true;
  } else {
    facts.format = static_cast<std::uint8_t>(Code::kFormat);
  }
  facts.way = kWay;
  facts.minimum = Code::kFixedSize;
  if constexpr (kWay == Way::kFixed) {
    facts.fixed = static_cast<std::uint16_t>(Code::kFixedSize);
  } else if constexpr (kWay == Way::kBlob) {
    facts.fixed = Code::kPrefix;
    facts.suffix = Code::kSuffix;
  }
  return facts;
}

// Facts about a field of type T, computed once for each type.
template <typename T>
inline constexpr FieldFacts kFactsOfType = FactsOfType<T>();

// Returns a copy of the facts with another name.
constexpr FieldFacts Named(std::string_view name, FieldFacts facts) noexcept {
  facts.name = name;
  return facts;
}

// Returns whether `format` is valid as the format byte of a field of type T. For a struct, this
// byte must be the number of its members.
template <typename T>
constexpr bool IsFormatOfType(std::uint8_t format) noexcept {
  using Code = Coder<T>;
  if constexpr (Code::kEncoding == Encoding::kStruct) return format == Code::Members::kMembers;
  return IsFormatOf(Code::kEncoding, static_cast<Format>(format));
}
template <typename T>
inline constexpr bool kIsOwnFormatOfType = IsFormatOfType<T>(kFactsOfType<T>.format);
#define EVENTHEADER_INTERNAL_FORMAT_FAULT                                                          \
  "this format does not fit the field's type: As<> must fit the size of its values, text formats " \
  "are for strings, and a struct has no format"

// Sums over a list of FieldFacts.
struct Totals {
  std::size_t metadata = 0;  // bytes of all definitions
  std::size_t minimum = 0;   // bytes of the values of constant size
  std::size_t fixed = 0;     // sum of FieldFacts::fixed and FieldFacts::suffix, in bytes
  int pieces = 0;
  int fields = 0;   // including members of structs
  int nesting = 0;  // depth of nested structs
};

constexpr void AddTotals(Totals* totals, const FieldFacts* fields, int number, int depth) noexcept {
  if (depth > totals->nesting) totals->nesting = depth;
  for (int i = 0; i < number; ++i) {
    const FieldFacts& field = fields[i];
    totals->metadata += field.attributes.size();
    if (field.encoding == Encoding::kInvalid) continue;  // an attribute of the event
    ++totals->fields;
    totals->metadata +=
        field.name.size() + 1 + TypeSize(field.encoding, field.count, field.format, field.tag);
    if (depth == 0) {
      totals->minimum += field.minimum;
      totals->fixed += std::size_t{field.fixed} + field.suffix;
      totals->pieces += field.way == Way::kBlob || field.way == Way::kMade ? 1 : 0;
    }
    if (field.has_members) AddTotals(totals, field.members, field.format, depth + 1);
  }
}

constexpr Totals TotalsOf(const FieldFacts* fields, int number) noexcept {
  Totals totals{};
  AddTotals(&totals, fields, number, 0);
  return totals;
}

// Skips `members` fields from index `at` on, and returns the index after them. If one of them is a
// struct whose members follow it in the list, skips these members too. Returns more than `number`
// if there are fewer fields, or if structs are nested too deep.
constexpr std::size_t AfterMembers(const FieldFacts* fields, std::size_t number, std::size_t at,
                                   unsigned members, int depth) noexcept {
  for (; members != 0; --members, ++at) {
    while (at < number && fields[at].encoding == Encoding::kInvalid) ++at;
    if (at >= number || depth > kMaxStructNesting) return number + 1;
    const FieldFacts& field = fields[at];
    if (field.encoding == Encoding::kStruct && !field.has_members) {
      at = AfterMembers(fields, number, at + 1, field.format, depth + 1);
      if (at > number) return number + 1;
      --at;
    }
  }
  return at;
}

// Compares names. Needs fewer steps at compile time than the comparison of std::string_view.
constexpr bool IsSameName(std::string_view name, std::string_view other) noexcept {
  const std::size_t size = name.size();
  if (size != other.size()) return false;
  const char* const a = name.data();
  const char* const b = other.data();
  for (std::size_t i = 0; i < size; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

// Returns whether two of the fields from `begin` to `end` have the same name. Also compares the
// names of the members of each struct, unless the struct's type lists its members: StructMembers
// compares these names. Returns false without a check for more than 128 fields, because compilers
// limit the steps of a constant expression.
constexpr bool HasRepeatedName(const FieldFacts* fields, std::size_t begin,
                               std::size_t end) noexcept {
  if (end - begin > 128) return false;
  std::size_t next = 0;
  for (std::size_t i = begin; i < end; i = next) {
    next = i + 1;
    const FieldFacts& field = fields[i];
    if (field.encoding == Encoding::kInvalid) continue;
    if (field.encoding == Encoding::kStruct && !field.has_members) {
      next = AfterMembers(fields, end, i, 1, 1);
      if (next > end) return false;  // AreWholeStructs (macros.h) reports the fault
      if (HasRepeatedName(fields, i + 1, next)) return true;
    }
    for (std::size_t k = next; k < end;) {
      if (fields[k].encoding == Encoding::kInvalid) {
        ++k;
        continue;
      }
      if (IsSameName(fields[k].name, field.name)) return true;
      k = AfterMembers(fields, end, k, 1, 1);
    }
  }
  return false;
}
#define EVENTHEADER_INTERNAL_REPEATED_NAME \
  "two fields of an event, or two members of a struct, have the same name"

constexpr char* PutText(char* out, std::string_view text) noexcept {
  for (const char c : text) *out++ = c;
  return out;
}

constexpr char* PutDefinitions(char* out, const FieldFacts* fields, int number) noexcept {
  for (int i = 0; i < number; ++i) {
    const FieldFacts& field = fields[i];
    if (field.encoding == Encoding::kInvalid) continue;
    out = PutText(out, field.name);
    out = PutText(out, field.attributes);
    *out++ = '\0';
    out = PutType(out, field.encoding, field.arity, field.count, field.format, field.tag);
    if (field.has_members) out = PutDefinitions(out, field.members, field.format);
  }
  return out;
}

// Holds an eh_static_event in the layout that static_objects.h describes: the numbers of fixed
// bytes are directly before it, and the head of the event is directly after it.
template <std::size_t kMetadata, int kPieces>
struct StaticEvent {
  std::uint16_t fixed[kPieces + (kPieces == 0)];
  eh_static_event start;
  wire::Header header;
  wire::ExtensionHeader extension;
  char metadata[kMetadata + EH_HEAD_STEP];
};

template <std::size_t kMetadata, int kPieces>
constexpr StaticEvent<kMetadata, kPieces> MakeStaticEvent(const wire::Header& header,
                                                          std::string_view name,
                                                          const FieldFacts* fields,
                                                          int number) noexcept {
  constexpr std::size_t kHead = sizeof(wire::Header) + sizeof(wire::ExtensionHeader) + kMetadata;
  constexpr std::size_t kPadded = (kHead + EH_HEAD_STEP - 1) / EH_HEAD_STEP * EH_HEAD_STEP;
  StaticEvent<kMetadata, kPieces> event{
      {},
      {0, static_cast<std::uint16_t>(kHead), static_cast<std::uint16_t>(kPadded),
       static_cast<std::int16_t>(-2 * kPieces)},
      header,
      {static_cast<std::uint16_t>(kMetadata), kExtensionMetadata},
      {}};
  char* out = PutText(event.metadata, name);
  int piece = 0;
  for (int i = 0; i < number; ++i) {
    const FieldFacts& field = fields[i];
    if (field.encoding == Encoding::kInvalid) out = PutText(out, field.attributes);
    event.start.last = static_cast<std::uint16_t>(event.start.last + field.fixed);
    if (field.way != Way::kBlob && field.way != Way::kMade) continue;
    const unsigned flag = field.way == Way::kMade ? EH_MADE_PIECE : 0;
    event.fixed[piece++] = static_cast<std::uint16_t>(event.start.last | flag);
    event.start.last = field.suffix;
  }
  *out++ = '\0';
  PutDefinitions(out, fields, number);
  return event;
}

// The values of an event, in the layout that eh_write_static expects.
template <std::size_t kFixed, int kPieces>
struct Values {
  static constexpr std::size_t kPiecesSize = kPieces * sizeof(eh_piece);
  eh_piece* begin() noexcept { return pieces; }
  eh_piece pieces[kPieces];
  std::byte fixed[kFixed + EH_SLACK];
};
template <std::size_t kFixed>
struct Values<kFixed, 0> {
  static constexpr std::size_t kPiecesSize = 0;
  eh_piece* begin() noexcept { return nullptr; }
  std::byte fixed[kFixed + EH_SLACK];
};

struct ValuesEnd {
  std::byte* fixed;
  eh_piece* piece;
  eh_made_piece* made;
  std::uint64_t size;  // bytes of the event
};

template <typename T, typename V>
void* PutMade(void* out, const void* value) noexcept {
  return Coder<T>::Put(static_cast<std::byte*>(out), *static_cast<const V*>(value));
}

// Adds the value of a field of type T to the values of an event. Stores the value where `end`
// points, and moves `end` behind it.
template <typename T, typename V>
[[gnu::always_inline]] inline void AddValue(ValuesEnd& end, const V& value) noexcept {
  using Code = Coder<T>;
  if constexpr (WayOf<T>() == Way::kFixed) {
    end.fixed = Code::Put(end.fixed, value);
  } else if constexpr (WayOf<T>() == Way::kBlob) {
    const Blob blob = Code::BlobOf(value);
    if constexpr (Code::kPrefix != 0) {
      end.fixed = PutRaw(end.fixed, static_cast<std::uint16_t>(blob.count));
    }
    *end.piece++ = {blob.data, blob.size};
    end.size += blob.size;
    if constexpr (Code::kSuffix != 0) {
      __builtin_memset(end.fixed, 0, Code::kSuffix);
      end.fixed += Code::kSuffix;
    }
  } else if constexpr (WayOf<T>() == Way::kMade) {
    *end.made = {&PutMade<T, V>, &value};
    const std::size_t size = Code::Size(value);
    *end.piece++ = {end.made++, size};
    end.size += size;
  }
}

template <typename T>
constexpr std::size_t FixedPartOf() noexcept {
  if constexpr (WayOf<T>() == Way::kNone) {
    return 0;
  } else {
    constexpr FieldFacts kFacts = FactsOfType<T>();
    return std::size_t{kFacts.fixed} + kFacts.suffix;
  }
}

// Writes an event with fields of types T.
template <typename... T, typename... V>
[[gnu::always_inline]] inline WriteResult WriteStatic(const EventSet& set,
                                                      const eh_static_event& event,
                                                      const Activity* activity,
                                                      const V&... values) noexcept {
  constexpr std::size_t kFixed = (std::size_t{0} + ... + FixedPartOf<T>());
  constexpr int kMade = (0 + ... + (WayOf<T>() == Way::kMade ? 1 : 0));
  constexpr int kPieces = kMade + (0 + ... + (WayOf<T>() == Way::kBlob ? 1 : 0));
  Values<kFixed, kPieces> room;
  // Prevents a warning: the byte is never used, but g++ cannot know that.
  if constexpr (kFixed == 0) room.fixed[0] = {};
  eh_made_piece made[kMade != 0 ? kMade : 1];
  const std::size_t constant = event.head_size + kFixed;
  ValuesEnd end{room.fixed, room.begin(), made, constant};
  (AddValue<T>(end, values), ...);
  // Computed from the address of `room` instead of `room.fixed`, because the callee subtracts from
  // this pointer to reach the pieces, which are directly before `fixed`.
  const void* const fixed = reinterpret_cast<std::byte*>(&room) + room.kPiecesSize;
  if constexpr (kMade != 0) {
    return set.WriteMade(event, fixed, end.size, activity);
  } else {
    if (activity == nullptr) return set.WriteStatic(event, fixed, end.size);
    return set.WriteStatic(event, fixed, end.size, *activity);
  }
}

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_STATIC_EVENT_H_
