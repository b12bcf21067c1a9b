// The transport of rings in user space, for kernels without user_events, and the choice of a
// transport by the environment.
#ifndef LIBEVENTHEADER_PROVIDER_RING_TRANSPORT_H_
#define LIBEVENTHEADER_PROVIDER_RING_TRANSPORT_H_

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>

#include "eventheader/provider.h"
#include "eventheader/testing/transport.h"
#include "libeventheader/base/ring_layout.h"
#include "libeventheader/provider/own_descriptor.h"
#include "libeventheader/provider/ring_link.h"
#include "libeventheader/provider/ring_memory.h"

namespace eh::internal {

// The transport that the environment variable EVENTHEADER_TRANSPORT selects.
enum class TransportChoice : std::uint8_t {
  kAutomatic,   // not set, or another value: user_events if the kernel has them, else rings
  kUserEvents,  // for the value "user_events"
  kRing,        // for the value "ring"
  kRingInline,  // for the value "ring-inline": rings whose memory is not shared
  kNone,        // for the value "none"
};
TransportChoice ChosenTransport() noexcept;

// The library's transport where the kernel has no user_events. Each program, and each shared object
// that links the library statically, has one region (shared memory: ring_layout.h), one connection
// and one helper thread.
//
// The first registration starts the helper thread, unless $EVENTHEADER_THREAD is 0. The thread
// blocks all signals. It waits until the collector's socket appears, connects, and sends the
// region. It then copies the collector's enable words to the bits of the event sets whenever they
// change.
//
// If the socket exists when a registration starts the helper thread, this registration connects and
// sends the region, without waiting for an answer. The collector then finds the region with its
// events in the socket's queue, even if the process has ended. A new set is enabled until the
// collector has read its name and has stored whether it records the set. The collector ignores the
// events of sets that it does not record.
//
// If the region cannot be sent, the connection is inline (ring::InlineReason): the helper thread
// sends the changes of the region over the socket.
//
// After a fork, the child has no thread and no region. All of its sets are enabled until the first
// event: that event is not written, but starts the child's thread. Most children execute another
// program without writing an event; no thread is started for them.
class RingTransport final : public Transport, private RingLinkUser {
 public:
  constexpr RingTransport() noexcept : link_(this) {}

  int Register(const char* name, std::uint64_t* enable_word, unsigned bit,
               std::uint64_t* handle) noexcept override;
  void Unregister(std::uint64_t* enable_word, unsigned bit) noexcept override;
  bool IsCurrent(std::uint64_t handle) noexcept override;
  int Write(std::uint64_t handle, std::span<std::byte> record) noexcept override;

  // Returns whether the handle comes from a RingTransport of this or another shared object.
  static bool IsHandle(std::uint64_t handle) noexcept { return handle >> 62 == 1; }
  // Returns whether the handle comes from this transport. Each shared object that links the library
  // statically has a separate transport with different handles.
  bool IsOurs(std::uint64_t handle) const noexcept {
    return handle >> 32 == signature_.load(std::memory_order_relaxed);
  }
  // Writes an event. IsOurs(handle) must be true. Returns 0 or an errno.
  [[gnu::always_inline]] int WriteFast(std::uint64_t handle, std::span<std::byte> record) noexcept {
    const int error =
        ring_memory.Write(static_cast<std::uint32_t>(handle), record.data() + kRecordPrefix,
                          record.size() - kRecordPrefix);
    if (error == ENOTCONN) [[unlikely]]
      return WriteUnconnected();
    return error;
  }

  // If $EVENTHEADER_THREAD is 0, does the helper thread's work once. Otherwise starts the thread if
  // this is a forked child that has none.
  void Poll() noexcept;
  TransportState Describe(std::span<char> text) noexcept;

  // The fork handlers of the registry call these three functions.
  void BeforeFork() noexcept { mutex_.lock(); }
  void AfterForkInParent() noexcept { mutex_.unlock(); }
  void AfterForkInChild() noexcept;
  // Ends the helper thread and unmaps the region, when the shared object is unloaded.
  void Close() noexcept;
  // Sends the last events if the connection is inline, when the program exits.
  void Finish() noexcept;

 private:
  struct Registration {
    std::uint64_t* word;
    std::uint32_t set;
    std::uint32_t bit;
  };
  static constexpr std::uint32_t kNoSignature = 0x80000000;
  // The name of a set and the number of its registrations. The region has a copy; a forked child
  // copies these values to its new region.
  struct Set {
    char name[ring::kNameBytes];
    std::uint32_t users;
  };

  int PrepareRegion() noexcept override;
  void Greeted() noexcept override;
  void Connected(std::uint64_t chunks) noexcept override;
  void Disconnected() noexcept override;
  void EnableWordsChanged() noexcept override;
  bool AnyIsEnabled() const noexcept override;

  int Prepare() noexcept;
  int CreateRegion() noexcept;
  int StartThread() noexcept;
  bool MakeWakePipe() noexcept;
  int FindSet(std::string_view name, std::uint32_t* set) noexcept;
  bool AddRegistration(const Registration& registration) noexcept;
  void SetAll(bool on) noexcept;
  bool IsEnabled(std::uint32_t set) const noexcept;
  int StepLocked() noexcept;
  int WriteUnconnected() noexcept;
  void Run() noexcept;
  static void* RunThread(void* transport) noexcept;

  std::mutex mutex_;
  RingLink link_;
  Set* sets_ = nullptr;  // array of ring::kMaxSets elements
  std::uint32_t set_count_ = 0;
  Registration* registrations_ = nullptr;
  std::size_t registration_count_ = 0;
  std::size_t registration_room_ = 0;
  // Upper 32 bits of this object's handles. The highest two bits are 01, which handles of
  // user_events and EventSet::kNoHandle do not have.
  std::atomic<std::uint32_t> signature_{kNoSignature};

  pthread_t thread_{};
  bool has_thread_ = false;
  bool has_thread_option_ = true;
  bool stops_ = false;
  // A pipe. The read end becomes readable when Close() ends the helper thread, or when the program
  // closes all descriptors.
  OwnDescriptor wake_read_;
  OwnDescriptor wake_write_;
  int region_error_ = 0;
  int abandoned_regions_ = 0;
  std::uint32_t chunks_ = 0;  // maximum number of chunks of the next region
  // True after the region was sent, until the collector sends Enable or the connection ends. Until
  // then, the enable words in the region may be those of a previous collector.
  bool awaits_words_ = false;

  // True in the child of a fork if the parent had a helper thread, or if this flag was true in the
  // parent. A registration starts the thread and then clears the flag. Poll(), and the first event
  // that is not written in a signal handler, clear the flag and then try to start the thread.
  // Events in signal handlers must not start it: after kMaxAttempts such events, the flag is
  // cleared, and the child's sets are disabled.
  std::atomic<bool> is_armed_{false};
  std::atomic<int> attempts_{0};
  sigset_t fork_mask_{};
};

[[gnu::visibility("hidden")]] extern RingTransport ring_transport;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RING_TRANSPORT_H_
