// Declares providers and event sets: a provider is a named source of events, and an event set is
// one of its tracepoints. Also declares the state of the transport. Needs C++17; Provider needs
// C++20.
#ifndef EVENTHEADER_PROVIDER_H_
#define EVENTHEADER_PROVIDER_H_

#include "eventheader/internal/need_cxx17.h"

#ifdef EVENTHEADER_INTERNAL_CXX17

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eventheader/internal/atomic.h"
#include "eventheader/internal/catalog_note.h"
#include "eventheader/tracepoint_name.h"
#include "eventheader/wire.h"

struct eh_static_event;

namespace eh {

struct Activity;
class EventSet;
class Transport;

enum class WriteResult : std::uint8_t {
  kWritten = 0,
  kDisabled,  // the tracepoint is not enabled
  kTooBig,    // over kMaxEventSize: the transport does not get the event
  kInvalid,   // a dynamic event that is not well formed (dynamic_event.h), or has no name
  kFailed,    // the transport returned an error
};

// Returns one line that explains the errno of a registration, and names a remedy. Returns
// "registered" for 0.
const char* RegistrationErrorText(int error) noexcept;

// How the events of this program reach the collector. The numbers are part of the C ABI.
enum class TransportState : std::uint8_t {
  kNotUsed = 0,        // no event set was registered yet, or the program has set other transports
  kUserEvents = 1,     // the kernel's user_events
  kRingWaiting = 2,    // rings in user space; no collector is connected
  kRingConnected = 3,  // rings in user space; a collector is connected
  kRingFailed = 4,     // rings in user space, but memory for the rings cannot be created
  kOff = 5,            // switched off by EVENTHEADER_TRANSPORT=none
  kUnavailable = 6,    // the latest registration failed: see the status of the provider
};

// Returns the state of the transport of this process, or of this shared object if it links the
// library statically. Writes one line of text that explains the state to `text`, NUL-terminated and
// cut to `size` bytes; `text` may be null if `size` is 0. Thread-safe.
TransportState DescribeTransport(char* text, std::size_t size) noexcept;

// Does the work of the helper thread of rings in user space, if EVENTHEADER_THREAD=0 has switched
// the thread off. Connects to a collector, and enables the event sets that the collector records. A
// program with this setting should call this function about once a second. Without the setting,
// only starts the thread in a forked child that has none. Does not wait for the collector. Returns
// the state after the call. Thread-safe.
TransportState PollTransport() noexcept;

// Tries again to register the event sets that are not registered: those of this process, or of this
// shared object if it links the library statically. Returns 0 if all of them are registered
// afterwards, else the errno of the newest set that is not registered. Thread-safe.
int RetryAll() noexcept;

namespace internal {
class Registry;
struct Layout;
}  // namespace internal

// The base of Provider and DynamicProvider. All functions are thread-safe, and neither throw nor
// change errno. Name and group are not copied: they must outlive the provider, and the provider
// must outlive its event sets.
// The padding puts the shards of the counter into different cache lines.
class ProviderBase {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Maximum number of event sets with different levels or keywords of one provider object. Each has
  // a bit in enabled_.
  static constexpr std::size_t kMaxEventSets = 64;

  ProviderBase(const ProviderBase&) = delete;
  ProviderBase& operator=(const ProviderBase&) = delete;

  std::string_view name() const noexcept { return {name_, name_size_}; }
  std::string_view group() const noexcept { return {group_, group_size_}; }

  // Returns whether any of the provider's event sets is enabled: one relaxed load.
  bool enabled() const noexcept { return enabled_.Load() != 0; }

  // Returns 0 if every set is registered, else the errno of the newest set that is not registered;
  // see RegistrationErrorText(). Returns ENOTCONN if the provider has no sets yet.
  int status() const noexcept;
  // Tries again to register the sets that are not registered, e.g. after tracefs was mounted,
  // permissions were granted, or the process closed all of its descriptors. Returns status().
  int Retry() noexcept;

  // Events since the provider was created, by result. Exact while no event is being written.
  struct Counters {
    static constexpr int kErrnos = 134;  // one more than the highest errno of Linux on x86-64

    std::uint64_t written = 0;
    std::uint64_t too_big = 0;
    std::uint64_t invalid = 0;
    std::uint64_t failed = 0;
    int last_error = 0;  // errno of the latest failed event; 0: none has failed
    // Failed events by errno. Element 0 counts the events with an errno of kErrnos or above.
    std::uint64_t failed_by_errno[kErrnos] = {};
  };
  Counters counters() const noexcept;

  // Unregisters each event set from its transport and registers it with `transport` (null: the
  // library's own transport), which must outlive its use by the provider. For tests
  // (testing/transport.h). No event may be written during the call. Returns status(), or 0 if the
  // provider has no sets yet.
  int SetTransport(Transport* transport) noexcept;

 protected:
  constexpr ProviderBase(std::string_view name, std::string_view group) noexcept
      : name_(name.data()),
        name_size_(name.size()),
        group_(group.data()),
        group_size_(group.size()) {}
  ~ProviderBase();

 private:
  friend class EventSet;
  friend class internal::Registry;
  friend struct internal::Layout;

  // A part of the counter of written events, in a separate cache line. Threads are spread over the
  // shards, so that they rarely write to the same line.
  struct alignas(64) Shard {
    internal::Atomic<std::uint64_t> written;
  };
  static constexpr std::size_t kShards = 8;

  void CountWritten() noexcept;
  void CountWritten(std::uint64_t number) noexcept;
  void CountFailed(int error) noexcept;

  // The members up to the shards must match those of eh_static_provider
  // (internal/static_objects.h).
  // enabled_ has one bit for each event set, which is 1 while the set is enabled. The kernel or the
  // transport changes it.
  alignas(64) internal::Atomic<std::uint64_t> enabled_;
  internal::Atomic<Transport*> transport_;  // null: the library's own transport
  const char* name_;
  std::size_t name_size_;
  const char* group_;
  std::size_t group_size_;
  internal::Atomic<std::uint64_t> used_bits_;

  Shard shards_[kShards];
  internal::Atomic<std::uint64_t> too_big_;
  internal::Atomic<std::uint64_t> invalid_;
  internal::Atomic<int> last_error_;
  internal::Atomic<std::uint64_t> failed_[Counters::kErrnos];
};

// A provider whose name is known only at run time.
class DynamicProvider : public ProviderBase {
 public:
  // `name` must match [A-Za-z_][A-Za-z0-9_]*, and `group` must match [a-z0-9]*. If `name` or
  // `group` is invalid, or too long for a tracepoint's name, the status of every set is EINVAL.
  constexpr explicit DynamicProvider(std::string_view name, std::string_view group = {}) noexcept
      : ProviderBase(name, group) {}
};

#if __cplusplus >= 202002L

// A provider whose name is known at compile time. Define it once, in a header or a source file:
//
//     inline constinit eh::Provider provider("MyCompany_MyService");
//
// Safe to use before and during static initialization and destruction. Shared objects that include
// the same header may share one provider object, unless the provider's symbol is hidden. Whether
// they share it or not, each shared object registers the event sets of its code. status() and
// Retry() cover only the sets of the shared object that calls them. In a shared object that must be
// unloadable, hide the symbol of the provider, or all symbols: the loader does not unload an object
// whose symbols other objects may use.
class Provider : public ProviderBase {
 public:
  // `name` must match [A-Za-z_][A-Za-z0-9_]* and have at most 200 bytes. `group` must match
  // [a-z0-9]* and have at most 24 bytes. Other values do not compile.
  consteval explicit Provider(std::string_view name, std::string_view group = "")
      : ProviderBase(name, group) {
    // The functions called below are not constexpr, so a call makes the compilation fail with a
    // message that contains the function's name.
    if (!IsValidProviderName(name)) TheProvidersNameMustBeAnIdentifier();
    if (name.size() > kMaxProviderName) TheProvidersNameHasMoreThan200Bytes();
    if (!IsValidGroup(group)) TheProvidersGroupMustBeLowerCaseLettersAndDigits();
    if (group.size() > kMaxGroup) TheProvidersGroupHasMoreThan24Bytes();
  }

 private:
  static void TheProvidersNameMustBeAnIdentifier();
  static void TheProvidersNameHasMoreThan200Bytes();
  static void TheProvidersGroupHasMoreThan24Bytes();
  static void TheProvidersGroupMustBeLowerCaseLettersAndDigits();
};

#endif  // C++20

// Bytes of a record before its event. The transport overwrites them.
inline constexpr std::size_t kRecordPrefix = 4;

// The tracepoint of (provider, level, keyword), which all events with these values share. Static
// events have their sets already; use this class for dynamic events. Registered from construction
// to destruction. Several sets of one provider with the same level and keyword share a
// registration. Thread-safe, but must not be destroyed while an event is written to it.
class EventSet {
 public:
  EventSet(ProviderBase& provider, Level level, std::uint64_t keyword) noexcept
      : EventSet(provider, level, keyword, Unregistered{}) {
    Register();
  }
  ~EventSet() { Unregister(); }
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  Level level() const noexcept { return level_; }
  std::uint64_t keyword() const noexcept { return keyword_; }
  ProviderBase& provider() const noexcept { return *provider_; }

  // Returns 0 if the set is registered, else an errno:
  //   ENOENT      EVENTHEADER_TRANSPORT=user_events, and no tracefs or no user_events in the kernel
  //   ECANCELED   switched off by EVENTHEADER_TRANSPORT=none
  //   EAGAIN      no thread for rings in user space could be created
  //   ENOMEM      no memory
  //   EACCES      no permission
  //   EADDRINUSE  the name is defined with other fields
  //   EMFILE      a limit is reached: of the kernel's user_events, of open files, or of rings (4096
  //               tracepoints)
  //   ENOSPC      more than ProviderBase::kMaxEventSets
  //   EINVAL      invalid name, group or level
  //   ENOTCONN    not registered yet, or unregistered
  //   EOWNERDEAD  the provider's transport was destroyed
  //   others      the kernel refused the registration
  int status() const noexcept { return status_.Load(); }

  bool enabled() const noexcept { return EnabledIn(*provider_); }
  // Returns enabled(), with one indirection less. `provider` must be this set's provider.
  [[gnu::always_inline]] bool EnabledIn(const ProviderBase& provider) const noexcept {
    const std::uint64_t word = provider.enabled_.Load();
    if (__builtin_expect(word == 0, 1)) return false;
    return (word & mask_.Load()) != 0;
  }

  // Writes the record from `begin` to `end`: kRecordPrefix bytes, then the event. Counts the result
  // in the provider's counters. Async-signal-safe. Does not check enabled().
  WriteResult Write(std::byte* begin, std::byte* end) const noexcept;
  // Write a static event like eh_write_static (internal/static_objects.h). WriteMade also accepts
  // events with an eh_made_piece.
  WriteResult WriteStatic(const eh_static_event& event, const void* fixed,
                          std::uint64_t size) const noexcept;
  WriteResult WriteStatic(const eh_static_event& event, const void* fixed, std::uint64_t size,
                          const Activity& activity) const noexcept;
  WriteResult WriteMade(const eh_static_event& event, const void* fixed, std::uint64_t size,
                        const Activity* activity) const noexcept;
  // Counts an event that the caller refuses before it is built. `reason` is kTooBig or kInvalid,
  // and is returned.
  WriteResult Refuse(WriteResult reason) const noexcept;

  // Selects the constructor for sets with static storage, which are constant-initialized and
  // registered later.
  struct Unregistered {};
  constexpr EventSet(ProviderBase& provider, Level level, std::uint64_t keyword,
                     Unregistered) noexcept
      : provider_(&provider), keyword_(keyword), level_(level) {}
  void Register() noexcept;
  void Unregister() noexcept;

 private:
  friend class ProviderBase;
  friend class internal::Registry;
  friend struct internal::Layout;

  // A value that no transport of the library returns as a handle. If fast_handle_ is kNoHandle,
  // events are written by a virtual call of transport_.
  static constexpr std::uint64_t kNoHandle = ~std::uint64_t{0};

  // Maximum bytes of an event, without its activity, that WriteStatic() writes itself.
  // WriteStatic() passes larger events to WriteMade().
  static constexpr std::uint64_t kStaticRoom = 1024;

  template <typename... MaybeActivity>
  WriteResult PutCopied(const eh_static_event& event, const void* fixed,
                        const MaybeActivity&... activity) const noexcept;
  template <typename... MaybeActivity>
  WriteResult PutRing(const eh_static_event& event, const void* fixed, std::uint64_t size,
                      const MaybeActivity&... activity) const noexcept;
  WriteResult WriteChecked(std::byte* begin, std::byte* end) const noexcept;
  WriteResult WriteRing(std::byte* begin, std::byte* end, std::uint64_t handle) const noexcept;
  [[gnu::cold]] WriteResult WriteSlow(std::byte* begin, std::byte* end) const noexcept;
  [[gnu::cold]] WriteResult Failed(int error) const noexcept;

  // The members up to the level must match those of eh_static_set (internal/static_objects.h).
  // mask_ is this set's bit in ProviderBase::enabled_; 0: the set is not registered.
  alignas(8) internal::Atomic<std::uint64_t> mask_;
  ProviderBase* provider_;
  std::uint64_t keyword_;
  internal::Atomic<int> status_{ENOTCONN};
  Level level_;
  internal::Atomic<std::uint64_t> handle_;  // assigned by the transport
  // Equal to handle_ if transport_ belongs to the copy of the library that registered the set, else
  // kNoHandle.
  internal::Atomic<std::uint64_t> fast_handle_{kNoHandle};
  // The transport that the set is registered with. If several shared objects contain the library,
  // this is the transport of the object that registered the set: the handle is valid only for that
  // transport.
  internal::Atomic<Transport*> transport_;
  internal::Registry* registry_ = nullptr;  // the registry that lists this set
  EventSet* next_ = nullptr;                // guarded by the registry's lock
};

namespace internal {

// The set that all static events of (provider, level, keyword) share. Its visibility is hidden:
// every shared object has a separate copy, which is destroyed when the object is unloaded.
template <auto& kProvider, Level kLevel, std::uint64_t kKeyword>
struct [[gnu::visibility("hidden")]] StaticSet {
  static inline EventSet set{kProvider, kLevel, kKeyword, EventSet::Unregistered{}};

  struct Registration {
    Registration() noexcept {
      set.Register();
      EVENTHEADER_INTERNAL_NOTE_SET(set);
    }
  };
  static inline const Registration registration;

  [[gnu::always_inline]] static bool enabled() noexcept {
    static_cast<void>(&registration);
    return set.EnabledIn(kProvider);
  }
};

}  // namespace internal

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX17
#endif  // EVENTHEADER_PROVIDER_H_
