// Shell completion of command lines, generated from a program's command line parser.
#ifndef TOOLS_CLI_COMPLETION_H_
#define TOOLS_CLI_COMPLETION_H_

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace cli {

// Adds the command `completion bash|zsh|fish`, which --help does not show. The command prints a
// script for that shell with all commands and options of `app` that --help shows. Must be called
// after all commands and options have been added.
void AddCompletion(CLI::App& app);

// Returns the script for a shell, or "" if `shell` is not bash, zsh or fish. The script contains no
// untrusted text: all names and descriptions are those of `app`.
std::string CompletionScript(const CLI::App& app, std::string_view shell);

}  // namespace cli

#endif  // TOOLS_CLI_COMPLETION_H_
