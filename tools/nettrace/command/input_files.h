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
// sorted by name. The names that nettraced gives to files sort by time. A file that is named more
// than once is read once. Prints how many files are left out for this reason, and how many because
// they are still written or were left by a crash (.partial). Fails with NotFound if a
// directory has no files, and with the error of a directory that cannot be read; the message names
// the directory.
absl::StatusOr<std::vector<std::string>> FindFiles(const char* command,
                                                   const std::vector<std::string>& paths);

// Reads one file, or several files as one. If they are several, a thread merges them, like
// `nettrace merge`, while the caller reads; only files whose times overlap are open at a time.
class InputFiles {
 public:
  // `paths` has at least one path.
  explicit InputFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  bool is_one() const { return paths_.size() == 1; }
  const std::vector<std::string>& paths() const { return paths_; }
  // Returns text for messages and titles: the name of the input, or "3 files".
  std::string Name() const;

  // A reader, and the thread that merges the files for it if there are several.
  class Merge;
  struct Opened {
    std::unique_ptr<nettrace::Reader> reader;
    std::shared_ptr<Merge> merge;
  };
  // Opens a reader from the beginning. May be called again, also while other readers exist.
  // `progress` must outlive the reader. If `facts` is not null, it receives the results of stat of
  // all files.
  absl::StatusOr<Opened> Open(Progress* progress, std::vector<struct stat>* facts = nullptr) const;
  // Opens a reader from the beginning, for several files. Reads each file only up to its size in
  // `facts`, the results of stat of all files. A reader fails if a file was replaced since then.
  absl::StatusOr<Opened> OpenUnchanged(Progress* progress,
                                       const std::vector<struct stat>& facts) const;
  // Returns the times in which losses are unknown (tools/trace/unknown_end.h) of the files of
  // `opened` that have no end. `opened` must be from OpenUnchanged, and be read to its end.
  static std::vector<trace::AccountEvent> UnknownEnds(const Opened& opened);
  // Starts to merge the files. There must be several. Returns the descriptor to read the result
  // from; `*merge` must outlive it.
  absl::StatusOr<base::UniqueFd> OpenPipe(std::shared_ptr<Merge>* merge) const;

  struct Problem {
    std::string path;
    absl::Status status;
  };
  // Returns what is cut, damaged or not readable in the files of `opened`, whose reader must have
  // reached its end with `status`.
  std::vector<Problem> Problems(const Opened& opened, const absl::Status& status) const;

 private:
  class MergedSource;
  absl::StatusOr<Opened> OpenMerge(std::shared_ptr<Merge> merge, Progress* progress) const;

  const std::vector<std::string> paths_;
};

// Prints the problems, one on each line. Returns kExitDamaged if there are any, else kExitOk.
int PrintProblems(const char* command, const std::vector<InputFiles::Problem>& problems);
// Prints an error whose message names the file.
void PrintFilesError(const char* command, const absl::Status& status);

}  // namespace tools

#endif  // TOOLS_NETTRACE_COMMAND_INPUT_FILES_H_
