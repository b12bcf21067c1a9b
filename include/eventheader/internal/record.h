// Functions that assemble a record: they copy values and bytes, and write the activity. The header
// needs C++17.
//
// A record is kRecordPrefix bytes for the transport, then the event: Header, extensions, data.
#ifndef EVENTHEADER_INTERNAL_RECORD_H_
#define EVENTHEADER_INTERNAL_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "eventheader/activity.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/wire.h"

namespace eh::internal {

// The value of Header::flags on this machine.
inline constexpr std::uint8_t kNativeFlags =
    (sizeof(void*) == 8 ? kFlagPointer64 : 0) | (kIsLittleEndian ? kFlagLittleEndian : 0);

// The Put functions write to `out`. All except PutTwice return the end of what they wrote.

template <typename T>
[[gnu::always_inline]] inline std::byte* PutRaw(std::byte* out, const T& value) noexcept {
  __builtin_memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

// Copies `size` bytes, from kPiece to 2 * kPiece, as two blocks of kPiece bytes that may overlap.
template <std::size_t kPiece>
inline void PutTwice(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  std::byte first[kPiece];
  std::byte last[kPiece];
  __builtin_memcpy(first, in, kPiece);
  __builtin_memcpy(last, in + size - kPiece, kPiece);
  __builtin_memcpy(out, first, kPiece);
  __builtin_memcpy(out + size - kPiece, last, kPiece);
}

// Copies `size` bytes for PutBytes() if `size` is less than 4 or more than 16.
[[gnu::noinline]] inline std::byte* PutUnusualBytes(std::byte* out, const std::byte* in,
                                                    std::size_t size) noexcept {
  if (size < 4) {
    if (size >= 2) {
      PutTwice<2>(out, in, size);
    } else if (size == 1) {
      *out = *in;
    }
  } else if (size <= 32) {
    PutTwice<16>(out, in, size);
  } else {
    __builtin_memcpy(out, in, size);
  }
  return out + size;
}

// Copies `size` bytes. Copies 4 to 16 bytes, the most frequent sizes, without a call.
[[gnu::always_inline]] inline std::byte* PutBytes(std::byte* out, const void* data,
                                                  std::size_t size) noexcept {
  const auto* in = static_cast<const std::byte*>(data);
  if (__builtin_expect(size - 4 > 16 - 4, 0)) return PutUnusualBytes(out, in, size);
  if (size >= 8) {
    PutTwice<8>(out, in, size);
  } else {
    PutTwice<4>(out, in, size);
  }
  return out + size;
}

// Writes the activity extension. It announces another extension, so the caller must write the
// metadata extension next. `related` may be null.
[[gnu::always_inline]] inline std::byte* PutActivity(std::byte* out, const void* id,
                                                     const void* related) noexcept {
  constexpr std::size_t kSize = sizeof(ActivityId);
  const wire::ExtensionHeader extension{
      static_cast<std::uint16_t>(related != nullptr ? 2 * kSize : kSize),
      static_cast<std::uint16_t>(kExtensionActivityId | kExtensionChain)};
  out = PutRaw(out, extension);
  __builtin_memcpy(out, id, kSize);
  out += kSize;
  if (related == nullptr) return out;
  __builtin_memcpy(out, related, kSize);
  return out + kSize;
}

inline constexpr std::size_t kMaxActivitySize =
    sizeof(wire::ExtensionHeader) + 2 * sizeof(ActivityId);

constexpr std::size_t ActivitySize(bool has_related) noexcept {
  return sizeof(wire::ExtensionHeader) + (has_related ? 2 : 1) * sizeof(ActivityId);
}

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_RECORD_H_
