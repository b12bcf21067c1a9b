#include "tools/base/text_width.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace base {
namespace {

// Returns the size in bytes and the code point of the first character of `text`, which must not be
// empty.
std::pair<std::size_t, char32_t> FirstOf(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t size = 1;
  while (size < text.size() && size < 4 && (byte(size) & 0xC0) == 0x80) ++size;
  char32_t character = size == 1 ? byte(0) : byte(0) & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) character = character << 6 | (byte(i) & 0x3F);
  return {size, character};
}

// Returns the number of columns that a character takes on a terminal: 0 for combining characters, 2
// for East Asian characters and emoji, 1 for others.
std::size_t WidthOfCharacter(char32_t character) {
  struct Range {
    char32_t first;
    char32_t last;
  };
  static constexpr Range kNone[] = {
      {0x300, 0x36F}, {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}};
  static constexpr Range kTwo[] = {{0x1100, 0x115F}, {0x2E80, 0xA4CF},   {0xAC00, 0xD7A3},
                                   {0xF900, 0xFAFF}, {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                                   {0xFFE0, 0xFFE6}, {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  const auto has = [character](const Range& range) {
    return character >= range.first && character <= range.last;
  };
  if (std::any_of(std::begin(kNone), std::end(kNone), has)) return 0;
  return std::any_of(std::begin(kTwo), std::end(kTwo), has) ? 2 : 1;
}

}  // namespace

std::size_t WidthOf(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const auto [size, character] = FirstOf(text);
    width += WidthOfCharacter(character);
    text.remove_prefix(size);
  }
  return width;
}

std::string Fit(std::string_view text, std::size_t width) {
  const std::size_t whole = WidthOf(text);
  if (whole <= width) return std::string(text) + std::string(width - whole, ' ');
  if (width == 0) return "";
  std::size_t end = 0;
  std::size_t used = 0;
  while (end < text.size()) {
    const auto [size, character] = FirstOf(text.substr(end));
    if (used + WidthOfCharacter(character) > width - 1) break;
    used += WidthOfCharacter(character);
    end += size;
  }
  return std::string(text.substr(0, end)) + "~" + std::string(width - 1 - used, ' ');
}

}  // namespace base
