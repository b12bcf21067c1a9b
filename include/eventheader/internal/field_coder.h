// Converts C++ types to EventHeader fields: their encoding in the metadata, and their bytes in the
// payload. Static events, the dynamic builder and the macros all use this coder. It needs only
// C++17, because the macros do.
//
// For each type of field, Coder<T> has:
//   kEncoding, kFormat   as in the metadata; kDefault if the encoding needs no format
//   kArity, kCount       one value or an array; kCount: elements of a constant array, else 0
//   kFixedSize           bytes in the payload if the size is constant, else 0
//   Members              for structs: the list of their members, else void
//   kIsRaw               whether the payload is the value's bytes in memory
//   kIsSupported         false if there is no encoding for the type
//   Size(value)          bytes in the payload
//   Put(out, value)      writes these bytes and returns their end
// and, if the payload is one block of memory, with or without a count before or zeros after it:
//   BlobOf(value), kPrefix, kSuffix   the block, bytes of the count (0 or 2), number of zeros
//
// <string>, <vector>, <chrono> and similar headers are not included, because they take long to
// compile. Their types are recognized by their members.
#ifndef EVENTHEADER_INTERNAL_FIELD_CODER_H_
#define EVENTHEADER_INTERNAL_FIELD_CODER_H_

#include <netinet/in.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "eventheader/formatted.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/internal/record.h"
#include "eventheader/wire.h"

namespace eh {

template <typename T>
struct StructOf;  // internal/struct_members.h

namespace internal {

template <typename T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t> ||
#ifdef __cpp_char8_t
    std::is_same_v<T, char8_t> ||
#endif
    std::is_same_v<T, wchar_t>;

// Void does what std::void_t does. With std::void_t, compilers may treat specializations with
// different conditions as the same (CWG 1558).
template <typename...>
struct MakeVoid {
  using Type = void;
};
template <typename... T>
using Void = typename MakeVoid<T...>::Type;

// A pointer to characters is a C string; any other pointer is an address.
template <typename T>
inline constexpr bool kIsCString = false;
template <typename Char>
inline constexpr bool kIsCString<Char*> = kIsCharacter<std::remove_cv_t<Char>>;

template <typename T>
inline constexpr bool kIsByte = std::is_same_v<std::remove_cv_t<T>, std::byte>;

template <typename T>
inline constexpr bool kAlwaysFalse = false;

template <std::size_t kUnit>
constexpr Encoding StringEncoding() noexcept {
  return kUnit == 1   ? Encoding::kStringLength16Char8
         : kUnit == 2 ? Encoding::kStringLength16Char16
                      : Encoding::kStringLength16Char32;
}

// Bytes in memory that are the payload of a field, or the part of the payload after the count of
// elements.
struct Blob {
  const void* data;
  std::size_t size;
  std::size_t count;
};
template <typename Code, typename = void>
inline constexpr bool kHasBlob = false;
template <typename Code>
inline constexpr bool kHasBlob<Code, Void<decltype(Code::kPrefix)>> = Code::kHasBlobOf;

struct ScalarCoder {
  static constexpr bool kIsSupported = true;
  static constexpr Arity kArity = Arity::kScalar;
  static constexpr std::uint16_t kCount = 0;
  static constexpr bool kIsRaw = false;
  using Members = void;
};
// Base of the coders whose value is one block of memory, which BlobOf returns, with kPrefix bytes
// before it and kSuffix bytes after it.
template <int kPrefixIs, int kSuffixIs = 0>
struct BlobCoder {
  static constexpr bool kHasBlobOf = true;
  static constexpr int kPrefix = kPrefixIs;
  static constexpr int kSuffix = kSuffixIs;
};

// The coder of a type: a TypeCoder, unless the user has described the type (StructOf,
// EventheaderValue).
template <typename T, typename = void>
struct FindCoder;
template <typename T>
struct Coder : FindCoder<T>::Type {};

// Codes values whose bytes in memory are their bytes in the payload.
template <typename T, Format kAs, std::size_t kSize = sizeof(T)>
struct ValueCoder : ScalarCoder {
  static constexpr Encoding kEncoding = ValueEncoding(kSize);
  static_assert(kEncoding != Encoding::kInvalid);
  static constexpr Format kFormat = kAs;
  static constexpr std::size_t kFixedSize = kSize;
  static constexpr bool kIsRaw = true;
  static constexpr std::size_t Size(const T&) noexcept { return kSize; }
  [[gnu::always_inline]] static std::byte* Put(std::byte* out, const T& value) noexcept {
    return PutRaw(out, value);
  }
};

// Codes text: its count, then the code units. A count above 16 bits needs no check here. It makes
// the event too large, so the check of the event's size refuses the event before it is built.
template <typename Char>
struct StringCoder : ScalarCoder, BlobCoder<2> {
  using View = std::basic_string_view<Char>;
  static constexpr Encoding kEncoding = StringEncoding<sizeof(Char)>();
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(View value) noexcept { return 2 + value.size() * sizeof(Char); }
  static std::byte* Put(std::byte* out, View value) noexcept {
    out = PutRaw(out, static_cast<std::uint16_t>(value.size()));
    return PutBytes(out, value.data(), value.size() * sizeof(Char));
  }
  [[gnu::always_inline]] static Blob BlobOf(View value) noexcept {
    return {value.data(), value.size() * sizeof(Char), value.size()};
  }
};

// Codes a range of bytes: its count, then the bytes.
template <typename Bytes>
struct BinaryCoder : ScalarCoder, BlobCoder<2> {
  static constexpr Encoding kEncoding = Encoding::kBinaryLength16Char8;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const Bytes& value) noexcept { return 2 + std::size(value); }
  static std::byte* Put(std::byte* out, const Bytes& value) noexcept {
    out = PutRaw(out, static_cast<std::uint16_t>(std::size(value)));
    return PutBytes(out, std::data(value), std::size(value));
  }
  [[gnu::always_inline]] static Blob BlobOf(const Bytes& value) noexcept {
    return {std::data(value), std::size(value), std::size(value)};
  }
};

// The coder of a type that the library knows. `Enable` selects specializations by a condition. This
// unspecialized template is for types that the library does not know. It has the members of a
// coder, so that a compiler reports only the static assertion of the field.
template <typename T, typename Enable = void>
struct TypeCoder : ScalarCoder {
  static constexpr bool kIsSupported = false;
  static constexpr Encoding kEncoding = Encoding::kValue8;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 1;
  static constexpr std::size_t Size(const T&) noexcept { return 1; }
  static std::byte* Put(std::byte* out, const T&) noexcept { return out; }
};
#define EVENTHEADER_INTERNAL_TYPE_FAULT                                                            \
  "the type of this field is not supported (the lines around this message contain the name of "    \
  "the field and its type): use a number, enum, bool, character, pointer, text, bytes, address, "  \
  "duration, time point of the system clock, error_code, path, atomic, a type of formatted.h, or " \
  "an array or optional of these, but no reference; for a class, add a function "                  \
  "EventheaderMembers or EventheaderValue (field.h)"

template <>
struct TypeCoder<bool> : ValueCoder<bool, Format::kBoolean> {};

template <typename T>
struct TypeCoder<T, std::enable_if_t<std::is_integral_v<T> && !kIsCharacter<T> &&
                                     !std::is_same_v<T, bool> && sizeof(T) <= 8>>
    : ValueCoder<T, std::is_signed_v<T> ? Format::kSignedInt : Format::kDefault> {};

template <typename T>
struct TypeCoder<T, std::enable_if_t<kIsCharacter<T>>>
    : ValueCoder<T, sizeof(T) == 1 ? Format::kString8 : Format::kStringUtf> {};

template <typename T>
struct TypeCoder<T, std::enable_if_t<std::is_enum_v<T>>>
    : ValueCoder<T, Coder<std::underlying_type_t<T>>::kFormat> {};
template <>
struct TypeCoder<std::byte> : ValueCoder<std::byte, Format::kHexInt> {};

template <>
struct TypeCoder<float> : ValueCoder<float, Format::kFloat> {};
template <>
struct TypeCoder<double> : ValueCoder<double, Format::kFloat> {};

template <typename T>
struct TypeCoder<T, std::enable_if_t<std::is_pointer_v<T> && !kIsCString<T>>>
    : ValueCoder<T, Format::kHexInt> {};
template <>
struct TypeCoder<std::nullptr_t> : ValueCoder<std::nullptr_t, Format::kHexInt> {};

template <>
struct TypeCoder<in_addr> : ValueCoder<in_addr, Format::kIpAddress> {};
template <>
struct TypeCoder<in6_addr> : ValueCoder<in6_addr, Format::kIpAddress> {};

// Codes durations as a number of ns, rounded towards zero. A duration beyond the range of 64 bits
// becomes the nearest number of that range.
template <typename T, typename = void>
inline constexpr bool kIsDuration = false;
template <typename T>
inline constexpr bool kIsDuration<T, Void<typename T::rep, decltype(T::period::num),
                                          decltype(std::declval<const T&>().count())>> = true;
constexpr std::int64_t CommonDivisor(std::int64_t a, std::int64_t b) noexcept {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
template <typename T>
struct TypeCoder<T, std::enable_if_t<kIsDuration<T> && std::is_arithmetic_v<typename T::rep>>>
    : ScalarCoder {
  static constexpr Encoding kEncoding = Encoding::kValue64;
  static constexpr Format kFormat = Format::kSignedInt;
  static constexpr std::size_t kFixedSize = 8;
  static constexpr std::size_t Size(const T&) noexcept { return 8; }
  static constexpr std::int64_t Nanoseconds(typename T::rep ticks) noexcept {
    constexpr std::int64_t kSecond = 1'000'000'000;
    constexpr std::int64_t kCommon = CommonDivisor(kSecond, T::period::den);
    constexpr std::int64_t kDivisor = T::period::den / kCommon;
    constexpr std::int64_t kFactor = kSecond / kCommon * T::period::num;
    const std::int64_t limit = ticks < 0 ? INT64_MIN : INT64_MAX;
    if constexpr (std::is_floating_point_v<typename T::rep>) {
      const auto all = static_cast<double>(ticks) * kFactor / kDivisor;
      if (all != all) return 0;
      return all > -0x1p63 && all < 0x1p63 ? static_cast<std::int64_t>(all) : limit;
    } else {
      std::int64_t all = 0;
      const auto rest = static_cast<std::int64_t>(ticks % kDivisor) * kFactor / kDivisor;
      return __builtin_mul_overflow(ticks / kDivisor, kFactor, &all) ||
                     __builtin_add_overflow(all, rest, &all)
                 ? limit
                 : all;
    }
  }
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    return PutRaw(out, Nanoseconds(value.count()));
  }
};

// Codes time points of the system clock as seconds since 1970, rounded down, because the format has
// no fractions. Time points of other clocks do not match: they have no conversion to time_t.
template <typename T>
struct TypeCoder<T, Void<decltype(T::clock::to_time_t(typename T::clock::time_point())),
                         typename T::duration::period>> : ScalarCoder {
  static constexpr Encoding kEncoding = Encoding::kValue64;
  static constexpr Format kFormat = Format::kTime;
  static constexpr std::size_t kFixedSize = 8;
  static constexpr std::size_t Size(const T&) noexcept { return 8; }
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    using Period = typename T::duration::period;
    const auto ticks = value.time_since_epoch().count() * Period::num;
    auto seconds = static_cast<std::int64_t>(ticks / Period::den);  // rounded towards zero
    if (seconds * Period::den > ticks) --seconds;
    return PutRaw(out, seconds);
  }
};

// Codes std::basic_string and std::basic_string_view.
template <typename T>
struct TypeCoder<T, std::enable_if_t<kIsCharacter<typename T::traits_type::char_type>>>
    : StringCoder<typename T::value_type> {};

// Codes C strings, which end at their NUL. A null pointer is written as "".
template <typename T>
struct TypeCoder<T, std::enable_if_t<kIsCString<T>>>
    : StringCoder<std::remove_cv_t<std::remove_pointer_t<T>>> {
  using Base = StringCoder<std::remove_cv_t<std::remove_pointer_t<T>>>;
  static typename Base::View Text(T value) noexcept {
    return value != nullptr ? typename Base::View(value) : typename Base::View();
  }
  static std::size_t Size(T value) noexcept { return Base::Size(Text(value)); }
  static std::byte* Put(std::byte* out, T value) noexcept { return Base::Put(out, Text(value)); }
  [[gnu::always_inline]] static Blob BlobOf(T value) noexcept { return Base::BlobOf(Text(value)); }
};
// Codes character arrays. The text ends at the first NUL, or at the end of the array if it has
// none.
template <typename Char, std::size_t N>
struct TypeCoder<Char[N], std::enable_if_t<kIsCharacter<Char>>> : StringCoder<Char> {
  using Base = StringCoder<Char>;
  static typename Base::View Text(const Char (&value)[N]) noexcept {
    const std::basic_string_view<Char> all(value, N);
    return all.substr(0, all.find(Char{}));
  }
  static std::size_t Size(const Char (&value)[N]) noexcept { return Base::Size(Text(value)); }
  static std::byte* Put(std::byte* out, const Char (&value)[N]) noexcept {
    return Base::Put(out, Text(value));
  }
  static Blob BlobOf(const Char (&value)[N]) noexcept { return Base::BlobOf(Text(value)); }
};

template <typename Char>
struct TypeCoder<NulTerminated<Char>> : ScalarCoder, BlobCoder<0, sizeof(Char)> {
  static_assert(kIsCharacter<Char>);
  static constexpr Encoding kEncoding = sizeof(Char) == 1   ? Encoding::kZStringChar8
                                        : sizeof(Char) == 2 ? Encoding::kZStringChar16
                                                            : Encoding::kZStringChar32;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const NulTerminated<Char>& value) noexcept {
    return (value.UpToNul().size() + 1) * sizeof(Char);
  }
  static std::byte* Put(std::byte* out, const NulTerminated<Char>& value) noexcept {
    const auto text = value.UpToNul();
    out = PutBytes(out, text.data(), text.size() * sizeof(Char));
    return PutRaw(out, Char{});
  }
  static Blob BlobOf(const NulTerminated<Char>& value) noexcept {
    const auto text = value.UpToNul();
    return {text.data(), text.size() * sizeof(Char), 0};
  }
};

template <typename T, Format kAs>
struct TypeCoder<Formatted<T, kAs>> : Coder<T> {
  using Value = Formatted<T, kAs>;
  static constexpr Format kFormat = kAs;
  static std::size_t Size(const Value& value) noexcept { return Coder<T>::Size(value.value); }
  static std::byte* Put(std::byte* out, const Value& value) noexcept {
    return Coder<T>::Put(out, value.value);
  }
  [[gnu::always_inline]] static Blob BlobOf(const Value& value) noexcept {
    return Coder<T>::BlobOf(value.value);
  }
};
template <std::size_t N, Format kAs>
struct TypeCoder<Formatted<std::array<std::uint8_t, N>, kAs>>
    : ValueCoder<Formatted<std::array<std::uint8_t, N>, kAs>, kAs, N> {};

// The coder of the elements of an array, or of the value of an optional. An element or value must
// not itself be an array or an optional.
template <typename T>
struct ElementCoder : Coder<std::remove_cv_t<T>> {
  static_assert(Coder<std::remove_cv_t<T>>::kArity == Arity::kScalar,
                "array elements and optional values cannot themselves be arrays or optional");
};

// Detects whether a range's elements are contiguous in memory.
template <typename Range, typename = void>
inline constexpr bool kHasData = false;
template <typename Range>
inline constexpr bool kHasData<Range, Void<decltype(std::data(std::declval<const Range&>()))>> =
    true;

template <typename Range, typename T>
struct VariableArrayCoder : BlobCoder<2> {
  using Element = ElementCoder<T>;
  using Members = typename Element::Members;
  static constexpr bool kIsSupported = Element::kIsSupported;
  static constexpr Encoding kEncoding = Element::kEncoding;
  static constexpr Format kFormat = Element::kFormat;
  static constexpr Arity kArity = Arity::kVariableArray;
  static constexpr std::uint16_t kCount = 0;
  static constexpr std::size_t kFixedSize = 0;
  static constexpr bool kIsRaw = false;
  static constexpr bool kHasBlobOf = Element::kIsRaw && kHasData<Range>;
  static std::size_t Size(const Range& values) noexcept {
    // If the count exceeds 16 bits, returns a size that is refused as too big, without a loop over
    // the elements.
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
  [[gnu::always_inline]] static Blob BlobOf(const Range& values) noexcept {
    return {std::data(values), values.size() * sizeof(T), values.size()};
  }
};

template <typename Range, typename T, std::size_t N>
struct ConstantArrayCoder : BlobCoder<0> {
  static_assert(N >= 1 && N <= 0xFFFF, "a constant array has 1 to 65535 elements");
  using Element = ElementCoder<T>;
  using Members = typename Element::Members;
  static constexpr bool kIsSupported = Element::kIsSupported;
  static constexpr Encoding kEncoding = Element::kEncoding;
  static constexpr Format kFormat = Element::kFormat;
  static constexpr Arity kArity = Arity::kConstantArray;
  static constexpr std::uint16_t kCount = static_cast<std::uint16_t>(N);
  static constexpr std::size_t kFixedSize = N * Element::kFixedSize;
  static constexpr bool kIsRaw = false;
  static constexpr bool kHasBlobOf = Element::kIsRaw;
  static std::size_t Size(const Range& values) noexcept {
    if constexpr (kFixedSize != 0) return kFixedSize;
    std::size_t size = 0;
    for (const T& value : values) size += Element::Size(value);
    return size;
  }
  static std::byte* Put(std::byte* out, const Range& values) noexcept {
    if constexpr (Element::kIsRaw) {
      __builtin_memcpy(out, std::data(values), kFixedSize);
      return out + kFixedSize;
    } else {
      for (const T& value : values) out = Element::Put(out, value);
      return out;
    }
  }
  [[gnu::always_inline]] static Blob BlobOf(const Range& values) noexcept {
    return {std::data(values), kFixedSize, 0};
  }
};

// ElementOf is the element type of a class that is a range, else void. kIsString is true if the
// range is a string.
template <typename T, typename = void>
struct ElementOf {
  using Type = void;
};
template <typename T>
struct ElementOf<
    T, Void<typename T::value_type, decltype(std::declval<const T&>().size()),
            decltype(std::declval<const T&>().begin() == std::declval<const T&>().end())>> {
  using Type = typename T::value_type;
};
template <typename T, typename = void>
inline constexpr bool kIsString = false;
template <typename T>
inline constexpr bool kIsString<T, Void<typename T::traits_type>> = true;
// Number of elements that the type of a std::array or std::span contains; SIZE_MAX for types of
// variable size.
template <typename T, typename = void>
inline constexpr std::size_t kExtent = SIZE_MAX;
template <typename T>
inline constexpr std::size_t kExtent<T, Void<decltype(T::extent)>> = T::extent;
template <typename T, std::size_t N>
inline constexpr std::size_t kExtent<std::array<T, N>, void> = N;

template <typename T, typename Element = typename ElementOf<T>::Type>
using RangeCoder =
    std::conditional_t<kExtent<T> == SIZE_MAX, VariableArrayCoder<T, Element>,
                       ConstantArrayCoder<T, Element, kExtent<T> == SIZE_MAX ? 1 : kExtent<T>>>;

// Codes std::array, std::span, std::vector and all other containers with a function size(). A range
// of std::byte is written as one binary value instead of an array.
template <typename T>
struct TypeCoder<T, std::enable_if_t<!std::is_void_v<typename ElementOf<T>::Type> &&
                                     !kIsString<T> && !kIsByte<typename ElementOf<T>::Type>>>
    : RangeCoder<T> {};
template <typename T>
struct TypeCoder<T, std::enable_if_t<kIsByte<typename ElementOf<T>::Type> && kHasData<T>>>
    : BinaryCoder<T> {};
template <typename T, std::size_t N>
struct TypeCoder<T[N], std::enable_if_t<!kIsByte<T> && !kIsCharacter<T>>>
    : ConstantArrayCoder<T[N], T, N> {};
template <std::size_t N>
struct TypeCoder<std::byte[N]> : BinaryCoder<std::byte[N]> {};

// Codes std::optional as a nullable field. A value of fixed size is written as a binary: its bytes,
// or no bytes for null. Any other value, including a character, is written as an array with one
// element, or none for null. Null thus differs from an empty value.
template <typename Optional>
struct TypeCoder<Optional, Void<decltype(std::declval<const Optional&>().has_value()),
                                typename Optional::value_type>> : ScalarCoder {
  using Element = ElementCoder<typename Optional::value_type>;
  using Members = typename Element::Members;
  // A binary with the format of a character is text, which is never null. Characters are therefore
  // written as arrays.
  static constexpr bool kIsCharacter =
      Element::kFormat == Format::kString8 || Element::kFormat == Format::kStringUtf;
  static constexpr bool kIsSupported = Element::kIsSupported;
  static constexpr bool kIsValue = FixedSize(Element::kEncoding) != 0 && !kIsCharacter;
  static constexpr Encoding kEncoding =
      kIsValue ? Encoding::kBinaryLength16Char8 : Element::kEncoding;
  static constexpr Format kFormat =
      kIsValue && Element::kFormat == Format::kDefault ? Format::kUnsignedInt : Element::kFormat;
  static constexpr Arity kArity = kIsValue ? Arity::kScalar : Arity::kVariableArray;
  static constexpr std::size_t kFixedSize = 0;
  static std::size_t Size(const Optional& value) noexcept {
    return 2 + (value ? Element::Size(*value) : 0);
  }
  static std::byte* Put(std::byte* out, const Optional& value) noexcept {
    const std::size_t count = !value ? 0 : kIsValue ? Element::Size(*value) : 1;
    out = PutRaw(out, static_cast<std::uint16_t>(count));
    return value ? Element::Put(out, *value) : out;
  }
};

// A coder for a type T whose values are written as values of another type, which `Convert::From`
// returns. `Convert::From` returns a reference or a value that owns no memory, so its bytes are
// valid until the event is written.
template <typename T, typename Convert>
struct ConvertedCoder
    : Coder<std::remove_cv_t<
          std::remove_reference_t<decltype(Convert::From(std::declval<const T&>()))>>> {
  using Result = decltype(Convert::From(std::declval<const T&>()));
  using To = std::remove_cv_t<std::remove_reference_t<Result>>;
  static_assert(
      std::is_reference_v<Result> || std::is_trivially_copyable_v<To>,
      "EventheaderValue must return a number, a view or a reference, because the value must "
      "be valid until the event is written");
  static constexpr bool kIsRaw = false;
  static std::size_t Size(const T& value) noexcept { return Coder<To>::Size(Convert::From(value)); }
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    return Coder<To>::Put(out, Convert::From(value));
  }
  [[gnu::always_inline]] static Blob BlobOf(const T& value) noexcept {
    return Coder<To>::BlobOf(Convert::From(value));
  }
};

// Codes std::filesystem::path as its native string.
struct NativeOfPath {
  template <typename T>
  static const typename T::string_type& From(const T& path) noexcept {
    return path.native();
  }
};
template <typename T>
struct TypeCoder<T, Void<typename T::string_type, decltype(std::declval<const T&>().native()),
                         decltype(std::declval<const T&>().root_name())>>
    : ConvertedCoder<T, NativeOfPath> {};

// Codes std::atomic as its value. Another thread may change the value between the calls of Size()
// and Put(), so only types of constant size are supported.
struct LoadOfAtomic {
  template <typename T>
  static typename T::value_type From(const T& atomic) noexcept {
    return atomic.load();
  }
};
template <typename T>
struct TypeCoder<T, Void<typename T::value_type, decltype(std::declval<const T&>().load()),
                         decltype(std::declval<const T&>().is_lock_free())>>
    : ConvertedCoder<T, LoadOfAtomic> {
  static_assert(Coder<typename T::value_type>::kFixedSize != 0,
                "a field of type std::atomic must contain a number, an enum or a bool");
};

// Codes std::error_code and std::error_condition as a struct of a text and a number.
struct ErrorParts {
  const char* category;
  std::int32_t value;
};
struct PartsOfError {
  template <typename T>
  static ErrorParts From(const T& error) noexcept {
    return {error.category().name(), error.value()};
  }
};
template <typename T>
struct TypeCoder<T, Void<decltype(std::declval<const T&>().category().name()),
                         decltype(std::declval<const T&>().value()),
                         decltype(std::declval<const T&>().message())>>
    : ConvertedCoder<T, PartsOfError> {};

// Codes a struct as the sequence of the members that StructOf lists.
template <typename T>
struct StructCoder {
  using Members = typename StructOf<T>::Members;
  static constexpr bool kIsSupported = true;
  static constexpr Encoding kEncoding = Encoding::kStruct;
  static constexpr Format kFormat = Format::kDefault;
  static constexpr Arity kArity = Arity::kScalar;
  static constexpr std::uint16_t kCount = 0;
  static constexpr std::size_t kFixedSize = Members::kFixedSize;
  static constexpr bool kIsRaw = false;
  static std::size_t Size(const T& value) noexcept { return Members::Size(value); }
  static std::byte* Put(std::byte* out, const T& value) noexcept {
    return Members::Put(out, value);
  }
};

// Detects and calls the user's function EventheaderValue, which argument-dependent lookup finds.
template <typename T, typename = void>
inline constexpr bool kHasValueFunction = false;
template <typename T>
inline constexpr bool
    kHasValueFunction<T, Void<decltype(EventheaderValue(std::declval<const T&>()))>> = true;
struct ValueOfUser {
  template <typename T>
  static decltype(auto) From(const T& value) noexcept {
    return EventheaderValue(value);
  }
};

// A user's description (StructOf, EventheaderValue) has precedence over a TypeCoder, which may
// recognize the same type by its members.
template <typename T, typename = void>
inline constexpr bool kHasMembers = false;
template <typename T>
inline constexpr bool kHasMembers<T, Void<typename StructOf<T>::Members>> = true;
template <typename T, typename>
struct FindCoder {
  using Type = TypeCoder<T>;
};
template <typename T>
struct FindCoder<T,
                 std::enable_if_t<std::is_class_v<T> || std::is_enum_v<T> || std::is_union_v<T>>> {
  using Type = std::conditional_t<
      kHasMembers<T>, StructCoder<T>,
      std::conditional_t<kHasValueFunction<T>, ConvertedCoder<T, ValueOfUser>, TypeCoder<T>>>;
};

// The type of Write()'s parameter for a field. A string is passed as a view. A trivially copyable
// type of up to 16 bytes is passed by value, unless it is an array. All other types are passed by
// reference.
template <typename T, typename = void>
struct ParameterOf {
  using Type =
      std::conditional_t<std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T> &&
                             !std::is_array_v<T> && sizeof(T) <= 16,
                         T, const T&>;
};
template <typename T>
struct ParameterOf<T, std::enable_if_t<kIsString<T>>> {
  using Type = std::basic_string_view<typename T::value_type>;
};
template <typename T>
using Parameter = typename ParameterOf<T>::Type;

}  // namespace internal
}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_FIELD_CODER_H_
