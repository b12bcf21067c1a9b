// Reads the code points of text in any encoding that an event may contain.
#ifndef LIBEVENTHEADER_DECODE_TEXT_READER_H_
#define LIBEVENTHEADER_DECODE_TEXT_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace eh::internal {

enum class TextEncoding : std::uint8_t { kLatin1, kUtf8, kUtf16, kUtf32 };

class TextReader {
 public:
  TextReader(std::span<const std::byte> bytes, TextEncoding encoding, bool little_endian) noexcept
      : rest_(bytes), encoding_(encoding), little_endian_(little_endian) {}

  // Removes a byte order mark from the front, if there is one. The mark overrides encoding and byte
  // order. A reader of UTF-8 accepts the marks of all encodings. A reader of UTF-16 or UTF-32
  // accepts only the marks of this encoding, and a reader of Latin-1 accepts none.
  void TakeByteOrderMark() noexcept;

  // Stores the next code point, which is never a surrogate, and returns true. Returns false at the
  // end. U+FFFD replaces malformed text, by the rules of base/utf.h.
  bool Next(char32_t* code_point) noexcept;

 private:
  std::span<const std::byte> rest_;
  TextEncoding encoding_;
  bool little_endian_;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_DECODE_TEXT_READER_H_
