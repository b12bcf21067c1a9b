// `nettrace symbolize`: adds the names of functions to the stacks of files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/nettrace/command/input_files.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_file.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/symbolize/run.h"

namespace tools {
namespace {

constexpr char kSymbolize[] = "symbolize";

struct SymbolizeArguments {
  symbolize::Options options;  // without the input
  std::vector<std::string> inputs;
  bool json = false;
};

// Adds the names of functions to one file.
int SymbolizeFile(const SymbolizeArguments& arguments, const std::string& input) {
  symbolize::Options options = arguments.options;
  options.input = input;
  if (options.output.empty()) {
    if (options.input == "-") {
      absl::FPrintF(stderr,
                    "nettrace symbolize: standard input cannot be replaced; name a file with -o\n");
      return cli::kExitUsage;
    }
    options.output = options.input;
  }
  if (IsRefusedOutput(kSymbolize, options.output, "a file")) return cli::kExitUsage;
  const absl::StatusOr<symbolize::Summary> summary = symbolize::Run(options);
  if (!summary.ok()) {
    absl::FPrintF(stderr, "nettrace symbolize: %s; nothing was written\n",
                  base::Printable(std::string(summary.status().message())));
    return absl::IsNotFound(summary.status()) || absl::IsInvalidArgument(summary.status()) ||
                   absl::IsFailedPrecondition(summary.status())
               ? cli::kExitUnreadable
               : cli::kExitFailed;
  }
  constexpr std::size_t kMaxFiles = 20;
  symbolize::PrintSummary(*summary, kMaxFiles,
                          absl::StrCat("nettrace symbolize: ", InputName(options.output), ": "));
  if (arguments.json) absl::PrintF("%s\n", symbolize::SummaryJson(options.output, *summary));
  return cli::kExitOk;
}

// Adds the names of functions to each file. Returns the highest exit code.
int Symbolize(const SymbolizeArguments& arguments) {
  absl::StatusOr<std::vector<std::string>> inputs = FindFiles(kSymbolize, arguments.inputs);
  if (inputs.ok() && inputs->size() > 1 && !arguments.options.output.empty()) {
    inputs = absl::InvalidArgumentError(absl::StrCat(arguments.options.output,
                                                     ": cannot be the output of ", inputs->size(),
                                                     " files; without -o, each file is replaced"));
  }
  if (!inputs.ok()) {
    PrintFilesError(kSymbolize, inputs.status());
    return cli::kExitUnreadable;
  }
  int exit_code = cli::kExitOk;
  for (const std::string& input : *inputs) {
    exit_code = std::max(exit_code, WithinMemory(kSymbolize, {input},
                                                 [&] { return SymbolizeFile(arguments, input); }));
  }
  return arguments.json ? FinishOutput(kSymbolize, exit_code) : exit_code;
}

}  // namespace

void AddSymbolize(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<SymbolizeArguments>();
  symbolize::Options& options = arguments->options;
  options.command = kSymbolize;
  CLI::App* command =
      app.add_subcommand(kSymbolize, "Add the names of functions to the stacks of files");
  AddFilesOption(command, &arguments->inputs);
  command->add_option("-o,--output", options.output, "File to write (default: replace each input)");
  AddModeOption(command, "that of the input",
                [arguments](mode_t mode) { arguments->options.mode = mode; });
  command
      ->add_option(
          "--debug-dir", options.debug_folders,
          "Directory with debug information, searched before /usr/lib/debug; may be repeated")
      ->allow_extra_args(false);
  command->add_flag("--debuginfod", options.debuginfod,
                    "Ask the servers in DEBUGINFOD_URLS for debug information that is missing");
  command->add_flag("--json", arguments->json,
                    "Print what was found as JSON, a line for each file");
  command->footer(
      "The functions are those at the addresses of stacks (record --stacks). Each is searched in "
      "the file that the process had mapped, in its debug information (by build id, then by debug "
      "link), in its section .gnu_debugdata, and in the perf map of a JIT compiler, "
      "/tmp/perf-PID.map. A file is used only if it has the build id of the mapping. If the "
      "recording does not state the build id, a file is used only on the recorded host, and only "
      "if it is unchanged since the process mapped it. One of these must also hold: the process "
      "still maps it, every user may read it, or its owner runs this command and is not root.\n"
      "Names are written as the symbol tables have them; dump --stacks shows those of C++ and Rust "
      "in their readable form. Functions that the recording already names are not searched again. "
      "The output gets its name when it is complete.\n\n"
      "Exit code: 0 written; 1 an input is damaged (see repair) or an output cannot be written; "
      "2 an input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace symbolize trace.nettrace\n"
      "  nettrace symbolize shop/\n"
      "  nettrace symbolize --debug-dir symbols trace.nettrace -o named.nettrace\n");
  command->callback([arguments, exit_code] { *exit_code = Symbolize(*arguments); });
}

}  // namespace tools
