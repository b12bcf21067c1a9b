#include "libnettrace-writer/core/check_fields.h"

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/core/types.h"
#include "nettrace/format.h"

namespace nettrace::internal {
namespace {

absl::Status Refuse(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("field '",
                                                 absl::string_view(field.data(), field.size()),
                                                 "': ", absl::string_view(why.data(), why.size())));
}

class TypeChecker {
 public:
  explicit TypeChecker(bool traceevent_compatible)
      : traceevent_compatible_(traceevent_compatible) {}

  absl::Status Check(const std::vector<Field>& fields, int depth) const {
    if (fields.size() > kMaxFields) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields.size(), " fields; at most ", kMaxFields, " are supported"));
    }
    for (const Field& field : fields) {
      if (absl::Status status = Check(field.name, field.type, depth); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Check(std::string_view name, const Type& type, int depth) const {
    if (depth > kMaxTypeDepth) {
      return Refuse(name, absl::StrCat("types are nested deeper than ", kMaxTypeDepth,
                                       " levels, the maximum"));
    }
    if (IsArray(type)) return CheckArray(name, type, depth);
    if (!type.element.empty()) return Refuse(name, "only arrays have an element type");
    if (type.code == TypeCode::kObject) return Check(type.fields, depth + 1);
    if (!type.fields.empty()) return Refuse(name, "only objects have fields");
    return CheckSimple(name, type.code);
  }

  absl::Status CheckArray(std::string_view name, const Type& type, int depth) const {
    if (type.element.size() != 1) return Refuse(name, "an array needs exactly one element type");
    const Type& element = type.element.front();
    if (absl::Status status = Check(name, element, depth + 1); !status.ok()) return status;
    if (IsLocation(type) && !FixedSize(element)) {
      return Refuse(name, "RelLoc and DataLoc need elements of a fixed size");
    }
    if (!traceevent_compatible_) return absl::OkStatus();
    if (traceevent::IsMisreadArrayOfArrays(type)) {
      return Refuse(
          name,
          "TraceEvent misreads arrays whose elements are arrays (text is no array); put each inner "
          "array into an object with one field");
    }
    if (traceevent::IsMisreadArrayOfObjects(type)) {
      return Refuse(name, "TraceEvent misreads arrays of objects without fields; add a field");
    }
    if (traceevent::IsMisreadFixedArray(type)) {
      return Refuse(
          name,
          absl::StrCat("TraceEvent misreads fixed-length arrays that are empty or longer than ",
                       traceevent::kMaxFixedArrayBytes, " bytes; use an Array"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckSimple(std::string_view name, TypeCode code) const {
    switch (code) {
      case TypeCode::kDecimal:
        return Refuse(name, "NetTrace V6 has no Decimal; use another type");
      case TypeCode::kDateTime:
        if (!traceevent_compatible_) return absl::OkStatus();
        return Refuse(name, "TraceEvent reads a DateTime as an 8-byte FILETIME; use an integer");
      case TypeCode::kBoolean32:
      case TypeCode::kUtf16CodeUnit:
      case TypeCode::kSByte:
      case TypeCode::kByte:
      case TypeCode::kInt16:
      case TypeCode::kUInt16:
      case TypeCode::kInt32:
      case TypeCode::kUInt32:
      case TypeCode::kInt64:
      case TypeCode::kUInt64:
      case TypeCode::kSingle:
      case TypeCode::kDouble:
      case TypeCode::kGuid:
      case TypeCode::kNullTerminatedUtf16String:
      case TypeCode::kVarInt:
      case TypeCode::kVarUInt:
      case TypeCode::kUtf8CodeUnit:
      case TypeCode::kBoolean8:
        return absl::OkStatus();
      default:
        return Refuse(name, absl::StrCat("unknown type code ", static_cast<int>(code)));
    }
  }

  const bool traceevent_compatible_;
};

}  // namespace

absl::Status CheckFields(const std::vector<Field>& fields, bool traceevent_compatible) {
  return TypeChecker(traceevent_compatible).Check(fields, 1);
}

}  // namespace nettrace::internal
