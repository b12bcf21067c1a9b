// Prints the help of a program, and errors in its command line.
#ifndef TOOLS_COMMON_USAGE_H_
#define TOOLS_COMMON_USAGE_H_

#include <CLI/CLI.hpp>
#include <cstdio>
#include <sstream>
#include <string>

#include "tools/common/exit_codes.h"
#include "tools/common/text.h"

namespace tools {

// Prints the requested help, or the error in the command line. Returns the exit code.
inline int PrintUsage(const CLI::App& app, const CLI::ParseError& error) {
  std::ostringstream help;
  std::ostringstream message;
  const bool is_help = app.exit(error, help, message) == 0;
  std::fputs(help.str().c_str(), stdout);
  // The message quotes the command line, in which file names may have any bytes.
  std::istringstream lines(message.str());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "%s\n", Printable(line).c_str());
  }
  return is_help ? kExitOk : kExitUsage;
}

}  // namespace tools

#endif  // TOOLS_COMMON_USAGE_H_
