// Names of EventHeader tracepoints: `Provider_L<level>K<keyword>[Options]`. Source: EventHeader
// specification, "Tracepoint Names". Only this file formats, parses and checks these names and the
// names of providers and groups in them. All functions are thread-safe and neither allocate nor
// throw. Needs C++17; FormatTracepointName needs C++20.
#ifndef EVENTHEADER_TRACEPOINT_NAME_H_
#define EVENTHEADER_TRACEPOINT_NAME_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "eventheader/wire.h"

namespace eh {

struct TracepointName {
  std::string_view provider;  // [A-Za-z_][A-Za-z0-9_]*
  std::uint8_t level = 0;     // 1..255
  std::uint64_t keyword = 0;
  std::string_view options;  // "" or e.g. "Gmygroup", sorted by letter
};

// Returns the parts of `name`, as views into it. Returns nullopt if `name` is not an EventHeader
// tracepoint name in canonical form. That form has at most kMaxTracepointName bytes, lower-case hex
// without leading zeros, a level of 1 to 255, and valid options.
std::optional<TracepointName> ParseTracepointName(std::string_view name) noexcept;

#if __cplusplus >= 202002L
// Writes `name` and a terminating NUL to `buffer`, and returns its length without the NUL. Returns
// 0 if a part is invalid, or if the name does not fit into `buffer` or kMaxTracepointName.
std::size_t FormatTracepointName(const TracepointName& name, std::span<char> buffer) noexcept;
#endif

// Returns the value of the option with this letter, such as 'G' for the provider group. The value
// may be "". Returns nullopt if there is no such option. `options` must be valid.
std::optional<std::string_view> FindOption(std::string_view options, char letter) noexcept;

constexpr bool IsValidProviderName(std::string_view name) noexcept {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name) {
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
      return false;
  }
  return true;
}
// Maximum lengths, in bytes, of provider and group names that are known at compile time. These
// limits leave room in the tracepoint name for level, keyword and future options.
inline constexpr std::size_t kMaxProviderName = 200;
inline constexpr std::size_t kMaxGroup = 24;

// Returns whether `c` is valid in the value of an option.
constexpr bool IsOptionCharacter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

// Returns whether `group` is a valid value of option 'G': [a-z0-9]*. Does not check its length.
constexpr bool IsValidGroup(std::string_view group) noexcept {
  for (char c : group) {
    if (!IsOptionCharacter(c)) return false;
  }
  return true;
}

// Returns whether `options` is a sequence of [A-Z][a-z0-9]* with the letters in ascending order. ""
// is valid.
constexpr bool AreValidOptions(std::string_view options) noexcept {
  char last = 0;
  for (char c : options) {
    if (c >= 'A' && c <= 'Z') {
      if (c <= last) return false;
      last = c;
    } else if (last == 0 || !IsOptionCharacter(c)) {
      return false;
    }
  }
  return true;
}

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_TRACEPOINT_NAME_H_
