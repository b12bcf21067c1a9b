// Whose events are recorded: the options --pid, --tid and --cgroup, and when their threads have
// ended.
#ifndef TOOLS_COLLECTOR_SESSION_TARGET_H_
#define TOOLS_COLLECTOR_SESSION_TARGET_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/perf/perf_target.h"
#include "tools/collector/session/cgroup_follower.h"

namespace collector {

// At most one of the three; none is the whole machine.
struct TargetSelection {
  std::vector<pid_t> pids;
  std::vector<pid_t> tids;
  // Each is a path below the mount of cgroup v2, an absolute path, or the name of a cgroup
  // somewhere in the hierarchy, such as that of a systemd unit.
  std::vector<std::string> cgroups;
  // The cgroup, which is one then, need not be there yet, and may go and come again.
  bool follow = false;
};

// Parses "12,345", numbers above 0; none is there twice in what it returns. InvalidArgument.
absl::StatusOr<std::vector<pid_t>> ParseIds(std::string_view text);

// Finds what is selected. InvalidArgument if more than one kind is, or a name is that of several
// cgroups; NotFound for what is not there; FailedPrecondition if there is no cgroup v2.
absl::StatusOr<PerfTarget> OpenTarget(const TargetSelection& selection);
// The same for a cgroup that is followed: a target with no cgroup so far, and what follows it.
struct FollowedTarget {
  PerfTarget target;
  std::optional<CgroupFollower> follower;
};
absl::StatusOr<FollowedTarget> OpenFollowedTarget(const TargetSelection& selection);

// The directory of a cgroup that is selected as `text`, in the hierarchy mounted at `mount`. The
// errors are those of OpenTarget.
absl::StatusOr<std::string> FindCgroup(const std::string& mount, const std::string& text);
// Opens the folder of one. FailedPrecondition if it is none of version 2.
absl::StatusOr<UniqueFd> OpenCgroup(const std::string& path);

// Whether the processes or threads of a target have ended. A cgroup never has.
class TargetWatch {
 public:
  // By duplicates of its descriptors.
  explicit TargetWatch(const PerfTarget& target);

  // They become readable as something ends.
  std::vector<int> descriptors() const;
  // True once all have ended. To be asked when a descriptor was readable, and now and then: before
  // Linux 6.9 there is none for a thread that is not its process's first.
  bool HaveEnded();

 private:
  struct Task {
    pid_t id;
    UniqueFd descriptor;
  };
  PerfTarget::Kind kind_;
  std::vector<Task> running_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_TARGET_H_
