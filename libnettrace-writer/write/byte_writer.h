// Appends the format's primitives to a growing buffer. For rows; events have a path of their own.
#ifndef NETTRACE_WRITE_BYTE_WRITER_H_
#define NETTRACE_WRITE_BYTE_WRITER_H_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "varint.h"

namespace nettrace::internal {

class ByteWriter {
 public:
  // Little-endian, sizeof(T) bytes.
  template <std::integral T>
  void Fixed(T value) {
    FixedAt(Reserve(sizeof(T)), value);
  }

  // Overwrites what Fixed (or Reserve) put at `offset`.
  template <std::integral T>
  void FixedAt(std::size_t offset, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      bytes_[offset + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
  }

  void VarUInt(std::uint64_t value) {
    std::array<std::byte, kVarUIntStore> encoded;
    const std::byte* end = PutVarUInt(encoded.data(), value);
    Bytes({encoded.data(), static_cast<std::size_t>(end - encoded.data())});
  }
  void VarInt(std::int64_t value) { VarUInt(ZigZag(value)); }

  void Bytes(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  // A length-prefixed UTF-8 string. What is not UTF-8 becomes U+FFFD: a name that some process made
  // up must cost neither its events nor the file.
  void String(std::string_view text);

  // Appends `size` zeros and returns where they are.
  std::size_t Reserve(std::size_t size) {
    const std::size_t offset = bytes_.size();
    bytes_.resize(offset + size);
    return offset;
  }

  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  void Clear() { bytes_.clear(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace nettrace::internal

#endif  // NETTRACE_WRITE_BYTE_WRITER_H_
