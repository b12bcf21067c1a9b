// What the path of a cgroup says of the processes in it: the systemd unit, and the container.
//
// The rules are those of systemd (sd_pid_get_unit), and of how docker, podman, containerd, CRI-O,
// kubelet, LXC and systemd-nspawn call the cgroups that they make. A component of the path may be
// any bytes: whoever has been given a part of the tree makes cgroups there with names as they like.
// So what stands first in the path counts, which is what the system's manager and the outermost
// container engine have made: who is in a unit or in a container cannot leave it by a cgroup below.
// What has to be taken on trust is the user's unit, and the container of somebody who is in none
// and has a part of the tree.
#ifndef TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_
#define TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_

#include <string>
#include <string_view>

namespace collector {

// Each is "" where the path names none.
struct CgroupNames {
  std::string unit = {};       // of the system's manager: "nginx.service", "session-3.scope"
  std::string user_unit = {};  // of the manager of a user, whose unit is user@UID.service
  // The id that the container's engine has given it, 64 hexadecimal digits; with LXC and
  // systemd-nspawn, its name.
  std::string container = {};

  friend bool operator==(const CgroupNames&, const CgroupNames&) = default;
};

// In time linear in the path's length.
CgroupNames ParseCgroupPath(std::string_view path);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_
