// Finds the systemd unit and the container of a process in the path of its cgroup.
//
// The rules are those of systemd (sd_pid_get_unit), and of the names that docker, podman,
// containerd, CRI-O, kubelet, LXC and systemd-nspawn give to their cgroups. A component of the path
// may contain any bytes, because a process that has been delegated a part of the tree can create
// cgroups with any names there. Therefore the first match in the path counts: systemd's system
// manager or the outermost container engine has created it. A process in a unit or a container
// cannot appear to be in another unit or container by creating cgroups below its own cgroup. Two
// names cannot be verified: the unit of a user's systemd manager, and the container of a process
// that is outside of containers and has been delegated a part of the tree.
#ifndef TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_
#define TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_

#include <string>
#include <string_view>

namespace collector {

// The unit and the container in a cgroup path. A name that the path does not contain is "".
struct CgroupNames {
  std::string unit = {};       // unit of the system's manager: "nginx.service", "session-3.scope"
  std::string user_unit = {};  // unit of a user's manager, whose own unit is user@UID.service
  // Id that the container engine assigned, 64 hexadecimal digits. For LXC, systemd-nspawn
  // and other machines of systemd-machined, the name of the container or machine.
  std::string container = {};

  friend bool operator==(const CgroupNames&, const CgroupNames&) = default;
};

// Returns the unit and the container that the path of a cgroup names. Takes time linear in the
// length of the path.
CgroupNames ParseCgroupPath(std::string_view path);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_CGROUP_PATH_H_
