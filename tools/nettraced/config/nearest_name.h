// Suggests the name that a misspelled word most probably stands for.
#ifndef TOOLS_NETTRACED_CONFIG_NEAREST_NAME_H_
#define TOOLS_NETTRACED_CONFIG_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace nettraced {

// Returns the name that needs the fewest changes to become `text`. Returns "" if none is similar,
// or if `text` has more than 64 bytes.
std::string Nearest(std::string_view text, const std::vector<std::string>& names);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_NEAREST_NAME_H_
