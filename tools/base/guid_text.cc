#include "tools/base/guid_text.h"

#include "absl/strings/ascii.h"

namespace base {

std::optional<std::array<std::byte, 16>> ParseHex128(std::string_view text) {
  std::array<std::byte, 16> id{};
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    if (!absl::ascii_isxdigit(static_cast<unsigned char>(c)) || digits == 32) return std::nullopt;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    std::byte& byte = id[digits++ / 2];
    byte = (byte << 4) | static_cast<std::byte>(digit);
  }
  return digits == 32 ? std::optional(id) : std::nullopt;
}

}  // namespace base
