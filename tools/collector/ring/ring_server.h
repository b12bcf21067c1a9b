// Accepts the services that pass events by rings in user space (ring_layout.h): the socket, its
// connections and their messages. ring_region.h reads the memory that each service hands over.
#ifndef TOOLS_COLLECTOR_RING_RING_SERVER_H_
#define TOOLS_COLLECTOR_RING_RING_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/ring/ring_region.h"

namespace collector {

// Returns the path of the socket: $EVENTHEADER_SOCKET, else /run/nettraced/events for root, else
// $XDG_RUNTIME_DIR/nettraced/events. Fails with FailedPrecondition if none of them applies.
absl::StatusOr<std::string> RingSocketPath();
// Returns whether a collector listens at this path.
bool HasCollector(const std::string& path);

struct RingServerOptions {
  std::string path;
  // A socket that listens at `path`, such as one of systemd; -1: Listen creates the socket. The
  // server uses a duplicate, and leaves the socket in place when it ends. Connections then wait for
  // the next server.
  int listening = -1;
  // Permissions of the socket. Services need write permission.
  mode_t mode = 0600;
  // Maximum numbers of connections: of all users together, and of each user. A user that reaches
  // the second limit affects only its own services.
  std::size_t clients = 1024;
  std::size_t clients_of_user = 512;
  // Maximum bytes of chunks: of all services of a user together, and of each service.
  std::uint64_t bytes_of_user = std::uint64_t{512} << 20;
  std::uint64_t bytes_of_client = std::uint64_t{1} << 20;
  // Maximum size of a region. It is mostly a hole: only the chunks that may be used have memory.
  std::uint64_t region_bytes = std::uint64_t{2} << 30;
  // Maximum numbers of messages of a client: those that one call of Serve handles, and those that
  // the client may send within a second. A client that sends more is disconnected.
  int messages_of_round = 64;
  int messages_of_second = 16384;
  // Maximum number of connections that one call of Serve accepts.
  int accepts_of_round = 64;
  // Maximum number of threads that close descriptors of services. While there are that many, no
  // connection is accepted.
  int closers = 64;
  // Time within which a client must send Hello, in ns.
  std::uint64_t greeting_time = 5'000'000'000;
};

// A service that is or was connected. The kernel reports its pid and user; everything else is the
// service's claim.
class RingClient {
 public:
  enum class State {
    kGreeting,   // has not sent Hello
    kConnected,  // has a region
    kGone,       // the connection has ended; the region may have unread events
  };

  State state() const { return state_; }
  // Unique among the clients of the server.
  std::uint64_t number() const { return number_; }
  // The process that connected, in the pid namespace of the collector; 0 if it has no pid there.
  pid_t pid() const { return pid_; }
  uid_t uid() const { return uid_; }
  // Returns whether the process that connected still exists. If so, files in /proc that were read
  // before the call belong to it.
  bool IsAlive() const;
  // Returns a descriptor of the process; invalid if the kernel provides none.
  const base::UniqueFd& pidfd() const { return pidfd_; }
  RingRegion& region() { return *region_; }
  // Value of the last Enable that the service has confirmed.
  std::uint64_t enabled() const { return enabled_; }

  // Sends a message. A client whose socket is full is disconnected by the next Serve.
  void Send(eh::internal::ring::MessageType type, std::uint64_t value);

 private:
  friend class RingServer;

  State state_ = State::kGreeting;
  std::uint64_t number_ = 0;
  base::UniqueFd socket_;
  pid_t pid_ = 0;
  uid_t uid_ = 0;
  base::UniqueFd pidfd_;
  std::unique_ptr<RingRegion> region_;
  std::uint64_t chunk_bytes_ = 0;  // bytes of the chunks that the service may use
  std::uint64_t enabled_ = 0;
  std::uint64_t connected_at_ = 0;  // ns, CLOCK_MONOTONIC
  std::uint64_t second_ = 0;        // the second in which `messages_` were counted
  int messages_ = 0;
  bool failed_ = false;  // a message could not be sent
};

// Receives the calls that RingServer::Serve makes about its clients.
class RingServerUser {
 public:
  // The client has handed over its region.
  virtual void Connected(RingClient* client) = 0;
  // The client's names or registrations have changed.
  virtual void SetsChanged(RingClient* client) = 0;
  // The connection of a client that was connected has ended. The client stays until Release.
  virtual void Disconnected(RingClient* client) = 0;

 protected:
  ~RingServerUser() = default;
};

// Holds the socket and its clients. No call blocks. A client that misbehaves is disconnected, which
// affects no other client. Not thread-safe.
//
// A service may send the descriptor of a file that takes long to close: of a file system in user
// space, or a socket that lingers. A short-lived thread therefore closes each descriptor that is
// not a memfd, and each socket that may have unread messages.
class RingServer {
 public:
  // Creates the socket, unless `options.listening` is one; creates its folder if that is missing.
  // Replaces the socket of a collector that has ended. Fails with AlreadyExists if a collector
  // listens there.
  static absl::StatusOr<std::unique_ptr<RingServer>> Listen(RingServerOptions options);
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;
  // Removes the socket, and closes the connections.
  ~RingServer();

  const std::string& path() const { return options_.path; }
  // A descriptor that is readable while Serve has work to do.
  int fd() const { return epoll_.get(); }
  // Accepts connections and handles messages, as many as the limits permit.
  void Serve(RingServerUser* user);
  // Forgets a client that is gone.
  void Release(RingClient* client);

  std::size_t clients() const { return clients_.size(); }
  // Number of connections that were refused or ended because of their behavior.
  std::uint64_t refused() const { return refused_; }

 private:
  struct User {
    std::size_t clients = 0;
    std::uint64_t bytes = 0;
  };

  explicit RingServer(RingServerOptions options) : options_(std::move(options)) {}

  absl::Status Lock();
  absl::Status Bind();
  absl::Status Adopt();
  void Accept();
  void SetAccepting(bool accepts);
  void AddClient(base::UniqueFd socket);
  void EndConnection(base::UniqueFd socket);
  // Closes the descriptors of `to_close_` in a thread.
  void CloseInThread();
  // Handles messages of the client. Returns false if the connection has ended.
  bool Receive(RingClient* client, RingServerUser* user);
  // Receives one message. Sets `*fd` to the memfd if one came with it. Returns what recvmsg
  // returns.
  ssize_t ReceiveMessage(int socket, eh::internal::ring::Message* message, base::UniqueFd* fd);
  bool Handle(RingClient* client, const eh::internal::ring::Message& message, base::UniqueFd fd,
              RingServerUser* user);
  bool Greet(RingClient* client, const eh::internal::ring::Message& hello, base::UniqueFd fd,
             RingServerUser* user);
  // Counts the messages of a second. Returns false if there are too many.
  bool CountMessage(RingClient* client) const;
  void Disconnect(RingClient* client, RingServerUser* user);
  void DropSilent(RingServerUser* user);

  RingServerOptions options_;
  base::UniqueFd lock_;
  base::UniqueFd socket_;
  base::UniqueFd epoll_;
  base::UniqueFd spare_;  // makes room for a connection when there are no descriptors
  std::uint64_t next_number_ = 1;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<RingClient>> clients_;  // by number
  absl::flat_hash_map<uid_t, User> users_;
  std::vector<std::uint64_t> greeting_;  // numbers of clients that may not have sent Hello
  std::vector<base::UniqueFd> to_close_;
  // Number of threads that close descriptors. They may outlive the server.
  std::shared_ptr<std::atomic<int>> closers_ = std::make_shared<std::atomic<int>>(0);
  bool accepts_ = true;
  std::uint64_t refused_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_SERVER_H_
