#include "core/utf.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace nettrace {
namespace {

constexpr char32_t kReplacement = 0xFFFD;
constexpr char32_t kInvalid = 0xFFFFFFFF;

bool IsScalarValue(char32_t c) { return c < 0xD800 || (c >= 0xE000 && c <= 0x10FFFF); }

// Takes one character off the front of `text`, or one byte and kInvalid.
char32_t TakeUtf8(std::span<const std::byte>* text) {
  const auto lead = static_cast<unsigned char>(text->front());
  std::size_t length = 0;
  char32_t c = 0;
  char32_t least = 0;
  if (lead < 0x80) {
    *text = text->subspan(1);
    return lead;
  }
  if ((lead & 0xE0) == 0xC0) {
    length = 2, c = lead & 0x1F, least = 0x80;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3, c = lead & 0x0F, least = 0x800;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4, c = lead & 0x07, least = 0x10000;
  }
  bool valid = length != 0 && length <= text->size();
  for (std::size_t i = 1; valid && i < length; ++i) {
    const auto next = static_cast<unsigned char>((*text)[i]);
    valid = (next & 0xC0) == 0x80;
    c = (c << 6) | (next & 0x3F);
  }
  valid = valid && c >= least && IsScalarValue(c);
  *text = text->subspan(valid ? length : 1);
  return valid ? c : kInvalid;
}

void AppendUnit(std::uint16_t unit, std::vector<std::byte>* out) {
  out->push_back(static_cast<std::byte>(unit & 0xFF));
  out->push_back(static_cast<std::byte>(unit >> 8));
}

void AppendCharacter(char32_t c, std::vector<std::byte>* out) {
  if (!IsScalarValue(c)) c = kReplacement;
  if (c < 0x10000) {
    AppendUnit(static_cast<std::uint16_t>(c), out);
  } else {
    AppendUnit(static_cast<std::uint16_t>(0xD800 + ((c - 0x10000) >> 10)), out);
    AppendUnit(static_cast<std::uint16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)), out);
  }
}

void AppendUtf8(char32_t c, std::string* out) {
  if (!IsScalarValue(c)) c = kReplacement;
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  static constexpr unsigned kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  out->push_back(static_cast<char>(kLeads[more] | c >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3F)));
  }
}

}  // namespace

TextKind ClassifyUtf8(std::span<const std::byte> text) {
  // Eight bytes at a time while they are ASCII, which nearly all text here is.
  while (text.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    if ((word & 0x8080808080808080) != 0) break;
    text = text.subspan(8);
  }
  TextKind kind = TextKind::kAscii;
  while (!text.empty()) {
    const char32_t c = TakeUtf8(&text);
    if (c == kInvalid) return TextKind::kInvalid;
    if (c >= 0x80) kind = TextKind::kUtf8;
  }
  return kind;
}

void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out) {
  while (!text.empty()) AppendCharacter(TakeUtf8(&text), out);
}

void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out) {
  for (std::byte c : text) AppendUnit(static_cast<std::uint16_t>(c), out);
}

void AppendUtf32AsUtf16(std::span<const std::byte> text, bool swap, std::vector<std::byte>* out) {
  for (; text.size() >= 4; text = text.subspan(4)) {
    std::uint32_t c;
    std::memcpy(&c, text.data(), sizeof c);
    AppendCharacter(swap ? __builtin_bswap32(c) : c, out);
  }
}

void AppendUtf8AsValid(std::span<const std::byte> text, std::string* out) {
  if (ClassifyUtf8(text) != TextKind::kInvalid) {
    out->append(reinterpret_cast<const char*>(text.data()), text.size());
    return;
  }
  while (!text.empty()) AppendUtf8(TakeUtf8(&text), out);
}

void AppendUtf16AsUtf8(std::span<const std::byte> text, std::string* out) {
  const auto unit = [text](std::size_t at) {
    return static_cast<char32_t>(text[at]) | static_cast<char32_t>(text[at + 1]) << 8;
  };
  std::size_t at = 0;
  for (; at + 2 <= text.size(); at += 2) {
    char32_t c = unit(at);
    if (c >= 0xD800 && c < 0xDC00 && at + 4 <= text.size()) {
      const char32_t low = unit(at + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        at += 2;
      }
    }
    AppendUtf8(c, out);
  }
  if (at < text.size()) AppendUtf8(kReplacement, out);
}

}  // namespace nettrace
