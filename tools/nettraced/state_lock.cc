#include "tools/nettraced/state_lock.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/file_lock.h"
#include "tools/base/status_macros.h"

namespace nettraced {
namespace {

// Name of the lock file. It differs from the names of the sessions' directories, which begin with a
// letter or digit.
constexpr char kLockName[] = "/.lock";
constexpr mode_t kStateDirectoryMode = 0750;

}  // namespace

absl::StatusOr<base::UniqueFd> LockStateDirectory(const std::string& directory) {
  const std::string path = directory + kLockName;
  // Ignores an error of mkdir: if the directory does not exist, open fails and reports the error.
  mkdir(directory.c_str(), kStateDirectoryMode);
  // The file is not removed when the daemon ends. If it were, a second daemon that has just opened
  // it could lock the removed file, while a third daemon locks a new file.
  base::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot open the lock file ", path),
                             "let the daemon's user create files in its directory, or choose "
                             "another directory with --state-directory");
  }
  if (base::ClaimFile(file.get())) return file;
  return absl::AlreadyExistsError(
      absl::StrCat(directory, ": another nettraced uses this state directory; stop it, or choose ",
                   "another directory with --state-directory"));
}

}  // namespace nettraced
