// Properties of field types.
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
// Returns the size of a code unit in bytes, or 0 if `type` is not a code unit.
inline std::size_t CodeUnitSize(const Type& type) {
  return type.code == TypeCode::kUtf8CodeUnit ? 1 : type.code == TypeCode::kUtf16CodeUnit ? 2 : 0;
}
inline bool IsCodeUnit(const Type& type) { return CodeUnitSize(type) != 0; }

// Returns whether the type is an array of code units, and not a RelLoc or DataLoc of them.
inline bool IsText(const Type& type) {
  return IsPlainArray(type) && IsCodeUnit(type.element.front());
}

// Return whether values of the type are signed integers (IsSigned) or unsigned integers
// (IsUnsigned). A code unit that is not in an array is an unsigned integer.
constexpr bool IsSigned(TypeCode code) {
  return code == TypeCode::kSByte || code == TypeCode::kInt16 || code == TypeCode::kInt32 ||
         code == TypeCode::kInt64 || code == TypeCode::kVarInt;
}
constexpr bool IsUnsigned(TypeCode code) {
  return code == TypeCode::kByte || code == TypeCode::kUtf8CodeUnit || code == TypeCode::kUInt16 ||
         code == TypeCode::kUtf16CodeUnit || code == TypeCode::kUInt32 ||
         code == TypeCode::kUInt64 || code == TypeCode::kVarUInt;
}

// Returns the number of bytes that each value of `type` takes in a payload, without the data that a
// DataLoc or RelLoc points to. Returns kMaxBlockSize for larger sizes, and nullopt if the size
// varies, e.g. for a VarInt, or the type code is unknown. All arrays in `type` must have an element
// type.
std::optional<std::uint64_t> FixedSize(const Type& type);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_TYPES_H_
