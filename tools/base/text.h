// Formats times, numbers, ids, bytes and untrusted text for people, parses numbers, and checks
// which characters a text contains.
#ifndef TOOLS_BASE_TEXT_H_
#define TOOLS_BASE_TEXT_H_

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "nettrace/schema.h"

namespace base {

// Returns `time` in UTC with nanoseconds, e.g. 2026-11-21T10:00:00.123456789Z.
std::string FormatUtc(absl::Time time);

// Formats times like FormatUtc. Formatting is faster if the previous time was in the same second,
// because only the digits after the point change.
class UtcFormatter {
 public:
  // The result is valid until the next call.
  std::string_view Format(absl::Time time);

 private:
  std::string text_;                     // text of the previous call
  std::optional<std::int64_t> seconds_;  // seconds of text_ since 1970; nullopt: cannot be reused
};

// Appends the digits of a number.
template <std::integral Number>
void AppendNumber(Number number, std::string* out) {
  char digits[std::numeric_limits<Number>::digits10 + 2];
  out->append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// Returns a number in hexadecimal: 0x1f.
std::string FormatHexNumber(std::uint64_t number);
void AppendHexNumber(std::uint64_t number, std::string* out);

// Appends the text that FormatGuid returns.
void AppendGuid(const nettrace::Guid& guid, std::string* out);

// Returns `guid` in the form of RFC 4122, e.g. 00112233-4455-6677-8899-aabbccddeeff.
std::string FormatGuid(const nettrace::Guid& guid);

// Returns two lower-case hexadecimal digits for each byte.
std::string FormatHex(std::span<const std::byte> bytes);

// Returns the number and the noun, in the plural unless the number is 1: "1 event", "2 events".
std::string Counted(std::uint64_t number, std::string_view noun);

// Parses an unsigned 64-bit number: decimal, or hexadecimal after 0x. Returns nullopt for other
// text and for larger numbers.
std::optional<std::uint64_t> ParseUint64(std::string_view text);

// Returns `text` in a form that is safe to print on a terminal, in one line. Text from files and
// other processes then cannot move the cursor, change the terminal's state, or change the order of
// text.
//
// Control characters (C0, DEL and C1), marks that change the direction of text, and line and
// paragraph separators become \u and four hexadecimal digits. In a JSON string, this escape has the
// same meaning as the character. Bytes that are not UTF-8 become U+FFFD. Must be called on all
// printed text that does not come from the program itself.
std::string Printable(std::string_view text);

// Appends the text that Printable returns.
void AppendPrintable(std::string_view text, std::string* out);

// Returns whether all characters are ASCII and none is a control character. Text with this property
// is UTF-8, and Printable returns it unchanged.
bool IsPrintableAscii(std::string_view text);
// Returns whether IsPrintableAscii is true for `text`, and the text has none of `characters`.
bool IsPrintableAsciiWithout(std::string_view text, const std::array<char, 3>& characters);
// Returns whether a JSON string of the text needs no escapes: all characters are printable ASCII or
// DEL, and none is '"' or '\'.
bool IsPlainInJson(std::string_view text);

}  // namespace base

#endif  // TOOLS_BASE_TEXT_H_
