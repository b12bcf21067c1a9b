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

// Knows which file systems answer without a process of a user. Any user can provide a file system
// by FUSE, and let each access wait until the user's process answers; not even SIGKILL ends this
// wait. Therefore a file is accessed only after its mount is known: neither FUSE, nor an overlay in
// another mount namespace, which may be above FUSE. Not thread-safe.
class PromptFiles {
 public:
  PromptFiles();

  // Returns whether the file system of an open file answers without a process of a user. Does not
  // access the file system. If the mount is not in the mount namespace of this process, it is
  // searched in that of the process `pid`; 0: it is not searched there.
  bool IsPrompt(int fd, std::uint32_t pid = 0);

  enum class LastLink { kFollow, kOpen };
  // Opens an absolute path with O_PATH. Fails with FailedPrecondition if the path has a folder, a
  // symbolic link or a file on a file system that may wait. Otherwise returns the error of open(2).
  // If the last part of the path is a symbolic link, `last` determines whether the link itself is
  // opened. Follows at most 40 links, and at most 1,024 parts of paths. Errors do not contain the
  // path.
  absl::StatusOr<UniqueFd> Open(const std::string& path, LastLink last = LastLink::kFollow);

 private:
  void LoadMounts();

  const UniqueFd changes_;     // reports changes of mounts_
  std::vector<Mount> mounts_;  // those of this process
  // Id of the mount of this process's root. After chroot(2), it may not be in mounts_.
  std::optional<std::uint64_t> root_;
};

// Returns the id of the mount of an open file; no value if it is not known. Unlike fstat(2), does
// not access the file system.
std::optional<std::uint64_t> MountOf(int fd);

}  // namespace base

#endif  // TOOLS_BASE_PROMPT_FILES_H_
