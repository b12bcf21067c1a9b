// Bounds-checked reading off the front of a span.
#ifndef LIBNETTRACE_WRITER_READ_CURSOR_H_
#define LIBNETTRACE_WRITER_READ_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace nettrace {

// A variable-length number and how many bytes it has.
struct ShortVarUInt {
  std::uint64_t value = 0;
  std::size_t size = 0;
};

// The number at the start of `bytes`, of up to 8 bytes; size 0: it may be longer, or `bytes` has
// less than 8. No branch tells lengths of 1 and 2 apart, nor those from 3: nobody could predict
// those of times.
inline ShortVarUInt PeekShortVarUInt(std::span<const std::byte> bytes) {
  std::uint64_t x = 0;
  if (bytes.size() < sizeof x) return {};
  std::memcpy(&x, bytes.data(), sizeof x);
  if ((x & 0x8080) != 0x8080) [[likely]] {
    const std::uint64_t is_long = x >> 7 & 1;
    return {(x & 0x7F) | (x >> 1 & (0x3F80 * is_long)), std::size_t{1} + is_long};
  }
  const std::uint64_t ends = ~x & 0x8080808080808080;
  if (ends == 0) return {};
  x &= ends ^ (ends - 1);  // to the end of its last byte
  // Puts the bytes' low 7 bits next to one another: pairs, fours, all eight.
  x = (x & 0x007F007F007F007F) | ((x & 0x7F007F007F007F00) >> 1);
  x = (x & 0x00003FFF00003FFF) | ((x & 0x3FFF00003FFF0000) >> 2);
  x = (x & 0x000000000FFFFFFF) | ((x & 0x0FFFFFFF00000000) >> 4);
  return {x, static_cast<std::size_t>(std::countr_zero(ends)) / 8 + 1};
}

// Once something did not fit, ok() is false for good and every value read is zero or empty.
class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool empty() const { return rest_.empty(); }
  std::size_t size() const { return rest_.size(); }
  std::span<const std::byte> rest() const { return rest_; }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

  std::span<const std::byte> Bytes(std::size_t size) {
    if (size > rest_.size()) {
      Fail();
      return {};
    }
    const auto bytes = rest_.first(size);
    rest_ = rest_.subspan(size);
    return bytes;
  }

  // A little-endian number (the host's order, on all that this is built for).
  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value = 0;
    const auto bytes = Bytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::uint64_t VarUInt64() { return VarUInt(64); }
  std::uint32_t VarUInt32() { return static_cast<std::uint32_t>(VarUInt(32)); }
  std::int64_t VarInt64() {
    const std::uint64_t value = VarUInt64();
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
  }

  // A length-prefixed UTF-8 string.
  std::string_view String() {
    const auto bytes = Bytes(VarUInt32());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // The next `size` bytes as a cursor of their own.
  Cursor Part(std::size_t size) {
    Cursor part(Bytes(size));
    part.ok_ = ok_;
    return part;
  }

 private:
  std::uint64_t VarUInt(unsigned bits) {
    if (const ShortVarUInt number = PeekShortVarUInt(rest_); number.size != 0) [[likely]] {
      const bool fits = bits == 64 || (number.size <= 5 && number.value >> 32 == 0);
      if (fits) [[likely]] {
        rest_ = rest_.subspan(number.size);
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

  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_READ_CURSOR_H_
