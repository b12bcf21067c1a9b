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

// Returns whether the file's name asks for compression.
bool IsCompressedName(const std::string& path);

// Throws CLI::ValidationError if the file's name asks for compression. For outputs that are never
// compressed.
void RefuseCompressedName(const std::string& path);

// Adds --mode, which calls `set`. `otherwise` is help text for the mode without the option.
void AddModeOption(CLI::App* command, const std::string& otherwise,
                   const std::function<void(mode_t)>& set);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_OUTPUT_OPTIONS_H_
