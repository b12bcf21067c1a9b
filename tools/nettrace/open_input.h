// Input, progress and errors of the subcommands that read a file.
#ifndef TOOLS_NETTRACE_OPEN_INPUT_H_
#define TOOLS_NETTRACE_OPEN_INPUT_H_

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/reader.h"
#include "tools/common/exit_codes.h"
#include "tools/common/progress_line.h"

namespace tools {

// Shows how much of the inputs has been read.
class Progress {
 public:
  explicit Progress(std::string command, bool wanted = true)
      : command_(std::move(command)), line_(wanted) {}

  // Adds an input of `size` bytes, of unknown size without one.
  void AddInput(std::optional<std::uint64_t> size);
  void AddRead(std::uint64_t bytes);
  void Hide() { line_.Hide(); }

 private:
  const std::string command_;
  ProgressLine line_;
  std::uint64_t read_ = 0;
  std::optional<std::uint64_t> total_ = 0;
};

// A descriptor of `path`, of standard input for "-", to be closed by the caller.
absl::StatusOr<int> OpenDescriptor(const std::string& path);

// Opens the bytes of `path`, of standard input for "-", those within if they are zstd's. `progress`
// must live as long as they are read. `file` becomes what the file system says of it.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             Progress* progress,
                                                             struct stat* file = nullptr);

// Opens a Reader of that source.
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            Progress* progress,
                                                            struct stat* file = nullptr);

// Says that, and why, PerfView will not show this file; see Reader::traceevent_refusal.
std::string RefusalText(const nettrace::Reader& reader);

// Flushes standard output; returns `exit_code`, or prints an error and returns kExitFailed if not
// all that was printed could be written.
int FinishOutput(const char* command, int exit_code);

// Returns what `command` returns; if memory runs out, prints that with the names of the files, and
// returns `exit_code`.
int WithinMemory(const char* name, const std::vector<std::string>& files,
                 const std::function<int()>& command, int exit_code = kExitUnreadable);

// `path` for people; "standard input" for "-".
std::string InputName(const std::string& path);

// Prints "nettrace COMMAND: FILE: why".
void PrintInputError(const char* command, const std::string& path, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_OPEN_INPUT_H_
