// Who is at the other end of a connection, and what it may do.
#ifndef TOOLS_COLLECTOR_CONTROL_ACCESS_H_
#define TOOLS_COLLECTOR_CONTROL_ACCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/collector/control/dispatcher.h"

namespace collector {

// A process as it was when it connected. Ids that this user namespace does not know are the
// kernel's overflow ids.
struct Peer {
  uid_t user = 0;
  pid_t process = 0;
  std::vector<gid_t> groups;
};

absl::StatusOr<Peer> PeerOf(int socket);

class AccessRules {
 public:
  // Finds the groups of these names, each of which may be "". InvalidArgument if there is no such
  // group, or if it has the overflow id, which every process of another namespace seems to have.
  static absl::StatusOr<AccessRules> Of(const std::string& control_group,
                                        const std::string& look_group);

  Access Of(const Peer& peer) const;
  // Whether the user is root or the one that the daemon runs as.
  bool IsAdministrator(uid_t user) const;
  // Lets those connect to the socket file at `path` who may look or change, and nobody else.
  absl::Status Apply(const std::string& path) const;

 private:
  std::optional<gid_t> control_group_;
  std::optional<gid_t> look_group_;
  uid_t own_user_ = 0;  // 0 as well if it is the overflow id
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_ACCESS_H_
