// `nettrace repair`: writes the readable parts of truncated or damaged files to new files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
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
namespace {

// Returns the path of the output for `input` in the directory `folder`. A file that was left by a
// crash loses the end of its name, .partial.
std::string OutputIn(const std::string& folder, const std::string& input) {
  constexpr std::string_view kPartial = ".partial";
  std::string_view name = input;
  name.remove_prefix(name.rfind('/') + 1);
  if (name.size() > kPartial.size() && name.ends_with(kPartial)) {
    name.remove_suffix(kPartial.size());
  }
  return absl::StrCat(folder, folder.ends_with('/') ? "" : "/", std::string(name));
}

// Returns the path of the output for each input. Fails with InvalidArgument if there are several
// inputs and the output is no directory, if an output would replace its input, or if two inputs
// have the same output.
absl::StatusOr<std::vector<std::string>> FindOutputs(const std::vector<std::string>& inputs,
                                                     const std::string& output) {
  if (!IsDirectory(output)) {
    if (inputs.size() == 1) return std::vector<std::string>{output};
    return absl::InvalidArgumentError(absl::StrCat(
        output, ": not a directory; create one for the results of ", inputs.size(), " files"));
  }
  std::vector<std::string> outputs;
  std::set<std::string> known;
  for (const std::string& input : inputs) {
    if (input == "-") {
      return absl::InvalidArgumentError(
          absl::StrCat(output, ": is a directory; with standard input, -o must name a file"));
    }
    outputs.push_back(OutputIn(output, input));
    if (IsSameFile(input, outputs.back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(input, ": is in the directory of the results; name another directory"));
    }
    if (!known.insert(outputs.back()).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          outputs.back(), ": is the result of two files; repair them into two directories"));
    }
  }
  return outputs;
}

// Repairs each file. Returns the highest exit code.
int RepairEach(Rewrite rewrite) {
  const bool has_folder = std::any_of(rewrite.inputs.begin(), rewrite.inputs.end(), IsDirectory);
  absl::StatusOr<std::vector<std::string>> inputs = rewrite.inputs;
  if (has_folder || inputs->size() > 1) inputs = FindFiles(rewrite.command, rewrite.inputs);
  // If an input is a directory, the output must be one too, so that it cannot replace a file of the
  // input. This also applies if the input has only one file.
  if (inputs.ok() && has_folder && !IsDirectory(rewrite.output)) {
    inputs = absl::InvalidArgumentError(
        absl::StrCat(rewrite.output, ": not a directory; create one for the results"));
  }
  absl::StatusOr<std::vector<std::string>> outputs = inputs;
  if (inputs.ok()) outputs = FindOutputs(*inputs, rewrite.output);
  if (!outputs.ok()) {
    PrintFilesError(rewrite.command, outputs.status());
    return cli::kExitUsage;
  }
  int exit_code = cli::kExitOk;
  for (std::size_t i = 0; i < inputs->size(); ++i) {
    rewrite.inputs = {(*inputs)[i]};
    rewrite.output = (*outputs)[i];
    exit_code = std::max(exit_code, WithinMemory(rewrite.command, rewrite.inputs,
                                                 [&] { return RunRewrite(rewrite); }));
  }
  return exit_code;
}

}  // namespace

void AddRepair(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "repair";
  rewrite->accept_damage = true;
  rewrite->records_unknown_end = true;
  CLI::App* command =
      app.add_subcommand("repair", "Recover the readable parts of truncated or damaged files");
  AddFilesOption(command, &rewrite->inputs);
  command
      ->add_option("-o,--output", rewrite->output,
                   "File to write, or directory for a file of the same name")
      ->required();
  AddModeOption(command, "that of the input", [rewrite](mode_t mode) { rewrite->mode = mode; });

  command->footer(
      "All events of readable blocks are written in the order of time, with counts of lost "
      "events. Each skipped part is printed, with an estimate of its number of events. V4 and V5 "
      "files become V6. The output gets its name when it is complete, and replaces an existing "
      "file.\n"
      "If the input was cut off (it has no EndOfStream block), losses near its end are unknown. "
      "The "
      "time of these losses is printed, and recorded in the output as an event (AccountUnknown of "
      "the provider NetTrace.Collector).\n"
      "Several files are repaired one by one, into an existing directory. The ending .partial of "
      "their names is removed.\n\n"
      "Exit code: 0 written; 1 an output cannot be written; 2 an input cannot be read, or wrong "
      "usage.\n\n"
      "Examples:\n"
      "  nettrace repair cut.nettrace -o whole.nettrace\n"
      "  mkdir -p repaired && nettrace repair cut.nettrace shop/ -o repaired\n");
  command->callback([rewrite, exit_code] { *exit_code = RepairEach(*rewrite); });
}

}  // namespace tools
