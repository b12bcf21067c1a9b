// The server of the daemon's control socket: a Unix stream socket for requests and replies in the
// framing and message formats of varlink (https://varlink.org). InterfaceDescription in messages.h
// describes the requests.
//
// The permissions of the socket file control which users can connect. The file's group is
// look_group, whose members may view sessions. The file's POSIX access list contains control_group,
// whose members may also change sessions. If both are the same group, the file has no access list.
// In addition, the server checks the user and groups that each peer had when it connected
// (SO_PEERCRED, SO_PEERGROUPS). An id without a mapping in this user namespace gives no access.
//
// Peers are untrusted. Messages have a maximum size, and peers that read or write too slowly are
// disconnected. The number of connections is limited in total and for each user. Each connection
// has its own thread, so that it cannot delay others.
#ifndef TOOLS_CONTROL_SERVER_H_
#define TOOLS_CONTROL_SERVER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/control/service.h"

namespace control {

struct ControlServerOptions {
  std::string path = "/run/nettraced/control";
  // Group whose members may make all requests; "": only root and the daemon's user may.
  std::string control_group;
  // Group whose members may make requests that change nothing; "": no group.
  std::string look_group;
  // Version of the daemon, reported by GetInfo.
  std::string version;
  // Maximum numbers of connections: in total, and for each user except root and the daemon's user.
  std::size_t max_connections = 40;
  std::size_t max_connections_of_user = 10;
  // Number of connections, out of max_connections, that only root and the daemon's user may use.
  std::size_t reserved_connections = 8;
  // Time limit for receiving or sending one message completely.
  absl::Duration message_timeout = absl::Seconds(10);
  // Time after which a connection without requests is closed.
  absl::Duration idle_timeout = absl::Minutes(2);
  // Called by any thread after each request that may change something, even if it failed, with text
  // for a journal: the peer, the request and its result. It is called for at most one refused
  // request per second. It must not call the server.
  std::function<void(const std::string& message)> on_change;
};

class ControlServer {
 public:
  // Starts to serve requests, on threads that block all signals. `service` must outlive the server.
  // Replaces a socket file that a dead daemon has left. Fails with AlreadyExists if a running
  // daemon serves the path, or if the path is a file that is not a socket. Fails with
  // InvalidArgument if an option is wrong, and with other errors if the socket or a thread cannot
  // be created.
  static absl::StatusOr<std::unique_ptr<ControlServer>> Start(Service* service,
                                                              ControlServerOptions options);
  // Removes the socket file, ends all connections and tails, waits for running calls of `service`,
  // and returns when all threads have ended.
  virtual ~ControlServer() = default;

 protected:
  ControlServer() = default;
};

}  // namespace control

#endif  // TOOLS_CONTROL_SERVER_H_
