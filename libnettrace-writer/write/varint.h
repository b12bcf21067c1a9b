// Variable-length unsigned integers, as the specification's "varuint" and "varint".
#ifndef NETTRACE_WRITE_VARINT_H_
#define NETTRACE_WRITE_VARINT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nettrace::internal {

inline constexpr std::size_t kMaxVarUInt32 = 5;
inline constexpr std::size_t kMaxVarUInt64 = 10;
// PutVarUInt may touch this many bytes, whatever length it returns.
inline constexpr std::size_t kVarUIntStore = 10;

// Maps small magnitudes of either sign to small numbers: 0, -1, 1, -2, …
constexpr std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

// Writes `value` at `out`, which has room for kVarUIntStore bytes, and returns the end of it.
// No branch tells lengths below 2^28, nor those below 2^56, apart: the times between events are too
// mixed for that to be predicted.
inline std::byte* PutVarUInt(std::byte* out, std::uint64_t value) {
  if (value >> 28 == 0) [[likely]] {
    // Spreads the number over the low 7 bits of 4 bytes: halves, then quarters.
    auto x = static_cast<std::uint32_t>(value);
    const unsigned last_byte = static_cast<unsigned>(std::bit_width(x | 1) - 1) * 37 >> 8;
    x = (x & 0x00003FFF) | ((x & 0x0FFFC000) << 2);
    x = (x & 0x007F007F) | ((x & 0x3F803F80) << 1);
    // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): last_byte is 0 to 3
    x |= 0x00808080 & ((std::uint32_t{1} << (8 * last_byte)) - 1);
    if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap32(x);
    std::memcpy(out, &x, sizeof(x));
    return out + last_byte + 1;
  }
  if (value >> 56 == 0) [[likely]] {
    // Spreads the number over the low 7 bits of 8 bytes: halves, quarters, eighths.
    std::uint64_t x = value;
    x = (x & 0x000000000FFFFFFF) | ((x & 0x00FFFFFFF0000000) << 4);
    x = (x & 0x00003FFF00003FFF) | ((x & 0x0FFFC0000FFFC000) << 2);
    x = (x & 0x007F007F007F007F) | ((x & 0x3F803F803F803F80) << 1);
    const auto length = static_cast<unsigned>((std::bit_width(value | 1) + 6) * 37) >> 8;
    x |= 0x8080808080808080 & ((std::uint64_t{1} << (8 * (length - 1))) - 1);
    if constexpr (std::endian::native == std::endian::big) x = __builtin_bswap64(x);
    std::memcpy(out, &x, sizeof(x));
    return out + length;
  }
  while (value >= 0x80) {
    *out++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

}  // namespace nettrace::internal

#endif  // NETTRACE_WRITE_VARINT_H_
