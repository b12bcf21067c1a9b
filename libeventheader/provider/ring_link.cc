#include "libeventheader/provider/ring_link.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "libeventheader/base/errno_keeper.h"
#include "libeventheader/provider/ring_memory.h"

namespace eh::internal {
namespace {

using ring::Message;
using ring::MessageType;

// Maximum number of messages that one call of Step() handles.
constexpr int kMaxMessages = 64;
// Time between attempts to connect, in ms. It starts at kFirstDelay, and doubles with each attempt
// up to kLastDelay.
constexpr int kFirstDelay = 100;
constexpr int kLastDelay = 5000;
// Maximum number of attempts to connect to an existing socket after a watched folder has changed or
// a connection has ended. Afterwards, or if no socket exists, the next attempt is made when a
// watched folder changes. If folders cannot be watched, the next attempt is made after kBlindDelay.
constexpr int kMaxAttempts = 20;
// Time between attempts if folders cannot be watched, in ms.
constexpr int kBlindDelay = 10'000;
// Time between attempts if the caller does not want to watch folders, in ms.
constexpr int kPollDelay = 1000;
// Time between rounds of an inline connection (RingSender) while a set is enabled, in ms, and the
// number of rounds after the last set was disabled: other threads may still be writing events.
constexpr int kRoundTime = 50;
constexpr int kLastRounds = 20;
// Maximum number of complete chunks that wait for the next round.
constexpr std::uint32_t kMaxWaiting = 8;
// Maximum time for which Finish() waits for a collector that takes no data, and maximum time for
// which Finish() blocks in total, in ms.
constexpr int kFinishPause = 1000;
constexpr std::uint64_t kFinishTime = 10'000;
// Size to which Finish() enlarges the full queue of an inline connection, in bytes, so that
// Finish() can still send the counts of events. If the kernel permits a smaller size only, the
// counts may not be sent.
constexpr int kLastQueueBytes = 2 * ring::kQueueBytes;

std::uint64_t NowMs() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000;
}

Message MakeMessage(MessageType type, std::uint64_t value) noexcept {
  return {ring::kMessageMagic, type, value, ring::kVersion, static_cast<std::uint32_t>(getpid())};
}

// Returns whether this error of sendmsg() may mean that the host does not pass descriptors at all.
bool MeansNoDescriptors(int error) noexcept {
  return error == EPERM || error == EACCES || error == EINVAL || error == ENOSYS ||
         error == EOPNOTSUPP || error == EBADF;
}

}  // namespace

void RingLink::Prepare() noexcept {
  if (is_prepared_) return;
  is_prepared_ = true;
  // secure_getenv ignores the variable in a set-user-ID program: a user must not choose where a
  // program with more rights sends its events.
  const char* const chosen = secure_getenv("EVENTHEADER_SOCKET");
  if (chosen != nullptr && *chosen != '\0') {
    // If the path does not fit, paths_[0] stays empty, and Connect() returns ENOENT.
    if (strlen(chosen) < kPathBytes) std::strcpy(paths_[0], chosen);
    return;
  }
  std::strcpy(paths_[0], ring::kSystemSocket);
  const char* const folder = secure_getenv("XDG_RUNTIME_DIR");
  if (folder != nullptr && *folder == '/' &&
      strlen(folder) + sizeof(ring::kUserSocket) <= kPathBytes) {
    std::strcpy(std::strcpy(paths_[1], folder) + strlen(folder), ring::kUserSocket);
  }
}

int RingLink::Step(bool watches) noexcept {
  const ErrnoKeeper keeper;
  if (is_finished_) return -1;
  if (state_ != State::kWaiting) Receive();
  // Restores the bell, the descriptor on which writers send Full, if the program has closed it.
  if (state_ == State::kConnected && !HasBell()) SetBell();
  if (state_ != State::kWaiting) return PumpInline();
  if (!watches) {
    if (NowMs() >= next_time_) {
      TryConnect();
      next_time_ = NowMs() + kPollDelay;
    }
    return state_ == State::kWaiting ? kPollDelay : -1;
  }
  if (inotify_.IsOurs()) {
    pollfd changes{inotify_.fd(), POLLIN, 0};
    if (poll(&changes, 1, 0) == 1) {
      inotify_.Close();
      attempts_ = 0;
      next_time_ = 0;
    }
  }
  // Watches the folders before the attempt to connect, so that a change during the attempt is not
  // missed.
  if (!inotify_.IsOurs()) Watch();
  std::uint64_t now = NowMs();
  if (next_time_ <= now) {
    TryConnect();
    if (state_ != State::kWaiting) return PumpInline();
    now = NowMs();
    const bool exists = error_ != ENOENT && error_ != ENOTDIR;
    int delay = kFirstDelay << std::min(attempts_, 6);
    delay = std::min(delay, kLastDelay);
    if (!exists || attempts_ >= kMaxAttempts) delay = inotify_.fd() >= 0 ? -1 : kBlindDelay;
    ++attempts_;
    next_time_ = delay < 0 ? ~std::uint64_t{0} : now + static_cast<std::uint64_t>(delay);
  }
  return next_time_ == ~std::uint64_t{0} ? -1 : static_cast<int>(next_time_ - now);
}

int RingLink::descriptor() const noexcept {
  if (is_finished_) return -1;
  return state_ == State::kWaiting ? inotify_.fd() : socket_.fd();
}

short RingLink::events() const noexcept {
  return state_ != State::kWaiting && is_full_ ? POLLIN | POLLOUT : POLLIN;
}

void RingLink::Send(MessageType type, std::uint64_t value) noexcept {
  const ErrnoKeeper keeper;
  if (state_ == State::kWaiting || !socket_.IsOurs()) return;
  if (sender_.is_started()) {
    queued_ |= 1U << static_cast<unsigned>(type);
    queued_values_[static_cast<std::size_t>(type)] = value;
    rounds_ = sender_.is_in_round() ? 2 : 1;
    // If Pump() could not send everything, wakes the helper thread, which sends the rest.
    if (CanPump() && !Pump()) ring_memory.SendFull();
    return;
  }
  const Message message = MakeMessage(type, value);
  static_cast<void>(send(socket_.fd(), &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void RingLink::Forget() noexcept {
  const ErrnoKeeper keeper;
  // Close() compares the inode, so it does not close another file that has the socket's number. All
  // inotify descriptors have the same inode, so Close() could close an inotify descriptor of the
  // program. Abandon() closes nothing.
  ring_memory.ClearBell();
  EndInline();
  socket_.Close();
  inotify_.Abandon();
  attempts_ = 0;
  next_time_ = 0;
  if (state_ != State::kWaiting) user_->Disconnected();
  state_ = State::kWaiting;
}

void RingLink::Close() noexcept {
  const ErrnoKeeper keeper;
  EndInline();
  sender_.Close();
  socket_.Close();
  inotify_.Close();
  // Lets the child of a fork try to connect at once.
  attempts_ = 0;
  next_time_ = 0;
  state_ = State::kWaiting;
  is_finished_ = false;
}

// Handles the messages of the collector that have arrived.
void RingLink::Receive() noexcept {
  for (int i = 0; i < kMaxMessages; ++i) {
    Message message;
    iovec parts[2] = {{&message, sizeof(message)}, {nullptr, 0}};
    if (sender_.is_started()) parts[1] = {sender_.input(), ring::kMaxPayload};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    const ssize_t got = recvmsg(socket_.fd(), &header, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // ECONNRESET: the collector has closed its end without having read all messages. Its last
    // messages are still in the queue, and may state which events it has accounted for.
    if (got < 0 && errno == ECONNRESET) continue;
    // Messages of unknown types may be shorter or longer than a Message. Only the members before
    // `value` are required.
    constexpr auto kBegin = static_cast<ssize_t>(offsetof(Message, value));
    if (got < kBegin || message.magic != ring::kMessageMagic) return Drop();
    if (static_cast<std::size_t>(got) < sizeof(message)) {
      std::memset(reinterpret_cast<char*>(&message) + got, 0,
                  sizeof(message) - static_cast<std::size_t>(got));
    }
    const std::size_t size = std::max(static_cast<std::size_t>(got), sizeof(message));
    if (!Handle(message, size - sizeof(message))) return Drop();
  }
}

// Handles one message, which has `payload` bytes of Patches. Returns false if the connection must
// end.
bool RingLink::Handle(const Message& message, std::size_t payload) noexcept {
  switch (message.type) {
    case MessageType::kWelcome:
      if (state_ != State::kGreeting || message.version != ring::kVersion) return false;
      state_ = State::kConnected;
      attempts_ = 0;
      refused_ = 0;
      SetBell();
      user_->Connected(message.value);
      return true;
    case MessageType::kRefuse:
      if (message.value == static_cast<std::uint64_t>(ring::RefuseReason::kNoDescriptor) &&
          inline_reason_ == ring::InlineReason::kNone) {
        UseInline(ring::InlineReason::kNotReceived, 0);
        error_ = GreetInline();
        return error_ == 0;
      }
      refused_ = message.value;
      error_ = ECONNREFUSED;
      return false;
    case MessageType::kEnable:
      if (state_ != State::kConnected) return false;
      user_->EnableWordsChanged();
      Send(MessageType::kEnabled, message.value);
      return true;
    case MessageType::kFlush:
      ring_memory.Flush();
      Send(MessageType::kFlushed, message.value);
      return true;
    case MessageType::kGrow:
      ring_memory.Grow(
          static_cast<std::uint32_t>(std::min<std::uint64_t>(message.value, ring::kMaxChunks)));
      Send(MessageType::kGrown, ring_memory.usable_chunks());
      return true;
    case MessageType::kPatch:
      return sender_.is_started() && sender_.Apply(sender_.input(), payload);
    case MessageType::kBye:
      return false;
    default:
      return true;
  }
}

void RingLink::UseInline(ring::InlineReason reason, int error) noexcept {
  inline_reason_ = reason;
  inline_error_ = error;
}

bool RingLink::HasBell() const noexcept {
  return ring_memory.HasBell() && (!sender_.is_started() || bell_.IsOurs());
}

// Makes writers send the message Full to the collector, or to Step() if the connection is inline.
void RingLink::SetBell() noexcept {
  if (!sender_.is_started()) return ring_memory.SetBell(socket_);
  // If the bell cannot be created, complete chunks wait for the next call of Step().
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  OwnDescriptor writers_end;
  bell_.Close();
  const bool has_both = bell_.Adopt(ends[0]);
  if (writers_end.Adopt(ends[1]) && has_both) ring_memory.SetBell(writers_end);
  writers_end.Close();
}

// Returns whether the inline connection can send. It cannot after the program has closed the
// socket, or in a child that was not made by fork(): the child has no region and no helper thread.
bool RingLink::CanPump() const noexcept { return ring_memory.exists() && socket_.IsOurs(); }

// If the connection is inline, sends what the socket takes. Returns the time in ms after which the
// caller must call this again; -1: only when descriptor() or bell() is ready.
int RingLink::PumpInline() noexcept {
  if (!sender_.is_started()) return -1;
  if (!CanPump()) return kRoundTime;
  char message[sizeof(Message)];
  while (bell_.IsOurs() && recv(bell_.fd(), message, sizeof(message), MSG_DONTWAIT) > 0) {
  }
  const bool is_armed = ring_memory.ArmBell(std::min(ring_memory.usable_chunks() / 4, kMaxWaiting));
  const bool is_done = Pump();
  if (!is_armed && is_done) return 0;
  if (user_->AnyIsEnabled()) {
    ticks_ = kLastRounds;
  } else if (ticks_ > 0) {
    --ticks_;
  }
  return ticks_ > 0 || !is_done ? kRoundTime : -1;
}

// Sends the rest of the round and the queued messages. Returns false if it could not send all of
// them. Sets is_full_ if the queue of the socket is full.
bool RingLink::Pump() noexcept {
  // After errors other than EAGAIN, waiting until the socket is writable would not help.
  const auto fail = [this] {
    is_full_ = errno == EAGAIN;
    return false;
  };
  do {
    if (sender_.Pump(socket_.fd()) != RingSender::Result::kDone) return fail();
  } while (rounds_ > 0 && --rounds_ > 0);
  for (std::size_t i = 0; queued_ != 0 && i < kTypes; ++i) {
    if ((queued_ >> i & 1) == 0) continue;
    if (!SendMessage(static_cast<MessageType>(i), queued_values_[i])) return fail();
    queued_ &= ~(1U << i);
  }
  is_full_ = false;
  return true;
}

// Sends a message now. Returns false, and sets errno, if the socket does not take it.
bool RingLink::SendMessage(MessageType type, std::uint64_t value) noexcept {
  const Message message = MakeMessage(type, value);
  return send(socket_.fd(), &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(message));
}

void RingLink::Finish() noexcept {
  const ErrnoKeeper keeper;
  if (state_ == State::kWaiting || !sender_.is_started() || !CanPump()) return;
  // Disables all sets before it sends End, because no count would include later events.
  user_->Disconnected();
  SendRest();
  state_ = State::kWaiting;
  ring_memory.ClearBell();
  EndInline();
  // The socket stays open until the process ends, because the helper thread may be waiting for it.
  is_finished_ = true;
}

// Reads the messages of the collector that have arrived, and ignores them. A collector whose
// messages are not read ends the connection.
void RingLink::IgnoreMessages() noexcept {
  char first;
  for (int i = 0; i < kMaxMessages; ++i) {
    if (recv(socket_.fd(), &first, sizeof(first), MSG_DONTWAIT) <= 0) return;
  }
}

// Sends all events and the message End. If the collector does not take them in time, enlarges the
// queue of the socket, and sends only the counts of events and End.
void RingLink::SendRest() noexcept {
  rounds_ = sender_.is_in_round() ? 2 : 1;
  queued_ |= 1U << static_cast<unsigned>(MessageType::kEnd);
  queued_values_[static_cast<std::size_t>(MessageType::kEnd)] = 0;
  const std::uint64_t end = NowMs() + kFinishTime;
  while (CanPump() && !Pump()) {
    if (!is_full_) return;
    pollfd ready{socket_.fd(), POLLIN | POLLOUT, 0};
    std::uint64_t now = NowMs();
    const std::uint64_t end_of_pause = std::min(end, now + kFinishPause);
    // Does not send when only messages have arrived: the queue would be full again before it is
    // writable, as if the collector took no data.
    while (now < end_of_pause && (ready.revents & (POLLOUT | POLLHUP)) == 0) {
      IgnoreMessages();
      poll(&ready, 1, static_cast<int>(end_of_pause - now));
      now = NowMs();
    }
    // POLLHUP: the collector has closed the connection.
    if ((ready.revents & POLLHUP) != 0) return;
    if ((ready.revents & POLLOUT) != 0) continue;
    setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDBUF, &kLastQueueBytes, sizeof(kLastQueueBytes));
    if (sender_.SendCounts(socket_.fd())) static_cast<void>(SendMessage(MessageType::kEnd, 0));
    return;
  }
}

// Ends the inline connection. If it was inline because the descriptor could not be passed, the next
// connection tries to pass the descriptor again.
void RingLink::EndInline() noexcept {
  if (!sender_.is_started()) return;
  sender_.Stop();
  bell_.Close();
  is_full_ = false;
  queued_ = 0;
  rounds_ = 0;
  ticks_ = 0;
  if (inline_reason_ == ring::InlineReason::kNotSent ||
      inline_reason_ == ring::InlineReason::kNotReceived) {
    UseInline(ring::InlineReason::kNone, 0);
  }
}

// Ends the connection. The region does not change, so that the next collector can read its events.
void RingLink::Drop() noexcept {
  const bool was_connected = state_ == State::kConnected;
  state_ = State::kWaiting;
  ring_memory.ClearBell();
  EndInline();
  socket_.Close();
  // After a refusal, the next attempt to connect is made after kLastDelay instead of kFirstDelay:
  // the collector will refuse again until its state or settings change.
  attempts_ = was_connected ? 0 : attempts_ + 1;
  const int delay = refused_ != 0 ? kLastDelay : kFirstDelay;
  next_time_ = NowMs() + static_cast<std::uint64_t>(delay);
  user_->Disconnected();
}

void RingLink::TryConnect() noexcept {
  for (std::size_t i = 0; i < std::size(paths_); ++i) {
    if (paths_[i][0] == '\0' && i != 0) continue;
    const int error = Connect(paths_[i]);
    // Stores the error of the first path, unless that path does not exist or the second path has
    // succeeded.
    if (i == 0 || error == 0 || error_ == ENOENT || error_ == ENOTDIR) {
      error_ = error;
      path_ = error == ENOENT || error == ENOTDIR ? 0 : i;
    }
    if (error == 0) return;
  }
}

int RingLink::Connect(const char* path) noexcept {
  if (*path == '\0') return ENOENT;
  const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  if (!socket_.Adopt(fd)) return EMFILE;
  if (const int error = user_->PrepareRegion()) {
    socket_.Close();
    return error;
  }
  if (const int error = Greet()) {
    socket_.Close();
    return error;
  }
  state_ = State::kGreeting;
  user_->Greeted();
  return 0;
}

// Sends Hello. Returns 0 or an errno.
int RingLink::Greet() noexcept {
  if (inline_reason_ == ring::InlineReason::kNone) {
    if (GreetWithRegion()) return 0;
    if (!MeansNoDescriptors(errno)) return errno;
    UseInline(ring::InlineReason::kNotSent, errno);
  }
  return GreetInline();
}

// Sends an inline Hello. Returns 0 or an errno.
int RingLink::GreetInline() noexcept {
  setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDBUF, &ring::kQueueBytes, sizeof(ring::kQueueBytes));
  if (!sender_.Start(ring_memory.base(), ring_memory.chunk_count(), socket_.fd())) return ENOMEM;
  struct {
    Message message;
    ring::InlineHello hello;
  } greeting = {
      MakeMessage(MessageType::kHello, ring::MakeInlineFlags(inline_reason_, inline_error_)),
      sender_.MakeHello()};
  if (send(socket_.fd(), &greeting, sizeof(greeting), MSG_DONTWAIT | MSG_NOSIGNAL) ==
      static_cast<ssize_t>(sizeof(greeting))) {
    // The first round sends the names of the sets. The message kSets is sent after that round, and
    // makes the collector read the names.
    queued_ = 1U << static_cast<unsigned>(MessageType::kSets);
    queued_values_[static_cast<std::size_t>(MessageType::kSets)] = 0;
    rounds_ = 1;
    return 0;
  }
  const int error = errno;
  EndInline();
  return error;
}

// Sends Hello with the region. Returns false, and sets errno, if that fails.
bool RingLink::GreetWithRegion() noexcept {
  Message message = MakeMessage(MessageType::kHello, ring::kSupportsInline);
  iovec bytes{&message, sizeof(message)};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  cmsghdr* const control = CMSG_FIRSTHDR(&header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  const int region = ring_memory.descriptor().fd();
  std::memcpy(CMSG_DATA(control), &region, sizeof(region));
  return sendmsg(socket_.fd(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(message);
}

// Watches the folders in which the sockets may appear.
void RingLink::Watch() noexcept {
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  // inotify_init1 fails if the user already has max_user_instances of inotify. Step() then retries
  // after at most kBlindDelay.
  if (fd < 0 || !inotify_.Adopt(fd)) return;
  for (const char* path : paths_) {
    if (*path != '\0') WatchFolderOf(inotify_.fd(), path);
  }
}

// Watches the folder of `path`, or the nearest existing folder above it.
void RingLink::WatchFolderOf(int inotify, const char* path) noexcept {
  char folder[kPathBytes];
  std::strcpy(folder, path);
  bool is_folder = false;  // whether `folder` is the folder of the socket
  // Tries twice, because a folder may be created after the first attempt to watch it.
  for (int i = 0; i < 2 && !is_folder; ++i) {
    std::strcpy(folder, path);
    for (is_folder = true;; is_folder = false) {
      char* const slash = strrchr(folder, '/');
      if (slash == nullptr) {
        std::strcpy(folder, ".");
      } else if (slash == folder) {
        folder[1] = '\0';
      } else {
        *slash = '\0';
      }
      constexpr std::uint32_t kChanges =
          IN_CREATE | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
      if (inotify_add_watch(inotify, folder, kChanges) >= 0) break;
      if (slash == nullptr || slash == folder) break;
    }
  }
}

}  // namespace eh::internal
