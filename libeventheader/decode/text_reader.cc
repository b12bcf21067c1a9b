#include "decode/text_reader.h"

#include <cstring>

namespace eh {
namespace {

constexpr char32_t kMaxCodePoint = 0x10FFFF;

bool IsSurrogate(char32_t unit) noexcept { return unit >= 0xD800 && unit <= 0xDFFF; }
bool IsHighSurrogate(char32_t unit) noexcept { return unit >= 0xD800 && unit <= 0xDBFF; }
bool IsLowSurrogate(char32_t unit) noexcept { return unit >= 0xDC00 && unit <= 0xDFFF; }

}  // namespace

void TextReader::TakeByteOrderMark() noexcept {
  static constexpr struct {
    std::size_t size;
    char bytes[5];
    TextEncoding encoding;
    bool little_endian;
  } kMarks[] = {
      // UTF-32 first: its little-endian mark begins with that of UTF-16.
      {4, "\xff\xfe\0\0", TextEncoding::kUtf32, true},
      {4, "\0\0\xfe\xff", TextEncoding::kUtf32, false},
      {3, "\xef\xbb\xbf", TextEncoding::kUtf8, true},
      {2, "\xff\xfe", TextEncoding::kUtf16, true},
      {2, "\xfe\xff", TextEncoding::kUtf16, false},
  };
  for (const auto& mark : kMarks) {
    if (encoding_ != TextEncoding::kUtf8 && encoding_ != mark.encoding) continue;
    if (rest_.size() < mark.size || std::memcmp(rest_.data(), mark.bytes, mark.size) != 0) continue;
    rest_ = rest_.subspan(mark.size);
    encoding_ = mark.encoding;
    little_endian_ = mark.little_endian;
    return;
  }
}

bool TextReader::Next(char32_t* code_point) noexcept {
  if (rest_.empty()) return false;
  switch (encoding_) {
    case TextEncoding::kLatin1:
      TakeUnit(1, code_point);
      break;
    case TextEncoding::kUtf8:
      *code_point = NextUtf8();
      break;
    case TextEncoding::kUtf16:
      *code_point = NextUtf16();
      break;
    case TextEncoding::kUtf32:
      *code_point = NextUtf32();
      break;
  }
  return true;
}

char32_t TextReader::NextUtf8() noexcept {
  char32_t lead = 0;
  TakeUnit(1, &lead);
  if (lead < 0x80) return lead;
  // Overlong forms, surrogates and what is above the last code point are told by the second byte,
  // whose range depends on the first.
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
    return kReplacementCharacter;
  }
  for (; more > 0; --more) {
    const auto next = rest_.empty() ? char32_t{0} : static_cast<char32_t>(rest_[0]);
    if (next < low || next > high) return kReplacementCharacter;
    rest_ = rest_.subspan(1);
    value = value << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return value;
}

char32_t TextReader::NextUtf16() noexcept {
  char32_t first = 0;
  if (!TakeUnit(2, &first)) return kReplacementCharacter;
  if (!IsSurrogate(first)) return first;
  if (!IsHighSurrogate(first)) return kReplacementCharacter;
  const std::span<const std::byte> behind = rest_;
  char32_t second = 0;
  if (behind.size() < 2 || !TakeUnit(2, &second) || !IsLowSurrogate(second)) {
    rest_ = behind;
    return kReplacementCharacter;
  }
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

char32_t TextReader::NextUtf32() noexcept {
  char32_t unit = 0;
  if (!TakeUnit(4, &unit) || unit > kMaxCodePoint || IsSurrogate(unit)) {
    return kReplacementCharacter;
  }
  return unit;
}

// False, and all that is left is taken, when that is less than a code unit.
bool TextReader::TakeUnit(std::size_t size, char32_t* unit) noexcept {
  if (rest_.size() < size) {
    rest_ = {};
    return false;
  }
  *unit = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::byte next = rest_[little_endian_ ? size - 1 - i : i];
    *unit = *unit << 8 | static_cast<char32_t>(next);
  }
  rest_ = rest_.subspan(size);
  return true;
}

}  // namespace eh
