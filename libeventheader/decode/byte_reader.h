// Reads the bytes of a possibly hostile event from front to back. The ByteReader of
// libnettrace-writer/core/byte_reader.h reads another format. The two classes share no code,
// because libeventheader may use no other library.
#ifndef LIBEVENTHEADER_DECODE_BYTE_READER_H_
#define LIBEVENTHEADER_DECODE_BYTE_READER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace eh::internal {

// A reader whose functions read the first bytes and remove them. They return false and remove
// nothing if there are too few bytes, or if a name has no NUL. Numbers are in the event's byte
// order.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, bool little_endian) noexcept
      : rest_(bytes), little_endian_(little_endian) {}

  bool U8(std::uint8_t* value) noexcept {
    if (rest_.empty()) return false;
    *value = static_cast<std::uint8_t>(rest_[0]);
    rest_ = rest_.subspan(1);
    return true;
  }

  bool U16(std::uint16_t* value) noexcept {
    if (rest_.size() < 2) return false;
    const auto first = static_cast<unsigned>(rest_[0]);
    const auto second = static_cast<unsigned>(rest_[1]);
    *value = static_cast<std::uint16_t>(little_endian_ ? first | second << 8 : first << 8 | second);
    rest_ = rest_.subspan(2);
    return true;
  }

  bool Bytes(std::size_t size, std::span<const std::byte>* bytes) noexcept {
    if (rest_.size() < size) return false;
    *bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
  }

  // Reads NUL-terminated text and splits it at its first ';'.
  bool Name(std::string_view* name, std::string_view* attributes) noexcept {
    if (rest_.empty()) return false;
    const void* end = std::memchr(rest_.data(), 0, rest_.size());
    if (end == nullptr) return false;
    const auto size = static_cast<std::size_t>(static_cast<const std::byte*>(end) - rest_.data());
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size + 1);
    const std::size_t semicolon = text.find(';');
    *name = text.substr(0, semicolon);
    *attributes =
        semicolon == std::string_view::npos ? std::string_view() : text.substr(semicolon + 1);
    return true;
  }

  std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> rest_;
  bool little_endian_;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_DECODE_BYTE_READER_H_
