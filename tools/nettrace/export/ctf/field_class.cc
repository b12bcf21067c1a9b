#include "tools/nettrace/export/ctf/field_class.h"

#include "absl/strings/str_cat.h"

namespace tools::ctf {

FieldClass FieldClass::Unsigned(unsigned bits) {
  FieldClass field;
  field.bits = bits;
  return field;
}

FieldClass FieldClass::Signed(unsigned bits) {
  FieldClass field = Unsigned(bits);
  field.is_signed = true;
  return field;
}

FieldClass FieldClass::Hex(unsigned bits) {
  FieldClass field = Unsigned(bits);
  field.is_hex = true;
  return field;
}

FieldClass FieldClass::Time() {
  FieldClass field = Unsigned(64);
  field.is_time = true;
  return field;
}

FieldClass FieldClass::Float(unsigned bits) {
  FieldClass field = Unsigned(bits);
  field.kind = Kind::kFloat;
  return field;
}

FieldClass FieldClass::Boolean() {
  FieldClass field = Unsigned(8);
  field.kind = Kind::kBoolean;
  return field;
}

FieldClass FieldClass::Text() {
  FieldClass field;
  field.kind = Kind::kText;
  return field;
}

FieldClass FieldClass::Bytes(std::optional<std::uint32_t> length) {
  FieldClass field;
  field.kind = Kind::kBytes;
  field.length = length;
  return field;
}

FieldClass FieldClass::Struct(std::vector<Member> members) {
  FieldClass field;
  field.kind = Kind::kStruct;
  field.members = std::move(members);
  return field;
}

FieldClass FieldClass::Array(FieldClass element, std::optional<std::uint32_t> length) {
  FieldClass field;
  field.kind = Kind::kArray;
  field.length = length;
  // In TSDL, only a named member can be an array, so an array in an array becomes a struct member.
  const bool is_array = element.kind == Kind::kArray || element.kind == Kind::kBytes;
  field.element.push_back(is_array ? Struct({{"value", std::move(element)}}) : std::move(element));
  return field;
}

FieldClass FieldClass::For(const char* its_role) && {
  role = its_role;
  return std::move(*this);
}

bool FieldClass::HasLengthBefore() const {
  return (kind == Kind::kArray || kind == Kind::kBytes) && !length;
}

std::string MemberNames::LengthName(std::string_view name) {
  return absl::StrCat("_", std::string(name), "_length");
}

bool MemberNames::Take(const std::string& name) {
  const std::string length = LengthName(name);
  if (names_.contains(name) || names_.contains(length)) return false;
  names_.insert(name);
  names_.insert(length);
  return true;
}

std::string MemberNames::Add(std::string_view name) {
  std::string unique(name);
  for (std::uint32_t& count = counts_[unique]; !Take(unique);) {
    count = count == 0 ? 2 : count + 1;
    unique = absl::StrCat(std::string(name), "_", count);
  }
  return unique;
}

}  // namespace tools::ctf
