#include "tools/trace/levels.h"

#include <array>

#include "absl/strings/str_cat.h"

namespace trace {

std::string LevelName(std::uint8_t level) {
  static constexpr std::array<const char*, 6> kNames = {"-",       "critical", "error",
                                                        "warning", "info",     "verbose"};
  return level < kNames.size() ? kNames[level] : absl::StrCat(int{level});
}

std::string_view LevelColor(std::uint8_t level) {
  switch (level) {
    case 1:
      return "\x1b[1;31m";  // bold red
    case 2:
      return "\x1b[31m";  // red
    case 3:
      return "\x1b[33m";  // yellow
    case 5:
      return "\x1b[2m";  // faint
    default:
      return "";
  }
}

}  // namespace trace
