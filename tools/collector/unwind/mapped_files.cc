#include "tools/collector/unwind/mapped_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/unique_fd.h"
#include "tools/elf/vdso.h"

namespace collector {
namespace {

base::UniqueFd OpenPlace(const std::string& path, int flags) {
  return base::UniqueFd(open(path.c_str(), O_PATH | O_CLOEXEC | flags));
}

// Opens a path with O_PATH, and only if all its names are in the kernel's cache. `folder` is the
// root of the path; an invalid descriptor stands for the root of this process.
base::UniqueFd OpenCached(const base::UniqueFd& folder, const std::string& path) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED | (folder.valid() ? RESOLVE_IN_ROOT : RESOLVE_NO_MAGICLINKS);
  constexpr int kTries = 3;  // EAGAIN: a name is not cached, or was changed at the same time
  for (int i = 0; i < kTries; ++i) {
    const auto fd = static_cast<int>(syscall(SYS_openat2, folder.valid() ? folder.get() : AT_FDCWD,
                                             path.c_str(), &how, sizeof how));
    if (fd >= 0) return base::UniqueFd(fd);
    if (errno != EAGAIN) break;
  }
  return {};
}

}  // namespace

void MappedFiles::Refuse(int fd, const std::string& path) {
  // The path alone may stand for other files in other containers.
  const auto key = absl::StrCat(base::MountOf(fd).value_or(0), path);
  if (refused_files_.size() < kMaxRefused && !refused_files_.insert(key).second) return;
  refused_.fetch_add(1, std::memory_order_relaxed);
}

std::optional<elf::ElfFile> MappedFiles::Open(std::uint32_t pid, const CodeMapping& mapping) {
  const std::string& path = mapping.file->path;
  if (path == elf::kVdso) return elf::ReadVdso(mapping.last - mapping.first + 1);
  // Memory without a file has names like "//anon" and "[heap]".
  if (!path.starts_with('/') || path.starts_with("//")) return std::nullopt;
  const std::string& build_id = mapping.file->build_id;
  std::array<base::UniqueFd, 3> places;
  // This link leads to the mapped file, whatever its path is by now. The kernel permits it to
  // processes with CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN.
  places[0] = OpenPlace(
      absl::StrFormat("/proc/%d/map_files/%x-%x", pid, mapping.first, mapping.last + 1), 0);
  // The process determines which file is at the path. Therefore a collector that runs as root opens
  // the path only if the build id is known, and accepts only a file that has it. A collector of
  // another user can read only files that this user may read anyway.
  if (!build_id.empty() || geteuid() != 0) {
    const base::UniqueFd root = OpenPlace(absl::StrCat("/proc/", pid, "/root"), O_DIRECTORY);
    if (root.valid()) places[1] = OpenCached(root, path);
    places[2] = OpenCached({}, path);
  }
  for (const base::UniqueFd& place : places) {
    if (!place.valid()) continue;
    if (!prompt_files_.IsPrompt(place.get(), pid)) {
      Refuse(place.get(), path);
      return std::nullopt;
    }
    absl::StatusOr<elf::ElfFile> file =
        elf::ElfFile::Open(absl::StrCat("/proc/self/fd/", place.get()));
    if (file.ok() && (build_id.empty() || file->build_id() == build_id)) return *std::move(file);
  }
  return std::nullopt;
}

}  // namespace collector
