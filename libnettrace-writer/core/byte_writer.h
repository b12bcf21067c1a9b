// Appends the primitives of NetTrace to a growing buffer. The writer uses it for the start of a
// stream, rows of tables and sequence points, but not for events, which EventBlock writes.
// Importers use it for payloads, and the CTF exporter for packets and events.
#ifndef LIBNETTRACE_WRITER_CORE_BYTE_WRITER_H_
#define LIBNETTRACE_WRITER_CORE_BYTE_WRITER_H_

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

#include "libnettrace-writer/core/varint.h"

namespace nettrace::internal {

class ByteWriter {
 public:
  // Appends `value` as sizeof(T) little-endian bytes.
  template <std::integral T>
  void Fixed(T value) {
    PutFixed(Extend(sizeof(T)), value);
  }

  void FixedAll(std::span<const std::uint64_t> values) {
    if constexpr (std::endian::native == std::endian::little) {
      Bytes(std::as_bytes(values));
    } else {
      for (const std::uint64_t value : values) Fixed(value);
    }
  }

  // Overwrites the value that Fixed() or Reserve() appended at `offset`.
  template <std::integral T>
  void FixedAt(std::size_t offset, T value) {
    PutFixed(bytes_.get() + offset, value);
  }

  void VarUInt(std::uint64_t value) {
    const std::size_t start = size_;
    std::byte* const out = Extend(kVarUIntStore);
    size_ = start + static_cast<std::size_t>(PutVarUInt(out, value) - out);
  }
  void VarInt(std::int64_t value) { VarUInt(ZigZag(value)); }

  void Bytes(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(Extend(bytes.size()), bytes.data(), bytes.size());
  }

  // Appends a length-prefixed UTF-8 string. U+FFFD replaces what is not UTF-8, so that an invalid
  // name from a process makes neither its events nor the file unreadable.
  void String(std::string_view text);

  // Appends `size` zeros and returns their offset.
  std::size_t Reserve(std::size_t size) {
    const std::size_t offset = size_;
    std::memset(Extend(size), 0, size);
    return offset;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  void Clear() { size_ = 0; }
  // Removes all bytes from offset `size` on. `size` must not exceed size().
  void Truncate(std::size_t size) { size_ = size; }
  std::span<const std::byte> bytes() const { return {bytes_.get(), size_}; }
  std::span<std::byte> mutable_bytes() { return {bytes_.get(), size_}; }

 private:
  template <std::integral T>
  static void PutFixed(std::byte* out, T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      out[i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
  }

  // Adds room for `size` bytes with undefined values, and returns their start. Never null.
  std::byte* Extend(std::size_t size) {
    if (capacity_ - size_ < size || capacity_ == 0) Grow(size);
    std::byte* const start = bytes_.get() + size_;
    size_ += size;
    return start;
  }
  void Grow(std::size_t size);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_BYTE_WRITER_H_
