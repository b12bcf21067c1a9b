// Runs another program and returns its output.
#ifndef TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_
#define TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_

#include <optional>
#include <string>
#include <vector>

namespace tools {

// Runs `command`, a name and its arguments, and waits for its end. Returns the first 16 MiB of its
// standard output. Returns no value if the program cannot be started or does not exit with 0. Its
// standard error is discarded.
std::optional<std::string> OutputOf(const std::vector<std::string>& command);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_COMMAND_OUTPUT_H_
