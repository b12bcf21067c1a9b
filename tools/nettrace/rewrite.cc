#include "tools/nettrace/rewrite.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "nettrace/merger.h"
#include "tools/common/atomic_file.h"
#include "tools/common/exit_codes.h"
#include "tools/nettrace/open_input.h"

namespace tools {
namespace {

// False, and printed, if an input cannot be opened.
bool OpenInputs(const Rewrite& rewrite, Progress* progress, nettrace::Merger* merger,
                std::vector<struct stat>* files) {
  for (const std::string& path : rewrite.inputs) {
    absl::StatusOr<std::unique_ptr<nettrace::Reader>> reader =
        OpenInput(path, progress, &files->emplace_back());
    if (!reader.ok()) {
      PrintInputError(rewrite.command, path, reader.status());
      return false;
    }
    merger->AddInput(*std::move(reader));
  }
  return true;
}

absl::Status Merge(AtomicFile* file, const FileAccess& access, Progress* progress,
                   nettrace::Merger* merger) {
  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> sink = file->Create(access);
  if (!sink.ok()) return sink.status();
  absl::Status status = merger->Run(*std::move(sink));
  progress->Hide();
  return status;
}

// Prints what was wrong with the inputs; false if the output must not be kept then.
bool ReportInputs(const Rewrite& rewrite, const nettrace::Merger& merger) {
  bool good = true;
  for (std::size_t i = 0; i < rewrite.inputs.size(); ++i) {
    const std::string& path = rewrite.inputs[i];
    const absl::Status& status = merger.input(i).status();
    if (!status.ok()) {
      PrintInputError(rewrite.command, path, status);
      // Damaged bytes stay damaged; an input that cannot be read now may be read another time.
      good = good && rewrite.accept_damage && absl::IsDataLoss(status);
    }
    if (merger.out_of_order(i) > 0) {
      absl::FPrintF(stderr,
                    "nettrace %s: %s: %d events are out of the order of time; they count as lost\n",
                    rewrite.command, InputName(path), merger.out_of_order(i));
    }
  }
  return good;
}

}  // namespace

int RunRewrite(const Rewrite& rewrite) {
  if (rewrite.output == "-") {
    absl::FPrintF(stderr,
                  "nettrace %s: -o -: the output appears as a whole, so it must be a file; name "
                  "one\n",
                  rewrite.command);
    return kExitUnreadable;
  }
  Progress progress(rewrite.command);
  nettrace::MergerOptions options;
  options.filter = [&filter = rewrite.filter](const nettrace::Reader& input,
                                              const nettrace::Event& event) {
    return filter.Passes(input, event);
  };
  nettrace::Merger merger(std::move(options));
  std::vector<struct stat> files;
  if (!OpenInputs(rewrite, &progress, &merger, &files)) return kExitUnreadable;
  FileAccess access = AccessToAll(files);
  access.mode = rewrite.mode.value_or(access.mode);
  AtomicFile file(rewrite.output);
  absl::Status status = Merge(&file, access, &progress, &merger);
  if (!status.ok()) {
    PrintInputError(rewrite.command, rewrite.output, status);
    return kExitFailed;
  }
  if (!ReportInputs(rewrite, merger)) {
    absl::FPrintF(stderr,
                  "nettrace %s: nothing was written; 'nettrace repair' takes what is whole\n",
                  rewrite.command);
    return kExitFailed;
  }
  status = file.Keep();
  if (!status.ok()) {
    PrintInputError(rewrite.command, rewrite.output, status);
    return kExitFailed;
  }
  absl::FPrintF(stderr, "nettrace %s: %s: %d events, %d bytes\n", rewrite.command,
                InputName(rewrite.output), merger.stats().events, merger.stats().bytes);
  return 0;
}

}  // namespace tools
