#include "tools/collector/unwind/mapped_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/read_file.h"
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
  constexpr int kTries = 3;  // the kernel also fails if a name is changed at the same time
  for (int i = 0; i < kTries; ++i) {
    const auto fd = static_cast<int>(syscall(SYS_openat2, folder.valid() ? folder.get() : AT_FDCWD,
                                             path.c_str(), &how, sizeof how));
    if (fd >= 0) return base::UniqueFd(fd);
    if (errno != EAGAIN) break;
  }
  return {};
}

// Returns the id of the mount of an open file; no value if it is not known. Unlike fstat(2), this
// does not ask the file system.
std::optional<std::uint64_t> MountOf(int fd) {
  constexpr std::size_t kMaxInfo = 4096;
  const std::string info =
      base::ReadFile(absl::StrCat("/proc/self/fdinfo/", fd), kMaxInfo).value_or("");
  constexpr std::string_view kKey = "mnt_id:\t";
  const std::size_t at = info.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::string number = info.substr(at + kKey.size());
  std::uint64_t id = 0;
  if (!absl::SimpleAtoi(number.substr(0, number.find('\n')), &id)) return std::nullopt;
  return id;
}

const Mount* FindMount(const std::vector<Mount>& mounts, std::uint64_t id) {
  const auto found = std::find_if(mounts.begin(), mounts.end(),
                                  [id](const Mount& mount) { return mount.id == id; });
  return found == mounts.end() ? nullptr : &*found;
}

std::vector<Mount> ReadMounts(const std::string& path) {
  return ParseMounts(base::ReadFile(path, kMaxMountinfo).value_or(""));
}

}  // namespace

MappedFiles::MappedFiles() : changes_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  LoadMounts();
}

void MappedFiles::LoadMounts() { mounts_ = ReadMounts("/proc/self/mountinfo"); }

bool MappedFiles::IsSafe(std::uint32_t pid, int fd) {
  const std::optional<std::uint64_t> id = MountOf(fd);
  if (!id) return false;
  pollfd changes = {changes_.get(), POLLPRI, 0};
  if (!changes_.valid() || poll(&changes, 1, 0) != 0) LoadMounts();
  // The open file keeps the mount and its id, so these are the mount's facts.
  constexpr std::string_view kFuse = "fuse";
  if (const Mount* const mount = FindMount(mounts_, *id)) return !mount->type.starts_with(kFuse);
  const std::vector<Mount> mounts = ReadMounts(absl::StrCat("/proc/", pid, "/mountinfo"));
  const Mount* const mount = FindMount(mounts, *id);
  if (mount == nullptr || mount->type.starts_with(kFuse)) return false;
  return mount->type != "overlay" ||
         std::any_of(mounts_.begin(), mounts_.end(), [mount](const Mount& own) {
           return own.device == mount->device && own.type == mount->type;
         });
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
  // The process determines what is at the path, so root takes only a file with the right build id.
  // Another user can read only files that it may read anyway.
  if (!build_id.empty() || geteuid() != 0) {
    const base::UniqueFd root = OpenPlace(absl::StrCat("/proc/", pid, "/root"), O_DIRECTORY);
    if (root.valid()) places[1] = OpenCached(root, path);
    places[2] = OpenCached({}, path);
  }
  for (const base::UniqueFd& place : places) {
    if (!place.valid()) continue;
    if (!IsSafe(pid, place.get())) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    absl::StatusOr<elf::ElfFile> file =
        elf::ElfFile::Open(absl::StrCat("/proc/self/fd/", place.get()));
    if (file.ok() && (build_id.empty() || file->build_id() == build_id)) return *std::move(file);
  }
  return std::nullopt;
}

}  // namespace collector
