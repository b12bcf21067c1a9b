// Writes the readable contents of files to a new file, for repair, cut and merge.
#ifndef TOOLS_NETTRACE_COMMAND_REWRITE_H_
#define TOOLS_NETTRACE_COMMAND_REWRITE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tools/trace/event_filter.h"

namespace tools {

struct Rewrite {
  const char* command = "";  // for messages
  std::vector<std::string> inputs;
  std::string output;
  trace::EventFilter filter;
  // Whether the readable part of a damaged input is sufficient, as for repair.
  bool accept_damage = false;
  // Whether the output records the time for which losses are unknown. Applies to a single input
  // without an end.
  bool records_unknown_end = false;
  // Mode of the output. Without a value, users who may read all inputs may read the output.
  std::optional<mode_t> mode = std::nullopt;
};

// Merges the inputs into the output. The output appears by rename, complete or not at all. Prints
// the result and errors, and returns the exit code.
int RunRewrite(const Rewrite& rewrite);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_REWRITE_H_
