#include "libnettrace-writer/core/types.h"

#include <algorithm>
#include <vector>

#include "nettrace/format.h"

namespace nettrace::internal {
namespace {

std::optional<std::uint64_t> SumOfSizes(const std::vector<Field>& fields) {
  std::uint64_t sum = 0;
  for (const Field& field : fields) {
    const std::optional<std::uint64_t> size = FixedSize(field.type);
    if (!size) return std::nullopt;
    // Limits the sum to the size of a block, because no payload is longer. Sums of nested types
    // then cannot overflow.
    sum = std::min<std::uint64_t>(sum + *size, kMaxBlockSize);
  }
  return sum;
}

}  // namespace

std::optional<std::uint64_t> FixedSize(const Type& type) {
  switch (type.code) {
    case TypeCode::kSByte:
    case TypeCode::kByte:
    case TypeCode::kUtf8CodeUnit:
    case TypeCode::kBoolean8:
      return 1;
    case TypeCode::kUtf16CodeUnit:
    case TypeCode::kInt16:
    case TypeCode::kUInt16:
      return 2;
    case TypeCode::kBoolean32:
    case TypeCode::kInt32:
    case TypeCode::kUInt32:
    case TypeCode::kSingle:
    case TypeCode::kRelLoc:
    case TypeCode::kDataLoc:
      return 4;
    case TypeCode::kInt64:
    case TypeCode::kUInt64:
    case TypeCode::kDouble:
      return 8;
    case TypeCode::kGuid:
    case TypeCode::kDecimal:
    case TypeCode::kDateTime:
      return 16;
    case TypeCode::kObject:
      return SumOfSizes(type.fields);
    case TypeCode::kFixedLengthArray: {
      const std::optional<std::uint64_t> element = FixedSize(type.element.front());
      if (!element) return std::nullopt;
      return std::min<std::uint64_t>(*element * type.count, kMaxBlockSize);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace nettrace::internal
