// The members of a struct that is a field, for static and dynamic events and the macros. Needs
// C++17.
#ifndef EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_
#define EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/static_event.h"
#include "eventheader/wire.h"

// EVENTHEADER_DESCRIBE_STRUCT (macros.h) specializes this template, and the specialization contains
// names from the service's code. The template is outside of namespace eh, because within eh, these
// names could refer to members of eh.
template <typename T>
struct EventheaderDescribed {};

namespace eh {
namespace internal {

template <typename T>
constexpr bool IsValue(const T&) noexcept {
  return true;
}

// Finds the members of a struct that a function EventheaderMembers or EVENTHEADER_DESCRIBE_STRUCT
// describes.
template <typename T, typename = void>
struct FindMembers {};
template <typename T>
struct FindMembers<T, Void<typename EventheaderDescribed<T>::EventheaderList>> {
  using Members = typename EventheaderDescribed<T>::EventheaderList;
};
template <typename T>
struct FindMembers<T, Void<decltype(EventheaderMembers(std::declval<const T*>()))>> {
  using Members = decltype(EventheaderMembers(std::declval<const T*>()));
  // Uses the function, so that compilers do not report it as unused.
  static_assert(IsValue(EventheaderMembers(static_cast<const T*>(nullptr))));
};

}  // namespace internal

// Describes a struct as a field. Define a function next to the struct, in its namespace, or as its
// friend:
//   constexpr auto EventheaderMembers(const Point*) {
//     return eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>();
//   }
// In C++17: EVENTHEADER_DESCRIBE_STRUCT (macros.h). If the namespace is not yours, specialize this
// template:
//   template <> struct eh::StructOf<Point> {
//     using Members = eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>;
//   };
// In the specialization, the compiler looks up names in eh first: write `&::Level::x` for a struct
// ::Level, because eh::Level exists.
template <typename T>
struct StructOf : internal::FindMembers<T> {};

namespace internal {

template <typename T>
struct MemberPointer;
template <typename Struct, typename T>
struct MemberPointer<T Struct::*> {
  using Type = std::remove_cv_t<T>;
};
template <auto kMember>
using CoderOfMember = Coder<typename MemberPointer<decltype(kMember)>::Type>;

// A list of the members of a struct. `Facts::kFacts` are the facts about the members, in their
// order.
template <typename Facts, auto... kMember>
struct StructMembers {
  static_assert(sizeof...(kMember) >= 1 && sizeof...(kMember) <= kMaxStructFields,
                "a struct has 1 to 127 members");
  static constexpr std::uint8_t kMembers = sizeof...(kMember);
  static constexpr const FieldFacts* kFacts = Facts::kFacts;
  static_assert(!HasRepeatedName(kFacts, 0, kMembers), EVENTHEADER_INTERNAL_REPEATED_NAME);
  static constexpr std::size_t kFixedSize = ((CoderOfMember<kMember>::kFixedSize != 0) && ...)
                                                ? (CoderOfMember<kMember>::kFixedSize + ...)
                                                : 0;

  static std::size_t DefinitionSize() noexcept { return TotalsOf(kFacts, kMembers).metadata; }
  static char* PutDefinition(char* out) noexcept { return PutDefinitions(out, kFacts, kMembers); }
  template <typename T>
  static std::size_t Size(const T& value) noexcept {
    return (CoderOfMember<kMember>::Size(value.*kMember) + ...);
  }
  template <typename T>
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    ((out = CoderOfMember<kMember>::Put(out, value.*kMember)), ...);
    return out;
  }
};
template <typename Facts>
struct StructMembers<Facts> {
  static_assert(kAlwaysFalse<Facts>, "a struct has 1 to 127 members");
};

// Describes ErrorParts as a struct without eh::Member, which needs C++20.
struct FactsOfErrorParts {
  static constexpr FieldFacts kFacts[] = {Named("category", FactsOfType<const char*>()),
                                          Named("value", FactsOfType<std::int32_t>())};
};
constexpr auto EventheaderMembers(const ErrorParts*) noexcept {
  return StructMembers<FactsOfErrorParts, &ErrorParts::category, &ErrorParts::value>();
}

}  // namespace internal
}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_
