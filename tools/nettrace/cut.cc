// `nettrace cut`: writes the selected events of files to a new file.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/nettrace/commands.h"

namespace tools {

void AddCut(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "cut";

  CLI::App* command = app.add_subcommand("cut", "Write a part of files to a new file");
  AddFilesOption(command, &rewrite->inputs);
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the inputs", [rewrite](mode_t mode) { rewrite->mode = mode; });
  AddFilterOptions(command, &rewrite->filter);
  rewrite->filter.processes = trace::EventFilter::Added::kKept;
  rewrite->filter.account = trace::EventFilter::Added::kKept;
  rewrite->filter.keeps_code = true;
  command->footer(
      "Several files are merged into one. The output gets its name when it is complete, and "
      "replaces an existing file. Events that describe processes are kept, because readers take "
      "the names of processes from them; those before --since get the time of --since. Events of "
      "the .NET runtime that name methods and "
      "modules are kept, too, so that stacks have names. Events of the recording's account "
      "(provider NetTrace.Collector) are kept if they concern the selected time.\n\n"
      "Exit code: 0 written; 1 an input is damaged (see repair) or the output cannot be written; "
      "2 an input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace cut trace.nettrace -o one.nettrace --pid 4242\n"
      "  nettrace cut trace.nettrace -o end.nettrace \\\n"
      "      --since 2026-11-21T10:00:00Z --level 3\n"
      "  nettrace cut shop/ -o errors.nettrace --level 2\n");
  command->callback([rewrite, exit_code] {
    absl::StatusOr<std::vector<std::string>> inputs = FindInputs(*rewrite);
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
