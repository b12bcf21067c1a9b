#include "libeventheader/provider/user_events_transport.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "libeventheader/base/errno_keeper.h"
#include "libeventheader/base/user_events.h"
#include "libeventheader/provider/own_descriptor.h"

namespace eh::internal {
namespace {

// Priority 101 runs last: the static event sets, which need the descriptor to unregister, are
// already destroyed.
[[gnu::destructor(101)]] void Unload() noexcept {
  if (IsInSharedObject()) user_events_transport.Close();
}

}  // namespace

constinit UserEvents user_events_transport;

int UserEvents::Register(const char* name, std::uint64_t* enable_word, unsigned bit,
                         std::uint64_t* handle) noexcept {
  const ErrnoKeeper keeper;
  int error = Open();
  if (error == 0) {
    const std::uint64_t connection = connection_.load(std::memory_order_relaxed);
    char command[user_events::kMaxCommand];
    std::uint32_t index = 0;
    error =
        user_events::FormatCommand(name, command)
            ? user_events::Register(Descriptor(connection), command, enable_word, bit, 0, &index)
            : ENAMETOOLONG;
    *handle = Generation(connection) << 32 | index;
  }
  return error;
}

void UserEvents::Unregister(std::uint64_t* enable_word, unsigned bit) noexcept {
  const ErrnoKeeper keeper;
  // Any user_events descriptor of this process can end the registration, so Open() opens another
  // one if the transport's descriptor is not valid. If the registration did not end, the kernel
  // could later write to `enable_word` when the process uses that memory for something else.
  if (Open() == 0) {
    user_events::Unregister(Descriptor(connection_.load(std::memory_order_relaxed)), enable_word,
                            bit);
  }
}

bool UserEvents::IsCurrent(std::uint64_t handle) noexcept {
  const ErrnoKeeper keeper;
  const std::uint64_t connection = connection_.load(std::memory_order_acquire);
  return Generation(connection) == handle >> 32 && IsOurs(connection);
}

int UserEvents::Write(std::uint64_t handle, std::span<std::byte> record) noexcept {
  const std::uint64_t connection = connection_.load(std::memory_order_acquire);
  if (!IsFresh()) {
    const std::uint64_t now = Ticks();
    const ErrnoKeeper keeper;
    if (!IsOurs(connection)) return EBADF;
    checked_.store(now, std::memory_order_relaxed);
  }
  int error = 0;
  return WriteTo(connection, handle, record, &error) ? error : EBADF;
}

void UserEvents::Close() noexcept {
  const std::uint64_t connection = connection_.exchange(0);
  if (IsOurs(connection)) close(Descriptor(connection));
}

bool UserEvents::IsOurs(std::uint64_t connection) const noexcept {
  struct stat now;
  return Generation(connection) != 0 && fstat(Descriptor(connection), &now) == 0 &&
         now.st_dev == device_.load(std::memory_order_relaxed) &&
         now.st_ino == inode_.load(std::memory_order_relaxed) &&
         fcntl(Descriptor(connection), F_GETSIG) == signature_.load(std::memory_order_relaxed);
}

int UserEvents::Open() noexcept {
  if (IsOurs(connection_.load(std::memory_order_relaxed))) return 0;
  const int opened = user_events::OpenData();
  if (opened < 0) return -opened;
  const int fd = MoveAway(opened);
  struct stat status;
  if (fstat(fd, &status) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  // If the program closes all descriptors, another shared object with this library may open the
  // same file again and get the number of this descriptor. A signal number, which is a property of
  // the open file and not of the descriptor, distinguishes the two open files. It is 1 to 64,
  // derived from the address of this shared object, and is never sent, because that needs O_ASYNC.
  fcntl(fd, F_SETSIG, static_cast<int>(ObjectPlace() % 64 + 1));
  signature_.store(fcntl(fd, F_GETSIG), std::memory_order_relaxed);
  // Does not close the previous descriptor: its number may now belong to another file.
  device_.store(status.st_dev, std::memory_order_relaxed);
  inode_.store(status.st_ino, std::memory_order_relaxed);
  connection_.store(++generations_ << 32 | static_cast<std::uint32_t>(fd),
                    std::memory_order_release);
  return 0;
}

}  // namespace eh::internal
