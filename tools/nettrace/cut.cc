// `nettrace cut`: writes the selected events of a file to a new file.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/nettrace/command/filter_options.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/nettrace/commands.h"

namespace tools {

void AddCut(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "cut";

  CLI::App* command = app.add_subcommand("cut", "Write a part of a file to a new file");
  rewrite->inputs.resize(1);
  command->add_option("file", rewrite->inputs[0], "File to read; - is standard input")->required();
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the input", [rewrite](mode_t mode) { rewrite->mode = mode; });
  AddFilterOptions(command, &rewrite->filter);
  rewrite->filter.processes = trace::EventFilter::Added::kKept;
  rewrite->filter.account = trace::EventFilter::Added::kKept;
  rewrite->filter.keeps_code = true;
  command->footer(
      "The output gets its name when it is complete, and replaces an existing file. Events that "
      "describe processes are kept, because readers take the names of processes from them; those "
      "before --since get the time of --since. Events of the .NET runtime that name methods and "
      "modules are kept, too, so that stacks have names. Events of the recording's account "
      "(provider NetTrace.Collector) are kept if they concern the selected time.\n\n"
      "Exit code: 0 written; 1 the input is damaged (see repair) or the output cannot be written; "
      "2 the input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace cut trace.nettrace -o one.nettrace --pid 4242\n"
      "  nettrace cut trace.nettrace -o end.nettrace \\\n"
      "      --since 2026-11-21T10:00:00Z --level 3\n");
  command->callback([rewrite, exit_code] {
    *exit_code =
        WithinMemory(rewrite->command, rewrite->inputs, [&] { return RunRewrite(*rewrite); });
  });
}

}  // namespace tools
