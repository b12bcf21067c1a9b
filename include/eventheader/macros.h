// Events in one statement, in C++17 and later, arguments evaluated only while somebody listens:
//
//     EVENTHEADER_DEFINE_PROVIDER(my_provider, "MyCompany_MyService");
//
//     EVENTHEADER_EVENT(my_provider, "RequestDone", eh::Level::kInformation, 0x1,
//                       EVENTHEADER_FIELD("path", path),
//                       EVENTHEADER_FIELD("status", CostlyToMake()));
//
// While nobody listens to the provider this is a load, a test and a branch. Names, level and
// keyword are constants, the metadata is built at compile time, the bytes are those of a static
// event (event.h), and what is said there of threads, signals, errno and exceptions holds here.
//
// Fields, behind the keyword, in any number:
//   EVENTHEADER_FIELD("name", value)             the value's own format
//   EVENTHEADER_FIELD_AS("name", value, format)  another eh::Format
//   EVENTHEADER_BINARY("name", pointer, size)    bytes
//   EVENTHEADER_ARRAY("name", pointer, count)    a variable array of what pointer points to
// Values: bool, integers, enums, characters, float, double, pointers (hexadecimal); std::string,
// std::string_view and C strings, of any character type; std::vector and std::array of these.
// Among the fields, in any place and each at most once:
//   EVENTHEADER_ACTIVITY(id) or (id, &related)   what the event belongs to (activity.h)
//   EVENTHEADER_OPCODE(eh::Opcode::kActivityStart)
//   EVENTHEADER_ID(id, version)
//   EVENTHEADER_TAG(tag)
#ifndef EVENTHEADER_MACROS_H_
#define EVENTHEADER_MACROS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "eventheader/activity.h"
#include "eventheader/eventheader_c.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/provider.h"
#include "eventheader/tracepoint_name.h"
#include "eventheader/wire.h"

// Defines a provider, at namespace scope, in a header or a source file: see AnyProvider.
#define EVENTHEADER_DEFINE_PROVIDER(provider, name) \
  EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, "")
#define EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, group)                  \
  static_assert(::eh::IsValidProviderName(EVENTHEADER_INTERNAL_VIEW(name)),          \
                "a provider's name is [A-Za-z_][A-Za-z0-9_]*");                      \
  static_assert(sizeof(name) <= 200 + 1, "a provider's name has at most 200 bytes"); \
  static_assert(::eh::macros::IsGroup(EVENTHEADER_INTERNAL_VIEW(group)),             \
                "a provider's group is lower-case letters and digits, at most 24");  \
  inline ::eh::AnyProvider provider {                                                \
    EVENTHEADER_INTERNAL_VIEW(name), EVENTHEADER_INTERNAL_VIEW(group)                \
  }

#define EVENTHEADER_EVENT(provider, ...)                                                         \
  do {                                                                                           \
    using EventheaderSet =                                                                       \
        ::eh::macros::Set<provider,                                                              \
                          ::eh::macros::LevelOf(EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, 0, 0)), \
                          EVENTHEADER_INTERNAL_THIRD(__VA_ARGS__, 0, 0)>;                        \
    if (EventheaderSet::enabled()) {                                                             \
      ::eh::macros::Write<EventheaderSet>(                                                       \
          EVENTHEADER_INTERNAL_TEXT(EVENTHEADER_INTERNAL_FIRST(__VA_ARGS__, 0)),                 \
          EVENTHEADER_INTERNAL_BEHIND_THIRD(__VA_ARGS__, ::eh::macros::Part<>()));               \
    }                                                                                            \
  } while (false)

#define EVENTHEADER_FIELD(name, value) \
  ::eh::macros::MakeField(EVENTHEADER_INTERNAL_TEXT(name), value)
#define EVENTHEADER_FIELD_AS(name, value, format) \
  ::eh::macros::MakeField<format>(EVENTHEADER_INTERNAL_TEXT(name), value)
#define EVENTHEADER_BINARY(name, pointer, size) \
  EVENTHEADER_FIELD(name, (::eh::macros::Binary{pointer, size}))
#define EVENTHEADER_ARRAY(name, pointer, count) \
  EVENTHEADER_FIELD(name, ::eh::macros::MakeArray(pointer, count))
#define EVENTHEADER_ACTIVITY(...) (::eh::macros::ActivityPart(::eh::Activity{__VA_ARGS__}))
#define EVENTHEADER_OPCODE(opcode) (::eh::macros::Part<opcode>())
#define EVENTHEADER_ID(id, version) (::eh::macros::Part<::eh::Opcode::kInfo, id, version>())
#define EVENTHEADER_TAG(tag) (::eh::macros::Part<::eh::Opcode::kInfo, 0, 0, tag>())

// Only for the macros above.
#define EVENTHEADER_INTERNAL_FIRST(first, ...) first
#define EVENTHEADER_INTERNAL_SECOND(first, second, ...) second
#define EVENTHEADER_INTERNAL_THIRD(first, second, third, ...) third
#define EVENTHEADER_INTERNAL_BEHIND_THIRD(first, second, third, ...) __VA_ARGS__
// Of nothing but a literal.
#define EVENTHEADER_INTERNAL_VIEW(literal) (::std::string_view("" literal, sizeof("" literal) - 1))
// A literal as a type.
#define EVENTHEADER_INTERNAL_TEXT(literal)                 \
  [] {                                                     \
    struct EventheaderText {                               \
      static constexpr ::std::string_view Get() noexcept { \
        return EVENTHEADER_INTERNAL_VIEW(literal);         \
      }                                                    \
    };                                                     \
    return EventheaderText();                              \
  }()

namespace eh {
namespace internal {

// Storage for an EventSet, which C++17 cannot read the declaration of.
struct alignas(8) SetStorage {
  std::byte bytes[64];
};
// Makes it an event set that is registered; what is to be done with it the C API can. Its memory is
// never given back: events may be written while the program ends.
const eh_event_set* RegisterSet(SetStorage* storage, AnyProvider& provider, Level level,
                                std::uint64_t keyword) noexcept;
void UnregisterSet(SetStorage* storage) noexcept;

}  // namespace internal

namespace macros {

constexpr bool IsGroup(std::string_view group) noexcept {
  for (const char c : group) {
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) return false;
  }
  return group.size() <= 24;
}

// A level is given as a Level or as a number; 0 is what an invalid one becomes.
constexpr Level LevelOf(Level level) noexcept { return level; }
constexpr Level LevelOf(int level) noexcept {
  return level >= 1 && level <= 255 ? static_cast<Level>(level) : Level::kInvalid;
}

// What all events of (provider, level, keyword) share.
template <auto& kProvider, Level kLevel, std::uint64_t kKeyword>
class Set {
  static_assert(kLevel != Level::kInvalid, "an event's level is 1 to 255");

 public:
  [[gnu::always_inline]] static bool enabled() noexcept {
    static_cast<void>(&registration_);
    if (__builtin_expect(!kProvider.enabled(), 1)) return false;
    // Null during static initialisation.
    return registration_.set != nullptr && eh_event_set_enabled(registration_.set);
  }
  static const eh_event_set* set() noexcept { return registration_.set; }

 private:
  struct Registration {
    Registration() noexcept : set(internal::RegisterSet(&storage_, kProvider, kLevel, kKeyword)) {}
    ~Registration() { internal::UnregisterSet(&storage_); }
    const eh_event_set* set;
  };
  static inline internal::SetStorage storage_ = {};
  static inline Registration registration_;
};

struct Binary {
  const void* data;
  std::size_t size;
};
template <typename T>
struct Array {
  const T* data;
  std::size_t count;
};
template <typename T>
Array<T> MakeArray(const T* data, std::size_t count) noexcept {
  return {data, count};
}

inline std::byte* PutBytes(std::byte* out, const void* data, std::size_t size) noexcept {
  if (size != 0) std::memcpy(out, data, size);
  return out + size;
}
// A count beyond 16 bits makes an event too large in any case.
inline std::byte* PutCount(std::byte* out, std::size_t count) noexcept {
  const auto count16 = static_cast<std::uint16_t>(count);
  return PutBytes(out, &count16, sizeof(count16));
}

// How a type is encoded: as in encoding.h, which is C++20. `Held` is what a field keeps of its
// value.
template <typename T, typename = void>
struct Code {
  static_assert(sizeof(T) == 0,
                "this type has no encoding in a macro: use bool, an integer, enum, character, "
                "float, double, pointer, string, or a std::vector or std::array of these");
};

template <typename T, Format kAs>
struct ValueCode {
  static constexpr Encoding kEncoding = sizeof(T) == 1   ? Encoding::kValue8
                                        : sizeof(T) == 2 ? Encoding::kValue16
                                        : sizeof(T) == 4 ? Encoding::kValue32
                                                         : Encoding::kValue64;
  static constexpr Format kFormat = kAs;
  static constexpr std::uint8_t kArity = 0;
  static constexpr std::size_t kCount = 0;
  using Held = T;
  static Held Hold(T value) noexcept { return value; }
  static std::size_t Size(T) noexcept { return sizeof(T); }
  static std::byte* Put(std::byte* out, T value) noexcept {
    return PutBytes(out, &value, sizeof(value));
  }
};

template <typename T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t> ||
#ifdef __cpp_char8_t
    std::is_same_v<T, char8_t> ||
#endif
    std::is_same_v<T, wchar_t>;

template <typename T>
constexpr Format FormatOf() noexcept {
  if constexpr (std::is_same_v<T, bool>) return Format::kBoolean;
  if constexpr (kIsCharacter<T>) return sizeof(T) == 1 ? Format::kString8 : Format::kStringUtf;
  if constexpr (std::is_floating_point_v<T>) return Format::kFloat;
  if constexpr (std::is_pointer_v<T> || std::is_null_pointer_v<T>) return Format::kHexInt;
  if constexpr (std::is_same_v<T, std::byte>) return Format::kHexInt;
  if constexpr (std::is_enum_v<T>) return FormatOf<std::underlying_type_t<T>>();
  if constexpr (std::is_signed_v<T>) return Format::kSignedInt;
  return Format::kDefault;
}

template <typename T>
inline constexpr bool kIsString = false;
template <typename Char>
inline constexpr bool kIsString<Char*> = kIsCharacter<std::remove_cv_t<Char>>;
template <typename Char, std::size_t kSize>
inline constexpr bool kIsString<Char[kSize]> = kIsCharacter<std::remove_cv_t<Char>>;

template <typename T>
struct Code<T, std::enable_if_t<!kIsString<T> && sizeof(T) <= 8 &&
                                (std::is_arithmetic_v<T> || std::is_enum_v<T> ||
                                 std::is_pointer_v<T> || std::is_null_pointer_v<T>)>>
    : ValueCode<T, FormatOf<T>()> {};

template <typename Char>
struct StringCode {
  static_assert(kIsCharacter<Char>, "a string is of characters");
  static constexpr Encoding kEncoding = sizeof(Char) == 1   ? Encoding::kStringLength16Char8
                                        : sizeof(Char) == 2 ? Encoding::kStringLength16Char16
                                                            : Encoding::kStringLength16Char32;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::uint8_t kArity = 0;
  static constexpr std::size_t kCount = 0;
  // Measured once: it may change while it is written. An array need not be terminated.
  using Held = std::basic_string_view<Char>;
  template <typename T>
  static Held Hold(const T& value) noexcept {
    if constexpr (std::is_array_v<T>) {
      const Held all(value, std::extent_v<T>);
      return all.substr(0, all.find(Char()));
    } else if constexpr (std::is_pointer_v<T>) {
      return value != nullptr ? Held(value) : Held();
    } else {
      return value;
    }
  }
  static std::size_t Size(Held value) noexcept { return 2 + value.size() * sizeof(Char); }
  static std::byte* Put(std::byte* out, Held value) noexcept {
    return PutBytes(PutCount(out, value.size()), value.data(), value.size() * sizeof(Char));
  }
};
template <typename Char>
struct Code<std::basic_string_view<Char>> : StringCode<Char> {};
template <typename Char>
struct Code<std::basic_string<Char>> : StringCode<Char> {};
template <typename T>
struct Code<T, std::enable_if_t<kIsString<T>>>
    : StringCode<std::remove_cv_t<std::remove_pointer_t<std::decay_t<T>>>> {};

template <>
struct Code<Binary> {
  static constexpr Encoding kEncoding = Encoding::kBinaryLength16Char8;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::uint8_t kArity = 0;
  static constexpr std::size_t kCount = 0;
  using Held = Binary;
  static Held Hold(Binary value) noexcept { return value; }
  static std::size_t Size(Binary value) noexcept { return 2 + value.size; }
  static std::byte* Put(std::byte* out, Binary value) noexcept {
    return PutBytes(PutCount(out, value.size), value.data, value.size);
  }
};

// kConstant: the number of elements of a constant array; 0 for a variable one.
template <typename T, std::size_t kConstant>
struct ArrayCode {
  using Element = Code<T>;
  static_assert(Element::kArity == 0, "an array's elements cannot be arrays themselves");
  static_assert(kConstant <= 0xFFFF, "a constant array has 1 to 65535 elements");
  static constexpr Encoding kEncoding = Element::kEncoding;
  static constexpr Format kFormat = Element::kFormat;
  static constexpr std::uint8_t kArity =
      kConstant != 0 ? kEncodingConstantArray : kEncodingVariableArray;
  static constexpr std::size_t kCount = kConstant;
  using Held = Array<T>;
  static Held Hold(Array<T> array) noexcept { return array; }
  template <typename Range>
  static Held Hold(const Range& range) noexcept {
    return {range.data(), range.size()};
  }
  static std::size_t Size(Held values) noexcept {
    if (values.count > 0xFFFF) return kMaxEventSize + 1;
    std::size_t size = kConstant != 0 ? 0 : 2;
    for (std::size_t i = 0; i < values.count; ++i)
      size += Element::Size(Element::Hold(values.data[i]));
    return size;
  }
  static std::byte* Put(std::byte* out, Held values) noexcept {
    if (kConstant == 0) out = PutCount(out, values.count);
    for (std::size_t i = 0; i < values.count; ++i)
      out = Element::Put(out, Element::Hold(values.data[i]));
    return out;
  }
};
template <typename T>
struct Code<Array<T>> : ArrayCode<T, 0> {};
template <typename T>
struct Code<std::vector<T>> : ArrayCode<T, 0> {
  static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no bools to refer to");
};
template <typename T, std::size_t kSize>
struct Code<std::array<T, kSize>> : ArrayCode<T, kSize> {
  static_assert(kSize != 0, "a constant array has 1 to 65535 elements");
};

// What is given behind the keyword; nothing by itself.
template <Opcode kOpcodeIs = Opcode::kInfo, std::uint16_t kIdIs = 0, std::uint8_t kVersionIs = 0,
          std::uint16_t kTagIs = 0>
struct Part {
  static constexpr std::uint8_t kOpcode = static_cast<std::uint8_t>(kOpcodeIs);
  static constexpr std::uint16_t kId = kIdIs;
  static constexpr std::uint8_t kVersion = kVersionIs;
  static constexpr std::uint16_t kTag = kTagIs;
  static constexpr bool kIsActivity = false;

  static constexpr std::size_t kDefinitionSize = 0;
  static constexpr char* PutDefinition(char* out) noexcept { return out; }
  static std::size_t Size() noexcept { return 0; }
  static std::byte* Put(std::byte* out) noexcept { return out; }
};

struct ActivityPart : Part<> {
  explicit ActivityPart(const Activity& from) noexcept : activity(from) {}
  static constexpr bool kIsActivity = true;
  Activity activity;
};

template <typename Name, typename T, Format kAs>
struct Field : Part<> {
  using Coding = Code<T>;
  static_assert(IsValidName(Name::Get()),
                "a field's name is not empty and has neither ';' nor NUL");
  static constexpr Format kFormat = kAs == Format::kDefault ? Coding::kFormat : kAs;
  static_assert(IsFormatOf(Coding::kEncoding, kFormat),
                "this format does not go with the field's type");
  static constexpr bool kHasFormat = kFormat != Format::kDefault;

  explicit Field(const T& from) noexcept : value(Coding::Hold(from)) {}

  static constexpr std::size_t kDefinitionSize =
      Name::Get().size() + 2 + (kHasFormat ? 1 : 0) + (Coding::kCount != 0 ? 2 : 0);
  static constexpr char* PutDefinition(char* out) noexcept {
    for (const char c : Name::Get()) *out++ = c;
    *out++ = '\0';
    *out++ = static_cast<char>(static_cast<std::uint8_t>(Coding::kEncoding) | Coding::kArity |
                               (kHasFormat ? kEncodingHasFormat : 0));
    if (kHasFormat) *out++ = static_cast<char>(kFormat);
    if (Coding::kCount != 0) {
      const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
      *out++ = static_cast<char>(Coding::kCount >> (little ? 0 : 8));
      *out++ = static_cast<char>(Coding::kCount >> (little ? 8 : 0));
    }
    return out;
  }
  std::size_t Size() const noexcept { return Coding::Size(value); }
  std::byte* Put(std::byte* out) const noexcept { return Coding::Put(out, value); }

  typename Coding::Held value;
};

template <Format kAs = Format::kDefault, typename Name, typename T>
Field<Name, T, kAs> MakeField(Name, const T& value) noexcept {
  return Field<Name, T, kAs>(value);
}

template <typename Name, typename... Parts>
struct Metadata {
  static constexpr std::size_t kSize = ((Name::Get().size() + 1) + ... + Parts::kDefinitionSize);
  static_assert(kSize <= kMaxEventSize, "the event's names alone are over the greatest event size");

  struct Bytes {
    char bytes[kSize];
  };
  static constexpr Bytes Make() noexcept {
    Bytes bytes{};
    char* out = bytes.bytes;
    for (const char c : Name::Get()) *out++ = c;
    *out++ = '\0';
    ((out = Parts::PutDefinition(out)), ...);
    return bytes;
  }
  static constexpr Bytes kBytes = Make();
};

template <std::size_t kRoom, typename... Parts>
[[gnu::noinline]] int Put(const eh_event_set* set, const eh_event& event,
                          const eh_activity* activity, const Parts&... parts) noexcept {
  std::byte data[kRoom];
  data[0] = {};  // read by nobody, but g++ cannot know that of an event without fields
  std::byte* out = data;
  ((out = parts.Put(out)), ...);
  return eh_write(set, &event, activity, data, static_cast<std::size_t>(out - data));
}

// What happens once somebody listens. Out of line, for call sites to be small.
template <typename Set, typename Name, typename... Parts>
[[gnu::noinline]] void Write(Name, const Parts&... parts) noexcept {
  static_assert(IsValidName(Name::Get()),
                "an event's name is not empty and has neither ';' nor NUL");
  static_assert((0 + ... + (Parts::kOpcode != 0)) <= 1 && (0 + ... + (Parts::kId != 0)) <= 1 &&
                    (0 + ... + (Parts::kTag != 0)) <= 1 && (0 + ... + Parts::kIsActivity) <= 1,
                "an event has one opcode, id, tag and activity at most");
  using Described = Metadata<Name, Parts...>;
  static constexpr eh_event kEvent = {static_cast<std::uint16_t>((0 | ... | Parts::kId)),
                                      static_cast<std::uint8_t>((0 | ... | Parts::kVersion)),
                                      static_cast<std::uint8_t>((0 | ... | Parts::kOpcode)),
                                      static_cast<std::uint16_t>((0 | ... | Parts::kTag)),
                                      static_cast<std::uint16_t>(Described::kSize),
                                      Described::kBytes.bytes};

  const Activity* activity = nullptr;
  const auto find = [&activity](const auto& part) {
    if constexpr (std::decay_t<decltype(part)>::kIsActivity) activity = &part.activity;
  };
  (find(parts), ...);
  eh_activity ids = {};
  if (activity != nullptr) {
    ids.id = reinterpret_cast<const std::uint8_t*>(activity->id.data());
    if (activity->related != nullptr) {
      ids.related = reinterpret_cast<const std::uint8_t*>(activity->related->data());
    }
  }
  const eh_activity* const given = activity != nullptr ? &ids : nullptr;

  // By steps, for sums of sizes that nothing bounds.
  std::size_t size = 0;
  const bool fits = ((size += parts.Size(), size <= kMaxEventSize) && ...);
  // Most events take that much of the stack, which may be a signal's; larger ones 8 KiB.
  constexpr std::size_t kSmall = 512;
  if (!fits) {
    // Refused and counted, before any of the data is looked at.
    eh_write(Set::set(), &kEvent, given, nullptr, kMaxEventSize);
  } else if (size <= kSmall) {
    Put<kSmall>(Set::set(), kEvent, given, parts...);
  } else {
    Put<kMaxEventSize>(Set::set(), kEvent, given, parts...);
  }
}

}  // namespace macros
}  // namespace eh

#endif  // EVENTHEADER_MACROS_H_
