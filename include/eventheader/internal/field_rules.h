// The rules for fields that all writers and readers share: sizes and formats of the encodings,
// valid names, and the bytes of a definition. Needs C++17. Source: the EventHeader specification,
// "Field definition block" and its lists of usable formats.
#ifndef EVENTHEADER_INTERNAL_FIELD_RULES_H_
#define EVENTHEADER_INTERNAL_FIELD_RULES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eventheader/wire.h"

namespace eh::internal {

struct EncodingFacts {
  Encoding encoding;
  std::uint8_t fixed_size;      // bytes of a value; 0 if the size varies, or for a struct
  std::uint8_t code_unit_size;  // bytes of a code unit of text or a binary; 0 for all others
  Format own_format;            // format of a field that has no format or an unsuitable one
  const char* name;             // the name in the specification
};

// Facts about the encodings. The index of an element is the number of its encoding.
inline constexpr EncodingFacts kEncodings[] = {
    {Encoding::kInvalid, 0, 0, Format::kDefault, "invalid"},
    {Encoding::kStruct, 0, 0, Format::kDefault, "struct"},
    {Encoding::kValue8, 1, 0, Format::kUnsignedInt, "value8"},
    {Encoding::kValue16, 2, 0, Format::kUnsignedInt, "value16"},
    {Encoding::kValue32, 4, 0, Format::kUnsignedInt, "value32"},
    {Encoding::kValue64, 8, 0, Format::kUnsignedInt, "value64"},
    {Encoding::kValue128, 16, 0, Format::kHexBytes, "value128"},
    {Encoding::kZStringChar8, 0, 1, Format::kStringUtf, "zstring_char8"},
    {Encoding::kZStringChar16, 0, 2, Format::kStringUtf, "zstring_char16"},
    {Encoding::kZStringChar32, 0, 4, Format::kStringUtf, "zstring_char32"},
    {Encoding::kStringLength16Char8, 0, 1, Format::kStringUtf, "string_length16_char8"},
    {Encoding::kStringLength16Char16, 0, 2, Format::kStringUtf, "string_length16_char16"},
    {Encoding::kStringLength16Char32, 0, 4, Format::kStringUtf, "string_length16_char32"},
    {Encoding::kBinaryLength16Char8, 0, 1, Format::kHexBytes, "binary_length16_char8"},
};

// Returns the facts about an encoding, or the facts about kInvalid if the number is not an
// encoding.
constexpr const EncodingFacts& FactsOf(Encoding encoding) noexcept {
  const auto index = static_cast<std::size_t>(encoding);
  return kEncodings[index < std::size(kEncodings) ? index : 0];
}

constexpr std::size_t FixedSize(Encoding encoding) noexcept { return FactsOf(encoding).fixed_size; }
constexpr std::size_t CodeUnitSize(Encoding encoding) noexcept {
  return FactsOf(encoding).code_unit_size;
}
constexpr Format DefaultFormat(Encoding encoding) noexcept { return FactsOf(encoding).own_format; }

constexpr bool IsEncoding(Encoding encoding) noexcept {
  return encoding != Encoding::kInvalid &&
         static_cast<std::size_t>(encoding) < std::size(kEncodings);
}
constexpr bool IsZeroTerminated(Encoding encoding) noexcept {
  return encoding >= Encoding::kZStringChar8 && encoding <= Encoding::kZStringChar32;
}
// Returns whether a value of the encoding begins with a count of bytes. With a format of fixed
// size, a field of this encoding is nullable: a value of no bytes is null.
constexpr bool CountsBytes(Encoding encoding) noexcept {
  return encoding == Encoding::kStringLength16Char8 || encoding == Encoding::kBinaryLength16Char8;
}

// Returns the encoding of values of `size` bytes; kInvalid if there is none.
constexpr Encoding ValueEncoding(std::size_t size) noexcept {
  for (const EncodingFacts& facts : kEncodings) {
    if (facts.fixed_size == size && size != 0) return facts.encoding;
  }
  return Encoding::kInvalid;
}

// The kind of a format. kDefault is the kind of Format::kDefault only. With kFixedSize, a value
// must have a certain size. With kText and kBytes, a value may have any number of bytes.
enum class FormatKind : std::uint8_t { kDefault, kFixedSize, kText, kBytes };

struct FormatFacts {
  Format format;
  FormatKind kind;
  std::uint16_t encodings;  // encodings that allow the format: bit n for encoding n
  const char* name;         // the name in the specification
};

template <typename... Encodings>
constexpr std::uint16_t EncodingSet(Encodings... encodings) noexcept {
  return static_cast<std::uint16_t>(((1u << static_cast<unsigned>(encodings)) | ...));
}
inline constexpr std::uint16_t kCountingEncodings =
    EncodingSet(Encoding::kStringLength16Char8, Encoding::kBinaryLength16Char8);
inline constexpr std::uint16_t kTextEncodings =
    kCountingEncodings | EncodingSet(Encoding::kZStringChar8, Encoding::kZStringChar16,
                                     Encoding::kZStringChar32, Encoding::kStringLength16Char16,
                                     Encoding::kStringLength16Char32);
inline constexpr std::uint16_t kIntegerEncodings =
    kCountingEncodings |
    EncodingSet(Encoding::kValue8, Encoding::kValue16, Encoding::kValue32, Encoding::kValue64);
inline constexpr std::uint16_t kEveryEncoding =
    kTextEncodings | kIntegerEncodings | EncodingSet(Encoding::kValue128);

// Facts about the formats. The index of an element is the number of its format. The encodings that
// begin with a count of bytes allow every format except kIpAddressObsolete.
inline constexpr FormatFacts kFormats[] = {
    {Format::kDefault, FormatKind::kDefault, kEveryEncoding, "default"},
    {Format::kUnsignedInt, FormatKind::kFixedSize, kIntegerEncodings, "unsigned_int"},
    {Format::kSignedInt, FormatKind::kFixedSize, kIntegerEncodings, "signed_int"},
    {Format::kHexInt, FormatKind::kFixedSize, kIntegerEncodings, "hex_int"},
    {Format::kErrno, FormatKind::kFixedSize, kCountingEncodings | EncodingSet(Encoding::kValue32),
     "errno"},
    {Format::kPid, FormatKind::kFixedSize, kCountingEncodings | EncodingSet(Encoding::kValue32),
     "pid"},
    {Format::kTime, FormatKind::kFixedSize,
     kCountingEncodings | EncodingSet(Encoding::kValue32, Encoding::kValue64), "time"},
    {Format::kBoolean, FormatKind::kFixedSize,
     kCountingEncodings | EncodingSet(Encoding::kValue8, Encoding::kValue16, Encoding::kValue32),
     "boolean"},
    {Format::kFloat, FormatKind::kFixedSize,
     kCountingEncodings | EncodingSet(Encoding::kValue32, Encoding::kValue64), "float"},
    {Format::kHexBytes, FormatKind::kBytes, kEveryEncoding, "hex_bytes"},
    {Format::kString8, FormatKind::kText,
     kCountingEncodings | EncodingSet(Encoding::kValue8, Encoding::kZStringChar8), "string8"},
    {Format::kStringUtf, FormatKind::kText,
     kTextEncodings | EncodingSet(Encoding::kValue16, Encoding::kValue32), "string_utf"},
    {Format::kStringUtfBom, FormatKind::kText, kTextEncodings, "string_utf_bom"},
    {Format::kStringXml, FormatKind::kText, kTextEncodings, "string_xml"},
    {Format::kStringJson, FormatKind::kText, kTextEncodings, "string_json"},
    {Format::kUuid, FormatKind::kFixedSize, kCountingEncodings | EncodingSet(Encoding::kValue128),
     "uuid"},
    {Format::kPort, FormatKind::kFixedSize, kCountingEncodings | EncodingSet(Encoding::kValue16),
     "port"},
    {Format::kIpAddress, FormatKind::kFixedSize,
     kCountingEncodings | EncodingSet(Encoding::kValue32, Encoding::kValue128), "ip_address"},
    {Format::kIpAddressObsolete, FormatKind::kFixedSize, 0, "ip_address_obsolete"},
};

// Returns the facts about a format, or null if the number is not a format.
constexpr const FormatFacts* FactsOf(Format format) noexcept {
  const auto index = static_cast<std::size_t>(format);
  return index < std::size(kFormats) ? &kFormats[index] : nullptr;
}

constexpr bool TablesAreByNumber() noexcept {
  for (std::size_t i = 0; i < std::size(kEncodings); ++i) {
    if (static_cast<std::size_t>(kEncodings[i].encoding) != i) return false;
  }
  for (std::size_t i = 0; i < std::size(kFormats); ++i) {
    if (static_cast<std::size_t>(kFormats[i].format) != i) return false;
  }
  return true;
}
static_assert(TablesAreByNumber());

// Returns whether a field of `encoding` may have `format`.
constexpr bool IsFormatOf(Encoding encoding, Format format) noexcept {
  // Uses an index instead of FactsOf, because g++ with -fsanitize=undefined cannot compare an
  // address with null at compile time.
  const auto index = static_cast<std::size_t>(format);
  return index < std::size(kFormats) && IsEncoding(encoding) &&
         (kFormats[index].encodings & EncodingSet(encoding)) != 0;
}

// Returns the format in which readers show a field: `format` if it suits the encoding, else the
// encoding's default format. If CountsBytes() is true for the encoding, a format of fixed size must
// also suit the size of each value (ValueFormat in decoder.h). The specification does not allow
// string_utf for value8, but readers treat such a value as a character.
constexpr Format ShownFormat(Encoding encoding, Format format) noexcept {
  if (format == Format::kIpAddressObsolete) format = Format::kIpAddress;
  const bool is_character = encoding == Encoding::kValue8 && format == Format::kStringUtf;
  const bool suits = is_character || IsFormatOf(encoding, format);
  return suits && format != Format::kDefault ? format : DefaultFormat(encoding);
}

// Returns whether text in this format may begin with a byte order mark, which is not part of the
// text.
constexpr bool HasByteOrderMark(Format format) noexcept {
  return format == Format::kStringUtfBom || format == Format::kStringXml ||
         format == Format::kStringJson;
}

// Returns whether `name` is valid for an event or a field. A ';' is invalid because it begins the
// attributes, and a NUL because it ends the name. A loop is used because a call of
// std::string_view::find needs many more steps at compile time.
constexpr bool IsValidName(std::string_view name) noexcept {
  for (const char c : name) {
    if (c == ';' || c == '\0') return false;
  }
  return !name.empty();
}

// Returns whether `text` is "" or a sequence of `name=value` pairs, each after a ';', with each ';'
// in a value doubled. Example: ";unit=ms".
constexpr bool AreValidAttributes(std::string_view text) noexcept {
  while (!text.empty()) {
    if (text[0] != ';') return false;
    const std::size_t equals = text.find_first_of(";=", 1);
    if (equals == std::string_view::npos || equals == 1 || text[equals] != '=') return false;
    std::size_t end = equals + 1;
    while (end < text.size() && (text[end] != ';' || text.substr(end, 2) == ";;")) {
      if (text[end] == '\0') return false;
      end += text[end] == ';' ? 2 : 1;
    }
    if (text.substr(0, equals).find('\0') != std::string_view::npos) return false;
    text.remove_prefix(end);
  }
  return true;
}

// Returns the flag of an arity in the encoding byte.
constexpr std::uint8_t ArityFlag(Arity arity) noexcept {
  static_assert(static_cast<unsigned>(Arity::kConstantArray) << 5 == kEncodingConstantArray &&
                static_cast<unsigned>(Arity::kVariableArray) << 5 == kEncodingVariableArray);
  return static_cast<std::uint8_t>(static_cast<unsigned>(arity) << 5);
}

inline constexpr bool kIsLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;

// Returns whether the definition of a field has a format byte. It has one if the field has a format
// or a tag, or is a struct. `format` does not contain kFormatHasTag.
constexpr bool HasFormatByte(Encoding encoding, unsigned format, std::uint16_t tag) noexcept {
  return format != 0 || tag != 0 || encoding == Encoding::kStruct;
}

// Returns the number of bytes that PutType writes.
constexpr std::size_t TypeSize(Encoding encoding, std::uint16_t count, unsigned format,
                               std::uint16_t tag) noexcept {
  return std::size_t{1} + (HasFormatByte(encoding, format, tag) ? 1 : 0) + (tag != 0 ? 2 : 0) +
         (count != 0 ? 2 : 0);
}
inline constexpr std::size_t kMaxTypeSize = 6;

constexpr char* PutU16(char* out, std::uint16_t number) noexcept {
  *out++ = static_cast<char>(number >> (kIsLittleEndian ? 0 : 8));
  *out++ = static_cast<char>(number >> (kIsLittleEndian ? 8 : 0));
  return out;
}

// Writes the part of a definition after the name, in the byte order of this machine, and returns
// its end. `count`: elements of a constant array, else 0. `format`: a Format, or the number of a
// struct's members.
constexpr char* PutType(char* out, Encoding encoding, Arity arity, std::uint16_t count,
                        unsigned format, std::uint16_t tag) noexcept {
  const bool has_format = HasFormatByte(encoding, format, tag);
  *out++ = static_cast<char>(static_cast<unsigned>(encoding) | ArityFlag(arity) |
                             (has_format ? kEncodingHasFormat : 0u));
  if (has_format) *out++ = static_cast<char>(format | (tag != 0 ? kFormatHasTag : 0u));
  if (tag != 0) out = PutU16(out, tag);
  if (count != 0) out = PutU16(out, count);
  return out;
}

}  // namespace eh::internal

#endif  // EVENTHEADER_INTERNAL_FIELD_RULES_H_
