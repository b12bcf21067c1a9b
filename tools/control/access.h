// Identifies the peer of a connection, and decides which requests it may make.
#ifndef TOOLS_CONTROL_ACCESS_H_
#define TOOLS_CONTROL_ACCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/control/dispatcher.h"

namespace control {

// A process as it was when it connected. Ids without a mapping in this user namespace are the
// kernel's overflow ids.
struct Peer {
  uid_t user = 0;
  pid_t process = 0;
  std::vector<gid_t> groups;
};

// Returns the peer of a connected Unix socket. Fails if the kernel does not report the peer's user,
// process and groups (SO_PEERCRED, SO_PEERGROUPS).
absl::StatusOr<Peer> PeerOf(int socket);

// Decides which access a peer has, from its user and groups.
class AccessRules {
 public:
  // Finds the groups with these names. If a name is "", no group gets the access of that parameter.
  // Fails with InvalidArgument if a group is not found or has the overflow id. The kernel shows
  // that id for every group without a mapping in this user namespace.
  static absl::StatusOr<AccessRules> Of(const std::string& control_group,
                                        const std::string& look_group);

  // Returns the access of a process: kChange for administrators and members of the control group,
  // kLook for other members of the look group, and kNone for all others.
  Access Of(const Peer& peer) const;
  // Returns whether the user is root or the user of the daemon.
  bool IsAdministrator(uid_t user) const;
  // Sets the mode of the socket file at `path`, so that only processes with access can connect. If
  // a group has access, also sets the file's group or access list. Fails if the kernel refuses a
  // change.
  absl::Status Apply(const std::string& path) const;

 private:
  std::optional<gid_t> control_group_;
  std::optional<gid_t> look_group_;
  uid_t own_user_ = 0;  // effective user id; 0 if that is the overflow id
};

}  // namespace control

#endif  // TOOLS_CONTROL_ACCESS_H_
