#include "tools/collector/session/cgroup_follower.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/session/target.h"
#include "tools/collector/system/cgroup2.h"

namespace collector {
namespace {

constexpr std::string_view kSlice = ".slice";
// Maximum number of slices that are searched. A system has some tens.
constexpr std::size_t kMaxSlices = 1024;

bool IsName(const std::string& text) { return text.find('/') == std::string::npos; }

std::string FileName(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Calls `visit` with the folder of each slice, and with each other folder directly in a slice or in
// `mount`. Stops when `visit` returns false, or after kMaxSlices slices.
template <typename Visit>
void ForEachUnit(const std::string& mount, const Visit& visit) {
  std::size_t slices = 0;
  ForEachCgroup(mount, [&](const std::string& path) {
    const bool is_slice = path.ends_with(kSlice);
    if (!visit(path, is_slice) || (is_slice && ++slices > kMaxSlices)) return Below::kEnd;
    return is_slice ? Below::kVisit : Below::kSkip;
  });
}

}  // namespace

CgroupFollower::CgroupFollower(std::string mount, std::string text, std::string path)
    : mount_(std::move(mount)),
      text_(text.starts_with(mount_ + "/") ? text.substr(mount_.size()) : std::move(text)),
      path_(std::move(path)),
      inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

std::optional<base::UniqueFd> CgroupFollower::Look(bool is_due) {
  if (!TakeNews() && !is_due) return std::nullopt;
  absent_at_ = std::exchange(looked_at_, SessionClockNow());
  // The watches are set before the search, so that later changes are reported.
  WatchAbove();
  const std::string path = Find();
  const std::uint64_t before = std::exchange(id_, 0);
  if (path.empty()) return std::nullopt;
  absl::StatusOr<base::UniqueFd> folder = OpenCgroup(path);
  if (!folder.ok()) return std::nullopt;
  id_ = CgroupId(absl::StrCat("/proc/self/fd/", folder->get())).value_or(0);
  if (id_ == 0 || id_ == before) return std::nullopt;
  path_ = path;
  return *std::move(folder);
}

bool CgroupFollower::TakeNews() {
  bool is_about = false;
  alignas(inotify_event) char buffer[4096];
  for (ssize_t size = 0; (size = read(inotify_.get(), buffer, sizeof buffer)) > 0;) {
    for (const char* at = buffer; at < buffer + size;) {
      inotify_event event;
      std::memcpy(&event, at, sizeof event);
      const char* name = at + sizeof event;
      is_about = is_about || (event.mask & (IN_Q_OVERFLOW | IN_IGNORED)) != 0 ||
                 IsAbout(std::string(name, strnlen(name, event.len)));
      at = name + event.len;
    }
  }
  return is_about;
}

// Returns whether the folder `name` may be the cgroup, a folder above it, or a slice that contains
// it.
bool CgroupFollower::IsAbout(const std::string& name) const {
  return name == text_ || name == FileName(path_) || (IsName(text_) && name.ends_with(kSlice)) ||
         (!IsName(text_) &&
          absl::StrCat("/", text_, "/").find(absl::StrCat("/", name, "/")) != std::string::npos);
}

void CgroupFollower::Watch(const std::string& folder) {
  inotify_add_watch(inotify_.get(), folder.c_str(), IN_CREATE | IN_DELETE | IN_ONLYDIR);
}

void CgroupFollower::WatchAbove() {
  if (inotify_.get() < 0) return;
  Watch(mount_);
  if (IsName(text_)) {
    ForEachUnit(mount_, [this](const std::string& path, bool is_slice) {
      if (is_slice) Watch(path);
      return true;
    });
  }
  // Watches the folders above the cgroup, as far as they exist.
  std::filesystem::path above = !path_.empty() ? path_ : absl::StrCat(mount_, "/", text_);
  above = above.lexically_normal();
  while (above.has_parent_path() && above != mount_ && above != above.parent_path()) {
    above = above.parent_path();
    Watch(above.string());
  }
}

std::string CgroupFollower::Find() const {
  std::error_code error;
  if (!path_.empty() && std::filesystem::is_directory(path_, error)) return path_;
  if (!IsName(text_)) return FindCgroup(mount_, text_).value_or("");
  std::string found;
  ForEachUnit(mount_, [&](const std::string& path, bool) {
    if (FileName(path) == text_) found = path;
    return found.empty();
  });
  return found;
}

}  // namespace collector
