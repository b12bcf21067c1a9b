// Reads the primitive types of NetTrace from the front of a span, and checks its bounds.
//
// libeventheader has another ByteReader (libeventheader/decode/byte_reader.h), because
// libeventheader may use no other library. The two have little in common. The reader of
// libeventheader reads numbers in the byte order of an event, and text that ends with a NUL. This
// ByteReader reads varints, and text with a length.
#ifndef LIBNETTRACE_WRITER_CORE_BYTE_READER_H_
#define LIBNETTRACE_WRITER_CORE_BYTE_READER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/varint.h"

namespace nettrace::internal {

// Reads values one after the other. After a value that exceeds the rest of the span, or a varint
// that exceeds its type, ok() stays false, and all values are zero or empty.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(std::span<const std::byte> bytes)
      : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  bool empty() const { return next_ == end_; }
  std::size_t size() const { return static_cast<std::size_t>(end_ - next_); }
  std::span<const std::byte> rest() const { return {next_, end_}; }
  void Fail() {
    ok_ = false;
    next_ = end_ = nullptr;
  }

  std::span<const std::byte> Bytes(std::size_t size) {
    if (size > this->size()) {
      Fail();
      return {};
    }
    const std::span<const std::byte> bytes(next_, size);
    next_ += size;
    return bytes;
  }

  template <typename T>
  T Number() {
    const auto bytes = Bytes(sizeof(T));
    return ok_ ? LoadLittleEndian<T>(bytes.data()) : T{};
  }

  // Reads a Guid or a trace id.
  std::array<std::byte, 16> Id128() {
    std::array<std::byte, 16> id{};
    const auto bytes = Bytes(id.size());
    std::copy(bytes.begin(), bytes.end(), id.begin());
    return id;
  }

  std::uint64_t VarUInt64() { return VarUInt(64); }
  std::uint32_t VarUInt32() { return static_cast<std::uint32_t>(VarUInt(32)); }
  std::int64_t VarInt64() { return UnZigZag(VarUInt64()); }

  // Reads a length-prefixed UTF-8 string.
  std::string_view String() {
    const auto bytes = Bytes(VarUInt32());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Returns a reader of the next `size` bytes, and skips them in this reader.
  ByteReader Part(std::size_t size) {
    ByteReader part(Bytes(size));
    part.ok_ = ok_;
    return part;
  }

 private:
  std::uint64_t VarUInt(unsigned bits) {
    if (size() >= kMaxShortVarUInt) [[likely]] {
      const ShortVarUInt number = LoadShortVarUInt(next_);
      if (number.size != 0) [[likely]] {
        next_ += number.size;
        return number.value;
      }
    }
    return VarUIntByBytes(bits);
  }

  std::uint64_t VarUIntByBytes(unsigned bits) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(Number<std::uint8_t>());
      const std::uint64_t part = byte & 0x7F;
      if (!ok_ || shift >= bits || (shift + 7 > bits && part >> (bits - shift) != 0)) {
        Fail();
        return 0;
      }
      value |= part << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  const std::byte* next_ = nullptr;
  const std::byte* end_ = nullptr;
  bool ok_ = true;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_BYTE_READER_H_
