#include "tools/base/prompt_files.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"

namespace base {
namespace {

constexpr int kMaxLinks = 40;  // as in the kernel
constexpr std::size_t kMaxParts = 1024;

const Mount* FindMount(const std::vector<Mount>& mounts, std::uint64_t id) {
  const auto found = std::find_if(mounts.begin(), mounts.end(),
                                  [id](const Mount& mount) { return mount.id == id; });
  return found == mounts.end() ? nullptr : &*found;
}

std::vector<Mount> ReadMounts(const std::string& path) {
  return ParseMounts(ReadFile(path, kMaxMountinfo).value_or(""));
}

UniqueFd OpenRoot() { return UniqueFd(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)); }

// Adds the parts of a path to `*parts`, the first part last.
void PushParts(std::string_view path, std::vector<std::string>* parts) {
  const std::vector<std::string> added =
      absl::StrSplit(absl::string_view(path.data(), path.size()), '/', absl::SkipEmpty());
  parts->insert(parts->end(), added.rbegin(), added.rend());
}

absl::StatusOr<std::string> ReadLink(const UniqueFd& link) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return absl::ErrnoToStatus(errno, "cannot be opened");
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace

std::optional<std::uint64_t> MountOf(int fd) {
  constexpr std::size_t kMaxInfo = 4096;
  const std::string info = ReadFile(absl::StrCat("/proc/self/fdinfo/", fd), kMaxInfo).value_or("");
  constexpr std::string_view kKey = "mnt_id:\t";
  const std::size_t at = info.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const std::string number = info.substr(at + kKey.size());
  std::uint64_t id = 0;
  if (!absl::SimpleAtoi(number.substr(0, number.find('\n')), &id)) return std::nullopt;
  return id;
}

PromptFiles::PromptFiles() : changes_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {
  LoadMounts();
  if (const UniqueFd root = OpenRoot(); root.valid()) root_ = MountOf(root.get());
}

void PromptFiles::LoadMounts() { mounts_ = ReadMounts("/proc/self/mountinfo"); }

bool PromptFiles::IsPrompt(int fd, std::uint32_t pid) {
  const std::optional<std::uint64_t> id = MountOf(fd);
  if (!id) return false;
  pollfd changes = {changes_.get(), POLLPRI, 0};
  if (!changes_.valid() || poll(&changes, 1, 0) != 0) LoadMounts();
  // While `fd` is open, its mount keeps its id, so `id` names the same mount in mounts_.
  constexpr std::string_view kFuse = "fuse";
  if (const Mount* const mount = FindMount(mounts_, *id)) return !mount->type.starts_with(kFuse);
  // After chroot(2), the mount of this process's root may not be in mounts_. Its type is not
  // checked, because this process accesses the mount anyway.
  if (id == root_) return true;
  if (pid == 0) return false;
  const std::vector<Mount> mounts = ReadMounts(absl::StrCat("/proc/", pid, "/mountinfo"));
  const Mount* const mount = FindMount(mounts, *id);
  if (mount == nullptr || mount->type.starts_with(kFuse)) return false;
  return mount->type != "overlay" ||
         std::any_of(mounts_.begin(), mounts_.end(), [mount](const Mount& own) {
           return own.device == mount->device && own.type == mount->type;
         });
}

absl::StatusOr<UniqueFd> PromptFiles::Open(const std::string& path, LastLink last) {
  const absl::Status refused = absl::FailedPreconditionError(
      "it was not opened, because its path leads to a file system that is unknown or may wait for "
      "a user's process (FUSE)");
  std::vector<std::string> parts;  // the next part is the last element
  PushParts(path, &parts);
  UniqueFd at = OpenRoot();
  if (!at.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
  if (!IsPrompt(at.get())) return refused;
  int links = 0;
  for (std::size_t count = 0; !parts.empty(); ++count) {
    if (count == kMaxParts) return absl::ErrnoToStatus(ENAMETOOLONG, "cannot be opened");
    const std::string part = std::move(parts.back());
    parts.pop_back();
    UniqueFd next(openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!next.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
    if (!IsPrompt(next.get())) return refused;
    struct stat facts = {};
    if (fstat(next.get(), &facts) != 0) return absl::ErrnoToStatus(errno, "cannot be opened");
    if (!S_ISLNK(facts.st_mode) || (parts.empty() && last == LastLink::kOpen)) {
      at = std::move(next);
      continue;
    }
    if (++links > kMaxLinks) return absl::ErrnoToStatus(ELOOP, "cannot be opened");
    ASSIGN_OR_RETURN(const std::string target, ReadLink(next));
    if (target.starts_with('/')) at = OpenRoot();
    if (!at.valid()) return absl::ErrnoToStatus(errno, "cannot be opened");
    PushParts(target, &parts);
  }
  return at;
}

}  // namespace base
