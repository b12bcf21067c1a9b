// The transport of user_events. The write path goes straight into it, without a virtual call.
#ifndef LIBEVENTHEADER_PROVIDER_USER_EVENTS_TRANSPORT_H_
#define LIBEVENTHEADER_PROVIDER_USER_EVENTS_TRANSPORT_H_

#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>

#include "eventheader/testing/transport.h"
#include "libeventheader/provider/write_call.h"

namespace eh::internal {

// The one transport of the library. It has one descriptor for the whole process (each shared object
// that links the library statically has its own): O_CLOEXEC, opened with the first registration
// and, where limits allow, numbered above the soft RLIMIT_NOFILE, where no other file can get once
// it is closed.
//
// A program may close every descriptor it has and reuse the numbers. So that no event goes into
// another file, the descriptor is compared with what was opened (fstat: device, inode;
// F_GETSIG: a signature, for there may be other shared objects' descriptors of the same file)
// before a write, at most once in about 0.1 ms and always first after a fork. The exact guarantee:
// an event can reach another file only if, within 0.1 ms after such a check, the descriptor was
// closed *and* its number reused - for which the program must raise its soft RLIMIT_NOFILE as well,
// when it was not yet at the hard limit. Once the check has failed, nothing is written (EBADF)
// until a provider's Retry() opens user_events anew.
class UserEvents final : public Transport {
 public:
  constexpr UserEvents() noexcept = default;

  int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
               std::uint64_t* handle) noexcept override;
  void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept override;
  bool IsCurrent(std::uint64_t handle) noexcept override;

  int Write(std::uint64_t handle, std::span<std::byte> record) noexcept override;

  // Write in two halves, for when nothing is out of the ordinary: whether the descriptor was
  // compared with what was opened within the last 0.1 ms, and the write without that comparison,
  // which is false if the handle is not one of the file that is open.
  bool IsFresh() const noexcept {
    return Ticks() - checked_.load(std::memory_order_relaxed) <= kCheckInterval;
  }
  bool WriteUnchecked(std::uint64_t handle, std::span<std::byte> record,
                      int* error) const noexcept {
    return WriteTo(connection_.load(std::memory_order_acquire), handle, record, error);
  }

  // Called in the child after a fork: a daemon closes descriptors next.
  void CheckBeforeNextWrite() noexcept { checked_.store(0, std::memory_order_relaxed); }

  // Called in a shared object that is being unloaded: its code must not be running any more.
  void Close() noexcept;

 private:
#if defined(__x86_64__)
  // 0.1 ms, give or take, with any clock rate in use.
  static constexpr std::uint64_t kCheckInterval = std::uint64_t{1} << 18;
  static std::uint64_t Ticks() noexcept { return __builtin_ia32_rdtsc(); }
#else
  static constexpr std::uint64_t kCheckInterval = 100'000;
  static std::uint64_t Ticks() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
#endif

  static int Descriptor(std::uint64_t connection) noexcept {
    return static_cast<int>(connection & 0xFFFFFFFF);
  }
  static std::uint64_t Generation(std::uint64_t connection) noexcept { return connection >> 32; }

  static bool WriteTo(std::uint64_t connection, std::uint64_t handle, std::span<std::byte> record,
                      int* error) noexcept {
    // An index means something only to the open file that gave it.
    if (Generation(connection ^ handle) != 0) [[unlikely]]
      return false;
    const auto index = static_cast<std::uint32_t>(handle);
    std::memcpy(record.data(), &index, sizeof(index));
    const long written = WriteCall(Descriptor(connection), record.data(), record.size());
    *error = written < 0 ? static_cast<int>(-written) : 0;
    return true;
  }

  bool IsOurs(std::uint64_t connection) const noexcept;
  // Called under the registry's lock, as Register and Unregister are.
  int Open() noexcept;

  // Generation of the open file (0: none) and descriptor, to be read as one.
  std::atomic<std::uint64_t> connection_{0};
  std::atomic<std::uint64_t> checked_{0};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
  std::atomic<int> signature_{0};
  std::uint64_t generations_ = 0;
};

[[gnu::visibility("hidden")]] extern UserEvents user_events_transport;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_USER_EVENTS_TRANSPORT_H_
