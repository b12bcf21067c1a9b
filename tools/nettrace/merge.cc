// `nettrace merge`: merges several files into one.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
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
namespace {

bool IsSameFile(const std::string& a, const std::string& b) {
  struct stat of_a = {};
  struct stat of_b = {};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

bool IsDirectory(const std::string& path) {
  struct stat facts = {};
  return stat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode);
}

// Returns the inputs with the files of each directory in its place. Fails with InvalidArgument if
// they are not several, or if a directory contains the output: it may be the result of an earlier
// merge of the same files, whose events would then be there twice.
absl::StatusOr<std::vector<std::string>> FindInputs(const Rewrite& rewrite) {
  absl::StatusOr<std::vector<std::string>> files = rewrite.inputs;
  if (std::any_of(files->begin(), files->end(), IsDirectory)) {
    files = FindFiles(rewrite.command, rewrite.inputs);
  }
  if (!files.ok()) return files;
  for (const std::string& file : *files) {
    const bool is_named =
        std::find(rewrite.inputs.begin(), rewrite.inputs.end(), file) != rewrite.inputs.end();
    if (is_named || !IsSameFile(file, rewrite.output)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, ": is the output, and in a directory that is read; write to another directory"));
  }
  if (files->size() < 2) {
    return absl::InvalidArgumentError(
        absl::StrCat(files->empty() ? "" : files->front() + ": ",
                     "is the only file; name at least two files, or a directory with several"));
  }
  return files;
}

}  // namespace

void AddMerge(CLI::App& app, int* exit_code) {
  auto rewrite = std::make_shared<Rewrite>();
  rewrite->command = "merge";

  CLI::App* command = app.add_subcommand("merge", "Merge several files into one");
  AddFilesOption(command, &rewrite->inputs);
  command->add_option("-o,--output", rewrite->output, "File to write")->required();
  AddModeOption(command, "that of the inputs", [rewrite](mode_t mode) { rewrite->mode = mode; });

  command->footer(
      "Timestamps are converted to the clock of the first file, by the sync times of all files. "
      "The output gets its name when it is complete, and replaces an existing file.\n\n"
      "Exit code: 0 written; 1 an input is damaged (see repair) or the output cannot be written; "
      "2 an input cannot be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace merge a.nettrace b.nettrace -o both.nettrace\n"
      "  nettrace merge shop/ -o shop.nettrace\n");
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
