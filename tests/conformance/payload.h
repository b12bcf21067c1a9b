// The bytes of a NetTrace payload, written by hand.
#ifndef TESTS_CONFORMANCE_PAYLOAD_H_
#define TESTS_CONFORMANCE_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace conformance {

class Payload {
 public:
  // Appends the bytes of a number or of an array of bytes, in the host's byte order, which is
  // little-endian.
  template <typename T>
  Payload& Put(const T& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  Payload& Count(std::size_t count) { return Put(static_cast<std::uint16_t>(count)); }
  Payload& Units(std::string_view units) { return PutUnits(units); }
  Payload& Units(std::u16string_view units) { return PutUnits(units); }
  // Appends an Array of code units.
  Payload& Text(std::string_view text) { return Count(text.size()).PutUnits(text); }
  Payload& Text(std::u16string_view text) { return Count(text.size()).PutUnits(text); }
  Payload& ZeroTerminated(std::u16string_view text) { return PutUnits(text).Put(char16_t{0}); }
  Payload& VarUint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) Put(static_cast<std::uint8_t>(value | 0x80));
    return Put(static_cast<std::uint8_t>(value));
  }
  Payload& VarInt(std::int64_t value) {
    return VarUint(static_cast<std::uint64_t>(value) << 1 ^
                   static_cast<std::uint64_t>(value >> 63));
  }
  // Appends the location of an array of `size` bytes: the value of a DataLoc or RelLoc field.
  Payload& Location(std::uint16_t size, std::uint16_t position) {
    return Put(std::uint32_t{size} << 16 | position);
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename Unit>
  Payload& PutUnits(std::basic_string_view<Unit> units) {
    for (const Unit unit : units) Put(unit);
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace conformance

#endif  // TESTS_CONFORMANCE_PAYLOAD_H_
