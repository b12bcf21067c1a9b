// Writes a copy of a file in which the code of stacks has the names of its functions.
#ifndef TOOLS_NETTRACE_SYMBOLIZE_RUN_H_
#define TOOLS_NETTRACE_SYMBOLIZE_RUN_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/nettrace/symbolize/function_finder.h"

namespace tools::symbolize {

struct Options {
  std::string command;  // the subcommand, for the line of progress
  std::string input;    // "-" is standard input
  std::string output;   // may be the same as the input
  // Mode of the output. Without a value, the output gets the mode of the input.
  std::optional<mode_t> mode;
  std::vector<std::string> debug_folders;
  bool debuginfod = false;  // ask debuginfod servers for debug information not on this machine
  // Do not read files whose file systems may wait for a user's process (base::PromptFiles).
  bool has_prompt_files_only = false;
};

struct Summary {
  std::vector<ModuleResult> modules;
  std::uint64_t ignored = 0;  // mappings, functions and addresses beyond the limit of memory
  // Size of the output; 0: not written, because there is nothing to add.
  std::uint64_t bytes = 0;
  std::uint64_t uncompressed_bytes = 0;

  ModuleResult Total() const;
};

// Reads the input twice, and writes the output by rename. Does not write an output that would
// replace the input without adding anything. Fails with FailedPrecondition if debuginfod cannot be
// used. Fails with DataLoss if the input is damaged, and otherwise with the errors of the input and
// output. These messages name the file.
absl::StatusOr<Summary> Run(const Options& options);

// Prints to standard error, after `prefix`, how many functions were found. Also prints for at most
// `max_files` files why other functions were not found.
void PrintSummary(const Summary& summary, std::size_t max_files, const std::string& prefix);
// Returns the JSON object that `nettrace symbolize --json` prints for the output `file`.
std::string SummaryJson(const std::string& file, const Summary& summary);

}  // namespace tools::symbolize

#endif  // TOOLS_NETTRACE_SYMBOLIZE_RUN_H_
