// Opens the files that other processes execute, without waiting for file systems that users
// provide.
#ifndef TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_
#define TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/base/unique_fd.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/collector/identity/mounts.h"
#include "tools/elf/elf_file.h"

namespace collector {

// Opens the files of mappings. The files are those of other processes, so they may be hostile. Only
// regular files are opened, and only if they are the files that the process executes: the process
// has the file mapped, or the file has the build id that the kernel reported for the mapping.
//
// Any user can provide a file system by FUSE, and let each access wait until the user's process
// answers. Therefore a file is accessed only after its mount is known: neither FUSE, nor an overlay
// in another mount namespace, which may be above FUSE. Paths are resolved only from the kernel's
// cache of names (RESOLVE_CACHED, since Linux 5.12), which asks no file system. Not thread-safe,
// except refused().
class MappedFiles {
 public:
  MappedFiles();

  // Opens the file of a mapping of the process. Returns no value if the file cannot be opened, if
  // it may not be the file that the process has mapped, or if its file system may wait.
  std::optional<elf::ElfFile> Open(std::uint32_t pid, const CodeMapping& mapping);

  // Number of files that were not opened because of their file systems. Any thread may call it.
  std::size_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // Returns whether the file system of an open file cannot wait for a process of a user.
  bool IsSafe(std::uint32_t pid, int fd);
  void LoadMounts();

  const base::UniqueFd changes_;  // reports changes of mounts_
  std::vector<Mount> mounts_;     // those of this process
  std::atomic<std::size_t> refused_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_
