#include <CLI/CLI.hpp>
#include <memory>

#include "tools/nettrace/commands.h"
#include "tools/nettrace/open_input.h"
#include "tools/nettrace/output_options.h"
#include "tools/nettrace/rewrite.h"

namespace tools {

void AddCut(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "cut";

  CLI::App* command = app.add_subcommand("cut", "Write a part of a file as a new file");
  rewrite->inputs.resize(1);
  command->add_option("file", rewrite->inputs[0], "File to read; - is standard input")->required();
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the input", [rewrite](mode_t mode) { rewrite->mode = mode; });
  AddFilterOptions(command, &rewrite->filter);
  rewrite->filter.processes = EventFilter::Added::kKept;
  rewrite->filter.account = EventFilter::Added::kKept;
  command->footer(
      "The output appears by rename, whole or not at all. Events that describe processes, which\n"
      "readers take their names from, are kept; those before --from get that time. So is what the\n"
      "recording's account (provider NetTrace.Collector) says of that time.\n\n"
      "Exit code: 0 written; 1 the input is damaged (see repair) or the output cannot be written;\n"
      "2 an input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace cut trace.nettrace -o one.nettrace --pid 4242\n"
      "  nettrace cut trace.nettrace -o end.nettrace --from 2026-11-21T10:00:00Z --level 3\n");
  command->callback([rewrite, exit_code] {
    *exit_code =
        WithinMemory(rewrite->command, rewrite->inputs, [&] { return RunRewrite(*rewrite); });
  });
}

}  // namespace tools
