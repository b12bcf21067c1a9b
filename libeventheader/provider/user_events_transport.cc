#include "libeventheader/provider/user_events_transport.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "libeventheader/base/errno_keeper.h"
#include "libeventheader/base/user_events.h"

// The start of the program or shared object that contains this code.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr)
    __ehdr_start;  // NOLINT(bugprone-reserved-identifier)

namespace eh::internal {
namespace {

// Highest number for the descriptor. It is limited because the kernel's descriptor table grows up
// to the highest number in use.
constexpr rlim_t kHighestDescriptor = 65536;
constexpr rlim_t kLowestDescriptor = 100;

// Returns this object's position in memory, in pages.
rlim_t Place() noexcept { return reinterpret_cast<std::uintptr_t>(&user_events_transport) >> 12; }

// Moves `fd` to a number that other code does not normally get. This is a number just above the
// soft limit, which no open or dup returns unless the limit is raised. If that is not possible, it
// is a high number. The number depends on the object's position, so that different objects use
// different numbers.
int MoveAway(int fd) noexcept {
  rlimit limit{};
  int moved = -1;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max &&
      limit.rlim_cur < kHighestDescriptor) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_cur + 64 < limit.rlim_max ? limit.rlim_cur + 64 : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      const rlim_t lowest = limit.rlim_cur + Place() / 64 % 32;
      moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(std::min(lowest, raised.rlim_cur - 1)));
      setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  if (moved < 0) {
    const rlim_t top = std::min(limit.rlim_cur, kHighestDescriptor);
    const rlim_t lowest = top > 2 * kLowestDescriptor ? top - kLowestDescriptor : top / 2;
    moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(lowest));
  }
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

// Returns whether this code is in a shared object. A program keeps its descriptor until it exits,
// because its threads may still write; a shared object must close it when it is unloaded.
bool IsInSharedObject() noexcept {
  return getauxval(AT_PHDR) !=
         reinterpret_cast<std::uintptr_t>(&__ehdr_start) + __ehdr_start.e_phoff;
}

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
  // The kernel's reference is to this process's memory, so any user_events descriptor can remove
  // it. Open one if necessary: otherwise the kernel could write into memory that is used for
  // something else later.
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
  // same file again and get our descriptor number. A signal number, which belongs to the open file
  // and not to the descriptor, distinguishes them. It is 1 to 64, derived from the address of this
  // shared object, and is never sent, because that needs O_ASYNC.
  fcntl(fd, F_SETSIG, static_cast<int>(Place() % 64 + 1));
  signature_.store(fcntl(fd, F_GETSIG), std::memory_order_relaxed);
  // Does not close the previous descriptor: its number may now belong to another file.
  device_.store(status.st_dev, std::memory_order_relaxed);
  inode_.store(status.st_ino, std::memory_order_relaxed);
  connection_.store(++generations_ << 32 | static_cast<std::uint32_t>(fd),
                    std::memory_order_release);
  return 0;
}

}  // namespace eh::internal
