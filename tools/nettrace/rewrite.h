// Writes a new file of what can be read of others: repair, cut and merge.
#ifndef TOOLS_NETTRACE_REWRITE_H_
#define TOOLS_NETTRACE_REWRITE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/nettrace/event_filter.h"

namespace tools {

struct Rewrite {
  const char* command = "";  // for messages
  std::vector<std::string> inputs;
  std::string output;
  EventFilter filter;
  // Whether the readable part of a damaged input is good enough, as for repair.
  bool accept_damage = false;
  // Whether the output says from when on nothing is known of its only input, if that has no end.
  bool tells_unknown_end = false;
  // The output's mode; without it, who may read the inputs may read the output.
  std::optional<mode_t> mode = std::nullopt;
};

// Merges the inputs into the output, which appears by rename, whole or not at all. Prints what was
// done, and errors; returns the exit code.
int RunRewrite(const Rewrite& rewrite);

}  // namespace tools

#endif  // TOOLS_NETTRACE_REWRITE_H_
