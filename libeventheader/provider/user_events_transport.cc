#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "eventheader/transport.h"
#include "eventheader/user_events.h"
#include "provider/registry.h"
#include "provider/write_call.h"

namespace eventheader {
namespace {

// Highest number the descriptor is given: the kernel's table of descriptors grows up to it.
constexpr rlim_t kHighestDescriptor = 65536;
constexpr rlim_t kLowestDescriptor = 100;

#if defined(__x86_64__)
// 0.1 ms, give or take, with any clock rate in use.
constexpr std::uint64_t kCheckInterval = std::uint64_t{1} << 18;
std::uint64_t Ticks() noexcept { return __builtin_ia32_rdtsc(); }
#else
constexpr std::uint64_t kCheckInterval = 100'000;
std::uint64_t Ticks() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}
#endif

// Moves `fd` to a number that ordinary code does not get by itself: just above the soft limit,
// where none can be opened or duplicated to unless the limit is raised; where that cannot be, to a
// high one.
int MoveAway(int fd) noexcept {
  rlimit limit{};
  int moved = -1;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max &&
      limit.rlim_cur < kHighestDescriptor) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_cur + 64 < limit.rlim_max ? limit.rlim_cur + 64 : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(limit.rlim_cur));
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

class UserEvents final : public Transport {
 public:
  constexpr UserEvents() noexcept = default;

  int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
               std::uint64_t* handle) noexcept override {
    const int saved = errno;
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
    errno = saved;
    return error;
  }

  void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept override {
    const int saved = errno;
    // The kernel's reference is to this process's memory, so any descriptor of the right kind does;
    // without one, it must not be left to write into memory that will be somebody else's.
    if (Open() == 0) {
      user_events::Unregister(Descriptor(connection_.load(std::memory_order_relaxed)), enable_word,
                              bit);
    }
    errno = saved;
  }

  bool IsCurrent(std::uint64_t handle) noexcept override {
    const int saved = errno;
    const std::uint64_t connection = connection_.load(std::memory_order_acquire);
    const bool current = Generation(connection) == handle >> 32 && IsOurs(connection);
    errno = saved;
    return current;
  }

  int Write(std::uint64_t handle, std::span<std::byte> record) noexcept override {
    const std::uint64_t connection = connection_.load(std::memory_order_acquire);
    const std::uint64_t now = Ticks();
    if (now - checked_.load(std::memory_order_relaxed) > kCheckInterval &&
        !IsStillOurs(connection, now)) [[unlikely]] {
      return EBADF;
    }
    // An index means something only to the open file that gave it.
    if (Generation(connection) != handle >> 32) [[unlikely]]
      return EBADF;
    const auto index = static_cast<std::uint32_t>(handle);
    std::memcpy(record.data(), &index, sizeof(index));
    const long written = internal::WriteCall(Descriptor(connection), record.data(), record.size());
    return written < 0 ? static_cast<int>(-written) : 0;
  }

  void CheckBeforeNextWrite() noexcept { checked_.store(0, std::memory_order_relaxed); }

  // For an object that is being unloaded: its code must not be running any more.
  void Close() noexcept {
    const std::uint64_t connection = connection_.exchange(0);
    if (IsOurs(connection)) close(Descriptor(connection));
  }

 private:
  static int Descriptor(std::uint64_t connection) noexcept {
    return static_cast<int>(connection & 0xFFFFFFFF);
  }
  static std::uint64_t Generation(std::uint64_t connection) noexcept { return connection >> 32; }

  bool IsOurs(std::uint64_t connection) const noexcept {
    struct stat now;
    return Generation(connection) != 0 && fstat(Descriptor(connection), &now) == 0 &&
           now.st_dev == device_.load(std::memory_order_relaxed) &&
           now.st_ino == inode_.load(std::memory_order_relaxed);
  }

  [[gnu::noinline]] bool IsStillOurs(std::uint64_t connection, std::uint64_t now) noexcept {
    const int saved = errno;
    const bool ours = IsOurs(connection);
    if (ours) checked_.store(now, std::memory_order_relaxed);
    errno = saved;
    return ours;
  }

  // Under the registry's lock, as Register and Unregister are.
  int Open() noexcept {
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
    // The number it had before is not closed: that may be another file's now.
    device_.store(status.st_dev, std::memory_order_relaxed);
    inode_.store(status.st_ino, std::memory_order_relaxed);
    connection_.store(++generations_ << 32 | static_cast<std::uint32_t>(fd),
                      std::memory_order_release);
    return 0;
  }

  // Generation of the open file (0: none) and descriptor, to be read as one.
  std::atomic<std::uint64_t> connection_{0};
  std::atomic<std::uint64_t> checked_{0};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
  std::uint64_t generations_ = 0;
};

constinit UserEvents user_events_transport;

}  // namespace

Transport& UserEventsTransport() noexcept { return user_events_transport; }

namespace internal {

void CheckUserEventsBeforeNextWrite() noexcept { user_events_transport.CheckBeforeNextWrite(); }
void CloseUserEvents() noexcept { user_events_transport.Close(); }

}  // namespace internal
}  // namespace eventheader
