// Events in one statement, in C++17 and later, arguments evaluated only while they are enabled:
//
//     EVENTHEADER_DEFINE_PROVIDER(my_provider, "MyCompany_MyService");
//
//     EVENTHEADER_EVENT(my_provider, "RequestDone", eh::Level::kInformation, 0x1,
//                       EVENTHEADER_FIELD("path", path),
//                       EVENTHEADER_FIELD("status", CostlyToMake()));
//
// While none of the provider's tracepoints is enabled this is a load, a test and a branch. Names,
// level and keyword are constants, the metadata is built at compile time, the bytes are those of a
// static event (event.h), and its rules for threads, signals, errno and exceptions hold here.
//
// Fields, after the keyword, in any number:
//   EVENTHEADER_FIELD("name", value)             the value's own format
//   EVENTHEADER_FIELD_AS("name", value, format)  another eh::Format
//   EVENTHEADER_BINARY("name", pointer, size)    bytes
//   EVENTHEADER_ARRAY("name", pointer, count)    a variable array of what pointer points to
// Values: those of a Field (field.h) but structs, and std::span as C++17 does not have it.
// Among the fields, in any place and each at most once:
//   EVENTHEADER_ACTIVITY(id) or (id, &related)   what the event belongs to (activity.h)
//   EVENTHEADER_OPCODE(eh::Opcode::kActivityStart)
//   EVENTHEADER_ID(id, version)
//   EVENTHEADER_TAG(tag)
#ifndef EVENTHEADER_MACROS_H_
#define EVENTHEADER_MACROS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eventheader/activity.h"
#include "eventheader/eventheader_c.h"
#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/provider.h"
#include "eventheader/tracepoint_name.h"
#include "eventheader/wire.h"

// Defines a provider, at namespace scope, in a header or a source file: see ProviderBase.
#define EVENTHEADER_DEFINE_PROVIDER(provider, name) \
  EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, "")
#define EVENTHEADER_DEFINE_PROVIDER_IN_GROUP(provider, name, group)                 \
  static_assert(::eh::IsValidProviderName(EVENTHEADER_INTERNAL_VIEW(name)),         \
                "a provider's name is [A-Za-z_][A-Za-z0-9_]*");                     \
  static_assert(EVENTHEADER_INTERNAL_VIEW(name).size() <= ::eh::kMaxProviderName,   \
                "a provider's name has at most 200 bytes");                         \
  static_assert(::eh::IsValidGroup(EVENTHEADER_INTERNAL_VIEW(group)) &&             \
                    EVENTHEADER_INTERNAL_VIEW(group).size() <= ::eh::kMaxGroup,     \
                "a provider's group is lower-case letters and digits, at most 24"); \
  inline ::eh::DynamicProvider provider {                                           \
    EVENTHEADER_INTERNAL_VIEW(name), EVENTHEADER_INTERNAL_VIEW(group)               \
  }

#define EVENTHEADER_EVENT(provider, ...)                                                           \
  do {                                                                                             \
    using EventheaderSet = ::eh::internal::macros::Set<                                            \
        provider, ::eh::internal::macros::LevelOf(EVENTHEADER_INTERNAL_SECOND(__VA_ARGS__, 0, 0)), \
        EVENTHEADER_INTERNAL_THIRD(__VA_ARGS__, 0, 0)>;                                            \
    if (EventheaderSet::enabled()) {                                                               \
      ::eh::internal::macros::Write<EventheaderSet>(                                               \
          EVENTHEADER_INTERNAL_TEXT(EVENTHEADER_INTERNAL_FIRST(__VA_ARGS__, 0)),                   \
          EVENTHEADER_INTERNAL_AFTER_THIRD(__VA_ARGS__, ::eh::internal::macros::Part<>()));        \
    }                                                                                              \
  } while (false)

#define EVENTHEADER_FIELD(name, value) \
  ::eh::internal::macros::MakeField(EVENTHEADER_INTERNAL_TEXT(name), value)
#define EVENTHEADER_FIELD_AS(name, value, format) \
  ::eh::internal::macros::MakeField<format>(EVENTHEADER_INTERNAL_TEXT(name), value)
#define EVENTHEADER_BINARY(name, pointer, size) \
  EVENTHEADER_FIELD(name, (::eh::internal::macros::Binary{pointer, size}))
#define EVENTHEADER_ARRAY(name, pointer, count) \
  EVENTHEADER_FIELD(name, ::eh::internal::macros::Array(pointer, count))
#define EVENTHEADER_ACTIVITY(...) \
  (::eh::internal::macros::ActivityPart(::eh::Activity{__VA_ARGS__}))
#define EVENTHEADER_OPCODE(opcode) (::eh::internal::macros::Part<opcode>())
#define EVENTHEADER_ID(id, version) \
  (::eh::internal::macros::Part<::eh::Opcode::kInfo, id, version>())
#define EVENTHEADER_TAG(tag) (::eh::internal::macros::Part<::eh::Opcode::kInfo, 0, 0, tag>())

// Only for the macros above.
#define EVENTHEADER_INTERNAL_FIRST(first, ...) first
#define EVENTHEADER_INTERNAL_SECOND(first, second, ...) second
#define EVENTHEADER_INTERNAL_THIRD(first, second, third, ...) third
#define EVENTHEADER_INTERNAL_AFTER_THIRD(first, second, third, ...) __VA_ARGS__
// Compiles with a literal only.
#define EVENTHEADER_INTERNAL_VIEW(literal) (::std::string_view("" literal, sizeof("" literal) - 1))
// Makes a type of a literal.
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
// Makes it an event set that is registered, for the C API's functions. Its memory is never given
// back: events may be written while the program ends.
const eh_event_set* RegisterSet(SetStorage* storage, ProviderBase& provider, Level level,
                                std::uint64_t keyword) noexcept;
void UnregisterSet(SetStorage* storage) noexcept;

namespace macros {

// A level is given as a Level or as a number; an invalid one becomes 0.
constexpr Level LevelOf(Level level) noexcept { return level; }
constexpr Level LevelOf(int level) noexcept {
  return level >= 1 && level <= 255 ? static_cast<Level>(level) : Level::kInvalid;
}

// The event set of all events of (provider, level, keyword).
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
    Registration() noexcept : set(RegisterSet(&storage_, kProvider, kLevel, kKeyword)) {}
    ~Registration() { UnregisterSet(&storage_); }
    const eh_event_set* set;
  };
  static inline SetStorage storage_ = {};
  static inline Registration registration_;
};

// Ranges, which C++17 has no std::span for.
class Binary {
 public:
  Binary(const void* data, std::size_t size) noexcept : data_(data), size_(size) {}
  const void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  const void* data_;
  std::size_t size_;
};
template <typename T>
class Array {
 public:
  Array(const T* data, std::size_t count) noexcept : data_(data), count_(count) {}
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + count_; }
  std::size_t size() const noexcept { return count_; }

 private:
  const T* data_;
  std::size_t count_;
};

}  // namespace macros

template <>
struct Coder<macros::Binary> : BinaryCoder<macros::Binary> {};
template <typename T>
struct Coder<macros::Array<T>> : VariableArrayCoder<macros::Array<T>, T> {};

namespace macros {

// Everything after the keyword is a Part; this one has no field.
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

template <typename T>
using Bare = std::remove_cv_t<std::remove_reference_t<T>>;

template <typename Name, typename T, Format kAs>
struct Field : Part<> {
  using Type = Coder<T>;
  static_assert(IsValidName(Name::Get()),
                "a field's name is not empty and has neither ';' nor NUL");
  static_assert(Type::kEncoding != Encoding::kStruct, "structs are fields of static events only");
  static constexpr Format kFormat = kAs == Format::kDefault ? Type::kFormat : kAs;
  static_assert(IsFormatOf(Type::kEncoding, kFormat),
                "this format does not go with the field's type");
  static constexpr auto kFormatByte = static_cast<std::uint8_t>(kFormat);

  explicit Field(const T& from) noexcept : value(Prepare(from)) {}

  static constexpr std::size_t kDefinitionSize =
      Name::Get().size() + 1 + TypeSize(Type::kEncoding, Type::kCount, kFormatByte, 0);
  static constexpr char* PutDefinition(char* out) noexcept {
    for (const char c : Name::Get()) *out++ = c;
    *out++ = '\0';
    return PutType(out, Type::kEncoding, Type::kArity, Type::kCount, kFormatByte, 0);
  }
  std::size_t Size() const noexcept { return Coder<Bare<Value>>::Size(value); }
  std::byte* Put(std::byte* out) const noexcept { return Coder<Bare<Value>>::Put(out, value); }

  using Value = Parameter<Bare<decltype(Prepare(std::declval<const T&>()))>>;
  Value value;
};

template <Format kAs = Format::kDefault, typename Name, typename T>
Field<Name, T, kAs> MakeField(Name, const T& value) noexcept {
  return Field<Name, T, kAs>(value);
}

template <typename Name, typename... Parts>
struct Metadata {
  static constexpr std::size_t kSize = ((Name::Get().size() + 1) + ... + Parts::kDefinitionSize);
  static_assert(kSize <= kMaxEventSize, "the event's names alone are over the maximum event size");

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
  data[0] = {};  // never read, but g++ cannot know that of an event without fields
  std::byte* out = data;
  ((out = parts.Put(out)), ...);
  return eh_write(set, &event, activity, data, static_cast<std::size_t>(out - data));
}

// Builds and writes an enabled event, out of line, for call sites to be small.
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

  // Compared after each step: nothing bounds the sum of sizes.
  std::size_t size = 0;
  const bool fits = ((size += parts.Size(), size <= kMaxEventSize) && ...);
  // Most events take no more than this of the stack, which may be a signal's; larger ones 8 KiB.
  constexpr std::size_t kSmall = 512;
  if (!fits) {
    // Refused and counted without a look at the data.
    eh_write(Set::set(), &kEvent, given, nullptr, kMaxEventSize);
  } else if (size <= kSmall) {
    Put<kSmall>(Set::set(), kEvent, given, parts...);
  } else {
    Put<kMaxEventSize>(Set::set(), kEvent, given, parts...);
  }
}

}  // namespace macros
}  // namespace internal
}  // namespace eh

#endif  // EVENTHEADER_MACROS_H_
