// Writes the readable contents of files to a new file, for repair, cut and merge.
#ifndef TOOLS_NETTRACE_COMMAND_REWRITE_H_
#define TOOLS_NETTRACE_COMMAND_REWRITE_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/trace/event_filter.h"

namespace tools {

struct Rewrite {
  const char* command = "";  // for messages
  std::vector<std::string> inputs;
  std::string output;
  trace::EventFilter filter;
  // Whether to keep the output if an input is damaged, or its Trace block has no valid date. The
  // output then has only the readable parts. Only `nettrace repair` sets this.
  bool accept_damage = false;
  // Whether to add an event that states the time for which losses are unknown, if the input lacks
  // its end block. Needs exactly one input.
  bool records_unknown_end = false;
  // Mode of the output file. Without a value, output::AccessToAll derives it from the inputs.
  std::optional<mode_t> mode = std::nullopt;
};

// Returns the input files: replaces each directory by the files in it. Fails with InvalidArgument
// if a directory contains the output. Such an output may be the result of an earlier run over the
// same files, so their events would be read twice. Otherwise, fails as FindFiles does.
absl::StatusOr<std::vector<std::string>> FindInputs(const Rewrite& rewrite);

// Returns whether both paths name the same file, which must exist.
bool IsSameFile(const std::string& a, const std::string& b);
bool IsDirectory(const std::string& path);

// Merges the inputs into the output. The output appears by rename, either whole or not at all.
// Prints the result and errors, and returns the exit code.
int RunRewrite(const Rewrite& rewrite);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_REWRITE_H_
