// Conversions between the encodings of text that EventHeader and NetTrace know.
#ifndef TOOLS_COMMON_TEXT_H_
#define TOOLS_COMMON_TEXT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tools {

enum class TextKind { kAscii, kUtf8, kInvalid };

// What the bytes are as UTF-8.
TextKind ClassifyUtf8(std::span<const std::byte> text);

// These append `text` to `out` as UTF-16LE. What does not form a character becomes U+FFFD.
void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
// Code units of 4 bytes, in the host's order or swapped.
void AppendUtf32AsUtf16(std::span<const std::byte> text, bool swap, std::vector<std::byte>* out);

// These append `text` to `out` as UTF-8 that is always valid. What does not form a character
// becomes U+FFFD.
void AppendUtf8AsValid(std::span<const std::byte> text, std::string* out);
void AppendUtf16AsUtf8(std::span<const std::byte> text, std::string* out);

}  // namespace tools

#endif  // TOOLS_COMMON_TEXT_H_
