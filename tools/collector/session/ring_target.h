// Decides which services with rings in user space are recorded: those of the processes, threads or
// cgroups that are the target. For events of the kernel, perf does this.
#ifndef TOOLS_COLLECTOR_SESSION_RING_TARGET_H_
#define TOOLS_COLLECTOR_SESSION_RING_TARGET_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/session/cgroup_follower.h"
#include "tools/collector/session/target.h"

namespace collector {

// The device and inode of a cgroup's folder.
struct CgroupFolder {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const CgroupFolder&, const CgroupFolder&) = default;
};
// Returns the device and inode of the folder that the descriptor refers to; nullopt if they cannot
// be read.
std::optional<CgroupFolder> IdentifyCgroup(const base::UniqueFd& folder);

// Selects the services whose events a capture or a session records. Not thread-safe.
class RingTarget {
 public:
  // Includes all services.
  RingTarget() = default;
  // Includes the services of these processes, or those that have one of these threads. If both
  // lists are empty and `has_cgroups` is true, includes the services in the cgroups of SetCgroups.
  // If `has_cgroups` is false, too, includes all services.
  RingTarget(std::vector<pid_t> pids, std::vector<pid_t> tids, bool has_cgroups)
      : pids_(std::move(pids)), tids_(std::move(tids)), has_cgroups_(has_cgroups) {}
  // Finds the selected processes, threads or cgroups. Follows a cgroup if the selection demands it.
  // Fails as OpenTarget and OpenFollowedTarget do.
  static absl::StatusOr<RingTarget> Open(const TargetSelection& selection);

  // Returns whether the target is all services.
  bool is_all() const { return pids_.empty() && tids_.empty() && !has_cgroups_; }
  // The threads whose events belong to the target; empty: all threads of the services.
  const std::vector<pid_t>& tids() const { return tids_; }
  // Returns whether the service `pid` belongs to the target now.
  bool Includes(pid_t pid) const;
  // Replaces the cgroups. Services in cgroups below them are included, too.
  void SetCgroups(std::vector<CgroupFolder> cgroups) { cgroups_ = std::move(cgroups); }
  // Searches the followed cgroup again if it may have changed, and always if `is_due` is set.
  // Returns whether the target has another cgroup now.
  bool Follow(bool is_due);

 private:
  bool IsInCgroups(pid_t pid) const;

  std::vector<pid_t> pids_;
  std::vector<pid_t> tids_;
  bool has_cgroups_ = false;
  std::vector<CgroupFolder> cgroups_;
  std::optional<CgroupFollower> follower_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RING_TARGET_H_
