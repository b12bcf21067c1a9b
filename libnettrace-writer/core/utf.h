// Checks UTF-8, and converts text between encodings. Payloads contain UTF-8 or UTF-16 code units,
// which may be invalid. TraceEvent shows text beyond ASCII correctly only in UTF-16. All functions
// are thread-safe.
#ifndef LIBNETTRACE_WRITER_CORE_UTF_H_
#define LIBNETTRACE_WRITER_CORE_UTF_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace nettrace::internal {

enum class TextKind { kAscii, kUtf8, kInvalid };

// Returns whether the bytes are ASCII, other UTF-8 or not UTF-8.
TextKind ClassifyUtf8(std::span<const std::byte> text);

// Appends `c`, which must be a scalar value, as UTF-16LE.
void AppendAsUtf16(char32_t c, std::vector<std::byte>* out);
// Append `text` to `out` as UTF-16LE. U+FFFD replaces malformed text.
void AppendUtf8AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
void AppendLatin1AsUtf16(std::span<const std::byte> text, std::vector<std::byte>* out);
// `text` consists of code units of 4 bytes.
void AppendUtf32AsUtf16(std::span<const std::byte> text, bool little_endian,
                        std::vector<std::byte>* out);

// Append `text` to `out` as valid UTF-8. U+FFFD replaces malformed text.
void AppendUtf8AsValid(std::span<const std::byte> text, std::string* out);
// `text` is UTF-16LE. A single last byte is malformed.
void AppendUtf16AsUtf8(std::span<const std::byte> text, std::string* out);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_UTF_H_
