// Reads and writes the specification's variable-length integers, "varuint" and "varint". The
// functions check no bounds: the caller must provide the stated number of bytes. ByteReader reads
// these integers with bounds checks.
#ifndef LIBNETTRACE_WRITER_CORE_VARINT_H_
#define LIBNETTRACE_WRITER_CORE_VARINT_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "libnettrace-writer/core/little_endian.h"

namespace nettrace::internal {

// Bytes that PutVarUInt may overwrite, even if the encoded value is shorter.
inline constexpr std::size_t kVarUIntStore = 10;
// Bytes that LoadShortVarUInt reads.
inline constexpr std::size_t kMaxShortVarUInt = 4;

// Maps numbers of small magnitude to small numbers: 0, -1, 1, -2, … become 0, 1, 2, 3, …
constexpr std::uint64_t ZigZag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t UnZigZag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

// Writes `value` at `out`, which must have room for kVarUIntStore bytes, and returns the end of the
// encoded value. Within each of the ranges below 2^14, 2^28 and 2^56, no branch depends on the
// length of the encoded value. The times between events vary so much that the CPU could not predict
// such a branch. The branches between the ranges cost little, because events that are 2^14 ticks or
// more apart are infrequent.
inline std::byte* PutVarUInt(std::byte* out, std::uint64_t value) {
  if (value >> 14 == 0) [[likely]] {
    auto x = static_cast<std::uint32_t>(value);
    const std::uint32_t is_long = x >= 0x80 ? 1 : 0;
    x = (x + (x & 0x3F80)) | (is_long << 7);  // moves bits 7 to 13 up by one
    out[0] = static_cast<std::byte>(x);
    out[1] = static_cast<std::byte>(x >> 8);
    return out + 1 + is_long;
  }
  if (value >> 28 == 0) {
    // Spreads the number over the low 7 bits of 4 bytes: separates its halves, then its quarters.
    auto x = static_cast<std::uint32_t>(value);
    const std::uint32_t is_long = x >= 1U << 21 ? 1 : 0;
    x = (x & 0x00003FFF) | ((x & 0x0FFFC000) << 2);
    x = (x & 0x007F007F) | ((x & 0x3F803F80) << 1);
    x |= 0x00008080 | (is_long << 23);
    StoreLittleEndian(x, out);
    return out + 3 + is_long;
  }
  if (value >> 56 == 0) {
    // Spreads the number over the low 7 bits of 8 bytes: separates its halves, then its quarters,
    // then its eighths.
    std::uint64_t x = value;
    x = (x & 0x000000000FFFFFFF) | ((x & 0x00FFFFFFF0000000) << 4);
    x = (x & 0x00003FFF00003FFF) | ((x & 0x0FFFC0000FFFC000) << 2);
    x = (x & 0x007F007F007F007F) | ((x & 0x3F803F803F803F80) << 1);
    const auto length = static_cast<unsigned>((std::bit_width(value | 1) + 6) * 37) >> 8;
    x |= 0x8080808080808080 & ((std::uint64_t{1} << (8 * (length - 1))) - 1);
    StoreLittleEndian(x, out);
    return out + length;
  }
  while (value >= 0x80) {
    *out++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

// A number and the size of its encoding in bytes. `size` is 0 if the encoding is longer than
// kMaxShortVarUInt.
struct ShortVarUInt {
  std::uint32_t value = 0;
  std::size_t size = 0;
};

// Reads the number at `bytes`; kMaxShortVarUInt bytes must be readable. No branch distinguishes
// lengths 1 and 2, or 3 and 4, because the CPU cannot predict the lengths of times between events.
// Always inlined: for a call, the caller would have to save its registers, which costs more than
// this function.
[[gnu::always_inline]] inline ShortVarUInt LoadShortVarUInt(const std::byte* bytes) {
  auto x = LoadLittleEndian<std::uint32_t>(bytes);
  if ((x & 0x8080) != 0x8080) [[likely]] {
    const std::uint32_t is_long = x >> 7 & 1;
    return {(x & 0x7F) | (x >> 1 & (0x3F80 * is_long)), std::size_t{1} + is_long};
  }
  if ((x & 0x80808080) == 0x80808080) return {};
  const std::uint32_t is_long = x >> 23 & 1;
  x &= 0x007F7F7F | (0x7F000000 * is_long);
  // Joins the low 7 bits of the bytes: first pairs, then all four.
  x = (x & 0x007F007F) | ((x & 0x7F007F00) >> 1);
  x = (x & 0x00003FFF) | ((x & 0x3FFF0000) >> 2);
  return {x, std::size_t{3} + is_long};
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_VARINT_H_
