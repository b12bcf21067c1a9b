// What a field's definition must be, for all who make one: checked while compiling where names and
// types are known then. C++17.
#ifndef EVENTHEADER_INTERNAL_FIELD_RULES_H_
#define EVENTHEADER_INTERNAL_FIELD_RULES_H_

#include <string_view>

#include "eventheader/wire.h"

namespace eh {

// Of an event or a field: behind a ';' are its attributes, a NUL ends it.
constexpr bool IsValidName(std::string_view name) noexcept {
  return !name.empty() && name.find(';') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// "" or `name=value` pairs, each after a ';', the ';' in values doubled: ";unit=ms".
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

// Whether the specification has `format` for values of `encoding`. Encodings that count bytes take
// every format: with one of fixed size they are nullable.
constexpr bool IsFormatOf(Encoding encoding, Format format) noexcept {
  const bool is_text = encoding >= Encoding::kZStringChar8;
  const bool counts_bytes =
      encoding == Encoding::kStringLength16Char8 || encoding == Encoding::kBinaryLength16Char8;
  if (encoding <= Encoding::kStruct || encoding > Encoding::kBinaryLength16Char8) return false;
  if (format > Format::kIpAddress) return false;
  if (counts_bytes) return true;
  switch (format) {
    case Format::kDefault:
    case Format::kHexBytes:
      return true;
    case Format::kUnsignedInt:
    case Format::kSignedInt:
    case Format::kHexInt:
      return encoding <= Encoding::kValue64;
    case Format::kErrno:
    case Format::kPid:
      return encoding == Encoding::kValue32;
    case Format::kTime:
    case Format::kFloat:
      return encoding == Encoding::kValue32 || encoding == Encoding::kValue64;
    case Format::kBoolean:
      return encoding <= Encoding::kValue32;
    case Format::kString8:
      return encoding == Encoding::kValue8 || encoding == Encoding::kZStringChar8;
    case Format::kStringUtf:
      return is_text || encoding == Encoding::kValue16 || encoding == Encoding::kValue32;
    case Format::kStringUtfBom:
    case Format::kStringXml:
    case Format::kStringJson:
      return is_text;
    case Format::kUuid:
      return encoding == Encoding::kValue128;
    case Format::kPort:
      return encoding == Encoding::kValue16;
    case Format::kIpAddress:
      return encoding == Encoding::kValue32 || encoding == Encoding::kValue128;
    case Format::kIpAddressObsolete:
      return false;
  }
  return false;
}

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_FIELD_RULES_H_
