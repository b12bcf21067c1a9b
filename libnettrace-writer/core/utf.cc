#include "libnettrace-writer/core/utf.h"

#include <cstdint>
#include <cstring>

#include "libeventheader/base/utf.h"

namespace nettrace::internal {
namespace {

using eh::internal::DecodeUtf16;
using eh::internal::DecodeUtf32;
using eh::internal::DecodeUtf8;
using eh::internal::kMalformed;
using eh::internal::ReplaceMalformed;

void AppendUnit(std::uint16_t unit, std::vector<std::byte>* out) {
  out->push_back(static_cast<std::byte>(unit & 0xFF));
  out->push_back(static_cast<std::byte>(unit >> 8));
}

void AppendUtf8(char32_t c, std::string* out) {
  char bytes[4];
  out->append(bytes, eh::internal::EncodeUtf8(c, bytes));
}

}  // namespace

void AppendAsUtf16(char32_t c, std::vector<std::byte>* out) {
  if (c < 0x10000) {
    AppendUnit(static_cast<std::uint16_t>(c), out);
  } else {
    AppendUnit(static_cast<std::uint16_t>(0xD800 + ((c - 0x10000) >> 10)), out);
    AppendUnit(static_cast<std::uint16_t>(0xDC00 + ((c - 0x10000) & 0x3FF)), out);
  }
}

TextKind ClassifyUtf8(std::span<const std::byte> text) {
  // Nearly all text is ASCII, so this loop checks eight bytes at a time until a byte is not ASCII.
  while (text.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    if ((word & 0x8080808080808080) != 0) break;
    text = text.subspan(8);
  }
  TextKind kind = TextKind::kAscii;
  while (!text.empty()) {
    const char32_t c = DecodeUtf8(&text);
    if (c == kMalformed) return TextKind::kInvalid;
    if (c >= 0x80) kind = TextKind::kUtf8;
  }
  return kind;
}

void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out) {
  while (!text.empty()) AppendAsUtf16(ReplaceMalformed(DecodeUtf8(&text)), out);
}

void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out) {
  for (std::byte c : text) AppendUnit(static_cast<std::uint16_t>(c), out);
}

void AppendUtf32AsUtf16(std::span<const std::byte> text, bool little_endian,
                        std::vector<std::byte>* out) {
  while (!text.empty()) AppendAsUtf16(ReplaceMalformed(DecodeUtf32(&text, little_endian)), out);
}

void AppendUtf8AsValid(std::span<const std::byte> text, std::string* out) {
  if (ClassifyUtf8(text) != TextKind::kInvalid) {
    out->append(reinterpret_cast<const char*>(text.data()), text.size());
    return;
  }
  while (!text.empty()) AppendUtf8(DecodeUtf8(&text), out);
}

void AppendUtf16AsUtf8(std::span<const std::byte> text, std::string* out) {
  while (!text.empty()) AppendUtf8(DecodeUtf16(&text, true), out);
}

}  // namespace nettrace::internal
