// Files and folders that appear at their paths only when they are complete, and the owner, group
// and mode of new files.
#ifndef TOOLS_OUTPUT_ATOMIC_FILE_H_
#define TOOLS_OUTPUT_ATOMIC_FILE_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"
#include "tools/base/unique_fd.h"

namespace output {

// Default mode of the files that programs write: only their user may read and write them.
inline constexpr mode_t kPrivateMode = 0600;

// Holds the owner, group and mode that a new file gets.
struct FileAccess {
  mode_t mode = kPrivateMode;
  // Owner and group. Without a value, the file gets those of the process.
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

// Returns the access for a file that is made from the contents of `files`: the permissions that all
// of them have. Returns FileAccess(), which is private, if there are none, if they differ in owner
// or group, or if one is not a regular file.
FileAccess AccessToAll(std::span<const struct stat> files);

// A file that is written beside its path and takes the path by rename. Until then it has no name,
// or a random name if the file system does not support files without a name. Nothing remains of the
// file unless Keep succeeds, except that a file with a random name remains if the process is
// killed.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Creates the file, and returns a sink that writes to it. Fails with FailedPrecondition if the
  // path exists and is not a regular file, and with another error if the file cannot be created. If
  // the owner or group cannot be set, the file keeps the owner or group of the process. Group and
  // others then get only the permissions that `access` gives to both of these classes, unless the
  // group of `access` was set.
  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> Create(const FileAccess& access);
  // Gives the file the name of the path, and replaces a file that has this name. A symbolic link is
  // replaced, not followed. If Keep fails, the file at the path is unchanged.
  absl::Status Keep();

 private:
  absl::Status CreateTemporary();

  const std::string path_;
  std::string name_;       // the path's last part
  std::string temporary_;  // temporary name in the folder; empty while the file has none
  // Folder of the path; kept open, because the path may lead to another folder later.
  base::UniqueFd folder_;
  base::UniqueFd temporary_fd_;
};

// A folder that is written beside its path under a random name and takes the path by rename. The
// destructor removes it unless Keep has succeeded. It remains if the process is killed.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // Creates the folder. Fails with AlreadyExists if the path exists and is not a readable empty
  // folder: existing files are not replaced. Fails with another error if the folder cannot be
  // created. `access` is the access to the files in the folder. Users that may read the files may
  // also enter the folder. Owner and group are set as in AtomicFile::Create.
  absl::Status Create(const FileAccess& access);
  // Appends to the file `name` in the folder, and creates the file if it does not exist. If `name`
  // is a path with slashes, creates the folders in it that do not exist.
  absl::Status Append(const std::string& name, std::span<const std::byte> bytes);
  // Sets the access to the files, and renames the folder to the path. Replaces an empty folder at
  // the path. Fails if something other than an empty folder has taken the path since Create.
  absl::Status Keep();

 private:
  void Remove();

  std::string path_;
  FileAccess access_;
  std::string name_;       // the path's last part
  std::string temporary_;  // temporary name; empty while there is no folder
  base::UniqueFd parent_;  // folder of the path; kept open, as in AtomicFile
  base::UniqueFd folder_;
};

}  // namespace output

#endif  // TOOLS_OUTPUT_ATOMIC_FILE_H_
