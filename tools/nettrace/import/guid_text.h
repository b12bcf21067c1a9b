// Ids of 128 bits from text.
#ifndef TOOLS_NETTRACE_IMPORT_GUID_TEXT_H_
#define TOOLS_NETTRACE_IMPORT_GUID_TEXT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "nettrace/schema.h"

namespace tools::importing {

// The 16 bytes that 32 hexadecimal digits are, with '-' anywhere; nullopt if the text is not that.
std::optional<std::array<std::byte, 16>> ParseHex128(std::string_view text);

// A GUID as FormatGuid writes it.
inline std::optional<nettrace::Guid> ParseGuid(std::string_view text) {
  const std::optional<std::array<std::byte, 16>> uuid = ParseHex128(text);
  return uuid ? std::optional(nettrace::GuidFromUuid(*uuid)) : std::nullopt;
}

}  // namespace tools::importing

#endif  // TOOLS_NETTRACE_IMPORT_GUID_TEXT_H_
