// Parses 128-bit ids from text.
#ifndef TOOLS_BASE_GUID_TEXT_H_
#define TOOLS_BASE_GUID_TEXT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "nettrace/schema.h"

namespace base {

// Returns the 16 bytes of 32 hexadecimal digits, with '-' at any place. Returns nullopt for other
// text.
std::optional<std::array<std::byte, 16>> ParseHex128(std::string_view text);

// Parses a GUID in the form of FormatGuid, or with '-' at other places. Returns nullopt for other
// text.
inline std::optional<nettrace::Guid> ParseGuid(std::string_view text) {
  const std::optional<std::array<std::byte, 16>> uuid = ParseHex128(text);
  return uuid ? std::optional(nettrace::GuidFromUuid(*uuid)) : std::nullopt;
}

}  // namespace base

#endif  // TOOLS_BASE_GUID_TEXT_H_
