#include "eventheader/tracepoint_name.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "libeventheader/base/hex.h"

namespace eh {
namespace {

// Parses `digits`, which must be lower-case hex digits. Returns false if there is none, if the
// number has a leading zero, or if it does not fit in `Number`.
template <typename Number>
bool ParseCanonicalHex(std::string_view digits, Number* value) noexcept {
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return false;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), *value, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

// Returns the number of hex digits at the front of `text`.
std::size_t HexLength(std::string_view text) noexcept {
  const auto end = std::find_if_not(text.begin(), text.end(), internal::IsHexDigit);
  return static_cast<std::size_t>(end - text.begin());
}

}  // namespace

std::optional<TracepointName> ParseTracepointName(std::string_view name) noexcept {
  if (name.size() > kMaxTracepointName) return std::nullopt;
  const std::size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  TracepointName parts;
  parts.provider = name.substr(0, underscore);
  if (!IsValidProviderName(parts.provider)) return std::nullopt;

  std::string_view rest = name.substr(underscore + 1);
  if (!rest.starts_with('L')) return std::nullopt;
  rest.remove_prefix(1);
  const std::size_t level = HexLength(rest);
  if (!ParseCanonicalHex(rest.substr(0, level), &parts.level) || parts.level == 0) {
    return std::nullopt;
  }
  rest.remove_prefix(level);
  if (!rest.starts_with('K')) return std::nullopt;
  rest.remove_prefix(1);
  const std::size_t keyword = HexLength(rest);
  if (!ParseCanonicalHex(rest.substr(0, keyword), &parts.keyword)) return std::nullopt;
  parts.options = rest.substr(keyword);
  if (!AreValidOptions(parts.options)) return std::nullopt;
  return parts;
}

std::size_t FormatTracepointName(const TracepointName& name, std::span<char> buffer) noexcept {
  if (!IsValidProviderName(name.provider) || name.level == 0 || !AreValidOptions(name.options)) {
    return 0;
  }
  char numbers[32];
  char* end = numbers;
  *end++ = '_';
  *end++ = 'L';
  end = std::to_chars(end, std::end(numbers), name.level, 16).ptr;
  *end++ = 'K';
  end = std::to_chars(end, std::end(numbers), name.keyword, 16).ptr;
  const auto numbers_size = static_cast<std::size_t>(end - numbers);
  const std::size_t size = name.provider.size() + numbers_size + name.options.size();
  if (size > kMaxTracepointName || size >= buffer.size()) return 0;
  char* out = buffer.data();
  std::memcpy(out, name.provider.data(), name.provider.size());
  out += name.provider.size();
  std::memcpy(out, numbers, numbers_size);
  out += numbers_size;
  if (!name.options.empty()) std::memcpy(out, name.options.data(), name.options.size());
  buffer[size] = '\0';
  return size;
}

std::optional<std::string_view> FindOption(std::string_view options, char letter) noexcept {
  const std::size_t at = options.find(letter);
  if (at == std::string_view::npos || letter < 'A' || letter > 'Z') return std::nullopt;
  const std::string_view value = options.substr(at + 1);
  const std::size_t end = value.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return value.substr(0, end);
}

}  // namespace eh
