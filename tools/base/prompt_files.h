// Opens files of other users without waiting for file systems that users provide.
#ifndef TOOLS_BASE_PROMPT_FILES_H_
#define TOOLS_BASE_PROMPT_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/base/mounts.h"
#include "tools/base/unique_fd.h"

namespace base {

// Finds out which file systems answer without waiting for a process of a user. Any user can provide
// a file system by FUSE, and let each access wait until the user's process answers; not even
// SIGKILL ends this wait. Therefore a file is accessed only after its mount was found and checked.
// Mounts of FUSE are refused. An overlay that only another mount namespace has is also refused,
// because its layers may be on FUSE. Not thread-safe.
class PromptFiles {
 public:
  PromptFiles();

  // Returns whether the file system of an open file answers without waiting for a process of a
  // user. Does not access the file system. Searches for the mount in the mount namespace of this
  // process and then, unless `pid` is 0, in that of the process `pid`. Returns false if it does not
  // find the mount.
  bool IsPrompt(int fd, std::uint32_t pid = 0);

  enum class LastLink { kFollow, kOpen };
  // Opens an absolute path with O_PATH. Fails with FailedPrecondition if a folder, symbolic link or
  // file in the path is on a file system for which IsPrompt is false. Other errors are those of
  // open(2).
  // If the last part of the path is a symbolic link, `last` determines whether the link itself is
  // opened. Also fails if the path leads through more than 40 links, or has more than 1,024 parts,
  // including those of its links. Errors do not contain the path.
  absl::StatusOr<UniqueFd> Open(const std::string& path, LastLink last = LastLink::kFollow);

 private:
  void LoadMounts();

  const UniqueFd changes_;     // /proc/self/mountinfo; poll(2) reports when the mounts change
  std::vector<Mount> mounts_;  // mounts of this process
  // Id of the mount of this process's root. After chroot(2), it may not be in mounts_.
  std::optional<std::uint64_t> root_;
};

// Returns the id of the mount of an open file; no value if it is not known. Unlike fstat(2), does
// not access the file system.
std::optional<std::uint64_t> MountOf(int fd);

}  // namespace base

#endif  // TOOLS_BASE_PROMPT_FILES_H_
