// Prints the help of a program, and errors in its command line.
#ifndef TOOLS_CLI_USAGE_H_
#define TOOLS_CLI_USAGE_H_

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"

namespace cli {

// Prints the requested help, or the error in the command line. Returns the exit code.
inline int PrintUsage(const CLI::App& app, const CLI::ParseError& error) {
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (is_extra || dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const CLI::App* command = &app;
    std::string name = app.get_name();
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      name += " " + command->get_name();
    }
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (!unknown.empty()) {
      const char* const kind = unknown.front().starts_with('-') ? "option"
                               : is_extra                       ? "argument"
                                                                : "command";
      std::fprintf(stderr, "%s: unknown %s '%s'; '%s --help' lists the %ss\n", name.c_str(), kind,
                   base::Printable(unknown.front()).c_str(), name.c_str(), kind);
      return kExitUsage;
    }
  }
  std::ostringstream help;
  std::ostringstream message;
  const bool is_help = app.exit(error, help, message) == 0;
  std::fputs(help.str().c_str(), stdout);
  // The message quotes the command line, in which file names may have any bytes.
  std::istringstream lines(message.str());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "%s\n", base::Printable(line).c_str());
  }
  return is_help ? kExitOk : kExitUsage;
}

}  // namespace cli

#endif  // TOOLS_CLI_USAGE_H_
