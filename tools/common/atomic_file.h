// A file, or a folder of files, that appears whole or not at all.
#ifndef TOOLS_COMMON_ATOMIC_FILE_H_
#define TOOLS_COMMON_ATOMIC_FILE_H_

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
#include "tools/collector/base/unique_fd.h"

namespace tools {

// The mode of what a program writes: its user alone can read it.
inline constexpr mode_t kPrivateMode = 0600;

// Who owns a file, and who may read and write it.
struct FileAccess {
  mode_t mode = kPrivateMode;
  // Without them, those of the process.
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

// Access to what is made of `files`: that which they have in common. If they differ in owner or
// group, or one is no regular file, it is private.
FileAccess AccessToAll(std::span<const struct stat> files);

// Is written beside its path, without a name where the file system can do that and else with one
// that nobody can guess, and gets the path's by rename. Without Keep nothing remains of it.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // FailedPrecondition if the path is there and is no regular file. An owner or a group that cannot
  // be set is the process's; then the group and all others may do only what both might.
  absl::StatusOr<std::unique_ptr<nettrace::FdSink>> Create(const FileAccess& access);
  // Gives the file its name, in place of what had it; a symbolic link is replaced, not followed.
  absl::Status Keep();

 private:
  absl::Status CreateTemporary();

  const std::string path_;
  std::string name_;            // the path's last part
  std::string temporary_;       // a name in the folder; empty while the file has none
  collector::UniqueFd folder_;  // holds on to it: a path may lead elsewhere a moment later
  collector::UniqueFd temporary_fd_;
};

// Is written beside its path, under a name that nobody can guess, and gets the path's by rename.
// Without Keep nothing remains of it, unless the process is killed.
class AtomicFolder {
 public:
  explicit AtomicFolder(const std::string& path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  // AlreadyExists if the path is there and is no empty folder: nothing is replaced. `access` is
  // that of the files; who may read them may enter the folder. Owner and group as for AtomicFile.
  absl::Status Create(const FileAccess& access);
  // Appends to the file `name` of the folder, which is created by its first bytes.
  absl::Status Append(const std::string& name, std::span<const std::byte> bytes);
  absl::Status Keep();

 private:
  void Remove();

  std::string path_;
  FileAccess access_;
  std::string name_;            // the path's last part
  std::string temporary_;       // empty while there is no folder
  collector::UniqueFd parent_;  // holds on to it, as AtomicFile does
  collector::UniqueFd folder_;
};

}  // namespace tools

#endif  // TOOLS_COMMON_ATOMIC_FILE_H_
