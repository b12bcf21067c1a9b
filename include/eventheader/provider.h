// Providers and their event sets: who writes events, and which of them somebody listens to.
#ifndef EVENTHEADER_PROVIDER_H_
#define EVENTHEADER_PROVIDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string_view>

#include "eventheader/tracepoint_name.h"
#include "eventheader/transport.h"
#include "eventheader/wire.h"

namespace eventheader {

class EventSet;

// What became of an event.
enum class WriteResult : std::uint8_t {
  kWritten,
  kDisabled,  // nobody listens
  kTooBig,    // over kMaxEventSize: refused before the system call
  kFailed,    // the kernel refused it
};

// A named source of events. Define one with static storage, for a name once in a program:
//
//     inline constinit eventheader::Provider provider("MyCompany_MyService");
//
// Its event sets register themselves with the kernel when the program, or the shared object,
// starts, and again with Retry if that failed. All functions are thread-safe.
class Provider {
 public:
  // Event sets of one provider share a word of enable bits: there is room for so many.
  static constexpr std::size_t kMaxEventSets = 64;

  // `name`: [A-Za-z_][A-Za-z0-9_]*, at most 200 bytes. `group`: [a-z0-9]*. What is not does not
  // compile. Both must outlive the provider, as literals do.
  consteval explicit Provider(std::string_view name, std::string_view group = "")
      : name_(name), group_(group) {
    // Calls of functions that are not constexpr: the compiler names them where it stops.
    if (!IsValidProviderName(name)) TheProvidersNameMustBeAnIdentifier();
    if (name.size() > kMaxName) TheProvidersNameHasMoreThan200Bytes();
    if (group.size() > kMaxGroup) TheProvidersGroupHasMoreThan24Bytes();
    for (char c : group) {
      if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))) {
        TheProvidersGroupMustBeLowerCaseLettersAndDigits();
      }
    }
  }
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  std::string_view name() const noexcept { return name_; }
  std::string_view group() const noexcept { return group_; }

  // Somebody listens to at least one of the provider's events. One load.
  bool enabled() const noexcept { return enabled_bits() != 0; }

  // The first error among its event sets' registrations, 0 if there is none: ENOENT no tracefs, or
  // a kernel without user_events; EACCES no permission; EADDRINUSE another program has defined the
  // tracepoint with other fields; EMFILE kernel.user_events_max is reached; ENOSPC more than
  // kMaxEventSets.
  int status() const noexcept;
  // Registers what could not be registered before. Returns status().
  int Retry() noexcept;

  struct Counters {
    std::uint64_t written = 0;
    std::uint64_t too_big = 0;
    std::uint64_t failed = 0;
    int last_error = 0;  // errno of the last failed one
  };
  Counters counters() const noexcept;

  // Uses `transport`, which must outlive the provider, in place of user_events. For tests: before
  // any other thread uses the provider.
  void SetTransport(Transport* transport) noexcept;

 private:
  friend class EventSet;
  static constexpr std::size_t kMaxName = 200;
  static constexpr std::size_t kMaxGroup = 24;

  static void TheProvidersNameMustBeAnIdentifier();
  static void TheProvidersNameHasMoreThan200Bytes();
  static void TheProvidersGroupHasMoreThan24Bytes();
  static void TheProvidersGroupMustBeLowerCaseLettersAndDigits();

  std::uint64_t enabled_bits() const noexcept {
    // The kernel writes it; relaxed is enough, as nothing else is published by it.
    return std::atomic_ref<std::uint64_t>(enabled_).load(std::memory_order_relaxed);
  }
  Transport& transport() const noexcept {
    return transport_ != nullptr ? *transport_ : UserEventsTransport();
  }

  alignas(8) mutable std::uint64_t enabled_ = 0;
  std::string_view name_;
  std::string_view group_;
  Transport* transport_ = nullptr;
  mutable std::mutex mutex_;  // the fields below
  std::array<EventSet*, kMaxEventSets> sets_ = {};
  bool overflowed_ = false;

  std::atomic<std::uint64_t> written_ = 0;
  std::atomic<std::uint64_t> too_big_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::atomic<int> last_error_ = 0;
};

// The events of a provider that share a level and a keyword: one tracepoint. Made by the events
// that use it; has static storage. Before it is constructed, and after it is destroyed, it is
// disabled.
class EventSet {
 public:
  EventSet(Provider& provider, Level level, std::uint64_t keyword) noexcept;
  ~EventSet();
  EventSet(const EventSet&) = delete;
  EventSet& operator=(const EventSet&) = delete;

  // Somebody listens to this set.
  bool enabled() const noexcept {
    return provider_ != nullptr && ((provider_->enabled_bits() >> bit_) & 1) != 0;
  }
  // 0, or the errno with which the registration failed.
  int status() const noexcept { return status_; }

  // Writes `record`: the event, with kRecordPrefix bytes before it. errno stays as it is.
  WriteResult Write(std::span<std::byte> record) noexcept;
  // Counts an event that was over kMaxEventSize.
  WriteResult RefuseTooBig() noexcept;

 private:
  friend class Provider;
  int Register() noexcept;  // with the provider's mutex held

  Provider* provider_ = nullptr;
  Level level_;
  std::uint64_t keyword_;
  unsigned bit_ = 0;
  std::uint32_t index_ = 0;
  int status_ = 0;
  bool registered_ = false;
};

}  // namespace eventheader

#endif  // EVENTHEADER_PROVIDER_H_
