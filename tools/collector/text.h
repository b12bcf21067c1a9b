// Text conversions between the code units of EventHeader and those of NetTrace.
#ifndef TOOLS_COLLECTOR_TEXT_H_
#define TOOLS_COLLECTOR_TEXT_H_

#include <cstddef>
#include <span>
#include <vector>

namespace collector {

enum class TextKind { kAscii, kUtf8, kInvalid };

// What the bytes are as UTF-8.
TextKind ClassifyUtf8(std::span<const std::byte> text);

// These append `text` to `out` as UTF-16LE. What does not form a character becomes U+FFFD.
void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
// Code units of 4 bytes, in the host's order or swapped.
void AppendUtf32AsUtf16(std::span<const std::byte> text, bool swap, std::vector<std::byte>* out);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TEXT_H_
