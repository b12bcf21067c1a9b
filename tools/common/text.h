// Times, ids, numbers and text from files as people read and write them.
#ifndef TOOLS_COMMON_TEXT_H_
#define TOOLS_COMMON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace tools {

// UTC to the nanosecond, e.g. 2026-11-21T10:00:00.123456789Z.
std::string FormatUtc(absl::Time time);

// The RFC 4122 form, e.g. 00112233-4455-6677-8899-aabbccddeeff.
std::string FormatGuid(const nettrace::Guid& guid);

// Two lower-case digits a byte.
std::string FormatHex(std::span<const std::byte> bytes);

// The number that `text` is, decimal or, after 0x, hexadecimal; nullopt if it is none of 64 bits.
std::optional<std::uint64_t> ParseUint64(std::string_view text);

// `text` with '?' in place of each control character, so that it takes one line.
std::string OneLine(std::string text);

}  // namespace tools

#endif  // TOOLS_COMMON_TEXT_H_
