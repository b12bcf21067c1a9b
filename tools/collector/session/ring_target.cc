#include "tools/collector/session/ring_target.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tools/base/status_macros.h"
#include "tools/collector/identity/proc_files.h"
#include "tools/collector/system/cgroup2.h"

namespace collector {

std::optional<CgroupFolder> IdentifyCgroup(const base::UniqueFd& folder) {
  struct stat status;
  if (fstat(folder.get(), &status) != 0) return std::nullopt;
  return CgroupFolder{status.st_dev, status.st_ino};
}

absl::StatusOr<RingTarget> RingTarget::Open(const TargetSelection& selection) {
  RingTarget target(selection.pids, selection.tids, !selection.cgroups.empty());
  if (selection.follow && target.has_cgroups_) {
    ASSIGN_OR_RETURN(FollowedTarget followed, OpenFollowedTarget(selection));
    target.follower_ = std::move(followed.follower);
    target.Follow(/*is_due=*/true);
    return target;
  }
  ASSIGN_OR_RETURN(const PerfTarget opened, OpenTarget(selection));
  for (const base::UniqueFd& folder : opened.cgroups) {
    if (const auto id = IdentifyCgroup(folder)) target.cgroups_.push_back(*id);
  }
  return target;
}

bool RingTarget::Includes(pid_t pid) const {
  if (!pids_.empty()) return std::find(pids_.begin(), pids_.end(), pid) != pids_.end();
  if (has_cgroups_) return IsInCgroups(pid);
  if (tids_.empty()) return true;
  const std::vector<std::uint32_t> tids = ProcTids(static_cast<std::uint32_t>(pid));
  return std::any_of(tids.begin(), tids.end(), [this](std::uint32_t tid) {
    return std::find(tids_.begin(), tids_.end(), static_cast<pid_t>(tid)) != tids_.end();
  });
}

bool RingTarget::Follow(bool is_due) {
  if (!follower_) return false;
  const std::optional<base::UniqueFd> folder = follower_->Look(is_due);
  if (!folder) return false;
  cgroups_.clear();
  if (const auto id = IdentifyCgroup(*folder)) cgroups_.push_back(*id);
  return true;
}

bool RingTarget::IsInCgroups(pid_t pid) const {
  const std::string mount = Cgroup2Mount();
  std::string path = ReadProcCgroup(static_cast<std::uint32_t>(pid));
  if (path.empty() || mount.empty()) return false;
  for (;;) {
    struct stat folder;
    if (stat((mount + path).c_str(), &folder) == 0 &&
        std::find(cgroups_.begin(), cgroups_.end(), CgroupFolder{folder.st_dev, folder.st_ino}) !=
            cgroups_.end()) {
      return true;
    }
    if (path.empty()) return false;
    path.resize(path.rfind('/'));
  }
}

}  // namespace collector
