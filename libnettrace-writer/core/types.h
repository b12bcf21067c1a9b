// Facts about the types of fields.
#ifndef LIBNETTRACE_WRITER_CORE_TYPES_H_
#define LIBNETTRACE_WRITER_CORE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "nettrace/format.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

inline bool IsPlainArray(const Type& type) {
  return type.code == TypeCode::kArray || type.code == TypeCode::kFixedLengthArray;
}
inline bool IsLocation(const Type& type) {
  return type.code == TypeCode::kRelLoc || type.code == TypeCode::kDataLoc;
}
inline bool IsArray(const Type& type) { return IsPlainArray(type) || IsLocation(type); }
// Bytes of a code unit; 0 for other types.
inline std::size_t CodeUnitSize(const Type& type) {
  return type.code == TypeCode::kUtf8CodeUnit ? 1 : type.code == TypeCode::kUtf16CodeUnit ? 2 : 0;
}
inline bool IsCodeUnit(const Type& type) { return CodeUnitSize(type) != 0; }

// An array of code units in place.
inline bool IsText(const Type& type) {
  return IsPlainArray(type) && IsCodeUnit(type.element.front());
}

// Whether values are integers of that signedness; single code units are unsigned ones.
constexpr bool IsSigned(TypeCode code) {
  return code == TypeCode::kSByte || code == TypeCode::kInt16 || code == TypeCode::kInt32 ||
         code == TypeCode::kInt64 || code == TypeCode::kVarInt;
}
constexpr bool IsUnsigned(TypeCode code) {
  return code == TypeCode::kByte || code == TypeCode::kUtf8CodeUnit || code == TypeCode::kUInt16 ||
         code == TypeCode::kUtf16CodeUnit || code == TypeCode::kUInt32 ||
         code == TypeCode::kUInt64 || code == TypeCode::kVarUInt;
}

// The bytes that every value of `type` takes in a payload, not counting what it locates elsewhere;
// nullopt if they vary, as those of a VarInt do. All its arrays have their element type.
std::optional<std::uint64_t> FixedSize(const Type& type);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_TYPES_H_
