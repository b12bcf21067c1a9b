// Input of subcommands that read several files as one, in the order of time.
#ifndef TOOLS_NETTRACE_COMMAND_INPUT_FILES_H_
#define TOOLS_NETTRACE_COMMAND_INPUT_FILES_H_

#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/reader.h"
#include "tools/base/unique_fd.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/trace/account.h"

namespace CLI {
class App;
}

namespace tools {

// Adds the positional argument of files and directories. `paths` must live until the command line
// has been parsed.
void AddFilesOption(CLI::App* command, std::vector<std::string>* paths);

// Replaces each directory in `paths` by its files whose names end with .nettrace or .nettrace.zst,
// sorted by name. The names that nettraced gives to files sort by time. Keeps only the first of
// several paths to the same file, and prints how many it leaves out. Also leaves out the partial
// files of a directory, whose names end with .partial, and prints their number. Fails with NotFound
// if a directory has no files to read, and with the error of a directory that cannot be read; the
// message names the directory. Fails with InvalidArgument if "-" is one of several inputs.
absl::StatusOr<std::vector<std::string>> FindFiles(const char* command,
                                                   const std::vector<std::string>& paths);

// Reads one file, or several files as one. Several files are merged by a thread, like `nettrace
// merge`, while the caller reads. The merge first opens each file once, to find the time at which
// the file begins. After that, only files whose times overlap are open at the same time.
class InputFiles {
 public:
  // `paths` has at least one path.
  explicit InputFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  bool is_one() const { return paths_.size() == 1; }
  const std::vector<std::string>& paths() const { return paths_; }
  // Returns text for messages and titles: the name of the input, or "3 files".
  std::string Name() const;

  // Merges the files, on a separate thread.
  class Merge;
  // A reader, and the merge whose result it reads. `merge` is null for a single file.
  struct Opened {
    std::unique_ptr<nettrace::Reader> reader;
    std::shared_ptr<Merge> merge;
  };
  // Opens a reader that starts at the beginning of the files, or at the next byte of a pipe. May be
  // called again, also while other readers exist. `progress` counts the bytes that the reader
  // reads, and must outlive the reader. If `facts` is not null, it receives the results of stat of
  // all files. The message of an error names the file.
  absl::StatusOr<Opened> Open(Progress* progress, std::vector<struct stat>* facts = nullptr) const;
  // Opens a reader of several files that starts at their beginning. It reads each file only up to
  // its size in `facts`, the results of stat of all files. It fails if a file was replaced after
  // `facts` were read.
  absl::StatusOr<Opened> OpenUnchanged(Progress* progress,
                                       const std::vector<struct stat>& facts) const;
  // Returns an event for each file of `opened` that has no end block. The event states the time in
  // which losses are unknown (tools/trace/unknown_end.h). OpenUnchanged must have returned
  // `opened`, and the reader must have reached the end.
  static std::vector<trace::AccountEvent> UnknownEnds(const Opened& opened);
  // Starts to merge the files, at least two, on a thread. Returns the descriptor of a pipe with the
  // result. The caller must read the pipe to its end, or close it, before `*merge` is destroyed.
  absl::StatusOr<base::UniqueFd> OpenPipe(std::shared_ptr<Merge>* merge) const;

  struct Problem {
    std::string path;
    absl::Status status;
  };
  // Returns the files of `opened` that are cut, damaged or not readable, with the errors. The
  // reader of `opened` must have ended with `status`.
  std::vector<Problem> Problems(const Opened& opened, const absl::Status& status) const;

 private:
  class MergedSource;
  absl::StatusOr<Opened> OpenMerge(std::shared_ptr<Merge> merge, Progress* progress) const;

  const std::vector<std::string> paths_;
};

// Prints the problems, one on each line. Returns kExitDamaged if there are any, else kExitOk.
int PrintProblems(const char* command, const std::vector<InputFiles::Problem>& problems);
// Prints `status`, an error whose message already names the file.
void PrintFilesError(const char* command, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_INPUT_FILES_H_
