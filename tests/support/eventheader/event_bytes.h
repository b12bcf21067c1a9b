// Events written by hand: hex digits as in a dump, names as text.
#ifndef TESTS_SUPPORT_EVENTHEADER_EVENT_BYTES_H_
#define TESTS_SUPPORT_EVENTHEADER_EVENT_BYTES_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace eh::testing {

// Returns three bytes for "07 00 2a". Everything except lower-case hex digits separates bytes.
inline std::string FromHex(std::string_view digits) {
  std::string bytes;
  int high = -1;
  for (char c : digits) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) continue;
    if (high < 0) {
      high = static_cast<int>(digit);
    } else {
      bytes.push_back(static_cast<char>(high * 16 + static_cast<int>(digit)));
      high = -1;
    }
  }
  return bytes;
}

// Returns `text` and its NUL.
inline std::string Name(std::string_view text) { return std::string(text) + '\0'; }

// Returns a little-endian event of level 4 whose only extension is `metadata`.
inline std::string EventBytes(std::string_view metadata, std::string_view payload) {
  std::string event = FromHex("07 00 00 00 00 00 00 04");
  event.push_back(static_cast<char>(metadata.size() & 0xff));
  event.push_back(static_cast<char>(metadata.size() >> 8));
  event += FromHex("01 00");
  event += metadata;
  event += payload;
  return event;
}

inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns a written event as text. If it has the flags of this machine, they are replaced with
// those of a 64-bit little-endian machine, which the expected bytes of the tests have.
inline std::string TextOfWritten(std::span<const std::byte> event) {
  std::string text(AsText(event));
  constexpr int kFlags = (sizeof(void*) == 8 ? 1 : 0) | 2 | 4;
  if (!text.empty() && text[0] == kFlags) text[0] = '\x07';
  return text;
}

}  // namespace eh::testing

#endif  // TESTS_SUPPORT_EVENTHEADER_EVENT_BYTES_H_
