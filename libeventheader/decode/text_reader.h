// The code points of a text in any encoding an event may carry.
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

  // Takes a byte order mark off the front; it overrides encoding and byte order. Its code units are
  // as large as those of the reader's encoding, or any where that is UTF-8.
  void TakeByteOrderMark() noexcept;

  // True and the next code point, which is never a surrogate; false at the end. U+FFFD stands for
  // what is not well formed, by the rule of base/utf.h.
  bool Next(char32_t* code_point) noexcept;

 private:
  std::span<const std::byte> rest_;
  TextEncoding encoding_;
  bool little_endian_;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_DECODE_TEXT_READER_H_
