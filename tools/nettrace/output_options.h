// The options of the subcommands that write a file.
#ifndef TOOLS_NETTRACE_OUTPUT_OPTIONS_H_
#define TOOLS_NETTRACE_OUTPUT_OPTIONS_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace tools {

// Whether the file is compressed because of its name.
bool IsCompressedName(const std::string& path);

// Adds --mode, which calls `set`. `otherwise` says for people what the mode is without it.
void AddModeOption(CLI::App* command, const std::string& otherwise,
                   const std::function<void(mode_t)>& set);

}  // namespace tools

#endif  // TOOLS_NETTRACE_OUTPUT_OPTIONS_H_
