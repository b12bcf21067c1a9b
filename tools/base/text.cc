#include "tools/base/text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "libeventheader/base/utf.h"

namespace base {
namespace {

// Returns whether a terminal may do something other than show `c` at the next position.
bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) ||        // C0, DEL, C1
         c == 0x061C || c == 0x200E || c == 0x200F ||  // marks of direction
         (c >= 0x2028 && c <= 0x202E) ||               // separators, embeddings, overrides
         (c >= 0x2066 && c <= 0x2069);                 // isolates
}

}  // namespace

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

std::string Counted(std::uint64_t number, std::string_view noun) {
  return absl::StrCat(number, " ", std::string(noun), number == 1 ? "" : "s");
}

std::optional<std::uint64_t> ParseUint64(std::string_view text) {
  // The functions of absl skip spaces and accept signs, which are invalid here.
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

std::string Printable(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < '\x7f'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string shown;
  for (auto rest = std::as_bytes(std::span(text)); !rest.empty();) {
    const char32_t c = eh::internal::ReplaceMalformed(eh::internal::DecodeUtf8(&rest));
    if (IsControl(c)) {
      absl::StrAppendFormat(&shown, "\\u%04x", static_cast<std::uint32_t>(c));
    } else {
      char bytes[4];
      shown.append(bytes, eh::internal::EncodeUtf8(c, bytes));
    }
  }
  return shown;
}

}  // namespace base
