// The width of text on a terminal.
#ifndef TOOLS_BASE_TEXT_WIDTH_H_
#define TOOLS_BASE_TEXT_WIDTH_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace base {

// Returns the estimated number of columns that `text` takes on a terminal.
std::size_t WidthOf(std::string_view text);
// Returns `text` in exactly `width` columns: padded with spaces, or cut with "~" at the end.
std::string Fit(std::string_view text, std::size_t width);

}  // namespace base

#endif  // TOOLS_BASE_TEXT_WIDTH_H_
