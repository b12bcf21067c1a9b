#include "libeventheader/decode/text_reader.h"

#include <cstring>

#include "libeventheader/base/utf.h"

namespace eh::internal {

void TextReader::TakeByteOrderMark() noexcept {
  static constexpr struct {
    std::size_t size;
    char bytes[5];
    TextEncoding encoding;
    bool little_endian;
  } kMarks[] = {
      // UTF-32 comes first, because its little-endian mark begins with the little-endian mark of
      // UTF-16.
      {4, "\xff\xfe\0\0", TextEncoding::kUtf32, true},
      {4, "\0\0\xfe\xff", TextEncoding::kUtf32, false},
      {3, "\xef\xbb\xbf", TextEncoding::kUtf8, true},
      {2, "\xff\xfe", TextEncoding::kUtf16, true},
      {2, "\xfe\xff", TextEncoding::kUtf16, false},
  };
  for (const auto& mark : kMarks) {
    if (encoding_ != TextEncoding::kUtf8 && encoding_ != mark.encoding) continue;
    if (rest_.size() < mark.size || std::memcmp(rest_.data(), mark.bytes, mark.size) != 0) continue;
    rest_ = rest_.subspan(mark.size);
    encoding_ = mark.encoding;
    little_endian_ = mark.little_endian;
    return;
  }
}

bool TextReader::Next(char32_t* code_point) noexcept {
  if (rest_.empty()) return false;
  char32_t next = 0;
  switch (encoding_) {
    case TextEncoding::kLatin1:
      next = TakeCodeUnit<1>(&rest_, little_endian_);
      break;
    case TextEncoding::kUtf8:
      next = DecodeUtf8(&rest_);
      break;
    case TextEncoding::kUtf16:
      next = DecodeUtf16(&rest_, little_endian_);
      break;
    case TextEncoding::kUtf32:
      next = DecodeUtf32(&rest_, little_endian_);
      break;
  }
  *code_point = ReplaceMalformed(next);
  return true;
}

}  // namespace eh::internal
