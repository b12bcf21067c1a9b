#include "tools/common/text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
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

std::optional<std::uint64_t> ParseUint64(std::string_view text) {
  // absl's functions pass over spaces and take signs.
  const auto is_digit = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  if (text.empty() || !is_digit(text.front()) || !is_digit(text.back())) return std::nullopt;
  const absl::string_view number(text.data(), text.size());
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  std::uint64_t value = 0;
  const bool parsed =
      is_hex ? absl::SimpleHexAtoi(number, &value) : absl::SimpleAtoi(number, &value);
  if (!parsed) return std::nullopt;
  return value;
}

std::string OneLine(std::string text) {
  for (char& c : text) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

}  // namespace tools
