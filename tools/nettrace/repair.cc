// `nettrace repair`: writes the readable part of a cut or damaged file to a new file.
#include <CLI/CLI.hpp>
#include <memory>

#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/command/rewrite.h"
#include "tools/nettrace/commands.h"

namespace tools {

void AddRepair(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "repair";
  rewrite->accept_damage = true;
  rewrite->records_unknown_end = true;
  CLI::App* command =
      app.add_subcommand("repair", "Recover the readable part of a truncated or damaged file");
  rewrite->inputs.resize(1);
  command->add_option("file", rewrite->inputs[0], "File to read; - is standard input")->required();
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the input", [rewrite](mode_t mode) { rewrite->mode = mode; });

  command->footer(
      "All events of readable blocks are written in the order of time, with counts of lost "
      "events. Each skipped part is printed, with an estimate of its number of events. V4 and V5 "
      "files become V6. The output gets its name when it is complete, and replaces an existing "
      "file.\n"
      "If the input has no end, losses are unknown for the time at its end. This time is printed, "
      "and recorded in the output as an event (AccountUnknown of the provider "
      "NetTrace.Collector).\n\n"
      "Exit code: 0 written; 1 the output cannot be written; 2 the input cannot be read, or wrong "
      "usage.\n\n"
      "Example:\n"
      "  nettrace repair cut.nettrace -o whole.nettrace\n");
  command->callback([rewrite, exit_code] {
    *exit_code =
        WithinMemory(rewrite->command, rewrite->inputs, [&] { return RunRewrite(*rewrite); });
  });
}

}  // namespace tools
