// Opens the files that other processes execute, without waiting for file systems that users
// provide.
#ifndef TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_
#define TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "tools/base/prompt_files.h"
#include "tools/collector/identity/code_tracker.h"
#include "tools/elf/elf_file.h"

namespace collector {

// Opens the files of mappings. The files are those of other processes, so they may be hostile. Only
// regular files are opened, and only if they are the files that the process executes: the process
// has the file mapped, or the file has the build id that the kernel reported for the mapping. If
// the kernel reported none, a collector that does not run as root also opens the file at the path
// of the mapping, because it can read only files that its user may read anyway.
//
// Files on file systems that may wait for a user's process (base::PromptFiles) are not read. Paths
// are resolved only from the kernel's cache of names (RESOLVE_CACHED, since Linux 5.12), which asks
// no file system. Not thread-safe, except refused().
class MappedFiles {
 public:
  // Opens the file of a mapping of the process. Returns no value if the file cannot be opened, if
  // the rules above exclude it, or if its file system may wait.
  std::optional<elf::ElfFile> Open(std::uint32_t pid, const CodeMapping& mapping);

  // Number of files that were not opened because of their file systems. Files are distinguished by
  // path and mount. Beyond kMaxRefused files, a file counts each time that it is refused. Any
  // thread may call this function.
  std::size_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kMaxRefused = 4096;

  void Refuse(int fd, const std::string& path);

  base::PromptFiles prompt_files_;
  absl::flat_hash_set<std::string> refused_files_;  // mounts and paths
  std::atomic<std::size_t> refused_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_UNWIND_MAPPED_FILES_H_
