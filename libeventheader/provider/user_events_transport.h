// The transport of user_events. The write path calls it directly, without a virtual call.
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

// The library's transport where the kernel has user_events. It has one descriptor for the whole
// process, or one for each shared object that links the library statically. The descriptor has
// O_CLOEXEC and is opened by the first registration. If limits allow, its number is above the soft
// RLIMIT_NOFILE, so that no other file gets the number after it is closed.
//
// A program may close all of its descriptors and reuse their numbers. To keep events out of other
// files, the transport compares the descriptor's device and inode (fstat) with those of the file
// that it opened. It also compares a signature (F_GETSIG), because other shared objects may have
// descriptors of the same file. It checks both before a write if the last check is more than about
// 0.1 ms old, and before the first write after a fork. An event can reach another file only if the
// descriptor was closed *and* its number reused within 0.1 ms after a check. If the number is above
// the soft RLIMIT_NOFILE, it can be reused only after the program has raised this limit.
// After a failed check, writes return EBADF until a provider's Retry() opens user_events again.
class UserEvents final : public Transport {
 public:
  constexpr UserEvents() noexcept = default;

  int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
               std::uint64_t* handle) noexcept override;
  void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept override;
  bool IsCurrent(std::uint64_t handle) noexcept override;

  int Write(std::uint64_t handle, std::span<std::byte> record) noexcept override;

  // The two steps of Write() if the descriptor need not be checked. Callers run them instead of
  // Write(), to avoid the virtual call. IsFresh returns whether the descriptor was checked within
  // the last 0.1 ms. WriteUnchecked writes the event without checking the descriptor. It returns
  // false if the handle does not belong to the open file, else stores 0 or an errno in `*error`.
  bool IsFresh() const noexcept {
    return Ticks() - checked_.load(std::memory_order_relaxed) <= kCheckInterval;
  }
  bool WriteUnchecked(std::uint64_t handle, std::span<std::byte> record,
                      int* error) const noexcept {
    return WriteTo(connection_.load(std::memory_order_acquire), handle, record, error);
  }

  // Makes the next write check the descriptor. Called in the child after a fork, because daemons
  // often close all descriptors there.
  void CheckBeforeNextWrite() noexcept { checked_.store(0, std::memory_order_relaxed); }

  // Closes the descriptor. Called when the shared object is unloaded; none of its code may be
  // running.
  void Close() noexcept;

 private:
#if defined(__x86_64__)
  // Ticks of the timestamp counter in about 0.1 ms, at 2.6 GHz.
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
    // A write index is valid only for the open file that returned it.
    if (Generation(connection ^ handle) != 0) [[unlikely]]
      return false;
    const auto index = static_cast<std::uint32_t>(handle);
    std::memcpy(record.data(), &index, sizeof(index));
    const long written = WriteCall(Descriptor(connection), record.data(), record.size());
    *error = written < 0 ? static_cast<int>(-written) : 0;
    return true;
  }

  bool IsOurs(std::uint64_t connection) const noexcept;
  // Opens user_events_data if the descriptor is not valid. Returns 0 or an errno. Called under the
  // lock of the registry, like Register() and Unregister().
  int Open() noexcept;

  // Upper 32 bits: generation of the open file, which is the value of generations_ when the file
  // was opened; 0: no file. Lower 32 bits: descriptor of the file. Both are in one atomic, so that
  // a thread loads them together.
  std::atomic<std::uint64_t> connection_{0};
  // Ticks() at the last check of the descriptor; 0: the next write checks it.
  std::atomic<std::uint64_t> checked_{0};
  std::atomic<dev_t> device_{0};
  std::atomic<ino_t> inode_{0};
  std::atomic<int> signature_{0};
  std::uint64_t generations_ = 0;  // number of files opened so far
};

[[gnu::visibility("hidden")]] extern UserEvents user_events_transport;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_USER_EVENTS_TRANSPORT_H_
