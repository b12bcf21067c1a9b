// The options of the subcommands that write a file.
#ifndef TOOLS_NETTRACE_COMMAND_OUTPUT_OPTIONS_H_
#define TOOLS_NETTRACE_COMMAND_OUTPUT_OPTIONS_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tools {

// Returns whether the file's name ends with .zst, so that the output is compressed.
bool IsCompressedName(const std::string& path);

// Throws CLI::ValidationError if the file's name ends with .zst. Must be called for outputs that
// are never compressed.
void RefuseCompressedName(const std::string& path);

// Adds --mode, which calls `set`. The help shows `otherwise` as the default mode.
void AddModeOption(CLI::App* command, const std::string& otherwise,
                   const std::function<void(mode_t)>& set);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_OUTPUT_OPTIONS_H_
