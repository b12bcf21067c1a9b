// Input, progress and errors of the subcommands that read a file.
#ifndef TOOLS_NETTRACE_COMMAND_OPEN_INPUT_H_
#define TOOLS_NETTRACE_COMMAND_OPEN_INPUT_H_

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
#include "tools/base/progress_line.h"
#include "tools/cli/exit_codes.h"

namespace tools {

// Shows on the progress line how much of the inputs has been read.
class Progress {
 public:
  explicit Progress(std::string command, bool wanted = true)
      : command_(std::move(command)), line_(wanted) {}

  // Sets the total size of the inputs in bytes, for callers that open an input more than once.
  // AddInput has no effect afterwards.
  void SetTotal(std::uint64_t bytes);
  // Adds an input of `size` bytes. `size` has no value if it is unknown.
  void AddInput(std::optional<std::uint64_t> size);
  void AddRead(std::uint64_t bytes);
  void Hide() { line_.Hide(); }

 private:
  const std::string command_;
  base::ProgressLine line_;
  std::uint64_t read_ = 0;
  std::optional<std::uint64_t> total_ = 0;  // bytes of all inputs; none if a size is unknown
  bool is_total_set_ = false;
};

// Opens `path`, or duplicates standard input for "-". The caller closes the descriptor. Errors of
// this function and the next two do not contain the path.
absl::StatusOr<int> OpenDescriptor(const std::string& path);

// Opens the bytes of `path`, or of standard input for "-", and decompresses zstd. `progress` must
// outlive the source. If `file` is not null, `*file` receives the result of fstat.
// With `follow`, the source of a regular file waits at the end of the file until the file grows or
// is deleted.
absl::StatusOr<std::unique_ptr<nettrace::Source>> OpenSource(const std::string& path,
                                                             Progress* progress,
                                                             struct stat* file = nullptr,
                                                             bool follow = false);

// Opens a Reader of the source that OpenSource returns for the same arguments. See
// nettrace::ReaderOptions for `skip_damage`.
absl::StatusOr<std::unique_ptr<nettrace::Reader>> OpenInput(const std::string& path,
                                                            Progress* progress,
                                                            struct stat* file = nullptr,
                                                            bool skip_damage = false,
                                                            bool follow = false);

// Returns text for users that states why PerfView cannot show the file. Must be called only if
// Reader::traceevent_refusal() is not empty.
std::string RefusalText(const nettrace::Reader& reader);

// Flushes standard output and returns `exit_code`. If the output could not be written completely,
// prints an error and returns kExitFailed.
int FinishOutput(const char* command, int exit_code);

// Calls `command` and returns its exit code. If memory runs out, prints an error with the names of
// the files and of the subcommand, `name`, and returns `exit_code`.
int WithinMemory(const char* name, const std::vector<std::string>& files,
                 const std::function<int()>& command, int exit_code = cli::kExitUnreadable);

// Returns the name of an input for messages: "standard input" for "-", and otherwise `path` with
// escaped control characters (base::Printable).
std::string InputName(const std::string& path);

// Prints "nettrace COMMAND: FILE: REASON".
void PrintInputError(const char* command, const std::string& path, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_OPEN_INPUT_H_
