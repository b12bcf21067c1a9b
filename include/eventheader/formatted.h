// Wrappers for values that readers should show in a certain format, such as addresses, errno, times
// and JSON. Also wrappers for text that is NUL-terminated or truncated in the event. Needs C++17.
#ifndef EVENTHEADER_FORMATTED_H_
#define EVENTHEADER_FORMATTED_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eventheader/wire.h"

namespace eh {

// A value of type T that readers show in format kAs. Constructible from everything that converts to
// T.
template <typename T, Format kAs>
struct Formatted {
  using Value = T;
  static constexpr Format kFormat = kAs;

  constexpr Formatted() = default;
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U&&, T>>>
  // Not explicit, so that callers can write Write(17) for a Pid.
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  constexpr Formatted(U&& from) noexcept : value(static_cast<T>(std::forward<U>(from))) {}

  T value{};
};

template <typename T>
using Hex = Formatted<T, Format::kHexInt>;  // T is an integer type
using Errno = Formatted<int, Format::kErrno>;
using Pid = Formatted<std::int32_t, Format::kPid>;
using Port = Formatted<in_port_t, Format::kPort>;     // network byte order, as in sockaddr_in
using Time = Formatted<std::int64_t, Format::kTime>;  // seconds since 1970, as in a time_t
// Text that readers show in a certain format. T may be any string type.
template <typename T = std::string_view>
using Json = Formatted<T, Format::kStringJson>;
template <typename T = std::string_view>
using Xml = Formatted<T, Format::kStringXml>;
template <typename T = std::string_view>
using Utf = Formatted<T, Format::kStringUtf>;
template <typename T = std::string_view>
using UtfBom = Formatted<T, Format::kStringUtfBom>;
template <typename T = std::string_view>
using Latin1 = Formatted<T, Format::kString8>;

// Text that is written with a NUL at the end instead of a length at the beginning, for readers that
// need the NUL. The text ends at its first NUL. The search for the NUL runs only when an enabled
// event is written. Constructible from any string, which must outlive the object; a null pointer
// becomes "".
template <typename Char = char>
struct NulTerminated {
  using View = std::basic_string_view<Char>;

  constexpr NulTerminated() = default;
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<const U&, View>>>
  // Not explicit, so that callers can pass a string to Write.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr NulTerminated(const U& from) noexcept {
    if constexpr (std::is_pointer_v<U> || std::is_null_pointer_v<U>) {
      start = from;
    } else if constexpr (std::is_array_v<U>) {
      start = from;
      size = std::extent_v<U>;
    } else {
      const View text = from;
      start = text.data();
      size = text.size();
    }
  }

  // Returns the text before the first NUL, or the whole text if it has no NUL.
  constexpr View UpToNul() const noexcept {
    if (start == nullptr) return {};
    if (size == kUnknown) return start;
    const View text(start, size);
    return text.substr(0, text.find(Char{}));
  }

  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
  const Char* start = nullptr;
  std::size_t size = kUnknown;  // maximum characters, or kUnknown for a C string
};

// Text that is limited to kBytes bytes. The text ends before a UTF-8 character that does not fit
// completely. Use it as the type of a field, or for an argument: Write(eh::Truncate<100>(path)).
// Constructible from every 8-bit string, which must outlive the object; a null pointer becomes "".
template <std::size_t kBytes>
struct Truncate {
  static_assert(kBytes != 0, "Truncate must keep at least 1 byte of a text");

  constexpr Truncate() = default;
  template <typename T,
            typename = std::enable_if_t<std::is_convertible_v<const T&, std::string_view>>>
  // Not explicit, so that callers can pass a string to Write.
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Truncate(const T& from) noexcept {
    if constexpr (std::is_pointer_v<T>) {
      if (from == nullptr) return;
    }
    text = from;
  }

  // Returns the text, cut to at most kBytes bytes.
  constexpr std::string_view Limited() const noexcept {
    if (text.size() <= kBytes) return text;
    // A UTF-8 character has at most 3 bytes after its first byte, so the cut is at most 3 bytes
    // before the limit. If no character begins there, the text is cut at the limit.
    std::size_t size = kBytes;
    while (size != 0 && size + 3 > kBytes && IsContinuation(text[size])) --size;
    return text.substr(0, IsContinuation(text[size]) ? kBytes : size);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): callers pass it as a std::string_view
  constexpr operator std::string_view() const noexcept { return Limited(); }

  std::string_view text;

 private:
  static constexpr bool IsContinuation(char c) noexcept {
    return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
  }
};
template <std::size_t kBytes>
constexpr std::string_view EventheaderValue(const Truncate<kBytes>& truncated) noexcept {
  return truncated.Limited();
}

// IP addresses: 4 or 16 bytes in network byte order. Fields may also be of type in_addr and
// in6_addr.
using Ip4 = Formatted<std::array<std::uint8_t, 4>, Format::kIpAddress>;
using Ip6 = Formatted<std::array<std::uint8_t, 16>, Format::kIpAddress>;
// A UUID: 16 bytes in the byte order of the text form (RFC 4122).
using Uuid = Formatted<std::array<std::uint8_t, 16>, Format::kUuid>;

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_FORMATTED_H_
