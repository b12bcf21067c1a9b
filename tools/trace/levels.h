// Names and colors of the levels of events, and which of them are errors.
#ifndef TOOLS_TRACE_LEVELS_H_
#define TOOLS_TRACE_LEVELS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace trace {

inline constexpr std::uint8_t kLeastError = 2;  // highest level of an error; the lowest is 1

// Returns whether an event of this level is an error. Level 0 means that the level is unknown.
constexpr bool IsError(std::uint8_t level) { return level != 0 && level <= kLeastError; }

// Returns the name of a level, such as "warning"; the number of a level without a name; "-" for 0.
std::string LevelName(std::uint8_t level);

// Sequence that ends the color of LevelColor() on a terminal.
inline constexpr std::string_view kPlainText = "\x1b[0m";
// Returns the sequence that begins the color of this level on a terminal; "" if the level has no
// color.
std::string_view LevelColor(std::uint8_t level);

}  // namespace trace

#endif  // TOOLS_TRACE_LEVELS_H_
