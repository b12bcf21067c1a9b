#include "tools/control/server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/control/access.h"
#include "tools/control/dispatcher.h"
#include "tools/control/messages.h"

namespace control {
namespace {

// Time in which a tail must write its end block. After that, its socket is shut down.
constexpr absl::Duration kTailEndTime = absl::Seconds(2);
// Interval at which the server checks whether a tail has ended.
constexpr absl::Duration kTailInterval = absl::Milliseconds(100);
// Minimum interval between journal entries for refused requests, so that users without access
// cannot fill the journal.
constexpr absl::Duration kRefusalInterval = absl::Seconds(1);
// Interval at which the accepting thread retries failed accepts. At this interval, it also checks
// for tails (live streams of events) that have not ended in time.
constexpr absl::Duration kRetryInterval = absl::Milliseconds(100);
constexpr int kBacklog = 64;

// Returns the timeout in ms for a call of poll() that waits for `time`: at most one hour. Returns
// -1, which means no timeout, for an infinite time.
int PollTimeout(absl::Duration time) {
  if (time == absl::InfiniteDuration()) return -1;
  // Rounds up, so that callers do not poll repeatedly just before the time.
  const std::int64_t milliseconds = absl::ToInt64Milliseconds(time) + 1;
  return static_cast<int>(std::clamp<std::int64_t>(milliseconds, 0, 3'600'000));
}

// Waits until `fd` has one of `events` or an error, and returns the events of `fd`. Returns 0 if
// `time` is over, `stop_fd` is readable, or a signal has arrived.
short WaitFor(int fd, short events, int stop_fd, absl::Duration time) {
  std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{stop_fd, POLLIN, 0}};
  if (poll(fds.data(), fds.size(), PollTimeout(time)) <= 0) return 0;
  return fds[1].revents != 0 ? short{0} : fds[0].revents;
}

bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

// Writes a journal entry for each request that may change something. Entries for refused requests
// have a limited rate. Thread-safe.
class ChangeLog {
 public:
  explicit ChangeLog(std::function<void(const std::string&)> write) : write_(std::move(write)) {}

  void Add(const Peer& peer, const Reply& reply) {
    if (reply.change.empty() || !write_) return;
    if (absl::IsPermissionDenied(reply.status) && !IsRefusalDue()) return;
    write_(absl::StrCat("uid ", peer.user, " pid ", peer.process, ": ", reply.change, ": ",
                        reply.status.ToString()));
  }

 private:
  bool IsRefusalDue() {
    const std::int64_t now = absl::ToInt64Nanoseconds(base::MonotonicNow());
    std::int64_t next = next_refusal_;
    return now >= next && next_refusal_.compare_exchange_strong(
                              next, now + absl::ToInt64Nanoseconds(kRefusalInterval));
  }

  const std::function<void(const std::string&)> write_;
  std::atomic<std::int64_t> next_refusal_ = 0;  // time of MonotonicNow, in ns
};

// One connection, served by one thread.
class Connection : public Caller {
 public:
  Connection(base::UniqueFd socket, Peer peer, Access access, const Dispatcher* dispatcher,
             const ControlServerOptions* options, ChangeLog* change_log, int stop_fd, int wake_fd)
      : socket_(std::move(socket)),
        peer_(std::move(peer)),
        access_(access),
        dispatcher_(dispatcher),
        options_(options),
        change_log_(change_log),
        stop_fd_(stop_fd),
        wake_fd_(wake_fd) {}
  ~Connection() override {
    if (thread_.joinable()) thread_.join();
  }

  // Starts the thread. Throws std::system_error if the thread cannot be created.
  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  uid_t user() const { return peer_.user; }
  // Returns whether the thread has finished its work. Thread-safe.
  bool is_done() const { return is_done_; }
  bool is_ending_tail() const { return tail_end_ != kNever; }
  // Shuts the socket down if the client's tail, a live stream of events, has not ended in time.
  // Thread-safe.
  void ShutDownIfLate() {
    if (ToInt64Nanoseconds(base::MonotonicNow()) >= tail_end_) shutdown(socket_.get(), SHUT_RDWR);
  }

  // Implementation of Caller.
  Access access() const override { return access_; }
  bool Pause(absl::Duration time) override {
    const short events = WaitFor(socket_.get(), 0, stop_fd_, time);
    return events == 0 && !IsReadable(stop_fd_);
  }
  absl::StatusOr<base::UniqueFd> DuplicateSocket() override {
    base::UniqueFd duplicate(fcntl(socket_.get(), F_DUPFD_CLOEXEC, 3));
    if (!duplicate.valid()) return base::ErrnoStatus(errno, "the connection cannot be duplicated");
    return duplicate;
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;

  void Run() {
    try {
      Serve();
    } catch (const std::exception&) {
      // There is not enough memory. Only this connection ends.
    }
    shutdown(socket_.get(), SHUT_RDWR);
    is_done_ = true;
    eventfd_write(wake_fd_, 1);
  }

  void Serve() {
    std::string message;
    while (Receive(&message)) {
      Reply reply = dispatcher_->Handle(message, this);
      change_log_->Add(peer_, reply);
      if (reply.tail != nullptr) return FollowTail(std::move(reply.tail));
      if (!Send(reply.message) || reply.is_last) return;
    }
  }

  // Receives the next message. Returns false if the connection should be closed.
  bool Receive(std::string* message) {
    const std::size_t limit = access_ == Access::kChange ? kMaxRequest : kMaxLookRequest;
    absl::Duration end = base::MonotonicNow() +
                         (received_.empty() ? options_->idle_timeout : options_->message_timeout);
    for (std::size_t searched = 0;;) {
      const std::size_t nul = received_.find('\0', searched);
      if (nul != std::string::npos) {
        message->assign(received_, 0, nul);
        received_.erase(0, nul + 1);
        return true;
      }
      searched = received_.size();
      if (searched >= limit) {
        Send(ErrorMessage(absl::ResourceExhaustedError(absl::StrCat(
            "the request has more than ", limit, " bytes, the maximum; send a shorter one"))));
        return false;
      }
      if (WaitFor(socket_.get(), POLLIN, stop_fd_, end - base::MonotonicNow()) == 0) return false;
      char buffer[4096];
      const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (got <= 0) return false;
      if (received_.empty()) end = base::MonotonicNow() + options_->message_timeout;
      received_.append(buffer, static_cast<std::size_t>(got));
    }
  }

  // Sends a message. Returns false if not all bytes could be sent.
  bool Send(std::string_view message) {
    const absl::Duration end = base::MonotonicNow() + options_->message_timeout;
    while (!message.empty()) {
      const ssize_t sent =
          send(socket_.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) {
        message.remove_prefix(static_cast<std::size_t>(sent));
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return false;
      if (WaitFor(socket_.get(), POLLOUT, stop_fd_, end - base::MonotonicNow()) == 0) return false;
    }
    return true;
  }

  // Waits until the tail has ended, the peer has closed its side, or the server stops. Then ends
  // the tail.
  void FollowTail(std::unique_ptr<Tail> tail) {
    while (!tail->IsEnded()) {
      if (WaitFor(socket_.get(), POLLRDHUP, stop_fd_, kTailInterval) != 0) break;
      if (IsReadable(stop_fd_)) break;
    }
    tail_end_ = absl::ToInt64Nanoseconds(base::MonotonicNow() + kTailEndTime);
    eventfd_write(wake_fd_, 1);
    tail.reset();
    tail_end_ = kNever;
  }

  const base::UniqueFd socket_;
  const Peer peer_;
  const Access access_;
  const Dispatcher* const dispatcher_;
  const ControlServerOptions* const options_;
  ChangeLog* const change_log_;
  const int stop_fd_;
  const int wake_fd_;
  std::string received_;  // bytes that arrived after the last message that Receive returned
  std::atomic<std::int64_t> tail_end_ = kNever;  // time by which the tail must have ended, in ns
  std::atomic<bool> is_done_ = false;
  std::thread thread_;
};

// Owns the socket file and the lock file beside it.
class ListeningSocket {
 public:
  ListeningSocket() = default;
  ListeningSocket(ListeningSocket&&) = default;
  ListeningSocket& operator=(ListeningSocket&&) = default;
  ~ListeningSocket() { Close(); }

  static absl::StatusOr<ListeningSocket> Open(const std::string& path, const AccessRules& rules) {
    ListeningSocket result;
    result.path_ = path;
    RETURN_IF_ERROR(result.Lock());
    RETURN_IF_ERROR(result.Bind());
    // Sets the access rules before listen, because clients can connect once listen has returned.
    RETURN_IF_ERROR(rules.Apply(path));
    if (listen(result.socket_.get(), kBacklog) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat(path, ": listen"));
    }
    return result;
  }
  int fd() const { return socket_.get(); }
  // Removes the socket file. Keeps the lock, so that no other daemon serves the path while this one
  // has connections.
  void Close() {
    if (socket_.valid()) unlink(path_.c_str());
    socket_.reset();
  }

 private:
  // Takes the lock, which lasts until this object is destroyed or the process ends, even by a
  // crash. The lock file is never removed. If it were removed while another process opens it, two
  // daemons could each hold a lock.
  absl::Status Lock() {
    const std::string path = absl::StrCat(path_, ".lock");
    lock_ = base::UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.valid()) {
      return base::ErrnoStatus(errno, absl::StrCat(path, ": cannot be opened"),
                               "its directory must exist and belong to the daemon's user");
    }
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
    if (errno != EWOULDBLOCK) return base::ErrnoStatus(errno, absl::StrCat(path, ": flock"));
    return absl::AlreadyExistsError(
        absl::StrCat(path_, ": another daemon serves this socket; stop it first"));
  }

  absl::Status Bind() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path) {
      return absl::InvalidArgumentError(
          absl::StrCat(path_, ": the path has ", path_.size(), " bytes; a socket path has at most ",
                       sizeof address.sun_path - 1, ", so use a shorter runtime_directory"));
    }
    std::memcpy(address.sun_path, path_.data(), path_.size());
    struct stat old = {};
    if (lstat(path_.c_str(), &old) == 0) {
      if (!S_ISSOCK(old.st_mode)) {
        return absl::AlreadyExistsError(
            absl::StrCat(path_, ": exists and is not a socket; remove it"));
      }
      unlink(path_.c_str());
    }
    base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid())
      return base::DescriptorStatus(errno, "creating the control socket: socket");
    if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return base::ErrnoStatus(errno, absl::StrCat(path_, ": cannot create the socket"),
                               "let the daemon's user create files in the socket's directory, or "
                               "choose another directory with --runtime-directory");
    }
    socket_ = std::move(socket);
    return absl::OkStatus();
  }

  std::string path_;
  base::UniqueFd lock_;
  base::UniqueFd socket_;
};

class Server : public ControlServer {
 public:
  Server(Service* service, ControlServerOptions options, AccessRules rules, ListeningSocket socket,
         base::UniqueFd stop, base::UniqueFd wake)
      : options_(std::move(options)),
        rules_(rules),
        dispatcher_(service, options_.version),
        change_log_(options_.on_change),
        socket_(std::move(socket)),
        stop_(std::move(stop)),
        wake_(std::move(wake)),
        thread_([this] { Run(); }) {}
  ~Server() override {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

 private:
  void Run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the connections' threads inherit the mask
    while (!IsReadable(stop_.get())) {
      Wait(AcceptAll() ? socket_.fd() : -1, stop_.get());
    }
    socket_.Close();
    while (!connections_.empty()) Wait(-1, -1);
  }

  // Waits until a connection arrives at `listening`, a connection is done, or `stop` is readable.
  // Ignores a descriptor of -1. Waits at most kRetryInterval if `listening` is -1 or a tail must
  // end. Removes finished connections, and shuts down the sockets of late tails.
  void Wait(int listening, int stop) {
    const bool is_tail_ending =
        std::any_of(connections_.begin(), connections_.end(),
                    [](const Connection& connection) { return connection.is_ending_tail(); });
    std::array<pollfd, 3> fds = {pollfd{listening, POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0},
                                 pollfd{stop, POLLIN, 0}};
    poll(fds.data(), fds.size(),
         listening < 0 || is_tail_ending ? PollTimeout(kRetryInterval) : -1);
    eventfd_t count = 0;
    eventfd_read(wake_.get(), &count);
    connections_.remove_if([](const Connection& connection) { return connection.is_done(); });
    for (Connection& connection : connections_) connection.ShutDownIfLate();
  }

  // Accepts all waiting connections. Returns false if accepting must be retried after an error,
  // such as a lack of descriptors.
  bool AcceptAll() {
    for (;;) {
      base::UniqueFd socket(accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket.valid()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        return errno == EAGAIN;
      }
      try {
        Accept(std::move(socket));
      } catch (const std::exception&) {
        // There is not enough memory. The connection is closed, and the peer may retry.
      }
    }
  }

  void Accept(base::UniqueFd socket) {
    absl::StatusOr<Peer> peer = PeerOf(socket.get());
    const Access access = peer.ok() ? rules_.Of(*peer) : Access::kNone;
    if (access == Access::kNone) {
      return Refuse(socket.get(),
                    absl::PermissionDeniedError(
                        "access denied; only root, the daemon's user and members of look_group and "
                        "control_group may use this socket"));
    }
    if (IsFull(peer->user)) {
      return Refuse(socket.get(), absl::ResourceExhaustedError(absl::StrCat(
                                      "too many connections (the maximum is ",
                                      MaxConnectionsText(peer->user), "); close some of them")));
    }
    connections_.emplace_back(std::move(socket), *std::move(peer), access, &dispatcher_, &options_,
                              &change_log_, stop_.get(), wake_.get());
    try {
      connections_.back().Start();
    } catch (const std::exception&) {
      connections_.pop_back();
    }
  }

  // Returns whether the limits forbid another connection of this user.
  bool IsFull(uid_t user) const {
    if (rules_.IsAdministrator(user)) return connections_.size() >= options_.max_connections;
    const auto of_user =
        std::count_if(connections_.begin(), connections_.end(),
                      [user](const Connection& connection) { return connection.user() == user; });
    return connections_.size() + options_.reserved_connections >= options_.max_connections ||
           static_cast<std::size_t>(of_user) >= options_.max_connections_of_user;
  }

  // Returns the limits that IsFull checks, for a message.
  std::string MaxConnectionsText(uid_t user) const {
    if (rules_.IsAdministrator(user)) return absl::StrCat(options_.max_connections);
    return absl::StrCat(options_.max_connections_of_user, " for a user, and ",
                        options_.max_connections - options_.reserved_connections,
                        " for all users together");
  }

  // Sends the reason for closing the connection. Does not wait, because the send buffer of a new
  // socket has room for the message.
  static void Refuse(int socket, const absl::Status& status) {
    const std::string message = ErrorMessage(status);
    send(socket, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }

  const ControlServerOptions options_;
  const AccessRules rules_;
  const Dispatcher dispatcher_;
  ChangeLog change_log_;
  ListeningSocket socket_;
  const base::UniqueFd stop_;          // readable when the server must end
  const base::UniqueFd wake_;          // readable when a connection is done, or a tail must end
  std::list<Connection> connections_;  // used only by the accepting thread
  std::thread thread_;                 // last member: the thread uses all others
};

}  // namespace

absl::StatusOr<std::unique_ptr<ControlServer>> ControlServer::Start(Service* service,
                                                                    ControlServerOptions options) {
  ASSIGN_OR_RETURN(const AccessRules rules,
                   AccessRules::Of(options.control_group, options.look_group));
  ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Open(options.path, rules));
  base::UniqueFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid() || !wake.valid()) {
    return base::DescriptorStatus(errno, "creating the control socket: eventfd");
  }
  try {
    return std::make_unique<Server>(service, std::move(options), rules, std::move(socket),
                                    std::move(stop), std::move(wake));
  } catch (const std::exception& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the thread of the control socket cannot be started: ", error.what(),
                     "; raise TasksMax= of nettraced.service"));
  }
}

}  // namespace control
