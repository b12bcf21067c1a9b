// Finds the files that `nettrace ship` sends, and waits for new ones.
#ifndef TOOLS_NETTRACE_SHIP_SPOOL_H_
#define TOOLS_NETTRACE_SHIP_SPOOL_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"

namespace tools::ship {

struct SpoolFile {
  std::string path;  // absolute
  // Time in the name of the file, or of its last change if the name has none, in the form of
  // output::FileNames::TimeText.
  std::string time;
  std::int64_t changed = 0;  // time of the last modification, in ns since 1970
};

// Returns the time of the last modification, in ns since 1970.
std::int64_t ChangeTime(const struct stat& facts);

// The time in the name of a file, in the form that nettraced writes.
struct NameTime {
  std::string time;  // "" if the name has none
  // The path with {time} in place of the time, equal for all files of a file set. "" if the name
  // has no time.
  std::string series;
};
NameTime FindNameTime(std::string_view path);

// Holds paths of files, and of directories, whose files each call of List finds again. Not
// thread-safe.
class Spool {
 public:
  explicit Spool(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  struct Listing {
    std::vector<SpoolFile> files;        // the oldest first
    std::vector<absl::Status> problems;  // paths that cannot be read; messages name them
  };
  // Lists the paths that are regular files. For each path that is a directory, lists its files with
  // names that end with .nettrace or .nettrace.zst. nettraced gives such names only to complete
  // files.
  Listing List() const;

  // Starts to watch the directories for new files. If that is not possible, Wait does not notice
  // new files, and returns only after `max` or when the process is asked to end.
  void Watch();
  // Waits until a directory changes or the process is asked to end, for at most `max`. Returns at
  // once if a directory has changed since Watch or the last Wait. Watch must have been called.
  void Wait(absl::Duration max);

 private:
  const std::vector<std::string> paths_;
  base::UniqueFd changes_;  // inotify descriptor; reports changes of the directories
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_SPOOL_H_
