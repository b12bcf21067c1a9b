// The members of a struct that is a field, for static events and the macros. C++17.
#ifndef EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_
#define EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "eventheader/internal/field_coder.h"
#include "eventheader/internal/static_event.h"
#include "eventheader/wire.h"

namespace eh {

// Describes a struct as a field. Specialize it:
//   template <> struct eh::StructOf<Point> {
//     using Members = eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>;
//   };
// In C++17: EVENTHEADER_DESCRIBE_STRUCT (macros.h).
template <typename T>
struct StructOf {};

namespace internal {

template <typename T>
struct MemberPointer;
template <typename Struct, typename T>
struct MemberPointer<T Struct::*> {
  using Type = std::remove_cv_t<T>;
};
template <auto kMember>
using CoderOfMember = Coder<typename MemberPointer<decltype(kMember)>::Type>;

// `Facts::kFacts` are the facts about the members, in their order.
template <typename Facts, auto... kMember>
struct StructMembers {
  static_assert(sizeof...(kMember) >= 1 && sizeof...(kMember) <= kMaxStructFields,
                "a struct has 1 to 127 members");
  static constexpr std::uint8_t kMembers = sizeof...(kMember);
  static constexpr const FieldFacts* kFacts = Facts::kFacts;
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

}  // namespace internal
}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_STRUCT_MEMBERS_H_
