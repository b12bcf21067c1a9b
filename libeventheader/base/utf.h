// Decodes UTF-8, UTF-16 and UTF-32, and encodes UTF-8, for both libraries and the tools.
//
// Text in events and files may be any bytes. In UTF-8, each maximal subpart of a malformed sequence
// gives one U+FFFD (The Unicode Standard, chapter 3.9; web browsers and TraceEvent's .NET do the
// same). In UTF-16 and UTF-32, each malformed code unit gives one U+FFFD. All functions are
// stateless and thread-safe.
#ifndef LIBEVENTHEADER_BASE_UTF_H_
#define LIBEVENTHEADER_BASE_UTF_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace eh::internal {

inline constexpr char32_t kReplacementCharacter = 0xFFFD;
// The decoders' result for malformed bytes. It is not a code point, so callers can distinguish it
// from a U+FFFD in the text.
inline constexpr char32_t kMalformed = 0xFFFFFFFF;

constexpr bool IsScalarValue(char32_t c) noexcept {
  return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF);
}

constexpr char32_t ReplaceMalformed(char32_t c) noexcept {
  return c == kMalformed ? kReplacementCharacter : c;
}

// Removes one code point from the front of `text` and returns it. If the text there is malformed,
// removes one maximal subpart and returns kMalformed. `text` must not be empty.
constexpr char32_t DecodeUtf8(std::span<const std::byte>* text) noexcept {
  const auto lead = static_cast<char32_t>(text->front());
  *text = text->subspan(1);
  if (lead < 0x80) return lead;
  // The range of the second byte, `low` to `high`, excludes overlong forms, surrogates and numbers
  // above U+10FFFF.
  int more = 0;
  char32_t low = 0x80;
  char32_t high = 0xBF;
  char32_t value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    more = 1;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    more = 2;
    value = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    more = 3;
    value = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return kMalformed;
  }
  for (; more > 0; --more) {
    const auto next = text->empty() ? char32_t{0} : static_cast<char32_t>(text->front());
    if (next < low || next > high) return kMalformed;
    *text = text->subspan(1);
    value = value << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return value;
}

// Removes the first kSize bytes of `text` and returns them as a number. If there are fewer than
// kSize bytes, removes all of them and returns kMalformed.
template <std::size_t kSize>
constexpr char32_t TakeCodeUnit(std::span<const std::byte>* text, bool little_endian) noexcept {
  if (text->size() < kSize) {
    *text = {};
    return kMalformed;
  }
  char32_t unit = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    unit = unit << 8 | static_cast<char32_t>((*text)[little_endian ? kSize - 1 - i : i]);
  }
  *text = text->subspan(kSize);
  return unit;
}

// Removes one code point and returns it, or removes one malformed code unit and returns kMalformed.
// An unpaired surrogate or a single last byte is malformed.
constexpr char32_t DecodeUtf16(std::span<const std::byte>* text, bool little_endian) noexcept {
  const char32_t first = TakeCodeUnit<2>(text, little_endian);
  if (first == kMalformed || IsScalarValue(first)) return first;
  if (first >= 0xDC00 || text->size() < 2) return kMalformed;
  std::span<const std::byte> rest = *text;
  const char32_t second = TakeCodeUnit<2>(&rest, little_endian);
  if (second < 0xDC00 || second > 0xDFFF) return kMalformed;
  *text = rest;
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

// Removes one code point and returns it, or removes one malformed code unit and returns kMalformed.
// A surrogate, a number above U+10FFFF or 1 to 3 last bytes are malformed.
constexpr char32_t DecodeUtf32(std::span<const std::byte>* text, bool little_endian) noexcept {
  const char32_t unit = TakeCodeUnit<4>(text, little_endian);
  return IsScalarValue(unit) ? unit : kMalformed;
}

// Writes `c` as 1 to 4 bytes and returns their number. Writes U+FFFD if `c` is not a scalar value.
constexpr std::size_t EncodeUtf8(char32_t c, char (&out)[4]) noexcept {
  if (!IsScalarValue(c)) c = kReplacementCharacter;
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const std::size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  constexpr unsigned kLeads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (std::size_t i = size - 1; i > 0; --i) {
    out[i] = static_cast<char>(0x80 | (c & 0x3F));
    c >>= 6;
  }
  out[0] = static_cast<char>(kLeads[size] | c);
  return size;
}

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_BASE_UTF_H_
