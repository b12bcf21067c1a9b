#include "tools/collector/ring/ring_server.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libeventheader/base/ring_queue.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // since Linux 6.5; older headers of libc lack it
#endif

namespace collector {
namespace {

namespace ring = eh::internal::ring;
using ring::Message;
using ring::MessageType;

// Maximum number of connections that wait for accept(). Services connect without waiting, so there
// must be room for all services that start at the same time.
constexpr int kBacklog = 4096;
// Epoll data of the listening socket. The data of each other socket is the number of its client.
constexpr std::uint64_t kListener = 0;
constexpr std::uint64_t kSecond = 1'000'000'000;
// Maximum number of descriptors in a message (SCM_MAX_FD in the kernel). If the buffer of recvmsg
// had less room, the kernel would close the remaining descriptors in the calling thread, which may
// block.
constexpr std::size_t kMostDescriptors = 253;

std::uint64_t Now() { return base::Nanoseconds(base::MonotonicNow()); }

bool IsListening(const sockaddr_un& address) {
  const base::UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return false;
  // EAGAIN: a collector listens, but too many connections wait for accept().
  return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

// The uid of a connection whose user the kernel does not report.
constexpr auto kUnknownUser = static_cast<uid_t>(-1);

// Reads which process and user the kernel reports for the other end of the connection. Leaves
// `*peer` unchanged on failure.
absl::Status ReadPeer(int socket, ucred* peer) {
  socklen_t size = sizeof(*peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, peer, &size) == 0) return absl::OkStatus();
  return base::ErrnoStatus(errno, "the process that connected is not known: SO_PEERCRED");
}

// Creates the folder of `path` if it does not exist, with mode 0755, so that services of all users
// can reach the socket.
absl::Status MakeFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) return absl::OkStatus();
  // chmod gives the rights that the umask may have removed.
  if (mkdir(folder.c_str(), 0755) == 0 ? chmod(folder.c_str(), 0755) != 0 : errno != EEXIST) {
    return base::ErrnoStatus(errno, absl::StrCat(folder, ": cannot be created"),
                             "create it, or set EVENTHEADER_SOCKET to another path");
  }
  return absl::OkStatus();
}

// Returns the path of the socket for services of this user; "" if XDG_RUNTIME_DIR is not set to an
// absolute path.
std::string UserSocketPath() {
  const char* const folder = secure_getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && *folder == '/' ? absl::StrCat(folder, ring::kUserSocket) : "";
}

// Fails with AlreadyExists if a collector listens at this path, or if something exists there that
// is not a socket. A symbolic link is no error if `may_be_link` is set.
absl::Status CheckFree(const std::string& path, bool may_be_link) {
  struct stat old {};
  if (lstat(path.c_str(), &old) != 0) return absl::OkStatus();
  if (!S_ISSOCK(old.st_mode) && !(may_be_link && S_ISLNK(old.st_mode))) {
    return absl::AlreadyExistsError(absl::StrCat(path, ": exists and is not a socket; remove it"));
  }
  return HasCollector(path) ? TakenError(path) : absl::OkStatus();
}

// Bytes of memory that are counted for a stored message, in addition to its size.
constexpr std::size_t kMessageCost = 64;

// Sends a message without waiting. Returns 0 or an errno.
int SendNow(int socket, std::span<const std::byte> bytes) {
  const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return errno;
  return sent == static_cast<ssize_t>(bytes.size()) ? 0 : EMSGSIZE;
}

}  // namespace

void PlaceInSubfolder(const std::string& path, RingServerOptions* options) {
  const std::filesystem::path link(path);
  options->link = path;
  options->path = link.parent_path() / "services" / link.filename();
}

std::string ChosenRingSocket() {
  const char* const chosen = secure_getenv("EVENTHEADER_SOCKET");
  return chosen == nullptr ? "" : chosen;
}

absl::StatusOr<std::string> RingSocketPath() {
  if (std::string chosen = ChosenRingSocket(); !chosen.empty()) return chosen;
  if (geteuid() == 0) return std::string(ring::kSystemSocket);
  if (std::string path = UserSocketPath(); !path.empty()) return path;
  return absl::FailedPreconditionError(
      "no directory for the socket of services: XDG_RUNTIME_DIR is not set to an absolute path; "
      "log in as a user, run as root, or set EVENTHEADER_SOCKET to a path for the collector and "
      "its services");
}

bool HasCollector(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return IsListening(address);
}

std::string FindCollector() {
  if (HasCollector(ring::kSystemSocket)) return ring::kSystemSocket;
  std::string path = UserSocketPath();
  return !path.empty() && HasCollector(path) ? path : "";
}

absl::Status TakenError(const std::string& path) {
  return absl::AlreadyExistsError(
      absl::StrCat(path,
                   ": another collector receives events at this socket; stop it, or set "
                   "EVENTHEADER_SOCKET to another path for this collector and its services"));
}

bool RingClient::IsAlive() const {
  if (!pidfd_.valid()) return false;
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

void RingClient::SendChanges() {
  if (mirror_ == nullptr) return;
  mirror_->TakeChanges(max_payload_, [this](std::span<const std::byte> patches) {
    const Message message{ring::kMessageMagic, MessageType::kPatch, 0, ring::kVersion,
                          static_cast<std::uint32_t>(getpid())};
    std::vector<std::byte> bytes(sizeof(message) + patches.size());
    std::memcpy(bytes.data(), &message, sizeof(message));
    std::memcpy(bytes.data() + sizeof(message), patches.data(), patches.size());
    SendBytes(bytes);
  });
}

void RingClient::Send(MessageType type, std::uint64_t value) {
  SendChanges();
  const Message message{ring::kMessageMagic, type, value, ring::kVersion,
                        static_cast<std::uint32_t>(getpid())};
  SendBytes(std::as_bytes(std::span(&message, 1)));
}

void RingClient::SendBytes(std::span<const std::byte> bytes) {
  if (state_ == State::kGone || failed_) return;
  int error = EAGAIN;
  if (unsent_.empty()) {
    error = SendNow(socket_.get(), bytes);
    if (error == 0) return;
  }
  const std::size_t size = bytes.size() + kMessageCost;
  if (error != EAGAIN || unsent_bytes_ + size > max_unsent_bytes_) return Fail(error);
  if (unsent_.empty() && !WaitForRoom(true)) return Fail(errno);
  unsent_.emplace_back(bytes.begin(), bytes.end());
  unsent_bytes_ += size;
}

void RingClient::SendUnsent() {
  while (!unsent_.empty() && !failed_) {
    const int error = SendNow(socket_.get(), unsent_.front());
    if (error == EAGAIN) return;
    if (error != 0) return Fail(error);
    unsent_bytes_ -= unsent_.front().size() + kMessageCost;
    unsent_.pop_front();
    if (unsent_.empty() && !WaitForRoom(false)) Fail(errno);
  }
}

bool RingClient::WaitForRoom(bool waits) {
  epoll_event event{};
  event.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = number_;
  return epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event) == 0;
}

void RingClient::Fail(int error) {
  // A message could not be sent, so the collector can no longer control the service. If the
  // socket is full, the service does not read its messages. Shutting the connection down makes the
  // socket readable, so that Serve() disconnects the client.
  failed_ = true;
  is_full_ = error == EAGAIN;
  shutdown(socket_.get(), SHUT_RDWR);
}

absl::StatusOr<std::unique_ptr<RingServer>> RingServer::Listen(RingServerOptions options) {
  auto server = std::unique_ptr<RingServer>(new RingServer(std::move(options)));
  server->epoll_ = base::UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  if (!server->epoll_.valid())
    return base::DescriptorStatus(errno, "waiting for services: epoll_create1");
  server->spare_ = base::UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (server->options_.listening >= 0) {
    RETURN_IF_ERROR(server->Adopt());
  } else {
    RETURN_IF_ERROR(server->Lock());
    RETURN_IF_ERROR(server->Bind());
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kListener;
  if (epoll_ctl(server->epoll_.get(), EPOLL_CTL_ADD, server->socket_.get(), &event) != 0) {
    return base::ErrnoStatus(errno, "waiting for services: epoll_ctl");
  }
  return server;
}

// Locks a file next to path(). The lock is released when the server is destroyed or its process
// ends. The file is never removed: otherwise two collectors could each lock a file of that name.
absl::Status RingServer::Lock() {
  RETURN_IF_ERROR(MakeFolderOf(this->path()));
  RETURN_IF_ERROR(MakeFolderOf(options_.path));
  const std::string path = absl::StrCat(this->path(), ".lock");
  lock_ = base::UniqueFd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) {
    return base::ErrnoStatus(
        errno, absl::StrCat(path, ": cannot be opened"),
        "run as the owner of its directory, or set EVENTHEADER_SOCKET to another path");
  }
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  if (errno != EWOULDBLOCK) {
    return base::ErrnoStatus(errno, absl::StrCat(path, ": cannot be locked"),
                             "set EVENTHEADER_SOCKET to a path in another file system");
  }
  return TakenError(this->path());
}

// Creates the socket under another name, and renames it when it listens. Services watch the folder
// and connect as soon as the name appears, so the socket must already listen then.
absl::Status RingServer::Bind() {
  const std::string& path = options_.path;
  const std::string temporary = absl::StrCat(path, ".new");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the path is too long (", path.size(),
                                                   " bytes); use at most ",
                                                   sizeof address.sun_path - 5, " bytes"));
  }
  RETURN_IF_ERROR(CheckFree(path, /*may_be_link=*/false));
  if (!options_.link.empty()) RETURN_IF_ERROR(CheckFree(options_.link, /*may_be_link=*/true));
  std::memcpy(address.sun_path, temporary.data(), temporary.size());
  unlink(temporary.c_str());
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid())
    return base::ErrnoStatus(errno, absl::StrCat(path, ": cannot create the socket"));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.get(), kBacklog) != 0 || chmod(temporary.c_str(), options_.mode) != 0 ||
      rename(temporary.c_str(), path.c_str()) != 0) {
    return base::ErrnoStatus(
        errno, absl::StrCat(path, ": cannot create the socket"),
        "run as the owner of its directory, or set EVENTHEADER_SOCKET to another path");
  }
  socket_ = std::move(socket);
  return options_.link.empty() ? absl::OkStatus() : MakeLink();
}

// Replaces the link even if it exists, because services wait for a change in the folder of the
// link.
absl::Status RingServer::MakeLink() const {
  const std::filesystem::path link(options_.link);
  const std::string temporary = absl::StrCat(options_.link, ".new");
  const std::string target =
      std::filesystem::path(options_.path).lexically_relative(link.parent_path());
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0 ||
      rename(temporary.c_str(), options_.link.c_str()) != 0) {
    return base::ErrnoStatus(
        errno, absl::StrCat(options_.link, ": cannot create the link"),
        "run as the owner of its directory, or set EVENTHEADER_SOCKET to another path");
  }
  return absl::OkStatus();
}

absl::Status RingServer::Adopt() {
  base::UniqueFd socket(fcntl(options_.listening, F_DUPFD_CLOEXEC, 0));
  const int flags = socket.valid() ? fcntl(socket.get(), F_GETFL) : -1;
  if (flags < 0 || fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
    return base::ErrnoStatus(errno, absl::StrCat(options_.path, ": cannot use the open socket"));
  }
  socket_ = std::move(socket);
  return absl::OkStatus();
}

RingServer::~RingServer() {
  if (socket_.valid() && options_.listening < 0) {
    if (!options_.link.empty()) unlink(options_.link.c_str());
    unlink(options_.path.c_str());
  }
  for (auto& [number, client] : clients_) {
    if (!client->socket_.valid()) continue;
    client->SendUnsent();
    EndConnection(std::move(client->socket_));
  }
  CloseInThread();
}

void RingServer::Serve(RingServerUser* user) {
  if (!accepts_) SetAccepting(closers_->load() < options_.closers);
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, 0);
  for (int i = 0; i < count; ++i) {
    // Copies the number, because epoll_event is packed and its members may be unaligned.
    const std::uint64_t number = events[i].data.u64;
    if (number == kListener) {
      Accept();
      continue;
    }
    const auto found = clients_.find(number);
    if (found == clients_.end()) continue;
    RingClient* const client = found->second.get();
    client->SendUnsent();
    if (!Receive(client, user)) {
      if (client->is_full_) Refuse(*client, RingRefusal::kReadsNothing);
      Disconnect(client, user);
    }
  }
  if (!greeting_.empty()) DropSilent(user);
  CloseInThread();
  if (accepts_ && closers_->load() >= options_.closers) SetAccepting(false);
}

// Starts or stops waiting for connections. New connections stay in the kernel's queue while the
// server does not wait for them.
void RingServer::SetAccepting(bool accepts) {
  epoll_event event{};
  event.events = accepts ? EPOLLIN : 0U;
  event.data.u64 = kListener;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, socket_.get(), &event) == 0) accepts_ = accepts;
}

// Shuts the connection down, so that the service notices the end at once, and keeps the socket for
// CloseInThread. Closing the socket may block, because it also closes the descriptors in unread
// messages.
void RingServer::EndConnection(base::UniqueFd socket) {
  shutdown(socket.get(), SHUT_RDWR);
  to_close_.push_back(std::move(socket));
}

void RingServer::CloseInThread() {
  if (to_close_.empty()) return;
  // Blocks all signals while the thread is created, because the thread inherits the mask: the other
  // threads of the process must handle the signals.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  closers_->fetch_add(1);
  try {
    std::thread([fds = std::move(to_close_), closers = closers_]() mutable {
      fds.clear();
      closers->fetch_sub(1);
    }).detach();
  } catch (const std::system_error&) {
    // The thread could not be created. The function object was destroyed, which has closed the
    // descriptors in the calling thread.
    closers_->fetch_sub(1);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  to_close_.clear();
}

void RingServer::Accept() {
  for (int i = 0; i < options_.accepts_of_round; ++i) {
    base::UniqueFd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid()) {
      AddClient(std::move(socket));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE) return;
    // The process has no free descriptor. Closes the spare descriptor, accepts the connection in
    // its place, and ends the connection. Otherwise the listening socket would stay readable.
    spare_.reset();
    socket = base::UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool is_refused = socket.valid();
    ucred peer{0, kUnknownUser, 0};
    if (is_refused) ReadPeer(socket.get(), &peer).IgnoreError();
    refusals_.Add(peer.uid, peer.pid, RingRefusal::kNoDescriptor);
    socket.reset();
    spare_ = base::UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!is_refused) return;
  }
}

std::optional<RingRefusal> RingServer::ExceededLimit(uid_t uid) const {
  if (clients_.size() >= options_.clients) return RingRefusal::kTooManyServices;
  const auto user = users_.find(uid);
  const std::size_t clients = user == users_.end() ? 0 : user->second.clients;
  if (clients >= options_.clients_of_user) return RingRefusal::kTooManyOfUser;
  return std::nullopt;
}

void RingServer::AddClient(base::UniqueFd socket) {
  ucred peer{0, kUnknownUser, 0};
  const absl::Status is_known = ReadPeer(socket.get(), &peer);
  auto client = std::make_unique<RingClient>();
  client->pid_ = peer.pid;
  client->uid_ = peer.uid;
  client->socket_ = std::move(socket);
  setsockopt(client->socket_.get(), SOL_SOCKET, SO_SNDBUF, &ring::kQueueBytes,
             sizeof(ring::kQueueBytes));
  client->max_payload_ = ring::MaxPayload(client->socket_.get());
  constexpr std::uint32_t kFullQueue = 2 * ring::kQueueBytes;
  client->max_unsent_bytes_ =
      kFullQueue - std::min(ring::QueueSize(client->socket_.get()), kFullQueue);
  client->epoll_ = epoll_.get();
  if (!is_known.ok()) {
    Refuse(*client, RingRefusal::kSystemError, std::string(is_known.message()));
    EndConnection(std::move(client->socket_));
    return;
  }
  if (const std::optional<RingRefusal> limit = ExceededLimit(peer.uid)) {
    // Reads the message Hello: if it stayed unread, the end of the connection would discard the
    // answer Refuse.
    Received hello;
    ReceiveMessage(client->socket_.get(), &hello);
    client->Send(MessageType::kRefuse,
                 static_cast<std::uint64_t>(ring::RefuseReason::kTooManyClients));
    Refuse(*client, *limit);
    EndConnection(std::move(client->socket_));
    return;
  }
  client->number_ = next_number_++;
  client->connected_at_ = Now();
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (getsockopt(client->socket_.get(), SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) != 0) {
    // Linux before 6.5 has no SO_PEERPIDFD. With pidfd_open, the descriptor may be that of another
    // process: the service may have ended since it connected, and its pid may have been reused.
    pidfd = peer.pid == 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
  }
  client->pidfd_ = base::UniqueFd(pidfd);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = client->number_;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client->socket_.get(), &event) != 0) {
    Refuse(
        *client, RingRefusal::kSystemError,
        std::string(
            base::ErrnoStatus(errno, "waiting for messages of the service: epoll_ctl").message()));
    EndConnection(std::move(client->socket_));
    return;
  }
  ++users_[client->uid_].clients;
  greeting_.push_back(client->number_);
  clients_.emplace(client->number_, std::move(client));
}

bool RingServer::Refuse(const RingClient& client, RingRefusal reason, std::string detail) {
  refusals_.Add(client.uid(), client.pid(), reason, std::move(detail));
  return false;
}

ssize_t RingServer::ReceiveMessage(int socket, Received* received) {
  *received = {};
  iovec parts[2] = {{&received->message, sizeof(received->message)},
                    {payload_.data(), payload_.size()}};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = std::size(parts);
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  const ssize_t got = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  const std::size_t size = std::max(static_cast<std::size_t>(got), sizeof(received->message));
  received->payload = std::span(payload_).first(size - sizeof(received->message));
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= each->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, reinterpret_cast<const char*>(each) + at, sizeof(number));
      base::UniqueFd owned(number);
      received->has_descriptors = true;
      // Only memfds and files of tmpfs have seals, and closing such a file never blocks.
      // F_GET_SEALS never blocks either, whereas fstat may block for a file of another file system.
      const bool is_memfd = fcntl(number, F_GET_SEALS) >= 0;
      if (!is_memfd) {
        to_close_.push_back(std::move(owned));
      } else if (!received->fd.valid()) {
        received->fd = std::move(owned);
      }
    }
  }
  return got;
}

bool RingServer::Receive(RingClient* client, RingServerUser* user) {
  for (int i = 0; i < options_.messages_of_round; ++i) {
    Received received;
    const Message& message = received.message;
    const ssize_t got = ReceiveMessage(client->socket_.get(), &received);
    // ECONNRESET: the service has closed its end without having read all messages. Its last
    // messages are still in the queue.
    if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    if (got < 0 && errno == EAGAIN) return !client->failed_;
    // 0 is the end of the connection; a negative value is an error of the connection.
    if (got <= 0) return false;
    // A message of an unknown type is ignored, and may be shorter than Message: it needs only a
    // magic number and a type.
    const bool has_type = got >= static_cast<ssize_t>(offsetof(Message, value));
    if (!has_type || message.magic != ring::kMessageMagic) {
      return Refuse(*client, RingRefusal::kBadMessage);
    }
    if (!CountMessage(client)) return Refuse(*client, RingRefusal::kTooManyMessages);
    const bool is_known = message.type >= MessageType::kHello && message.type <= MessageType::kEnd;
    if (!is_known) continue;
    if (got < static_cast<ssize_t>(sizeof(message))) {
      return Refuse(*client, RingRefusal::kBadMessage);
    }
    if (!Handle(client, std::move(received), user)) return false;
  }
  // The socket may have more messages, which the next calls read. This applies even if the
  // connection has failed: the service cannot add more messages then, and the unread messages may
  // contain the last events of an inline service.
  return true;
}

bool RingServer::CountMessage(RingClient* client) const {
  const std::uint64_t second = Now() / kSecond;
  if (client->second_ != second) {
    client->second_ = second;
    client->messages_ = 0;
  }
  return ++client->messages_ <= options_.messages_of_second;
}

bool RingServer::Handle(RingClient* client, Received received, RingServerUser* user) {
  const Message message = received.message;
  if (client->state_ == RingClient::State::kGreeting) {
    if (message.type == MessageType::kHello) return Greet(client, std::move(received), user);
    if (client->awaits_inline_) return true;
    return Refuse(*client, RingRefusal::kBadMessage, "the first message is not Hello");
  }
  if (client->has_end_) {
    client->has_end_ = false;
    return Refuse(*client, RingRefusal::kBadMessage, "a message after End");
  }
  switch (message.type) {
    case MessageType::kSets:
      user->SetsChanged(client);
      return true;
    case MessageType::kEnabled:
      client->enabled_ = message.value;
      return true;
    case MessageType::kHello:
      return Refuse(*client, RingRefusal::kBadMessage, "a second Hello");
    case MessageType::kPatch:
      if (client->mirror_ == nullptr || !client->mirror_->Apply(received.payload)) {
        return Refuse(*client, RingRefusal::kBadMessage, "a malformed Patch");
      }
      client->sent_until_ = std::max(client->sent_until_, std::min(message.value, Now()));
      return true;
    case MessageType::kEnd:
      if (client->mirror_ == nullptr || !received.payload.empty()) {
        return Refuse(*client, RingRefusal::kBadMessage, "a malformed End");
      }
      client->has_end_ = true;
      return true;
    case MessageType::kBye:
      return false;
    default:
      // kFull, kFlushed and kGrown only wake the collector, which then reads the region.
      return true;
  }
}

bool RingServer::Greet(RingClient* client, Received received, RingServerUser* user) {
  const Message& hello = received.message;
  const auto refuse = [&](ring::RefuseReason answer, RingRefusal reason, std::string detail = "") {
    client->Send(MessageType::kRefuse, static_cast<std::uint64_t>(answer));
    return Refuse(*client, reason, std::move(detail));
  };
  // Refuses the service for the error of its region or of the copy of the region.
  const auto refuse_for = [&](const absl::Status& status) {
    std::string detail(status.message());
    if (absl::IsOutOfRange(status)) {
      return refuse(ring::RefuseReason::kTooLarge, RingRefusal::kRegionTooLarge, std::move(detail));
    }
    if (absl::IsInvalidArgument(status)) {
      return refuse(ring::RefuseReason::kBadRegion, RingRefusal::kBadRegion, std::move(detail));
    }
    return refuse(ring::RefuseReason::kTooManyClients, RingRefusal::kSystemError,
                  std::move(detail));
  };
  if (hello.version < ring::kVersion) {
    return refuse(ring::RefuseReason::kNoCommonVersion, RingRefusal::kOldVersion,
                  absl::StrCat("the service has version ", hello.version,
                               ", the collector version ", ring::kVersion));
  }
  if ((hello.value & ring::kSupportsInline) != 0 && !received.has_descriptors &&
      !client->awaits_inline_) {
    client->awaits_inline_ = true;
    client->Send(MessageType::kRefuse,
                 static_cast<std::uint64_t>(ring::RefuseReason::kNoDescriptor));
    return true;
  }
  const bool is_inline = (hello.value & ring::kIsInline) != 0;
  if (is_inline) {
    const std::uint64_t chunks =
        std::min<std::uint64_t>(options_.bytes_of_client / ring::kChunkBytes, ring::kMaxChunks);
    auto mirror = RingMirror::Create(received.payload, static_cast<std::uint32_t>(chunks));
    if (!mirror.ok()) return refuse_for(mirror.status());
    client->mirror_ = *std::move(mirror);
    client->inline_reason_ = RingMirror::ReasonOf(hello.value);
    client->sent_until_ = std::min(client->mirror_->created(), Now());
    received.fd = client->mirror_->Duplicate();
  }
  auto region = RingRegion::Open(std::move(received.fd), {options_.region_bytes});
  if (!region.ok()) return refuse_for(region.status());
  User& owner = users_[client->uid_];
  const std::uint64_t chunk_bytes = std::min(
      options_.bytes_of_client, std::uint64_t{(*region)->chunk_count()} * ring::kChunkBytes);
  const std::uint64_t bytes =
      is_inline ? RingMirror::MemoryOf((*region)->chunk_count()) : chunk_bytes;
  const auto refuse_bytes = [&](const char* what, std::uint64_t used, std::uint64_t most) {
    return refuse(ring::RefuseReason::kTooManyClients, RingRefusal::kTooManyBytes,
                  absl::StrCat(what, " ", used, " of at most ", most,
                               " bytes, and this service needs ", bytes));
  };
  if (owner.bytes + bytes > options_.bytes_of_user) {
    return refuse_bytes("the rings of this user take", owner.bytes, options_.bytes_of_user);
  }
  if (is_inline && copies_bytes_ + bytes > options_.bytes_of_copies) {
    return refuse_bytes("the collector's copies of the rings of all users take", copies_bytes_,
                        options_.bytes_of_copies);
  }
  owner.bytes += bytes;
  if (is_inline) copies_bytes_ += bytes;
  client->chunk_bytes_ = chunk_bytes;
  client->charged_bytes_ = bytes;
  client->region_ = *std::move(region);
  client->state_ = RingClient::State::kConnected;
  const std::uint64_t chunks = std::max<std::uint64_t>(chunk_bytes / ring::kChunkBytes, 1);
  // A previous collector may have left choices of enabled and disabled sets in the region.
  client->region_->DisableAll();
  client->Send(MessageType::kWelcome, chunks);
  user->Connected(client);
  return true;
}

void RingServer::Disconnect(RingClient* client, RingServerUser* user) {
  const bool was_connected = client->state_ == RingClient::State::kConnected;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, client->socket_.get(), nullptr);
  EndConnection(std::move(client->socket_));
  client->state_ = RingClient::State::kGone;
  // The copy of a region stays in the collector's memory until Release(), so its bytes stay charged
  // to the user until then.
  Uncharge(client, 1, client->mirror_ != nullptr ? 0 : client->charged_bytes_);
  if (was_connected) {
    user->Disconnected(client);
  } else {
    clients_.erase(client->number_);
  }
}

void RingServer::Uncharge(RingClient* client, std::size_t clients, std::uint64_t bytes) {
  User& owner = users_[client->uid_];
  owner.clients -= clients;
  owner.bytes -= bytes;
  client->charged_bytes_ -= bytes;
  if (owner.clients == 0 && owner.bytes == 0) users_.erase(client->uid_);
}

void RingServer::DropSilent(RingServerUser* user) {
  const std::uint64_t now = Now();
  std::erase_if(greeting_, [&](std::uint64_t number) {
    const auto found = clients_.find(number);
    if (found == clients_.end()) return true;
    RingClient* const client = found->second.get();
    if (client->state_ != RingClient::State::kGreeting) return true;
    if (now - client->connected_at_ < options_.greeting_time) return false;
    Refuse(*client, RingRefusal::kNoHello);
    Disconnect(client, user);
    return true;
  });
}

void RingServer::Release(RingClient* client) {
  if (client->mirror_ != nullptr) {
    for (auto& [number, other] : clients_) {
      // Passes the numbers of accounted events only to a later connection of the same process.
      // Another process could state the id of a service's region, and so make the collector skip
      // events of that service.
      if (number > client->number_ && other->pid_ == client->pid_ && other->mirror_ != nullptr &&
          other->region_ != nullptr && other->region_->id() == client->region_->id()) {
        other->mirror_->Inherit(*client->mirror_);
      }
    }
    copies_bytes_ -= client->charged_bytes_;
    Uncharge(client, 0, client->charged_bytes_);
  }
  clients_.erase(client->number_);
}

}  // namespace collector
