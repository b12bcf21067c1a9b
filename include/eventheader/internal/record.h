// How a record is put together: copies of its pieces, and what does not depend on the event. C++17.
//
// A record is kRecordPrefix bytes for the transport, then the event: Header, extensions, data.
#ifndef EVENTHEADER_INTERNAL_RECORD_H_
#define EVENTHEADER_INTERNAL_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "eventheader/activity.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/wire.h"

namespace eh::internal {

// Header::flags of this machine.
inline constexpr std::uint8_t kNativeFlags =
    (sizeof(void*) == 8 ? kFlagPointer64 : 0) | (kIsLittleEndian ? kFlagLittleEndian : 0);

// Each Put function writes to `out` and returns the end of what it wrote.

template <typename T>
inline std::byte* PutRaw(std::byte* out, const T& value) noexcept {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

// Copies kPiece to 2 * kPiece bytes in two pieces, which overlap.
template <std::size_t kPiece>
inline void PutTwice(std::byte* out, const std::byte* in, std::size_t size) noexcept {
  std::byte first[kPiece];
  std::byte last[kPiece];
  std::memcpy(first, in, kPiece);
  std::memcpy(last, in + size - kPiece, kPiece);
  std::memcpy(out, first, kPiece);
  std::memcpy(out + size - kPiece, last, kPiece);
}

// The sizes that PutBytes leaves: below 4 and above 16.
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
    std::memcpy(out, in, size);
  }
  return out + size;
}

// Most strings are short; these are copied without a call, the others by one function for all.
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

// Copies a size known when it is compiled, in pieces of 16 bytes, the last of which may overlap.
// Compilers make a string instruction of a memcpy of this length, which costs more to start than to
// do.
template <std::size_t kSize>
inline std::byte* PutConstant(std::byte* out, const std::byte* data) noexcept {
  constexpr std::size_t kPiece = 16;
  if constexpr (kSize < kPiece || kSize > 32 * kPiece) {
    std::memcpy(out, data, kSize);
  } else {
    for (std::size_t at = 0; at + kPiece <= kSize; at += kPiece) {
      __builtin_memcpy(out + at, data + at, kPiece);
      asm volatile("" ::: "memory");  // or they are joined again
    }
    __builtin_memcpy(out + kSize - kPiece, data + kSize - kPiece, kPiece);
  }
  return out + kSize;
}

// Writes the activity extension; the metadata extension is to follow it.
inline std::byte* PutActivity(std::byte* out, const Activity& activity) noexcept {
  const ExtensionHeader extension{
      static_cast<std::uint16_t>(activity.related != nullptr ? 32 : 16),
      static_cast<std::uint16_t>(kExtensionActivityId | kExtensionChain)};
  out = PutRaw(out, extension);
  out = PutRaw(out, activity.id);
  return activity.related != nullptr ? PutRaw(out, *activity.related) : out;
}

inline constexpr std::size_t kMaxActivitySize = sizeof(ExtensionHeader) + 2 * sizeof(ActivityId);

constexpr std::size_t ActivitySize(const Activity& activity) noexcept {
  return sizeof(ExtensionHeader) + (activity.related != nullptr ? 32 : 16);
}

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_RECORD_H_
