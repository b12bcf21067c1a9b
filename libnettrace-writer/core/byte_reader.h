// Bounds-checked reading off the front of a span.
#ifndef LIBNETTRACE_WRITER_CORE_BYTE_READER_H_
#define LIBNETTRACE_WRITER_CORE_BYTE_READER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace nettrace {

inline constexpr std::size_t kMaxShortVarUInt = 4;

// A variable-length number of 4 bytes at most; of more, if size is 0.
struct ShortVarUInt {
  std::uint32_t value = 0;
  std::size_t size = 0;
};

// The number at `bytes`, of which 4 can be read. No branch tells lengths of 1 and 2 apart, nor
// those of 3 and 4: nobody could predict those of times. Inlined always: for a call the caller puts
// what it has at hand into memory, which takes longer than all this.
[[gnu::always_inline]] inline ShortVarUInt LoadShortVarUInt(const std::byte* bytes) {
  std::uint32_t x = 0;
  std::memcpy(&x, bytes, sizeof x);
  if ((x & 0x8080) != 0x8080) [[likely]] {
    const std::uint32_t is_long = x >> 7 & 1;
    return {(x & 0x7F) | (x >> 1 & (0x3F80 * is_long)), std::size_t{1} + is_long};
  }
  if ((x & 0x80808080) == 0x80808080) return {};
  const std::uint32_t is_long = x >> 23 & 1;
  x &= 0x007F7F7F | (0x7F000000 * is_long);
  // Puts the bytes' low 7 bits next to one another: pairs, then all.
  x = (x & 0x007F007F) | ((x & 0x7F007F00) >> 1);
  x = (x & 0x00003FFF) | ((x & 0x3FFF0000) >> 2);
  return {x, std::size_t{3} + is_long};
}

// Once something did not fit, ok() is false for good and every value read is zero or empty.
class Cursor {
 public:
  Cursor() = default;
  explicit Cursor(std::span<const std::byte> bytes)
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

  // A little-endian number (the host's order, on all that this is built for).
  template <typename T>
  T Number() {
    static_assert(std::is_arithmetic_v<T>);
    T value = 0;
    const auto bytes = Bytes(sizeof value);
    if (ok_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  // A Guid, or a trace's id.
  std::array<std::byte, 16> Id128() {
    std::array<std::byte, 16> id{};
    const auto bytes = Bytes(id.size());
    std::copy(bytes.begin(), bytes.end(), id.begin());
    return id;
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

}  // namespace nettrace

#endif  // LIBNETTRACE_WRITER_CORE_BYTE_READER_H_
