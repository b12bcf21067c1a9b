#include "tools/base/text.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "libeventheader/base/utf.h"

namespace base {
namespace {

// Returns whether a terminal may do something other than show `c` at the next position.
bool IsControl(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) ||        // C0, DEL, C1
         c == 0x061C || c == 0x200E || c == 0x200F ||  // marks of direction
         (c >= 0x2028 && c <= 0x202E) ||               // separators, embeddings, overrides
         (c >= 0x2066 && c <= 0x2069);                 // isolates
}

// Each of the following functions examines the eight bytes of `word`. It returns 0 if no byte has
// the property that the function's name states, and another value otherwise.
constexpr std::uint64_t kEach = 0x0101'0101'0101'0101;
constexpr std::uint64_t kTops = 0x80 * kEach;
constexpr std::uint64_t NotAscii(std::uint64_t word) { return word & kTops; }
constexpr std::uint64_t BelowSpace(std::uint64_t word) {
  return (word - ' ' * kEach) & ~word & kTops;
}
constexpr std::uint64_t Equal(std::uint64_t word, unsigned char c) {
  const std::uint64_t zeros = word ^ c * kEach;
  return (zeros - kEach) & ~zeros & kTops;
}

// Returns whether `find` returns 0 for all words of eight bytes of the text. Words may overlap, and
// a text of less than eight bytes is padded with spaces.
template <typename Find>
bool NoneOf(std::string_view text, const Find& find) {
  std::uint64_t word;
  if (text.size() < sizeof word) {
    char padded[sizeof word] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    text.copy(padded, text.size());
    std::memcpy(&word, padded, sizeof word);
    return find(word) == 0;
  }
  const char* const last = text.data() + text.size() - sizeof word;
  for (const char* at = text.data(); at < last; at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    if (find(word) != 0) return false;
  }
  std::memcpy(&word, last, sizeof word);
  return find(word) == 0;
}

}  // namespace

std::string FormatUtc(absl::Time time) {
  return absl::FormatTime("%E4Y-%m-%dT%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

std::string_view UtcFormatter::Format(absl::Time time) {
  const std::int64_t seconds = absl::ToUnixSeconds(time);
  const absl::Duration fraction = time - absl::FromUnixSeconds(seconds);
  if (seconds != seconds_) {
    text_ = FormatUtc(time);
    // Infinite times are in no second, so their text cannot be reused.
    const bool is_finite = fraction >= absl::ZeroDuration() && fraction < absl::Seconds(1);
    seconds_ = is_finite ? std::optional(seconds) : std::nullopt;
    return text_;
  }
  std::int64_t nanoseconds = absl::ToInt64Nanoseconds(fraction);
  for (std::size_t i = text_.size() - 2; i != text_.size() - 11; --i, nanoseconds /= 10) {
    text_[i] = static_cast<char>('0' + nanoseconds % 10);
  }
  return text_;
}

std::string FormatHexNumber(std::uint64_t number) {
  std::string text;
  AppendHexNumber(number, &text);
  return text;
}

void AppendHexNumber(std::uint64_t number, std::string* out) {
  char digits[18] = {'0', 'x'};
  out->append(digits, std::to_chars(digits + 2, digits + sizeof digits, number, 16).ptr);
}

void AppendGuid(const nettrace::Guid& guid, std::string* out) {
  constexpr char kDigits[] = "0123456789abcdef";
  const nettrace::Guid uuid = nettrace::GuidFromUuid(guid);
  char text[36];
  char* end = text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *end++ = '-';
    *end++ = kDigits[std::to_integer<unsigned>(uuid[i]) >> 4];
    *end++ = kDigits[std::to_integer<unsigned>(uuid[i]) & 0xF];
  }
  out->append(text, sizeof text);
}

std::string FormatGuid(const nettrace::Guid& guid) {
  std::string text;
  AppendGuid(guid, &text);
  return text;
}

std::string FormatHex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string Counted(std::uint64_t number, std::string_view noun) {
  return absl::StrCat(number, " ", std::string(noun), number == 1 ? "" : "s");
}

std::optional<std::uint64_t> ParseUint64(std::string_view text) {
  // The functions of absl skip spaces and accept signs, which are invalid here.
  const auto is_digit = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  if (text.empty() || !is_digit(text.front()) || !is_digit(text.back())) return std::nullopt;
  const absl::string_view number(text.data(), text.size());
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  std::uint64_t value = 0;
  const bool parsed =
      is_hex ? absl::SimpleHexAtoi(number, &value) : absl::SimpleAtoi(number, &value);
  if (!parsed) return std::nullopt;
  return value;
}

bool IsPrintableAscii(std::string_view text) {
  return NoneOf(text, [](std::uint64_t word) {
    return NotAscii(word) | BelowSpace(word) | Equal(word, '\x7f');
  });
}

bool IsPrintableAsciiWithout(std::string_view text, const std::array<char, 3>& characters) {
  return NoneOf(text, [&characters](std::uint64_t word) {
    std::uint64_t found = NotAscii(word) | BelowSpace(word) | Equal(word, '\x7f');
    for (const char c : characters) found |= Equal(word, static_cast<unsigned char>(c));
    return found;
  });
}

bool IsPlainInJson(std::string_view text) {
  return NoneOf(text, [](std::uint64_t word) {
    return NotAscii(word) | BelowSpace(word) | Equal(word, '"') | Equal(word, '\\');
  });
}

std::string Printable(std::string_view text) {
  std::string shown;
  AppendPrintable(text, &shown);
  return shown;
}

void AppendPrintable(std::string_view text, std::string* out) {
  if (IsPrintableAscii(text)) {
    out->append(text);
    return;
  }
  for (auto rest = std::as_bytes(std::span(text)); !rest.empty();) {
    const char32_t c = eh::internal::ReplaceMalformed(eh::internal::DecodeUtf8(&rest));
    if (IsControl(c)) {
      absl::StrAppendFormat(out, "\\u%04x", static_cast<std::uint32_t>(c));
    } else {
      char bytes[4];
      out->append(bytes, eh::internal::EncodeUtf8(c, bytes));
    }
  }
}

}  // namespace base
