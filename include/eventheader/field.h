// Fields of static events and members of structs: their names, types and options.
#ifndef EVENTHEADER_FIELD_H_
#define EVENTHEADER_FIELD_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/static_event.h"
#include "eventheader/internal/struct_members.h"
#include "eventheader/wire.h"

namespace eh {

// A string literal as a template argument.
template <std::size_t kLength>
struct FixedString {
  // NOLINTNEXTLINE(google-explicit-constructor): callers pass a literal
  consteval FixedString(const char (&literal)[kLength]) {
    for (std::size_t i = 0; i < kLength; ++i) text[i] = literal[i];
  }
  static constexpr std::size_t size() noexcept { return kLength - 1; }
  constexpr std::string_view view() const noexcept { return {text, kLength - 1}; }
  char text[kLength] = {};
};

// Base of the options of a field: Tag, Attribute and As. An event can have only Attributes.
struct FieldOption {};

// Gives a field a tag: a number whose meaning the provider defines. 0: no tag.
template <std::uint16_t kNumber>
struct Tag : FieldOption {
  static constexpr std::uint16_t kTag = kNumber;
};

// Adds `;name=value` after the name of a field or an event in the metadata. This class doubles each
// ';' of the value.
template <FixedString kName, FixedString kValue>
struct Attribute : FieldOption {
  static_assert(!kName.view().empty() && kName.view().find_first_of(";=") == std::string_view::npos,
                "an attribute's name must not be empty or contain ';' or '='");
  static_assert(kName.view().find('\0') == std::string_view::npos &&
                    kValue.view().find('\0') == std::string_view::npos,
                "an attribute must not contain NUL");

  static constexpr std::size_t kSize = [] {
    std::size_t size = 2 + kName.size() + kValue.size();
    for (const char c : kValue.view()) size += c == ';';
    return size;
  }();
  static constexpr char* Put(char* out) noexcept {
    *out++ = ';';
    out = internal::PutText(out, kName.view());
    *out++ = '=';
    for (const char c : kValue.view()) {
      if (c == ';') *out++ = ';';
      *out++ = c;
    }
    return out;
  }

  // Returns the attribute as a FieldFacts, because the fields and attributes of an event are one
  // list of FieldFacts.
  static constexpr internal::FieldFacts Facts() noexcept;
};

// Makes readers show a field in format `kFormatIs` instead of the default format of its type.
template <Format kFormatIs>
struct As : FieldOption {
  static constexpr Format kFormat = kFormatIs;
};

namespace internal {

template <typename Option>
inline constexpr bool kIsAttribute = requires {
  Option::kSize;
};

// Holds the attributes of a field or an event as the text that is written to the metadata.
template <typename... Options>
struct AttributeText {
  static constexpr std::size_t kSize = [] {
    std::size_t size = 0;
    (
        [&] {
          if constexpr (kIsAttribute<Options>) size += Options::kSize;
        }(),
        ...);
    return size;
  }();
  struct Bytes {
    char text[kSize + 1];
  };
  static constexpr Bytes kBytes = [] {
    Bytes bytes{};
    char* out = bytes.text;
    (
        [&] {
          if constexpr (kIsAttribute<Options>) out = Options::Put(out);
        }(),
        ...);
    *out = '\0';
    return bytes;
  }();
  static constexpr std::string_view View() noexcept { return {kBytes.text, kSize}; }
};

template <typename Option>
constexpr void Apply(FieldFacts* facts) noexcept {
  static_assert(std::is_base_of_v<FieldOption, Option>,
                "a field's options must be Tag, Attribute or As");
  if constexpr (requires { Option::kTag; }) facts->tag = Option::kTag;
  if constexpr (requires { Option::kFormat; }) {
    facts->format = static_cast<std::uint8_t>(Option::kFormat);
  }
}

// Returns the facts about a field, or about a member of a struct.
template <FixedString kName, typename T, typename... Options>
constexpr FieldFacts FactsOfField() noexcept {
  static_assert(IsValidName(kName.view()),
                "a field's name must not be empty or contain ';' or NUL");
  FieldFacts facts = kFactsOfType<T>;
  facts.name = kName.view();
  if constexpr (sizeof...(Options) != 0) {
    constexpr std::uint8_t kFormat = [] {
      FieldFacts with_options = kFactsOfType<T>;
      (Apply<Options>(&with_options), ...);
      return with_options.format;
    }();
    static_assert(IsFormatOfType<T>(kFormat), EVENTHEADER_INTERNAL_FORMAT_FAULT);
    (Apply<Options>(&facts), ...);
    facts.attributes = AttributeText<Options...>::View();
  } else {
    static_assert(kIsOwnFormatOfType<T>, EVENTHEADER_INTERNAL_FORMAT_FAULT);
  }
  return facts;
}

}  // namespace internal

template <FixedString kName, FixedString kValue>
constexpr internal::FieldFacts Attribute<kName, kValue>::Facts() noexcept {
  internal::FieldFacts facts{};
  facts.attributes = internal::AttributeText<Attribute>::View();
  return facts;
}

// A field of a static event. T determines the encoding and the argument of Write:
// - an integer, enum, bool, character, float, double or pointer;
// - a string or a span of bytes; a std::filesystem::path;
// - a std::chrono duration, written in ns; a time point of the system clock, written in seconds;
// - a std::error_code; a std::atomic of a type of fixed size;
// - an in_addr or in6_addr; a wrapper of formatted.h;
// - an array or optional of these;
// - a struct that EventheaderMembers describes (StructOf);
// - a class or enum with a function EventheaderValue in its namespace, which returns a value of one
//   of these types: a number, a view or a reference. Write() may call the function several times
//   for one event, and it must return the same value each time. It must not allocate if events are
//   written in signal handlers:
//       std::string_view EventheaderValue(const Color& color);
template <FixedString kName, typename T, typename... Options>
struct Field {
  using Type = std::remove_cv_t<T>;
  static constexpr internal::FieldFacts Facts() noexcept {
    return internal::FactsOfField<kName, Type, Options...>();
  }
  // Must be the last member: clang does not instantiate the members after an assertion that fails.
  static_assert(internal::Coder<Type>::kIsSupported, EVENTHEADER_INTERNAL_TYPE_FAULT);
};

// A member of a struct (see StructOf): its name in events, and a pointer to the member.
template <FixedString kName, auto kPointer, typename... Options>
struct Member {
  using Type = typename internal::MemberPointer<decltype(kPointer)>::Type;
  static constexpr auto kMember = kPointer;
  static constexpr internal::FieldFacts Facts() noexcept {
    return internal::FactsOfField<kName, Type, Options...>();
  }
  static_assert(internal::Coder<Type>::kIsSupported, EVENTHEADER_INTERNAL_TYPE_FAULT);
};

namespace internal {
template <typename Part>
inline constexpr bool kIsField = false;
template <FixedString kName, typename T, typename... Options>
inline constexpr bool kIsField<Field<kName, T, Options...>> = true;

template <typename... M>
struct MemberFacts {
  static constexpr FieldFacts kFacts[] = {M::Facts()...};
};
template <>
struct MemberFacts<> {
  static constexpr const FieldFacts* kFacts = nullptr;
};
}  // namespace internal

template <typename... M>
struct Members : internal::StructMembers<internal::MemberFacts<M...>, M::kMember...> {};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_FIELD_H_
