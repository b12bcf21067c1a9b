// `nettrace merge`: merges several files into one.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/nettrace/commands.h"

namespace tools {
void AddMerge(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "merge";

  CLI::App* command = app.add_subcommand("merge", "Merge several files into one");
  AddFilesOption(command, &rewrite->inputs);
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the inputs", [rewrite](mode_t mode) { rewrite->mode = mode; });

  command->footer(
      "Timestamps are converted to the clock of the first file. The conversion uses the UTC time "
      "that each file states for one value of its clock. "
      "The output gets its name when it is complete, and replaces an existing file.\n\n"
      "Exit code: 0 written; 1 an input is damaged (see repair) or the output cannot be written; "
      "2 an input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace merge a.nettrace b.nettrace -o both.nettrace\n"
      "  nettrace merge shop/ -o shop.nettrace\n");
  command->callback([rewrite, exit_code] {
    absl::StatusOr<std::vector<std::string>> inputs = FindInputs(*rewrite);
    if (inputs.ok() && inputs->size() < 2) {
      inputs = absl::InvalidArgumentError(
          absl::StrCat(inputs->empty() ? "" : inputs->front() + ": ",
                       "is the only file; name at least two files, or a directory with several"));
    }
    if (!inputs.ok()) {
      PrintFilesError(rewrite->command, inputs.status());
      *exit_code = cli::kExitUnreadable;
      return;
    }
    rewrite->inputs = *std::move(inputs);
    *exit_code =
        WithinMemory(rewrite->command, rewrite->inputs, [&] { return RunRewrite(*rewrite); });
  });
}

}  // namespace tools
