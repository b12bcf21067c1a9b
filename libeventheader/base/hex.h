// Writes and reads hexadecimal digits. All letters are in lower case, as tracepoint names and trace
// contexts require.
#ifndef LIBEVENTHEADER_BASE_HEX_H_
#define LIBEVENTHEADER_BASE_HEX_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace eh::internal {

inline constexpr char kHexDigits[] = "0123456789abcdef";

constexpr bool IsHexDigit(char c) noexcept {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

// Writes two digits per byte and returns the end of the digits.
constexpr char* PutHex(char* out, std::span<const std::byte> bytes) noexcept {
  for (const std::byte byte : bytes) {
    *out++ = kHexDigits[static_cast<unsigned>(byte) >> 4];
    *out++ = kHexDigits[static_cast<unsigned>(byte) & 15];
  }
  return out;
}

// Fills `bytes` from the digits at the front of `text`, two for each byte. `text` must be long
// enough. Returns false if a character is not a lower-case hexadecimal digit.
constexpr bool ReadHex(std::string_view text, std::span<std::byte> bytes) noexcept {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    unsigned value = 0;
    for (const char c : text.substr(2 * i, 2)) {
      if (!IsHexDigit(c)) return false;
      value = value << 4 | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    bytes[i] = static_cast<std::byte>(value);
  }
  return true;
}

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_BASE_HEX_H_
