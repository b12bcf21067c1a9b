// Text as the format has it, made into valid UTF-8.
#ifndef LIBNETTRACE_WRITER_READ_TEXT_H_
#define LIBNETTRACE_WRITER_READ_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace nettrace {

void AppendCodePoint(std::uint32_t code_point, std::string* out);

// Lone surrogates, and an odd last byte, become U+FFFD.
void AppendUtf16AsUtf8(std::span<const std::byte> bytes, std::string* out);

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_TEXT_H_
