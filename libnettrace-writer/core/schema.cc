#include "nettrace/schema.h"

namespace nettrace {

Type Type::Simple(TypeCode code) {
  Type type;
  type.code = code;
  return type;
}

namespace {

Type Of(TypeCode code, Type element) {
  Type type = Type::Simple(code);
  type.element.push_back(std::move(element));
  return type;
}

}  // namespace

Type Type::Array(Type element) { return Of(TypeCode::kArray, std::move(element)); }

Type Type::FixedLengthArray(Type element, std::uint16_t count) {
  Type type = Of(TypeCode::kFixedLengthArray, std::move(element));
  type.count = count;
  return type;
}

Type Type::RelLoc(Type element) { return Of(TypeCode::kRelLoc, std::move(element)); }

Type Type::DataLoc(Type element) { return Of(TypeCode::kDataLoc, std::move(element)); }

Type Type::Object(std::vector<Field> fields) {
  Type type = Simple(TypeCode::kObject);
  type.fields = std::move(fields);
  return type;
}

bool operator==(const Type& a, const Type& b) {
  return a.code == b.code && a.count == b.count && a.element == b.element && a.fields == b.fields;
}

}  // namespace nettrace
