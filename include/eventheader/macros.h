// Macros that write an event in one statement, for C++17 and later. The arguments are evaluated
// only if the event is enabled:
//
//     EVENTHEADER_DEFINE_PROVIDER(my_provider, "MyCompany_MyService");
//
//     EVENTHEADER_EVENT(my_provider, "RequestDone", eh::Level::kInformation, 0x1,
//                       EVENTHEADER_FIELD("path", path),
//                       EVENTHEADER_FIELD("status", CostlyToMake()));
//
// While none of the provider's tracepoints is enabled, the macro is a load, a test and a branch.
// Names, level and keyword are constants, and the metadata is built at compile time. The events
// have the same bytes as static events (event.h), and the same rules for threads, signals, errno
// and exceptions. C has the same macros (macros_c.h).
//
// Up to 98 parts may follow the keyword. Most parts are fields:
//
// - EVENTHEADER_FIELD("name", value)
//   uses the format of the value's type
// - EVENTHEADER_FIELD_AS("name", value, format)
//   uses another eh::Format
// - EVENTHEADER_FIELD_TAGGED("name", value, format, tag)
//   also has a tag; eh::Format::kDefault is the format of the value's type
// - EVENTHEADER_STRING("name", pointer, size)
//   text of `size` characters
// - EVENTHEADER_ZSTRING("name", text)
//   NUL-terminated text; the event contains the NUL too
// - EVENTHEADER_BINARY("name", pointer, size)
//   bytes
// - EVENTHEADER_ARRAY("name", pointer, count)
//   a variable array of the elements at `pointer`
// - EVENTHEADER_CONSTANT_ARRAY("name", pointer, count)
//   an array with a constant count
// - EVENTHEADER_UUID("name", bytes)
//   16 bytes, in the order of RFC 4122
// - EVENTHEADER_IP4("name", bytes), EVENTHEADER_IP6("name", bytes)
//   4 or 16 bytes in network byte order
// - EVENTHEADER_STRUCT("name", number)
//   a struct that contains the next `number` fields
//
// STRING, ZSTRING, BINARY, ARRAY and CONSTANT_ARRAY also exist with the suffix _AS and a format as
// last argument. Values have the types of a Field (field.h), or are structs described by
// EVENTHEADER_DESCRIBE_STRUCT. `bytes` is a pointer, or an array or object of 16 or 4 bytes, such
// as an in6_addr.
//
// The other parts may stand anywhere among the fields, each at most once:
//
// - EVENTHEADER_ACTIVITY(id) or EVENTHEADER_ACTIVITY(id, &related)
//   the activity that the event belongs to (activity.h)
// - EVENTHEADER_OPCODE(eh::Opcode::kActivityStart)
// - EVENTHEADER_ID(id, version)
// - EVENTHEADER_TAG(tag)
//
// EVENTHEADER_ENABLED(my_provider, level, keyword) returns whether events with this level and
// keyword are enabled. Use it to skip work that only such events need.
//
// Describe a struct at global scope, once. Its members may have all types of a Field:
//     EVENTHEADER_DESCRIBE_STRUCT(Point, EVENTHEADER_MEMBER("x", x), EVENTHEADER_MEMBER("y", y));
//   EVENTHEADER_MEMBER_TAGGED("name", member, format, tag)   like EVENTHEADER_FIELD_TAGGED
#ifndef EVENTHEADER_MACROS_H_
#define EVENTHEADER_MACROS_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eventheader/activity.h"
#include "eventheader/internal/catalog_note.h"
#include "eventheader/internal/each.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/static_event.h"
#include "eventheader/internal/struct_members.h"
#include "eventheader/provider.h"
#include "eventheader/tracepoint_name.h"
#include "eventheader/wire.h"

// Defines a provider, at namespace scope, in a header or a source file: see ProviderBase.
#define EVENTHEADER_DEFINE_PROVIDER(provider, name) \
  EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, "")
#define EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, group)                     \
  static_assert(::eh::IsValidProviderName(EVENTHEADER_INTERNAL_VIEW(name)),             \
                "a provider's name must match [A-Za-z_][A-Za-z0-9_]*");                 \
  static_assert(EVENTHEADER_INTERNAL_VIEW(name).size() <= ::eh::kMaxProviderName,       \
                "a provider's name has at most 200 bytes");                             \
  static_assert(::eh::IsValidGroup(EVENTHEADER_INTERNAL_VIEW(group)) &&                 \
                    EVENTHEADER_INTERNAL_VIEW(group).size() <= ::eh::kMaxGroup,         \
                "a provider's group must be at most 24 lower-case letters and digits"); \
  inline ::eh::DynamicProvider provider {                                               \
    EVENTHEADER_INTERNAL_VIEW(name), EVENTHEADER_INTERNAL_VIEW(group)                   \
  }

#define EVENTHEADER_ENABLED(provider, level, keyword) \
  (EVENTHEADER_INTERNAL_SET(provider, level, keyword)::enabled())

// All parts are arguments of one call, so that temporaries in them live until the event is written.
#define EVENTHEADER_EVENT(provider, ...)                                                     \
  do {                                                                                       \
    using EventheaderSet =                                                                   \
        EVENTHEADER_INTERNAL_SET(provider, EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, 0, 0),   \
                                 EVENTHEADER_INTERNAL_THIRD(__VA_ARGS__, 0, 0));             \
    if (EventheaderSet::enabled()) {                                                         \
      static constexpr ::eh::internal::macros::Part kEventheaderParts[] = {                  \
          EVENTHEADER_INTERNAL_CONSTANT(n, before, EventheaderName,                          \
                                        EVENTHEADER_INTERNAL_FIRST(__VA_ARGS__, 0))          \
              EVENTHEADER_INTERNAL_PARTS(CONSTANT, __VA_ARGS__)};                            \
      ::eh::internal::macros::Write<EventheaderSet, kEventheaderParts>(                      \
          ::eh::internal::macros::Nothing() EVENTHEADER_INTERNAL_PARTS(VALUE, __VA_ARGS__)); \
    }                                                                                        \
  } while (false)

#define EVENTHEADER_FIELD(name, value) EVENTHEADER_FIELD_AS(name, value, ::eh::Format::kDefault)
#define EVENTHEADER_FIELD_AS(name, value, format) EVENTHEADER_FIELD_TAGGED(name, value, format, 0)
#define EVENTHEADER_FIELD_TAGGED(name, value, format, tag) \
  (EventheaderField, name, format, tag, value)
#define EVENTHEADER_STRING(name, pointer, size) \
  EVENTHEADER_STRING_AS(name, pointer, size, ::eh::Format::kDefault)
#define EVENTHEADER_STRING_AS(name, pointer, size, format) \
  EVENTHEADER_FIELD_AS(name, ::eh::internal::macros::Text(pointer, size), format)
#define EVENTHEADER_ZSTRING(name, text) EVENTHEADER_ZSTRING_AS(name, text, ::eh::Format::kDefault)
#define EVENTHEADER_ZSTRING_AS(name, text, format) \
  EVENTHEADER_FIELD_AS(name, ::eh::internal::macros::TextWithNul(text), format)
#define EVENTHEADER_BINARY(name, pointer, size) \
  EVENTHEADER_BINARY_AS(name, pointer, size, ::eh::Format::kDefault)
#define EVENTHEADER_BINARY_AS(name, pointer, size, format) \
  EVENTHEADER_FIELD_AS(name, (::eh::internal::macros::Binary{pointer, size}), format)
#define EVENTHEADER_ARRAY(name, pointer, count) \
  EVENTHEADER_ARRAY_AS(name, pointer, count, ::eh::Format::kDefault)
#define EVENTHEADER_ARRAY_AS(name, pointer, count, format) \
  EVENTHEADER_FIELD_AS(name, ::eh::internal::macros::MakeArray(pointer, count), format)
#define EVENTHEADER_CONSTANT_ARRAY(name, pointer, count) \
  EVENTHEADER_CONSTANT_ARRAY_AS(name, pointer, count, ::eh::Format::kDefault)
#define EVENTHEADER_CONSTANT_ARRAY_AS(name, pointer, count, format) \
  EVENTHEADER_FIELD_AS(name, ::eh::internal::macros::MakeArray<count>(pointer), format)
#define EVENTHEADER_UUID(name, bytes) \
  EVENTHEADER_FIELD(name, (::eh::internal::macros::BytesOf<16, ::eh::Format::kUuid>(bytes)))
#define EVENTHEADER_IP4(name, bytes) \
  EVENTHEADER_FIELD(name, (::eh::internal::macros::BytesOf<4, ::eh::Format::kIpAddress>(bytes)))
#define EVENTHEADER_IP6(name, bytes) \
  EVENTHEADER_FIELD(name, (::eh::internal::macros::BytesOf<16, ::eh::Format::kIpAddress>(bytes)))
#define EVENTHEADER_STRUCT(name, number) (EventheaderStruct, name, number)
#define EVENTHEADER_ACTIVITY(...) (EventheaderActivity, __VA_ARGS__)
#define EVENTHEADER_OPCODE(opcode) (EventheaderOpcode, opcode)
#define EVENTHEADER_ID(id, version) (EventheaderId, id, version)
#define EVENTHEADER_TAG(tag) (EventheaderTag, tag)

#define EVENTHEADER_DESCRIBE_STRUCT(Type, ...)                                        \
  template <>                                                                         \
  struct EventheaderDescribed<Type> {                                                 \
    using EventheaderType = Type;                                                     \
    struct EventheaderFacts {                                                         \
      static constexpr ::eh::internal::FieldFacts kFacts[] = {                        \
          EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_MEMBER_FACTS, __VA_ARGS__)}; \
    };                                                                                \
    using EventheaderList =                                                           \
        ::eh::internal::StructMembers<EventheaderFacts EVENTHEADER_INTERNAL_EACH(     \
            EVENTHEADER_INTERNAL_MEMBER_POINTER, __VA_ARGS__)>;                       \
  }
#define EVENTHEADER_MEMBER(name, member) \
  EVENTHEADER_MEMBER_TAGGED(name, member, ::eh::Format::kDefault, 0)
#define EVENTHEADER_MEMBER_TAGGED(name, member, format, tag) \
  (EventheaderMember, name, format, tag, member)

// Everything below is internal to the macros above.
#define EVENTHEADER_INTERNAL_SET(provider, level, keyword) \
  ::eh::internal::macros::Set<provider, ::eh::internal::macros::LevelOf(level), keyword>
// Expands to a view of a string literal. Other arguments do not compile.
#define EVENTHEADER_INTERNAL_VIEW(literal) (::std::string_view("" literal, sizeof("" literal) - 1))
#define EVENTHEADER_INTERNAL_MEMBER_FACTS(n, before, KIND, name, format, tag, member) \
  ::eh::internal::macros::FactsOfMember<decltype(&EventheaderType::member), format>(  \
      EVENTHEADER_INTERNAL_VIEW(name), tag),
#define EVENTHEADER_INTERNAL_MEMBER_POINTER(n, before, KIND, name, format, tag, member) \
  , &EventheaderType::member
// Expands to the parts of an event: to constants if AS is CONSTANT, to arguments if AS is VALUE.
#define EVENTHEADER_INTERNAL_PARTS(AS, ...)                                              \
  EVENTHEADER_INTERNAL_EACH(EVENTHEADER_INTERNAL_##AS, EVENTHEADER_INTERNAL_AFTER_THIRD( \
                                                           __VA_ARGS__, (EventheaderNothing, 0)))
#define EVENTHEADER_INTERNAL_CONSTANT(n, before, KIND, ...) \
  {::eh::internal::macros::KIND, EVENTHEADER_INTERNAL_CONSTANT_##KIND(__VA_ARGS__)},
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderName(name) EVENTHEADER_INTERNAL_VIEW(name)
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderField(name, format, tag, ...) \
  EVENTHEADER_INTERNAL_VIEW(name), tag, 0, format
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderStruct(name, number) \
  EVENTHEADER_INTERNAL_VIEW(name), number
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderActivity(...) {}, 1
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderOpcode(opcode) \
  {}, static_cast<::std::uint8_t>(opcode)
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderId(id, version) {}, id, version
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderTag(tag) {}, tag
#define EVENTHEADER_INTERNAL_CONSTANT_EventheaderNothing(zero) \
  {}
#define EVENTHEADER_INTERNAL_VALUE(n, before, KIND, ...) \
  , EVENTHEADER_INTERNAL_VALUE_##KIND(__VA_ARGS__)
#define EVENTHEADER_INTERNAL_VALUE_EventheaderField(name, format, tag, ...) __VA_ARGS__
#define EVENTHEADER_INTERNAL_VALUE_EventheaderActivity(...) \
  ::eh::internal::macros::ActivityPart(::eh::Activity{__VA_ARGS__})
#define EVENTHEADER_INTERNAL_VALUE_EventheaderStruct(...) ::eh::internal::macros::Nothing()
#define EVENTHEADER_INTERNAL_VALUE_EventheaderOpcode(...) ::eh::internal::macros::Nothing()
#define EVENTHEADER_INTERNAL_VALUE_EventheaderId(...) ::eh::internal::macros::Nothing()
#define EVENTHEADER_INTERNAL_VALUE_EventheaderTag(...) ::eh::internal::macros::Nothing()
#define EVENTHEADER_INTERNAL_VALUE_EventheaderNothing(...) ::eh::internal::macros::Nothing()

namespace eh {
namespace internal {
namespace macros {

// Return the level, which callers give as a Level or as a number; kInvalid if the number is out of
// range.
constexpr Level LevelOf(Level level) noexcept { return level; }
constexpr Level LevelOf(int level) noexcept {
  return level >= 1 && level <= 255 ? static_cast<Level>(level) : Level::kInvalid;
}

template <auto& kProvider, Level kLevel, std::uint64_t kKeyword>
struct [[gnu::visibility("hidden")]] Set : StaticSet<kProvider, kLevel, kKeyword> {
  static_assert(kLevel != Level::kInvalid, "an event's level is 1 to 255");
  static constexpr auto kEventLevel = static_cast<std::uint8_t>(kLevel);
};

enum Kind : std::uint8_t {
  EventheaderName,  // name of the event
  EventheaderField,
  EventheaderStruct,
  EventheaderActivity,
  EventheaderOpcode,
  EventheaderId,
  EventheaderTag,
  EventheaderNothing,
};

// The constants of one part of an event.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): exists only at compile time.
struct Part {
  Kind kind;
  std::string_view name;
  std::uint16_t number = 0;  // a tag, an opcode, an id, or the number of a struct's fields
  std::uint8_t version = 0;
  Format format = Format::kDefault;  // kDefault: format of the value's type
};

// The values of parts that are not fields.
struct Nothing : NoField {};
struct ActivityPart : NoField {
  explicit ActivityPart(const Activity& from) noexcept : activity(from) {}
  Activity activity;
};

// Limits a size from the caller, which may be invalid, such as -1 from a failed read. An event with
// 64 KiB is refused as too big, and a sum of limited sizes does not overflow.
constexpr std::size_t AtMost64K(std::size_t size) noexcept {
  return size < 0x10000 ? size : 0x10000;
}

// A range of bytes. The library defines classes for ranges, because C++17 has no std::span.
class Binary {
 public:
  Binary(const void* data, std::size_t size) noexcept : data_(data), size_(AtMost64K(size)) {}
  const void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  const void* data_;
  std::size_t size_;
};
// A range of elements. kCount is 0 if their number is known only at run time.
template <typename T, std::size_t kCount>
class Array {
 public:
  Array(const T* data, std::size_t count) noexcept : data_(data), count_(count) {}
  const T* data() const noexcept { return data_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + count_; }
  std::size_t size() const noexcept { return count_; }

 private:
  const T* data_;
  std::size_t count_;
};
template <typename T>
Array<T, 0> MakeArray(const T* data, std::size_t count) noexcept {
  return {data, AtMost64K(count)};
}
template <std::size_t kCount, typename T>
Array<T, kCount> MakeArray(const T* data) noexcept {
  static_assert(kCount != 0, "a constant array has 1 to 65535 elements");
  return {data, kCount};
}
template <typename Char>
std::basic_string_view<Char> Text(const Char* text, std::size_t size) noexcept {
  return {text, AtMost64K(size)};
}

template <typename Char>
NulTerminated<Char> TextWithNul(const Char* text) noexcept {
  return text;
}

// Returns the first kSize bytes that `from` points to if it is a pointer, else the bytes of `from`
// itself.
template <std::size_t kSize, Format kFormat, typename T>
Formatted<std::array<std::uint8_t, kSize>, kFormat> BytesOf(const T& from) noexcept {
  Formatted<std::array<std::uint8_t, kSize>, kFormat> bytes;
  if constexpr (std::is_pointer_v<T>) {
    __builtin_memcpy(bytes.value.data(), from, kSize);
  } else {
    static_assert(sizeof(T) == kSize && std::is_trivially_copyable_v<T>,
                  "a UUID has 16 bytes, an IP4 4 and an IP6 16");
    __builtin_memcpy(bytes.value.data(), &from, kSize);
  }
  return bytes;
}

}  // namespace macros

template <>
struct Coder<macros::Binary> : BinaryCoder<macros::Binary> {};
template <typename T, std::size_t kCount>
struct Coder<macros::Array<T, kCount>> : ConstantArrayCoder<macros::Array<T, kCount>, T, kCount> {};
template <typename T>
struct Coder<macros::Array<T, 0>> : VariableArrayCoder<macros::Array<T, 0>, T> {};

namespace macros {

// Returns the facts about a field of type T. Checks the type and the format; DescribedParts checks
// everything else.
template <typename T, Format kFormat>
constexpr FieldFacts FactsOfField(std::string_view name, std::uint16_t tag) noexcept {
  static_assert(Coder<T>::kIsSupported, EVENTHEADER_INTERNAL_TYPE_FAULT);
  FieldFacts facts = kFactsOfType<T>;
  facts.name = name;
  facts.tag = tag;
  if constexpr (kFormat != Format::kDefault) {
    static_assert(IsFormatOfType<T>(static_cast<std::uint8_t>(kFormat)),
                  EVENTHEADER_INTERNAL_FORMAT_FAULT);
    facts.format = static_cast<std::uint8_t>(kFormat);
  }
  return facts;
}

template <typename Pointer, Format kFormat>
constexpr FieldFacts FactsOfMember(std::string_view name, std::uint16_t tag) noexcept {
  return FactsOfField<typename MemberPointer<Pointer>::Type, kFormat>(name, tag);
}

template <const auto& kParts, std::size_t kIndex, typename T>
constexpr FieldFacts FactsOfPart() noexcept {
  constexpr const Part& kPart = kParts[kIndex];
  if constexpr (kPart.kind == EventheaderField) {
    return FactsOfField<T, kPart.format>(kPart.name, kPart.number);
  } else {
    FieldFacts facts{};
    if constexpr (kPart.kind == EventheaderStruct) {
      static_assert(kPart.number >= 1 && kPart.number <= kMaxStructFields,
                    "a struct has 1 to 127 members");
      facts.name = kPart.name;
      facts.encoding = Encoding::kStruct;
      facts.format = static_cast<std::uint8_t>(kPart.number);
    }
    return facts;
  }
}

constexpr int CountOf(Kind kind, const Part* parts, std::size_t number) noexcept {
  int count = 0;
  for (std::size_t i = 0; i < number; ++i) count += parts[i].kind == kind ? 1 : 0;
  return count;
}

// Returns the first part of this kind, or an EventheaderNothing if there is none.
constexpr Part PartOf(Kind kind, const Part* parts, std::size_t number) noexcept {
  for (std::size_t i = 0; i < number; ++i) {
    if (parts[i].kind == kind) return parts[i];
  }
  return {EventheaderNothing, {}};
}

constexpr bool AreValidNames(const FieldFacts* fields, std::size_t number) noexcept {
  for (std::size_t i = 0; i < number; ++i) {
    if (fields[i].encoding != Encoding::kInvalid && !IsValidName(fields[i].name)) return false;
    if (fields[i].has_members && !AreValidNames(fields[i].members, fields[i].format)) {
      return false;
    }
  }
  return true;
}

constexpr bool AreWholeStructs(const FieldFacts* fields, std::size_t number) noexcept {
  for (std::size_t at = 0; at < number; ++at) {
    if (fields[at].encoding != Encoding::kStruct || fields[at].has_members) continue;
    at = AfterMembers(fields, number, at + 1, fields[at].format, 1);
    if (at > number) return false;
    --at;
  }
  return true;
}

// Holds the constant bytes of an event, built from `kParts`. The first of these parts is the
// event's name.
template <typename Set, const auto& kParts, typename Indices, typename... T>
struct DescribedParts;
template <typename Set, const auto& kParts, std::size_t... kIndex, typename... T>
struct DescribedParts<Set, kParts, std::index_sequence<kIndex...>, T...> {
  static constexpr std::size_t kNumber = sizeof...(T);
  static_assert(IsValidName(kParts[0].name),
                "an event's name must not be empty or contain ';' or NUL");
  static_assert(CountOf(EventheaderOpcode, kParts, kNumber) <= 1 &&
                    CountOf(EventheaderId, kParts, kNumber) <= 1 &&
                    CountOf(EventheaderTag, kParts, kNumber) <= 1 &&
                    CountOf(EventheaderActivity, kParts, kNumber) <= 1,
                "an event has at most one opcode, id, tag and activity");

  static constexpr FieldFacts kFacts[] = {FactsOfPart<kParts, kIndex, T>()...};
  static_assert(AreValidNames(kFacts, kNumber),
                "a field's name must not be empty or contain ';' or NUL");
  static_assert(!HasRepeatedName(kFacts, 0, kNumber), EVENTHEADER_INTERNAL_REPEATED_NAME);
  static_assert(AreWholeStructs(kFacts, kNumber),
                "EVENTHEADER_STRUCT must be followed by as many fields as it declares, nested at "
                "most 8 deep");
  static constexpr Totals kTotals = TotalsOf(kFacts, kNumber);
  static constexpr std::size_t kMetadata = kParts[0].name.size() + 1 + kTotals.metadata;
  static constexpr std::size_t kHeadSize =
      sizeof(wire::Header) + sizeof(wire::ExtensionHeader) + kMetadata;
  static_assert(kHeadSize <= kMaxEventSize,
                "the event's names alone exceed the maximum event size, 8184 bytes");
  static_assert(
      kHeadSize + kTotals.minimum <= kMaxEventSize,
      "the event can never be written: its names and fixed-size fields together exceed the "
      "maximum event size, 8184 bytes");
  static_assert(kTotals.fields <= kMaxFields,
                "an event has at most 1024 fields, including the members of structs");
  static_assert(kTotals.nesting <= kMaxStructNesting, "structs are nested at most 8 deep");

  static constexpr Part kId = PartOf(EventheaderId, kParts, kNumber);
  [[gnu::visibility("hidden")]] static constexpr auto kEvent =
      MakeStaticEvent<kMetadata, kTotals.pieces>(
          wire::Header{kNativeFlags | kFlagExtension, kId.version, kId.number,
                       PartOf(EventheaderTag, kParts, kNumber).number,
                       static_cast<std::uint8_t>(PartOf(EventheaderOpcode, kParts, kNumber).number),
                       Set::kEventLevel},
          kParts[0].name, kFacts, kNumber);
};

inline void FindActivity(const Activity**, const NoField&) noexcept {}
inline void FindActivity(const Activity** activity, const ActivityPart& part) noexcept {
  *activity = &part.activity;
}
template <typename T>
[[gnu::always_inline]] inline void FindActivity(const Activity**, const T&) noexcept {}

template <typename Set, const auto& kParts, typename... T>
[[gnu::always_inline]] inline void Write(const T&... values) noexcept {
  using Described = DescribedParts<Set, kParts, std::index_sequence_for<T...>, T...>;
  const Activity* activity = nullptr;
  if constexpr (CountOf(EventheaderActivity, kParts, sizeof...(T)) != 0) {
    (FindActivity(&activity, values), ...);
  }
  EVENTHEADER_INTERNAL_NOTE_EVENT(Set::set, Described::kEvent.start);
  static_cast<void>(WriteStatic<T...>(Set::set, Described::kEvent.start, activity, values...));
}

}  // namespace macros
}  // namespace internal
}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_MACROS_H_
