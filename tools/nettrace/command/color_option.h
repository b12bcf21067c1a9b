// The option --color of the subcommands that print colored text.
#ifndef TOOLS_NETTRACE_COMMAND_COLOR_OPTION_H_
#define TOOLS_NETTRACE_COMMAND_COLOR_OPTION_H_

#include <string>

namespace CLI {
class App;
}

namespace tools {

// Adds --color with the values auto (the default), always and never. `*when` receives the value.
// `help` says what is colored, and begins with a verb.
void AddColorOption(CLI::App* command, std::string* when, const std::string& help);

// Returns whether to color standard output. "auto" colors a terminal that can show colors, unless
// the variable NO_COLOR is set and not empty.
bool HasColors(const std::string& when);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_COLOR_OPTION_H_
