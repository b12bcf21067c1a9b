// Completion of command lines in shells, made from what a program's parser knows of itself.
#ifndef TOOLS_COMMON_COMPLETION_H_
#define TOOLS_COMMON_COMPLETION_H_

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace tools {

// Adds the command `completion bash|zsh|fish`, which no help shows: it prints a script for that
// shell, with all commands and options that `app` has by then. To be called last.
void AddCompletion(CLI::App& app);

// The script for a shell; "" if it is none of the three. All text comes from the program itself.
std::string CompletionScript(const CLI::App& app, std::string_view shell);

}  // namespace tools

#endif  // TOOLS_COMMON_COMPLETION_H_
