// Providers and event sets: who writes events, and the tracepoints they are written to. C++17, but
// for Provider, which is C++20.
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
  kTooBig,    // over kMaxEventSize: refused before the system call
  kInvalid,   // a dynamic event that is not well formed (dynamic_event.h)
  kFailed,    // the transport refused it
};

// Returns a line for people: what a registration's errno means and how it is remedied.
const char* RegistrationErrorText(int error) noexcept;

// Registers again whatever is not registered, for every provider of this process (of this shared
// object, if it links the library itself). Returns 0 or the first errno met. Thread-safe.
int RetryAll() noexcept;

namespace internal {
class Registry;
struct Layout;
}  // namespace internal

// Every provider: a Provider or a DynamicProvider. All functions are thread-safe, and neither throw
// nor change errno. Name and group are not copied: they must live as long as the provider, and the
// provider longer than its event sets.
// The padding keeps the counters of different CPUs apart.
class ProviderBase {  // NOLINT(clang-analyzer-optin.performance.Padding)
 public:
  // Event sets that one provider object can hold: the bits of its enable word.
  static constexpr std::size_t kMaxEventSets = 64;

  ProviderBase(const ProviderBase&) = delete;
  ProviderBase& operator=(const ProviderBase&) = delete;

  std::string_view name() const noexcept { return {name_, name_size_}; }
  std::string_view group() const noexcept { return {group_, group_size_}; }

  // Whether any of the provider's event sets is enabled: one relaxed load.
  bool enabled() const noexcept { return enabled_.Load() != 0; }

  // 0 if every set is registered, else the errno of one that is not; see RegistrationErrorText.
  int status() const noexcept;
  // Registers again the sets that are not registered: after tracefs was mounted, permissions were
  // given, or every descriptor of the process was closed. Returns status().
  int Retry() noexcept;

  // Events since the provider was made, by what became of them. Exact once writers are at rest.
  struct Counters {
    static constexpr int kErrnos = 134;

    std::uint64_t written = 0;
    std::uint64_t too_big = 0;
    std::uint64_t invalid = 0;
    std::uint64_t failed = 0;
    int last_error = 0;  // errno of the last failed one
    // failed, by errno; [0] for any errno not below kErrnos.
    std::uint64_t failed_by_errno[kErrnos] = {};
  };
  Counters counters() const noexcept;

  // Unregisters every set from the transport it has and registers it with `transport` (null:
  // user_events), which must live as long as the provider uses it. For tests (testing/transport.h):
  // no event may be being written meanwhile. Returns status().
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

  // Writers on different CPUs shall not fight for one line of cache.
  struct alignas(64) Shard {
    internal::Atomic<std::uint64_t> written;
  };
  static constexpr std::size_t kShards = 8;

  void CountWritten() noexcept;
  void CountFailed(int error) noexcept;

  // The members up to the shards are those of eh_static_provider (internal/static_objects.h).
  // The kernel, or the transport, sets and clears the bits of enabled event sets.
  alignas(64) internal::Atomic<std::uint64_t> enabled_;
  internal::Atomic<Transport*> transport_;  // null: user_events
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
  // `name`: [A-Za-z_][A-Za-z0-9_]*, `group`: [a-z0-9]*. One that is not valid, or too long for a
  // tracepoint's name, shows as EINVAL of every set.
  constexpr explicit DynamicProvider(std::string_view name, std::string_view group = {}) noexcept
      : ProviderBase(name, group) {}
};

#if __cplusplus >= 202002L

// A provider whose name is in the program. Define it once, in a header or a source file:
//
//     inline constinit eh::Provider provider("MyCompany_MyService");
//
// Safe to use before and during static initialisation and destruction. In shared objects the usual
// rules of symbols decide whether they share it; either way each registers event sets with it that
// others do not see, and its status and Retry are about those. An object that is to be unloaded
// needs hidden visibility, for itself or for the provider: one that the loader may share stays.
class Provider : public ProviderBase {
 public:
  // `name`: [A-Za-z_][A-Za-z0-9_]*, at most 200 bytes. `group`: [a-z0-9]*, at most 24. Others do
  // not compile.
  consteval explicit Provider(std::string_view name, std::string_view group = "")
      : ProviderBase(name, group) {
    // Calls of functions that are not constexpr: the compiler names them where it stops.
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

// Space in front of an event, for the transport's use.
inline constexpr std::size_t kRecordPrefix = 4;

// The tracepoint of (provider, level, keyword), shared by all events that have these. Static events
// have theirs by themselves; this is for dynamic ones. Registered from construction to destruction;
// several sets of the same level and keyword of one provider share a registration. Thread-safe; not
// to be destroyed while it is written to.
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

  // 0 if it is registered, else why not, as an errno: ENOENT (no tracefs, or a kernel without
  // user_events), EACCES, EADDRINUSE (the name is defined with other fields), EMFILE (the system
  // has no more events to give), ENOSPC (over ProviderBase::kMaxEventSets), EINVAL (name, group or
  // level not valid), ENOTCONN (not yet, or no longer, registered).
  int status() const noexcept { return status_.Load(); }

  bool enabled() const noexcept { return EnabledIn(*provider_); }
  // enabled() for a provider that is known to be this set's: one indirection less.
  [[gnu::always_inline]] bool EnabledIn(const ProviderBase& provider) const noexcept {
    const std::uint64_t word = provider.enabled_.Load();
    if (__builtin_expect(word == 0, 1)) return false;
    return (word & mask_.Load()) != 0;
  }

  // Writes the record from `begin` to `end`, kRecordPrefix bytes, then the event, and counts the
  // result. Async-signal-safe; does not ask enabled().
  WriteResult Write(std::byte* begin, std::byte* end) const noexcept;
  // What eh_write_static does (internal/static_objects.h). WriteMade takes made pieces also.
  WriteResult WriteStatic(const eh_static_event& event, const void* fixed,
                          std::uint64_t size) const noexcept;
  WriteResult WriteStatic(const eh_static_event& event, const void* fixed, std::uint64_t size,
                          const Activity& activity) const noexcept;
  WriteResult WriteMade(const eh_static_event& event, const void* fixed, std::uint64_t size,
                        const Activity* activity) const noexcept;
  // Counts an event that is refused, kTooBig or kInvalid, before it is built.
  WriteResult Refuse(WriteResult reason) const noexcept;

  // Sets with static storage are constant-initialised and registered later.
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

  // No handle of user_events: it has no open file of this generation.
  static constexpr std::uint64_t kNoHandle = ~std::uint64_t{0};

  WriteResult PutStatic(const eh_static_event& event, const void* fixed_bytes, std::uint64_t size,
                        const Activity* activity) const noexcept;
  WriteResult WriteChecked(std::byte* begin, std::byte* end) const noexcept;
  [[gnu::cold]] WriteResult WriteSlow(std::byte* begin, std::byte* end) const noexcept;
  [[gnu::cold]] WriteResult Failed(int error) const noexcept;

  // The members up to the level are those of eh_static_set (internal/static_objects.h).
  alignas(8) internal::Atomic<std::uint64_t> mask_;  // its bit of the provider's word; 0: none
  ProviderBase* provider_;
  std::uint64_t keyword_;
  internal::Atomic<int> status_{ENOTCONN};
  Level level_;
  internal::Atomic<std::uint64_t> handle_;  // the transport's
  // handle_ if the transport is this object's user_events, else kNoHandle.
  internal::Atomic<std::uint64_t> fast_handle_{kNoHandle};
  // The transport it is registered with: that of the shared object that registered it, where there
  // are several, since to another's the handle means something else.
  internal::Atomic<Transport*> transport_;
  internal::Registry* registry_ = nullptr;  // that lists it
  EventSet* next_ = nullptr;                // guarded by the registry's lock
};

namespace internal {

// The set that all static events of (provider, level, keyword) share. Hidden: every shared object
// has its own, which goes when that is unloaded.
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
