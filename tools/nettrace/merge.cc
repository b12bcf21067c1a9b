// `nettrace merge`: merges several files into one.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/nettrace/commands.h"

namespace tools {

void AddMerge(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "merge";

  CLI::App* command = app.add_subcommand("merge", "Merge several files into one");
  command->add_option("files", rewrite->inputs, "Files to read")->required()->expected(2, -1);
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the inputs", [rewrite](mode_t mode) { rewrite->mode = mode; });

  command->footer(
      "Timestamps are converted to the clock of the first file, by the sync times of all files. "
      "The output gets its name when it is complete, and replaces an existing file.\n\n"
      "Exit code: 0 written; 1 an input is damaged (see repair) or the output cannot be written; "
      "2 an input cannot be read, or wrong usage.\n\n"
      "Example:\n"
      "  nettrace merge a.nettrace b.nettrace -o both.nettrace\n");
  command->callback([rewrite, exit_code] {
    *exit_code =
        WithinMemory(rewrite->command, rewrite->inputs, [&] { return RunRewrite(*rewrite); });
  });
}

}  // namespace tools
