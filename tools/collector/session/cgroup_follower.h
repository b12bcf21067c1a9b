// Follows a cgroup that may not exist yet, and that may be deleted and created again, as the cgroup
// of a systemd unit is. Reports when the cgroup appears and when it has been replaced.
//
// inotify reports when entries of the folders above the cgroup are created or deleted. A check once
// a second finds changes that inotify cannot report or has missed.
#ifndef TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_
#define TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tools/base/unique_fd.h"

namespace collector {

// Finds one cgroup whenever it is created. Not thread-safe.
class CgroupFollower {
 public:
  // `text` selects the cgroup (see TargetSelection) in the hierarchy mounted at `mount`. `path` is
  // its folder, or "" if it does not exist. In that case, a name without '/' is searched where
  // systemd keeps the cgroups of its units: in the folders of slices.
  CgroupFollower(std::string mount, std::string text, std::string path);

  // Descriptor that is readable after a change in the folders above the cgroup; -1 if inotify is
  // not available.
  int fd() const { return inotify_.get(); }
  // Returns a descriptor of the cgroup's folder if the cgroup has appeared or been replaced since
  // the last call. Must be called when fd() is readable, and once a second with `is_due` set.
  std::optional<base::UniqueFd> Look(bool is_due);
  // Returns the time of the last check before the cgroup appeared, in ns of the session clock; 0 if
  // the first check found the cgroup.
  std::uint64_t absent_at() const { return absent_at_; }
  // Makes the next Look return the cgroup again.
  void Forget() { id_ = 0; }

 private:
  // Reads the inotify events. Returns whether one of them may concern the cgroup.
  bool TakeNews();
  bool IsAbout(const std::string& name) const;
  void WatchAbove();
  void Watch(const std::string& folder);
  // Returns the current folder of the cgroup; "" if it does not exist.
  std::string Find() const;

  std::string mount_;
  std::string text_;
  std::string path_;
  base::UniqueFd inotify_;
  std::uint64_t id_ = 0;  // id of the cgroup; 0: it does not exist
  std::uint64_t looked_at_ = 0;
  std::uint64_t absent_at_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_CGROUP_FOLLOWER_H_
