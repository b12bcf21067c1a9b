#include "tools/nettrace/export/ctf/tsdl.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/common/text.h"

namespace tools::ctf {

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : Printable(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Identifier(std::string_view text) {
  std::string identifier(text.substr(0, kMaxIdentifier));
  for (char& c : identifier) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return identifier;
}

std::string FieldNames::LengthName(std::string_view name) {
  return absl::StrCat("_", std::string(name), "_length");
}

bool FieldNames::Take(const std::string& name) {
  const std::string length = LengthName(name);
  if (names_.contains(name) || names_.contains(length)) return false;
  names_.insert(name);
  names_.insert(length);
  return true;
}

std::string FieldNames::Add(std::string_view name) {
  const std::string base = absl::StrCat("_", Identifier(name));
  std::string unique = base;
  for (std::uint32_t& count = counts_[base]; !Take(unique);) {
    count = count == 0 ? 2 : count + 1;
    unique = absl::StrCat(base, "_", count);
  }
  return unique;
}

}  // namespace tools::ctf
