// How C++ types become EventHeader fields: their encoding in the metadata, their bytes in the
// payload.
//
// Coder<T> has for every type that can be a field:
//   kEncoding, kFormat   as in the metadata; kFormat is kDefault where the encoding says enough
//   kArity, kCount       array flags; kCount elements for constant arrays
//   kFixedSize           bytes in the payload if they are always as many, else 0
//   Members              for structs: the list of their members, else void
//   Size(value), Put(out, value)   bytes in the payload; writes them and returns their end
#ifndef EVENTHEADER_INTERNAL_FIELD_CODER_H_
#define EVENTHEADER_INTERNAL_FIELD_CODER_H_

#include <netinet/in.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "eventheader/formatted.h"
#include "eventheader/parse.h"
#include "eventheader/wire.h"

namespace eh {

// The one customization point: specialize it for a struct that is to be a field.
//   template <> struct eh::StructOf<Point> {
//     using Members = eh::Members<eh::Member<"x", &Point::x>,
//                                          eh::Member<"y", &Point::y>>;
//   };
template <typename T>
struct StructOf {};

namespace internal {

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
  if (size - 4 > 16 - 4) [[unlikely]]
    return PutUnusualBytes(out, in, size);
  if (size >= 8) {
    PutTwice<8>(out, in, size);
  } else {
    PutTwice<4>(out, in, size);
  }
  return out + size;
}

// For sizes known when it is compiled: in pieces of 16 bytes, the last of which may overlap.
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

template <typename T>
concept Character = std::same_as<T, char> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t> || std::same_as<T, wchar_t>;

template <std::size_t kSize>
constexpr Encoding ValueEncoding() noexcept {
  if constexpr (kSize == 1) return Encoding::kValue8;
  if constexpr (kSize == 2) return Encoding::kValue16;
  if constexpr (kSize == 4) return Encoding::kValue32;
  if constexpr (kSize == 8) return Encoding::kValue64;
  if constexpr (kSize == 16) return Encoding::kValue128;
}

template <std::size_t kUnit>
constexpr Encoding StringEncoding() noexcept {
  return kUnit == 1   ? Encoding::kStringLength16Char8
         : kUnit == 2 ? Encoding::kStringLength16Char16
                      : Encoding::kStringLength16Char32;
}

template <typename T>
inline constexpr bool kAlwaysFalse = false;

struct ScalarCoder {
  static constexpr Arity kArity = Arity::kScalar;
  static constexpr std::uint16_t kCount = 0;
  using Members = void;
};

// A value whose bytes in memory are its bytes in the payload.
template <typename T, Format kAs, std::size_t kSize = sizeof(T)>
struct ValueCoder : ScalarCoder {
  static constexpr Encoding kEncoding = ValueEncoding<kSize>();
  static constexpr Format kFormat = kAs;
  static constexpr std::size_t kFixedSize = kSize;
  static constexpr std::size_t Size(const T&) noexcept { return kSize; }
  static std::byte* Put(std::byte* out, const T& value) noexcept { return PutRaw(out, value); }
};

// Counts beyond 16 bits make an event too large in any case: its size says so before it is built.
template <typename Char>
struct StringCoder : ScalarCoder {
  using View = std::basic_string_view<Char>;
  static constexpr Encoding kEncoding = StringEncoding<sizeof(Char)>();
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(View value) noexcept { return 2 + value.size() * sizeof(Char); }
  static std::byte* Put(std::byte* out, View value) noexcept {
    out = PutRaw(out, static_cast<std::uint16_t>(value.size()));
    return PutBytes(out, value.data(), value.size() * sizeof(Char));
  }
};

struct BinaryCoder : ScalarCoder {
  static constexpr Encoding kEncoding = Encoding::kBinaryLength16Char8;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(std::span<const std::byte> value) noexcept { return 2 + value.size(); }
  static std::byte* Put(std::byte* out, std::span<const std::byte> value) noexcept {
    out = PutRaw(out, static_cast<std::uint16_t>(value.size()));
    return PutBytes(out, value.data(), value.size());
  }
};

}  // namespace internal

template <typename T>
struct Coder {
  static_assert(
      internal::kAlwaysFalse<T>,
      "this type has no EventHeader encoding: use an integer, enum, bool, character, float, "
      "double, "
      "pointer, time point of the system clock, string, binary span, address, wrapper of values.h, "
      "an array or optional of these (no reference to one), or specialize eh::StructOf "
      "for "
      "a struct");
};

template <>
struct Coder<bool> : internal::ValueCoder<bool, Format::kBoolean> {};

template <std::integral T>
requires(!internal::Character<T> && !std::same_as<T, bool> && sizeof(T) <= 8) struct Coder<T>
    : internal::ValueCoder<T, std::is_signed_v<T> ? Format::kSignedInt : Format::kDefault> {
};

template <>
struct Coder<char> : internal::ValueCoder<char, Format::kString8> {};
template <>
struct Coder<char8_t> : internal::ValueCoder<char8_t, Format::kString8> {};
template <internal::Character T>
requires(sizeof(T) > 1) struct Coder<T> : internal::ValueCoder<T, Format::kStringUtf> {
};

template <typename T>
requires std::is_enum_v<T>
struct Coder<T> : internal::ValueCoder<T, Coder<std::underlying_type_t<T>>::kFormat> {
};
template <>
struct Coder<std::byte> : internal::ValueCoder<std::byte, Format::kHexInt> {};

template <typename T>
requires(std::same_as<T, float> || std::same_as<T, double>) struct Coder<T>
    : internal::ValueCoder<T, Format::kFloat> {
};

// Addresses, except of characters, which are C strings.
template <typename T>
requires(std::is_pointer_v<T> &&
         !internal::Character<std::remove_cv_t<std::remove_pointer_t<T>>>) struct Coder<T>
    : internal::ValueCoder<T, Format::kHexInt> {
};
template <>
struct Coder<std::nullptr_t> : internal::ValueCoder<std::nullptr_t, Format::kHexInt> {};

template <>
struct Coder<in_addr> : internal::ValueCoder<in_addr, Format::kIpAddress> {};
template <>
struct Coder<in6_addr> : internal::ValueCoder<in6_addr, Format::kIpAddress> {};

// Whole seconds since 1970, rounded down: all that the format can say.
template <typename Duration>
struct Coder<std::chrono::time_point<std::chrono::system_clock, Duration>> : internal::ScalarCoder {
  using Value = std::chrono::time_point<std::chrono::system_clock, Duration>;
  static constexpr Encoding kEncoding = Encoding::kValue64;
  static constexpr Format kFormat = Format::kTime;
  static constexpr std::size_t kFixedSize = 8;
  static constexpr std::size_t Size(const Value&) noexcept { return 8; }
  static std::byte* Put(std::byte* out, const Value& value) noexcept {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(value).time_since_epoch();
    return internal::PutRaw(out, static_cast<std::int64_t>(seconds.count()));
  }
};

template <internal::Character Char, typename Traits>
struct Coder<std::basic_string_view<Char, Traits>> : internal::StringCoder<Char> {};
template <internal::Character Char, typename Traits, typename Allocator>
struct Coder<std::basic_string<Char, Traits, Allocator>> : internal::StringCoder<Char> {};

// NUL-terminated, as is an array of characters that is not full; null is written as "".
template <typename T>
requires(std::is_pointer_v<T>&&
             internal::Character<std::remove_cv_t<std::remove_pointer_t<T>>>) struct Coder<T>
    : internal::StringCoder<std::remove_cv_t<std::remove_pointer_t<T>>> {
  using Base = internal::StringCoder<std::remove_cv_t<std::remove_pointer_t<T>>>;
  static typename Base::View Text(T value) noexcept {
    return value != nullptr ? typename Base::View(value) : typename Base::View();
  }
  static std::size_t Size(T value) noexcept { return Base::Size(Text(value)); }
  static std::byte* Put(std::byte* out, T value) noexcept { return Base::Put(out, Text(value)); }
};
template <internal::Character Char, std::size_t N>
struct Coder<Char[N]> : internal::StringCoder<Char> {
  using Base = internal::StringCoder<Char>;
  static typename Base::View Text(const Char (&value)[N]) noexcept {
    const std::basic_string_view<Char> all(value, N);
    return all.substr(0, all.find(Char{}));
  }
  static std::size_t Size(const Char (&value)[N]) noexcept { return Base::Size(Text(value)); }
  static std::byte* Put(std::byte* out, const Char (&value)[N]) noexcept {
    return Base::Put(out, Text(value));
  }
};

template <internal::Character Char>
struct Coder<NulTerminated<Char>> : internal::ScalarCoder {
  static constexpr Encoding kEncoding = sizeof(Char) == 1   ? Encoding::kZStringChar8
                                        : sizeof(Char) == 2 ? Encoding::kZStringChar16
                                                            : Encoding::kZStringChar32;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const NulTerminated<Char>& value) noexcept {
    return (value.text.size() + 1) * sizeof(Char);
  }
  static std::byte* Put(std::byte* out, const NulTerminated<Char>& value) noexcept {
    out = internal::PutBytes(out, value.text.data(), value.text.size() * sizeof(Char));
    return internal::PutRaw(out, Char{});
  }
};

template <typename T, Format kAs>
struct Coder<Formatted<T, kAs>> : Coder<T> {
  using Value = Formatted<T, kAs>;
  static constexpr Format kFormat = kAs;
  static std::size_t Size(const Value& value) noexcept { return Coder<T>::Size(value.value); }
  static std::byte* Put(std::byte* out, const Value& value) noexcept {
    return Coder<T>::Put(out, value.value);
  }
};
template <std::size_t N, Format kAs>
struct Coder<Formatted<std::array<std::uint8_t, N>, kAs>>
    : internal::ValueCoder<Formatted<std::array<std::uint8_t, N>, kAs>, kAs, N> {};

namespace internal {

template <typename T>
concept Byte = std::same_as<std::remove_cv_t<T>, std::byte>;

// What an array of T is made of in the metadata: T itself, which must be no array.
template <typename T>
struct ElementCoder : Coder<std::remove_cv_t<T>> {
  static_assert(Coder<std::remove_cv_t<T>>::kArity == Arity::kScalar,
                "an array's elements cannot be arrays themselves, nor can what is optional");
};

template <typename Range, typename T>
struct VariableArrayCoder {
  using Element = ElementCoder<T>;
  using Members = typename Element::Members;
  static constexpr Encoding kEncoding = Element::kEncoding;
  static constexpr Format kFormat = Element::kFormat;
  static constexpr Arity kArity = Arity::kVariableArray;
  static constexpr std::uint16_t kCount = 0;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const Range& values) noexcept {
    // A count that does not fit must not pass for a small one: elements can be empty structs.
    if (values.size() > 0xFFFF) return std::size_t{kMaxEventSize} + 1;
    if constexpr (Element::kFixedSize != 0) return 2 + values.size() * Element::kFixedSize;
    std::size_t size = 2;
    for (const T& value : values) size += Element::Size(value);
    return size;
  }
  static std::byte* Put(std::byte* out, const Range& values) noexcept {
    out = PutRaw(out, static_cast<std::uint16_t>(values.size()));
    for (const T& value : values) out = Element::Put(out, value);
    return out;
  }
};

template <typename Range, typename T, std::size_t N>
struct ConstantArrayCoder {
  static_assert(N >= 1 && N <= 0xFFFF, "a constant array has 1 to 65535 elements");
  using Element = ElementCoder<T>;
  using Members = typename Element::Members;
  static constexpr Encoding kEncoding = Element::kEncoding;
  static constexpr Format kFormat = Element::kFormat;
  static constexpr Arity kArity = Arity::kConstantArray;
  static constexpr std::uint16_t kCount = static_cast<std::uint16_t>(N);
  static constexpr std::size_t kFixedSize = N * Element::kFixedSize;
  static std::size_t Size(const Range& values) noexcept {
    if constexpr (kFixedSize != 0) return kFixedSize;
    std::size_t size = 0;
    for (const T& value : values) size += Element::Size(value);
    return size;
  }
  static std::byte* Put(std::byte* out, const Range& values) noexcept {
    for (const T& value : values) out = Element::Put(out, value);
    return out;
  }
};

}  // namespace internal

template <typename T, std::size_t N>
requires(!internal::Byte<T>) struct Coder<std::span<T, N>>
    : internal::ConstantArrayCoder<std::span<T, N>, std::remove_cv_t<T>, N> {
};
template <typename T>
requires(!internal::Byte<T>) struct Coder<std::span<T>>
    : internal::VariableArrayCoder<std::span<T>, std::remove_cv_t<T>> {
};
template <typename T, typename Allocator>
requires(!internal::Byte<T> && !std::same_as<T, bool>) struct Coder<std::vector<T, Allocator>>
    : internal::VariableArrayCoder<std::vector<T, Allocator>, T> {
};
template <typename T, std::size_t N>
requires(!internal::Byte<T>) struct Coder<std::array<T, N>>
    : internal::ConstantArrayCoder<std::array<T, N>, T, N> {
};
template <typename T, std::size_t N>
requires(!internal::Byte<T> && !internal::Character<T>) struct Coder<T[N]>
    : internal::ConstantArrayCoder<T[N], T, N> {
};

// std::vector<bool> has no bools to refer to.
template <typename Allocator>
struct Coder<std::vector<bool, Allocator>> : Coder<std::span<const bool>> {
  using Range = std::vector<bool, Allocator>;
  static std::size_t Size(const Range& values) noexcept {
    return values.size() > 0xFFFF ? std::size_t{kMaxEventSize} + 1 : 2 + values.size();
  }
  static std::byte* Put(std::byte* out, const Range& values) noexcept {
    out = internal::PutRaw(out, static_cast<std::uint16_t>(values.size()));
    for (const bool value : values) out = internal::PutRaw(out, value);
    return out;
  }
};

template <internal::Byte T, std::size_t N>
struct Coder<std::span<T, N>> : internal::BinaryCoder {};
template <std::size_t N>
struct Coder<std::array<std::byte, N>> : internal::BinaryCoder {};
template <typename Allocator>
struct Coder<std::vector<std::byte, Allocator>> : internal::BinaryCoder {};
template <std::size_t N>
struct Coder<std::byte[N]> : internal::BinaryCoder {};

// Nullable. A value of fixed size is a binary of that size, or of none; anything else, characters
// too, an array of one element, or of none, so that null stays distinguishable from empty.
template <typename T>
struct Coder<std::optional<T>> : internal::ScalarCoder {
  using Element = internal::ElementCoder<T>;
  using Members = typename Element::Members;
  // Binaries are text in units of 8 bits, and never null, with the formats that characters have.
  static constexpr bool kIsCharacter =
      Element::kFormat == Format::kString8 || Element::kFormat == Format::kStringUtf;
  static constexpr bool kIsValue = FixedSize(Element::kEncoding) != 0 && !kIsCharacter;
  static constexpr Encoding kEncoding =
      kIsValue ? Encoding::kBinaryLength16Char8 : Element::kEncoding;
  static constexpr Format kFormat =
      kIsValue && Element::kFormat == Format::kDefault ? Format::kUnsignedInt : Element::kFormat;
  static constexpr Arity kArity = kIsValue ? Arity::kScalar : Arity::kVariableArray;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const std::optional<T>& value) noexcept {
    return 2 + (value ? Element::Size(*value) : 0);
  }
  static std::byte* Put(std::byte* out, const std::optional<T>& value) noexcept {
    const std::size_t count = !value ? 0 : kIsValue ? Element::Size(*value) : 1;
    out = internal::PutRaw(out, static_cast<std::uint16_t>(count));
    return value ? Element::Put(out, *value) : out;
  }
};

// A struct's members one after the other, as StructOf lists them.
template <typename T>
requires requires { typename StructOf<T>::Members; }
struct Coder<T> {
  using Members = typename StructOf<T>::Members;
  static constexpr Encoding kEncoding = Encoding::kStruct;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr Arity kArity = Arity::kScalar;
  static constexpr std::uint16_t kCount = 0;
  static constexpr std::size_t kFixedSize = Members::kFixedSize;
  static std::size_t Size(const T& value) noexcept { return Members::Size(value); }
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    return Members::Put(out, value);
  }
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_FIELD_CODER_H_
