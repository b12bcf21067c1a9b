// Selects the processes, threads or cgroups whose events are recorded (the options --pid, --tid and
// --cgroup), and detects when the processes or threads have ended.
#ifndef TOOLS_COLLECTOR_SESSION_TARGET_H_
#define TOOLS_COLLECTOR_SESSION_TARGET_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/session/cgroup_follower.h"

namespace collector {

// Selects processes, threads or cgroups; at most one of the lists may have entries. If all lists
// are empty, selects the whole machine.
struct TargetSelection {
  std::vector<pid_t> pids;
  std::vector<pid_t> tids;
  // Each entry is a path relative to the mount of cgroup v2, an absolute path in the file system,
  // or the name of a cgroup anywhere in the hierarchy, such as that of a systemd unit.
  std::vector<std::string> cgroups;
  // Whether the cgroup may be missing at first, and is followed when it is recreated. Needs exactly
  // one entry in `cgroups`.
  bool follow = false;
};

// Parses ids above 0, such as "12,34,56", and removes duplicates. Fails with InvalidArgument if the
// text has another form.
absl::StatusOr<std::vector<pid_t>> ParseIds(std::string_view text);

// Opens the selected processes, threads or cgroups. Fails with InvalidArgument if more than one
// kind is selected, if several cgroups have a selected name, or if a pid is that of a thread. Fails
// with NotFound if one of them does not exist, and with FailedPrecondition if no cgroup v2 is
// mounted or a folder is not a cgroup v2.
absl::StatusOr<PerfTarget> OpenTarget(const TargetSelection& selection);
// Holds a target of kind kCgroups, whose list of cgroups is empty, and the follower that finds the
// cgroup for it.
struct FollowedTarget {
  PerfTarget target;
  std::optional<CgroupFollower> follower;
};
// Prepares to follow the only cgroup of the selection, which may not exist yet. Fails with
// InvalidArgument if the selection is not one cgroup or if several cgroups have its name, and with
// FailedPrecondition if no cgroup v2 is mounted.
absl::StatusOr<FollowedTarget> OpenFollowedTarget(const TargetSelection& selection);

// Returns the directory of the cgroup that `text` selects, in the hierarchy mounted at `mount`.
// Fails with NotFound if there is none, and with InvalidArgument if several cgroups have the name
// `text`.
absl::StatusOr<std::string> FindCgroup(const std::string& mount, const std::string& text);
// Opens the directory of a cgroup. Fails with FailedPrecondition if it is not of version 2, and
// with another error if it cannot be opened.
absl::StatusOr<base::UniqueFd> OpenCgroup(const std::string& path);

// Detects when the processes or threads of a target have ended. Cgroups never end.
class TargetWatch {
 public:
  // Duplicates the descriptors of the target.
  explicit TargetWatch(const PerfTarget& target);

  // Returns descriptors that become readable when a process or thread ends.
  std::vector<int> descriptors() const;
  // Returns true once all processes or threads have ended. Must be called when a descriptor is
  // readable, and from time to time: before Linux 6.9, the kernel provides no descriptors for the
  // threads of PerfTarget::Kind::kThreads, and before Linux 5.3 none for processes either.
  bool HaveEnded();

 private:
  struct Task {
    pid_t id;
    base::UniqueFd descriptor;
  };
  PerfTarget::Kind kind_;
  std::vector<Task> running_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_TARGET_H_
