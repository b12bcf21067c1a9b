#include "tools/nettrace/command/output_file.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/command/output_options.h"
#include "tools/output/output_queue.h"
#include "tools/output/zstd_sink.h"

namespace tools {

bool IsRefusedOutput(const char* command, const std::string& path, const char* named) {
  if (path != "-") return false;
  absl::FPrintF(stderr, "nettrace %s: -o -: the output cannot be standard output; name %s\n",
                command, named);
  return true;
}

absl::Status CatchSignalsFor(const struct stat& input) {
  return S_ISREG(input.st_mode) ? cli::CatchSignals() : absl::OkStatus();
}

output::FileAccess OutputAccess(std::span<const struct stat> inputs, std::optional<mode_t> mode) {
  output::FileAccess access = output::AccessToAll(inputs);
  access.mode = mode.value_or(access.mode);
  return access;
}

int FailToWrite(const char* command, const std::string& path, const absl::Status& status) {
  PrintInputError(command, path, status);
  absl::FPrintF(stderr, "nettrace %s: nothing was written\n", command);
  return cli::kExitFailed;
}

OutputFile::OutputFile(const std::string& path) : file_(path) {
  if (IsCompressedName(path)) compressed_ = std::make_shared<std::atomic<std::uint64_t>>(0);
}

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OutputFile::Create(
    const output::FileAccess& access) {
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = file_.Create(access);
  if (!sink.ok() || compressed_ == nullptr) return sink;
  ASSIGN_OR_RETURN(auto queue,
                   output::CompressOnThread(*std::move(sink), {.written = compressed_}));
  return std::make_unique<output::QueueSink>(std::move(queue));
}

}  // namespace tools
