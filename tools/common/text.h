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

// `text` as it may be shown on a terminal, in one line: whatever another process or a file named
// it, it cannot move the cursor, change the terminal's state, or make text appear in another order.
// A control character, of C0, C1 or those of bidirectional text, and a line or paragraph separator
// is shown as \u and its four digits, and U+FFFD stands for what is not UTF-8. JSON stays the same
// JSON. To be called on all that is printed and not the program's own.
std::string Printable(std::string_view text);

}  // namespace tools

#endif  // TOOLS_COMMON_TEXT_H_
