// Conversions between encodings of text. Payloads have UTF-8 or UTF-16 code units, which need not
// be valid; TraceEvent shows text that is not ASCII right only in UTF-16. All functions may be
// called from any thread.
#ifndef LIBNETTRACE_WRITER_CORE_UTF_H_
#define LIBNETTRACE_WRITER_CORE_UTF_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace nettrace::internal {

enum class TextKind { kAscii, kUtf8, kInvalid };

// Whether the bytes are UTF-8.
TextKind ClassifyUtf8(std::span<const std::byte> text);

// Appends `c`, a scalar value, as UTF-16LE.
void AppendAsUtf16(char32_t c, std::vector<std::byte>* out);
// These append `text` to `out` as UTF-16LE. What does not form a character becomes U+FFFD.
void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
// Code units of 4 bytes.
void AppendUtf32AsUtf16(std::span<const std::byte> text, bool little_endian,
                        std::vector<std::byte>* out);

// These append `text` to `out` as UTF-8 that is always valid. What does not form a character
// becomes U+FFFD.
void AppendUtf8AsValid(std::span<const std::byte> text, std::string* out);
// UTF-16LE; an odd last byte does not form a character.
void AppendUtf16AsUtf8(std::span<const std::byte> text, std::string* out);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_UTF_H_
