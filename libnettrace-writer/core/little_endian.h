// Converts between the file's byte order and the host's.
#ifndef LIBNETTRACE_WRITER_CORE_LITTLE_ENDIAN_H_
#define LIBNETTRACE_WRITER_CORE_LITTLE_ENDIAN_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace nettrace::internal {

// Returns `value` with its bytes reversed on a big-endian host, else unchanged. Converts from the
// host's byte order to the file's, and back.
template <typename T>
T LittleEndian(T value) {
  static_assert(std::is_arithmetic_v<T>);
  if constexpr (std::endian::native == std::endian::big) {
    auto bytes = std::bit_cast<std::array<std::byte, sizeof value>>(value);
    std::reverse(bytes.begin(), bytes.end());
    value = std::bit_cast<T>(bytes);
  }
  return value;
}

// Returns the number in the sizeof(T) bytes at `from`, in the file's byte order.
template <typename T>
T LoadLittleEndian(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return LittleEndian(value);
}

template <typename T>
void StoreLittleEndian(T value, std::byte* to) {
  value = LittleEndian(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_LITTLE_ENDIAN_H_
