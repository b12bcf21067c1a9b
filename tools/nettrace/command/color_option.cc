#include "tools/nettrace/command/color_option.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

namespace tools {

void AddColorOption(CLI::App* command, std::string* when, const std::string& help) {
  *when = "auto";
  command
      ->add_option("--color", *when,
                   help + "; auto uses colors on a terminal, unless NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->default_val("auto");
}

bool HasColors(const std::string& when) {
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if (when != "auto") return when == "always";
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

}  // namespace tools
