// Copies payloads. Small payloads, which are frequent, are copied without a function call.
#ifndef LIBNETTRACE_WRITER_WRITE_COPY_PAYLOAD_H_
#define LIBNETTRACE_WRITER_WRITE_COPY_PAYLOAD_H_

#include <cstddef>
#include <cstring>

namespace nettrace::internal {

// Maximum bytes that CopyShort copies.
inline constexpr std::size_t kMaxShortCopy = 64;

// Copies `size` bytes, from kPart to 2 * kPart: the first kPart and the last kPart bytes, which
// overlap if `size` is less than 2 * kPart.
template <std::size_t kPart>
inline void CopyEnds(std::byte* to, const std::byte* from, std::size_t size) {
  std::memcpy(to, from, kPart);
  std::memcpy(to + size - kPart, from + size - kPart, kPart);
}

// Copies at most kMaxShortCopy bytes.
inline void CopyShort(std::byte* to, const std::byte* from, std::size_t size) {
  if (size > 32) return CopyEnds<32>(to, from, size);
  if (size >= 16) return CopyEnds<16>(to, from, size);
  if (size >= 8) return CopyEnds<8>(to, from, size);
  if (size >= 4) return CopyEnds<4>(to, from, size);
  if (size >= 2) return CopyEnds<2>(to, from, size);
  if (size == 1) *to = *from;
}

// Copies any number of bytes. `from` may be null if `size` is 0.
inline void Copy(std::byte* to, const std::byte* from, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_COPY_PAYLOAD_H_
