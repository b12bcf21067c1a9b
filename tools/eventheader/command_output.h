// What another program says.
#ifndef TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_
#define TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_

#include <optional>
#include <string>
#include <vector>

namespace tools {

// Starts `command`, its name and arguments, and waits for its end. Returns what it has printed on
// standard output, of which no more than 16 MiB is kept; no value if it cannot be started or does
// not end with 0. What it says on standard error is dropped.
std::optional<std::string> OutputOf(const std::vector<std::string>& command);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_
