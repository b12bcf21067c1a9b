// The common parts of the subcommands that write a file. They check the path, catch signals, and
// write an output that appears complete or not at all.
#ifndef TOOLS_NETTRACE_COMMAND_OUTPUT_FILE_H_
#define TOOLS_NETTRACE_COMMAND_OUTPUT_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"
#include "tools/output/atomic_file.h"

namespace tools {

// Returns whether `path` is "-". If it is, prints that the output cannot be standard output, and
// asks for `named` instead, for example "a file".
bool IsRefusedOutput(const char* command, const std::string& path, const char* named);

// Catches signals (tools/cli/signals.h), so that a stopped run leaves no output. Does nothing if
// the input is no regular file: while a run waits for a pipe, it cannot check for signals. The
// signals then keep their default action, which ends the process.
absl::Status CatchSignalsFor(const struct stat& input);

// Returns the owner, group and mode for an output that is made from `inputs`: see
// output::AccessToAll. `mode` replaces the mode if it has a value.
output::FileAccess OutputAccess(std::span<const struct stat> inputs, std::optional<mode_t> mode);

// Prints "nettrace COMMAND: FILE: REASON" and that nothing was written. Returns kExitFailed.
int FailToWrite(const char* command, const std::string& path, const absl::Status& status);

// An output file that appears by rename when it is complete. It is compressed if its name ends with
// .zst.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);

  // Creates the file under a temporary name and returns its sink. The sink must be destroyed or
  // finished before Keep.
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> Create(const output::FileAccess& access);
  // Gives the file its final name: see AtomicFile::Keep.
  absl::Status Keep() { return file_.Keep(); }
  // Returns the size of the file. `bytes` is the number of bytes that were written to the sink,
  // which must be finished.
  std::uint64_t Size(std::uint64_t bytes) const {
    return compressed_ ? compressed_->load() : bytes;
  }

 private:
  output::AtomicFile file_;
  // Size of the compressed file, in bytes; null if the file is not compressed.
  std::shared_ptr<std::atomic<std::uint64_t>> compressed_;
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_OUTPUT_FILE_H_
