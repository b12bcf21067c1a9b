#include "tools/common/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace tools {

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

std::string FormatGuid(const nettrace::Guid& guid) {
  const std::string hex = FormatHex(nettrace::GuidFromUuid(guid));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

std::string FormatHex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

}  // namespace tools
