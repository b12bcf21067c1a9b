// Fields of static events and members of structs: their names, types and options.
#ifndef EVENTHEADER_FIELD_H_
#define EVENTHEADER_FIELD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/wire.h"

namespace eh {

// A string literal that is a template argument.
template <std::size_t kLength>
struct FixedString {
  // NOLINTNEXTLINE(google-explicit-constructor): a literal is what one writes.
  consteval FixedString(const char (&literal)[kLength]) { std::copy_n(literal, kLength, text); }
  static constexpr std::size_t size() noexcept { return kLength - 1; }
  constexpr std::string_view view() const noexcept { return {text, kLength - 1}; }
  char text[kLength] = {};
};

// Base of what fields and events have besides name and type.
struct FieldOption {};

// A provider-defined number; 0 is none.
template <std::uint16_t kNumber>
struct Tag : FieldOption {
  static constexpr std::uint16_t kTag = kNumber;
};

// `name=value`, written after the name of a field or an event. Semicolons in the value are doubled
// here.
template <FixedString kName, FixedString kValue>
struct Attribute : FieldOption {
  static_assert(!kName.view().empty() && kName.view().find_first_of(";=") == std::string_view::npos,
                "an attribute's name is not empty and has neither ';' nor '='");
  static_assert(kName.view().find('\0') == std::string_view::npos &&
                    kValue.view().find('\0') == std::string_view::npos,
                "an attribute has no NUL");

  static constexpr std::size_t Size() noexcept {
    std::size_t size = 2 + kName.size() + kValue.size();
    for (const char c : kValue.view()) size += c == ';';
    return size;
  }
  static constexpr char* Put(char* out) noexcept {
    *out++ = ';';
    for (const char c : kName.view()) *out++ = c;
    *out++ = '=';
    for (const char c : kValue.view()) {
      if (c == ';') *out++ = ';';
      *out++ = c;
    }
    return out;
  }
};

// Shows a field in another format than its type's own.
template <Format kFormatIs>
struct As : FieldOption {
  static constexpr Format kFormat = kFormatIs;
};

namespace internal {

template <typename Option>
constexpr std::size_t AttributeSize() noexcept {
  if constexpr (requires { Option::Size(); }) return Option::Size();
  return 0;
}
template <typename Option>
constexpr char* PutAttribute(char* out) noexcept {
  if constexpr (requires { Option::Size(); }) return Option::Put(out);
  return out;
}

template <typename... Options>
constexpr std::uint16_t TagOf() noexcept {
  std::uint16_t tag = 0;
  (
      [&] {
        if constexpr (requires { Options::kTag; }) tag = Options::kTag;
      }(),
      ...);
  return tag;
}
template <typename... Options>
constexpr Format FormatOf(Format otherwise) noexcept {
  Format format = otherwise;
  (
      [&] {
        if constexpr (requires { Options::kFormat; }) format = Options::kFormat;
      }(),
      ...);
  return format;
}

// Name, type and options of a field, as the bytes of its definition.
template <FixedString kName, typename T, typename... Options>
struct Definition {
  static_assert(IsValidName(kName.view()),
                "a field's name is not empty and has neither ';' nor NUL");
  static_assert((std::is_base_of_v<FieldOption, Options> && ...),
                "a field's options are Tag, Attribute and As");
  using Code = Coder<T>;
  static constexpr bool kIsStruct = Code::kEncoding == Encoding::kStruct;
  static constexpr std::uint16_t kTag = TagOf<Options...>();
  static constexpr Format kFormat = FormatOf<Options...>(Code::kFormat);
  static_assert(kIsStruct ? kFormat == Format::kDefault : IsFormatOf(Code::kEncoding, kFormat),
                "this format does not go with the field's type: As<> must suit the size of its "
                "values, text formats go with strings, and a struct has none");

  // Definitions, this one's and its members', and structs in one another.
  static constexpr int kFields = [] {
    if constexpr (kIsStruct) return 1 + Code::Members::kFields;
    return 1;
  }();
  static constexpr int kNesting = [] {
    if constexpr (kIsStruct) return 1 + Code::Members::kNesting;
    return 0;
  }();

  static constexpr std::size_t MembersSize() noexcept {
    if constexpr (kIsStruct) return Code::Members::DefinitionSize();
    return 0;
  }
  // A Format, or the number of a struct's members.
  static constexpr std::uint8_t FormatByte() noexcept {
    if constexpr (kIsStruct) return Code::Members::kMembers;
    return static_cast<std::uint8_t>(kFormat);
  }
  static constexpr std::size_t Size() noexcept {
    return kName.size() + (std::size_t{0} + ... + AttributeSize<Options>()) + 1 +
           TypeSize(Code::kEncoding, Code::kCount, FormatByte(), kTag) + MembersSize();
  }

  static constexpr char* Put(char* out) noexcept {
    for (const char c : kName.view()) *out++ = c;
    ((out = PutAttribute<Options>(out)), ...);
    *out++ = '\0';
    out = PutType(out, Code::kEncoding, Code::kArity, Code::kCount, FormatByte(), kTag);
    if constexpr (kIsStruct) out = Code::Members::PutDefinition(out);
    return out;
  }
};

template <typename T>
struct MemberPointer;
template <typename Struct, typename T>
struct MemberPointer<T Struct::*> {
  using Type = T;
};

}  // namespace internal

// How a struct is a field: specialize it.
//   template <> struct eh::StructOf<Point> {
//     using Members = eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>;
//   };
template <typename T>
struct StructOf {};

// A field of a static event. T says how it is encoded and what Write takes: an integer, enum, bool,
// character, float, double, pointer, time point of the system clock, string, span of bytes,
// address, wrapper of formatted.h, array or optional of these, or a struct (StructOf).
template <FixedString kName, typename T, typename... Options>
struct Field {
  using Type = std::remove_cv_t<T>;
  using Definition = internal::Definition<kName, Type, Options...>;
};

// A member of a struct (see StructOf): its name in events and where it is.
template <FixedString kName, auto kPointer, typename... Options>
struct Member {
  using Type = std::remove_cv_t<typename internal::MemberPointer<decltype(kPointer)>::Type>;
  using Definition = internal::Definition<kName, Type, Options...>;
  template <typename T>
  static const Type& Of(const T& value) noexcept {
    return value.*kPointer;
  }
};

template <typename... M>
struct Members {
  static_assert(sizeof...(M) >= 1 && sizeof...(M) <= kMaxStructFields,
                "a struct has 1 to 127 members");
  static constexpr std::uint8_t kMembers = sizeof...(M);
  static constexpr int kFields = (0 + ... + M::Definition::kFields);
  static constexpr int kNesting = std::max({0, M::Definition::kNesting...});
  static constexpr std::size_t kFixedSize =
      ((internal::Coder<typename M::Type>::kFixedSize != 0) && ...)
          ? (internal::Coder<typename M::Type>::kFixedSize + ...)
          : 0;

  static constexpr std::size_t DefinitionSize() noexcept { return (M::Definition::Size() + ...); }
  static constexpr char* PutDefinition(char* out) noexcept {
    ((out = M::Definition::Put(out)), ...);
    return out;
  }
  template <typename T>
  static std::size_t Size(const T& value) noexcept {
    return (internal::Coder<typename M::Type>::Size(M::Of(value)) + ...);
  }
  template <typename T>
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    ((out = internal::Coder<typename M::Type>::Put(out, M::Of(value))), ...);
    return out;
  }
};

}  // namespace eh

#endif  // EVENTHEADER_FIELD_H_
