// The daemon's control socket: a Unix stream socket on which requests come and replies go, in the
// framing and the shapes of varlink (https://varlink.org); messages.h has the requests.
//
// Who may connect is the socket file's mode: its group is the one that may look, and an entry of
// its access list is the one that may change. Whatever the mode says, each connection is asked for
// the user and groups of its peer, as they were when it connected (SO_PEERCRED, SO_PEERGROUPS): an
// id that this user namespace does not know is none of ours.
//
// Peers are hostile: messages are bounded, whoever reads or writes too slowly is disconnected, the
// number of connections is bounded in sum and for each user, and each has a thread of its own, so
// that none keeps another from anything.
#ifndef TOOLS_COLLECTOR_CONTROL_SERVER_H_
#define TOOLS_COLLECTOR_CONTROL_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/control/service.h"

namespace collector {

struct ControlServerOptions {
  std::string path = "/run/nettraced/control";
  // Members may do everything; "": root and the daemon's user alone.
  std::string control_group;
  // Members may do what changes nothing; "": nobody beyond those who may do everything.
  std::string look_group;
  // Of the daemon, for those who ask.
  std::string version;
  std::size_t max_connections = 40;
  std::size_t max_connections_of_user = 10;
  // Of max_connections, those that only root and the daemon's user get.
  std::size_t reserved_connections = 8;
  // A message that has begun to come, or to be sent, has to be complete within this time.
  absl::Duration message_timeout = absl::Seconds(10);
  // A connection on which no request comes for so long is closed.
  absl::Duration idle_timeout = absl::Minutes(2);
  // Is called, by any thread, after each request that changes something, for a journal: who asked
  // for what, and what came of it. Of those who may not, one a second. It must not call the server.
  std::function<void(const std::string& message)> on_change;
};

class ControlServer {
 public:
  // Serves requests from now on, by threads of its own in which all signals are blocked. `service`
  // must outlive the server. A socket file that a dead daemon has left is replaced; AlreadyExists
  // if a living one serves the path.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(Service* service,
                                                              ControlServerOptions options);
  // Removes the socket file, ends all connections and tails, and returns when all threads have
  // ended. Calls of `service` that are under way are waited for.
  virtual ~ControlServer() = default;

 protected:
  ControlServer() = default;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_SERVER_H_
