// Accepts the services that pass events through rings in user space (ring_layout.h): the socket,
// its connections and their messages. ring_region.h reads the memory that each service hands over.
#ifndef TOOLS_COLLECTOR_RING_RING_SERVER_H_
#define TOOLS_COLLECTOR_RING_RING_SERVER_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libeventheader/base/ring_layout.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/ring/ring_mirror.h"
#include "tools/collector/ring/ring_refusals.h"
#include "tools/collector/ring/ring_region.h"

namespace collector {

// Returns the value of the environment variable EVENTHEADER_SOCKET; "" if it is not set.
std::string ChosenRingSocket();
// Returns the path to which services connect: ChosenRingSocket(), else /run/nettraced/events for
// root, else $XDG_RUNTIME_DIR/nettraced/events. Fails with FailedPrecondition if none of them
// applies.
absl::StatusOr<std::string> RingSocketPath();
// Returns whether a collector listens at this path.
bool HasCollector(const std::string& path);
// Returns the default path at which a collector listens, or "" if none listens. Services connect to
// it unless EVENTHEADER_SOCKET is set for them. They try /run/nettraced/events first, then
// $XDG_RUNTIME_DIR/nettraced/events.
std::string FindCollector();
// Returns the error that another collector listens at this path.
absl::Status TakenError(const std::string& path);

struct RingServerOptions {
  std::string path;
  // Path of a symbolic link that Listen() creates together with the socket; "": no link. Services
  // of the host connect to the link. Containers mount the folder of the socket, which has no other
  // socket, so they cannot reach the socket that controls nettraced. Must be "" if `listening` is
  // not -1.
  std::string link;
  // Descriptor of a socket that already listens at `path`, for example from systemd; -1: Listen()
  // creates the socket. The server uses a duplicate of the descriptor, and does not remove the
  // socket when it ends. New connections then wait for the next server.
  int listening = -1;
  // Permissions of the socket. Services need write permission to connect.
  mode_t mode = 0600;
  // Maximum numbers of connections: of all users together, and of each user. The second limit
  // prevents one user's services from taking all connections.
  std::size_t clients = 1024;
  std::size_t clients_of_user = 512;
  // Maximum bytes of chunks: of all services of a user together, and of each service. For a service
  // that does not share its region, the sum for bytes_of_user counts RingMirror::MemoryOf() instead
  // of the chunks, until the client is released.
  std::uint64_t bytes_of_user = std::uint64_t{512} << 20;
  std::uint64_t bytes_of_client = std::uint64_t{1} << 20;
  // Maximum of RingMirror::MemoryOf() of the services of all users together. This memory belongs to
  // the collector, and a user may have many uids.
  std::uint64_t bytes_of_copies = std::uint64_t{1} << 30;
  // Maximum size of a region, in bytes. Most of a region is a hole in its file: only the chunks
  // that the service may use have memory.
  std::uint64_t region_bytes = std::uint64_t{2} << 30;
  // Maximum number of messages of a client that one call of Serve() handles, and that the client
  // may send within a second. A client that sends more within a second is disconnected.
  int messages_of_round = 64;
  int messages_of_second = 16384;
  // Maximum number of connections that one call of Serve() accepts.
  int accepts_of_round = 64;
  // Maximum number of threads that close descriptors of services. While this number of threads
  // runs, no connection is accepted.
  int closers = 64;
  // Time within which a client must send the message Hello, in ns.
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
  // Number of the client, unique among the clients of the server.
  std::uint64_t number() const { return number_; }
  // The process that connected, in the pid namespace of the collector; 0 if it has no pid there.
  pid_t pid() const { return pid_; }
  uid_t uid() const { return uid_; }
  // Returns whether the process of pidfd() still exists; false if pidfd() is invalid. If the
  // process exists, data that the caller read from /proc/PID before the call belong to it.
  bool IsAlive() const;
  // Returns a descriptor of the process that connected; invalid if the kernel provides none. Before
  // Linux 6.5, the descriptor may be that of a later process with the same pid.
  const base::UniqueFd& pidfd() const { return pidfd_; }
  RingRegion& region() { return *region_; }
  const RingRegion& region() const { return *region_; }
  // Value of the last message Enable that the service has confirmed.
  std::uint64_t enabled() const { return enabled_; }
  // Total size of the chunks that the service may use, in bytes.
  std::uint64_t chunk_bytes() const { return chunk_bytes_; }
  // Time when the process connected, in ns of CLOCK_MONOTONIC.
  std::uint64_t connected_at() const { return connected_at_; }

  // Returns why the events come over the socket instead of in shared memory; "" if they come in
  // shared memory.
  const std::string& inline_reason() const { return inline_reason_; }
  // Returns whether the service has sent the message End: the counts in its region are final.
  bool has_end() const { return has_end_; }
  // Time in ns of CLOCK_MONOTONIC up to which the service has sent all events, as it claims, but
  // not later than the collector received this claim. Before the first claim: the time at which the
  // region was created. 0 if the connection is not inline.
  std::uint64_t sent_until() const { return sent_until_; }

  // Sends the changes that RingRegion has made to the region, if the service does not share it.
  // Must be called after RingRegion::GiveBackMarked(), so that the service can use the chunks.
  void SendChanges();
  // Sends a message, after SendChanges(). If the message cannot be sent, usually because the
  // service does not read its messages, the next call of Serve() disconnects the client. Does
  // nothing in state kGone.
  void Send(eh::internal::ring::MessageType type, std::uint64_t value);

 private:
  friend class RingServer;

  // Sends a message, or stores it in `unsent_` if the socket is full.
  void SendBytes(std::span<const std::byte> bytes);
  // Sends the messages of `unsent_` for which the socket has room.
  void SendUnsent();
  // Selects whether RingServer::fd() is also readable while the socket has room. Returns whether
  // this succeeded.
  bool WaitForRoom(bool waits);
  // Makes the next call of Serve() disconnect the client, because of the error `error`.
  void Fail(int error);

  State state_ = State::kGreeting;
  std::uint64_t number_ = 0;
  base::UniqueFd socket_;
  pid_t pid_ = 0;
  uid_t uid_ = 0;
  base::UniqueFd pidfd_;
  std::unique_ptr<RingRegion> region_;
  std::unique_ptr<RingMirror> mirror_;  // null: the service shares its region
  std::string inline_reason_;
  std::uint64_t chunk_bytes_ = 0;
  std::uint64_t charged_bytes_ = 0;  // bytes of User::bytes that belong to this client
  std::uint64_t enabled_ = 0;
  std::uint64_t connected_at_ = 0;
  std::uint64_t second_ = 0;  // the second of CLOCK_MONOTONIC in which `messages_` were counted
  int messages_ = 0;
  bool awaits_inline_ = false;  // was asked for an inline Hello
  std::uint64_t sent_until_ = 0;
  bool has_end_ = false;
  // Messages for which the socket has no room yet. Used only if the kernel permits less than
  // ring::kQueueBytes for the queue of the socket.
  std::deque<std::vector<std::byte>> unsent_;
  std::size_t unsent_bytes_ = 0;      // with kMessageCost for each message
  std::size_t max_unsent_bytes_ = 0;  // 0 unless that queue is too small
  std::uint32_t max_payload_ = eh::internal::ring::kMaxPayload;  // bytes of Patches in a message
  int epoll_ = -1;                                               // descriptor of the server
  bool failed_ = false;                                          // a message could not be sent
  bool is_full_ = false;  // the reason of failed_: the service does not read its messages
};

// Receives the calls that RingServer::Serve makes about its clients.
class RingServerUser {
 public:
  // Called when the client has handed over its region.
  virtual void Connected(RingClient* client) = 0;
  // Called when the names or registrations of the client's event sets have changed.
  virtual void SetsChanged(RingClient* client) = 0;
  // Called when the connection of a client in state kConnected has ended. The client remains valid
  // until RingServer::Release() is called.
  virtual void Disconnected(RingClient* client) = 0;

 protected:
  ~RingServerUser() = default;
};

// Sets the paths in `*options`: `path` becomes the link, and the socket is in the subfolder
// `services` of the link's folder.
void PlaceInSubfolder(const std::string& path, RingServerOptions* options);

// Holds the socket and its clients. No call blocks while the system can create threads. A client
// that misbehaves is disconnected, which affects no other client. Not thread-safe.
//
// A service may send the descriptor of a file that takes long to close, such as a file of a FUSE
// file system or a socket that lingers. A short-lived thread therefore closes each descriptor that
// is not a memfd, and each connection, because its unread messages may hold such descriptors.
class RingServer {
 public:
  // Uses the socket `options.listening` if it is not -1. Otherwise creates a socket at
  // `options.path`, the folder of this path if it does not exist, and `options.link`. Replaces the
  // socket and link of a collector that has ended. Fails with AlreadyExists if another collector
  // listens at one of the two paths, or if something else exists there. Fails with another error if
  // the socket or the link cannot be created or used.
  static absl::StatusOr<std::unique_ptr<RingServer>> Listen(RingServerOptions options);
  RingServer(const RingServer&) = delete;
  RingServer& operator=(const RingServer&) = delete;
  // Removes the socket and the link if Listen() has created them, and closes the connections.
  ~RingServer();

  // Returns the path to which services connect.
  const std::string& path() const { return options_.link.empty() ? options_.path : options_.link; }
  // A descriptor that is readable while Serve() has work to do.
  int fd() const { return epoll_.get(); }
  // Accepts connections and handles messages. One call handles a limited number of them; fd()
  // remains readable if there are more. Refuses connections beyond the limits of RingServerOptions.
  void Serve(RingServerUser* user);
  // Deletes a client, which must be in state kGone.
  void Release(RingClient* client);

  std::size_t clients() const { return clients_.size(); }
  // Number of users that have connections, or copies of regions that are not released.
  std::size_t users() const { return users_.size(); }
  // Number of connections that the server has refused or ended for a reason of RingRefusal.
  std::uint64_t refused() const { return refusals_.count(); }
  const RingRefusals& refusals() const { return refusals_; }

 private:
  struct User {
    std::size_t clients = 0;
    std::uint64_t bytes = 0;
  };
  struct Received {
    eh::internal::ring::Message message;
    base::UniqueFd fd;                   // the first memfd that came with the message, if any
    bool has_descriptors = false;        // whether any descriptors came with the message
    std::span<const std::byte> payload;  // bytes after the Message, in `payload_`
  };

  explicit RingServer(RingServerOptions options) : options_(std::move(options)) {}

  absl::Status Lock();
  absl::Status Bind();
  absl::Status MakeLink() const;
  absl::Status Adopt();
  void Accept();
  void SetAccepting(bool accepts);
  void AddClient(base::UniqueFd socket);
  // Returns why one more connection of the user would exceed a limit; no value if it would not.
  std::optional<RingRefusal> ExceededLimit(uid_t uid) const;
  void EndConnection(base::UniqueFd socket);
  // Closes the descriptors of `to_close_` in a new thread, or in this thread if no thread can be
  // created.
  void CloseInThread();
  // Receives and handles messages of the client. Returns false if its connection has ended or must
  // be ended.
  bool Receive(RingClient* client, RingServerUser* user);
  // Receives one message. Returns the result of recvmsg.
  ssize_t ReceiveMessage(int socket, Received* received);
  bool Handle(RingClient* client, Received received, RingServerUser* user);
  // Records that the connection of the client is ended, and why. Returns false, so that the caller
  // can return the result from Receive().
  bool Refuse(const RingClient& client, RingRefusal reason, std::string detail = "");
  bool Greet(RingClient* client, Received hello, RingServerUser* user);
  // Subtracts the client's bytes and connections from those of its user.
  void Uncharge(RingClient* client, std::size_t clients, std::uint64_t bytes);
  // Counts one message of the client. Returns false if the client has sent too many messages in the
  // current second.
  bool CountMessage(RingClient* client) const;
  void Disconnect(RingClient* client, RingServerUser* user);
  void DropSilent(RingServerUser* user);

  RingServerOptions options_;
  base::UniqueFd lock_;
  base::UniqueFd socket_;
  base::UniqueFd epoll_;
  base::UniqueFd spare_;  // closed to accept a connection when the process has no free descriptor
  std::uint64_t next_number_ = 1;
  absl::flat_hash_map<std::uint64_t, std::unique_ptr<RingClient>> clients_;  // by number
  absl::flat_hash_map<uid_t, User> users_;
  // Numbers of the clients in state kGreeting. May also contain clients that have left this state;
  // DropSilent() removes them.
  std::vector<std::uint64_t> greeting_;
  std::vector<base::UniqueFd> to_close_;
  std::vector<std::byte> payload_ = std::vector<std::byte>(eh::internal::ring::kMaxPayload);
  // Number of threads that close descriptors. They may outlive the server.
  std::shared_ptr<std::atomic<int>> closers_ = std::make_shared<std::atomic<int>>(0);
  std::uint64_t copies_bytes_ = 0;  // part of User::bytes of all users that is for copies
  bool accepts_ = true;
  RingRefusals refusals_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_RING_RING_SERVER_H_
