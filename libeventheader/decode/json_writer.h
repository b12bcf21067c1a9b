// Writes JSON into a buffer of fixed size.
#ifndef LIBEVENTHEADER_DECODE_JSON_WRITER_H_
#define LIBEVENTHEADER_DECODE_JSON_WRITER_H_

#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "libeventheader/base/hex.h"
#include "libeventheader/base/utf.h"
#include "libeventheader/decode/text_reader.h"

namespace eh::internal {

// A writer whose size() also counts the bytes that do not fit into the buffer, so that the caller
// learns the required size.
class JsonWriter {
 public:
  explicit JsonWriter(std::span<char> buffer) noexcept : buffer_(buffer) {}

  std::size_t size() const noexcept { return size_; }

  void BeginObject() noexcept { Open('{'); }
  void EndObject() noexcept { Close('}'); }
  void BeginArray() noexcept { Open('['); }
  void EndArray() noexcept { Close(']'); }

  void Key(std::string_view utf8) noexcept {
    String(utf8);
    Put(':');
    separate_ = false;
  }

  // Writes UTF-8 text as a string. U+FFFD replaces what is malformed.
  void String(std::string_view utf8) noexcept {
    Text(TextReader(std::as_bytes(std::span(utf8.data(), utf8.size())), TextEncoding::kUtf8, true));
  }

  void Text(TextReader text) noexcept {
    Separate();
    Put('"');
    for (char32_t c = 0; text.Next(&c);) Character(c);
    Put('"');
    separate_ = true;
  }

  // Writes a string with two lower-case hexadecimal digits for each byte.
  void Hex(std::span<const std::byte> bytes) noexcept {
    Separate();
    Put('"');
    for (std::byte byte : bytes) HexByte(byte);
    Put('"');
    separate_ = true;
  }

  template <typename T>
  void Number(T number) noexcept {
    char text[32];
    const auto end = std::to_chars(std::begin(text), std::end(text), number).ptr;
    Literal({text, static_cast<std::size_t>(end - text)});
  }

  // Writes `text` as it is: a number, true, false or null.
  void Literal(std::string_view text) noexcept {
    Separate();
    Put(text);
    separate_ = true;
  }

 private:
  void Open(char bracket) noexcept {
    Separate();
    Put(bracket);
    separate_ = false;
  }

  void Close(char bracket) noexcept {
    Put(bracket);
    separate_ = true;
  }

  void Separate() noexcept {
    if (separate_) Put(',');
  }

  void HexByte(std::byte byte) noexcept {
    char digits[2];
    PutHex(digits, {&byte, 1});
    Put({digits, sizeof(digits)});
  }

  void Character(char32_t c) noexcept {
    if (c == '"' || c == '\\') {
      Put('\\');
      Put(static_cast<char>(c));
    } else if (c == '\n') {
      Put("\\n");
    } else if (c == '\t') {
      Put("\\t");
    } else if (c == '\r') {
      Put("\\r");
    } else if (c < 0x20) {
      Put("\\u00");
      HexByte(static_cast<std::byte>(c));
    } else {
      char bytes[4];
      Put({bytes, EncodeUtf8(c, bytes)});
    }
  }

  void Put(char c) noexcept {
    if (size_ < buffer_.size()) buffer_[size_] = c;
    ++size_;
  }

  void Put(std::string_view text) noexcept {
    for (char c : text) Put(c);
  }

  std::span<char> buffer_;
  std::size_t size_ = 0;
  bool separate_ = false;  // true if the next value or key needs a comma before it
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_DECODE_JSON_WRITER_H_
