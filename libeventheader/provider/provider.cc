#include "eventheader/provider.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>

#include <bit>
#include <cerrno>
#include <mutex>

#include "provider/registry.h"
#include "provider/user_events_transport.h"

// The object (program or shared object) that this code is linked into.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr)
    __ehdr_start;  // NOLINT(bugprone-reserved-identifier)

namespace eventheader {
namespace internal {

// Every provider with sets, and the one lock for all that is not writing events.
class Registry {
 public:
  static void Add(EventSet* set) noexcept {
    const std::lock_guard lock(mutex_);
    AnyProvider& provider = set->provider_;
    if (set->listed_) return;
    HandleForks();
    if (provider.sets_ == nullptr) {
      provider.next_ = providers_;
      providers_ = &provider;
    }
    set->next_ = provider.sets_;
    provider.sets_ = set;
    set->listed_ = true;
    RegisterSet(set);
  }

  static void Remove(EventSet* set) noexcept {
    const std::lock_guard lock(mutex_);
    if (!set->listed_) return;
    AnyProvider& provider = set->provider_;
    Unlink(&provider.sets_, set);
    set->listed_ = false;
    if (FindTwin(*set) == nullptr) UnregisterSet(set);
    Forget(set);
    if (provider.sets_ == nullptr) Unlink(&providers_, &provider);
  }

  static void Remove(AnyProvider* provider) noexcept {
    const std::lock_guard lock(mutex_);
    while (EventSet* set = provider->sets_) {
      provider->sets_ = set->next_;
      set->listed_ = false;
      if (FindTwin(*set) == nullptr) UnregisterSet(set);
      Forget(set);
      if (provider->sets_ == nullptr) Unlink(&providers_, provider);
    }
  }

  static int Status(const AnyProvider& provider) noexcept {
    const std::lock_guard lock(mutex_);
    return StatusOf(provider);
  }

  static int Retry(AnyProvider* provider) noexcept {
    const std::lock_guard lock(mutex_);
    return RetryLocked(provider);
  }

  static int RetryAll() noexcept {
    const std::lock_guard lock(mutex_);
    int first_error = 0;
    for (AnyProvider* provider = providers_; provider != nullptr; provider = provider->next_) {
      const int error = RetryLocked(provider);
      if (first_error == 0) first_error = error;
    }
    return first_error;
  }

  static int SetTransport(AnyProvider* provider, Transport* transport) noexcept {
    const std::lock_guard lock(mutex_);
    for (EventSet* set = provider->sets_; set != nullptr; set = set->next_) {
      UnregisterSet(set);
      Forget(set);
    }
    provider->transport_.store(transport, std::memory_order_release);
    for (EventSet* set = provider->sets_; set != nullptr; set = set->next_) RegisterSet(set);
    return StatusOf(*provider);
  }

  static Transport& TransportOf(const AnyProvider& provider) noexcept {
    Transport* const transport = provider.transport_.load(std::memory_order_relaxed);
    return transport != nullptr ? *transport : UserEventsTransport();
  }

 private:
  template <typename Node>
  static void Unlink(Node** head, Node* node) noexcept {
    while (*head != node) head = &(*head)->next_;
    *head = node->next_;
    node->next_ = nullptr;
  }

  // A registered set of the same tracepoint.
  static EventSet* FindTwin(const EventSet& set) noexcept {
    for (EventSet* other = set.provider_.sets_; other != nullptr; other = other->next_) {
      if (other != &set && other->level_ == set.level_ && other->keyword_ == set.keyword_ &&
          other->mask_.load(std::memory_order_relaxed) != 0) {
        return other;
      }
    }
    return nullptr;
  }

  static std::uint64_t* EnableWord(AnyProvider* provider) noexcept {
    static_assert(sizeof(provider->enabled_) == sizeof(std::uint64_t));
    return reinterpret_cast<std::uint64_t*>(&provider->enabled_);
  }

  static void RegisterSet(EventSet* set) noexcept {
    if (const EventSet* twin = FindTwin(*set)) {
      set->handle_.store(twin->handle_.load(std::memory_order_relaxed), std::memory_order_relaxed);
      set->mask_.store(twin->mask_.load(std::memory_order_relaxed), std::memory_order_release);
      set->status_.store(0, std::memory_order_relaxed);
      return;
    }
    set->status_.store(RegisterTracepoint(set), std::memory_order_relaxed);
  }

  static int RegisterTracepoint(EventSet* set) noexcept {
    AnyProvider& provider = set->provider_;
    char name[kMaxTracepointName + 1];
    char options[kMaxTracepointName];
    if (provider.group_.size() >= sizeof(options)) return EINVAL;
    options[0] = 'G';
    provider.group_.copy(options + 1, provider.group_.size());
    const std::size_t options_size = provider.group_.empty() ? 0 : 1 + provider.group_.size();
    const TracepointName parts{provider.name_,
                               static_cast<std::uint8_t>(set->level_),
                               set->keyword_,
                               {options, options_size}};
    if (FormatTracepointName(parts, name) == 0) return EINVAL;
    const auto bit = static_cast<unsigned>(std::countr_one(provider.used_bits_));
    if (bit >= AnyProvider::kMaxEventSets) return ENOSPC;
    std::uint64_t handle = 0;
    const int error = TransportOf(provider).Register(name, EnableWord(&provider), bit, &handle);
    if (error != 0) return error;
    provider.used_bits_ |= std::uint64_t{1} << bit;
    set->handle_.store(handle, std::memory_order_relaxed);
    // From here on it may be found enabled.
    set->mask_.store(std::uint64_t{1} << bit, std::memory_order_release);
    return 0;
  }

  static void UnregisterSet(EventSet* set) noexcept {
    const std::uint64_t mask = set->mask_.load(std::memory_order_relaxed);
    if (mask == 0) return;
    AnyProvider& provider = set->provider_;
    if ((provider.used_bits_ & mask) == 0) return;  // its twin has done it
    TransportOf(provider).Unregister(EnableWord(&provider),
                                     static_cast<unsigned>(std::countr_zero(mask)));
    provider.enabled_.fetch_and(~mask, std::memory_order_relaxed);
    provider.used_bits_ &= ~mask;
  }

  static void Forget(EventSet* set) noexcept {
    set->mask_.store(0, std::memory_order_relaxed);
    set->status_.store(ENOTCONN, std::memory_order_relaxed);
  }

  static int StatusOf(const AnyProvider& provider) noexcept {
    for (const EventSet* set = provider.sets_; set != nullptr; set = set->next_) {
      if (set->status() != 0) return set->status();
    }
    return 0;
  }

  static int RetryLocked(AnyProvider* provider) noexcept {
    Transport& transport = TransportOf(*provider);
    // All that has gone first, so that no set takes a twin's place that is itself out of date.
    for (EventSet* set = provider->sets_; set != nullptr; set = set->next_) {
      if (set->status() == 0 &&
          !transport.IsCurrent(set->handle_.load(std::memory_order_relaxed))) {
        UnregisterSet(set);
        Forget(set);
      }
    }
    for (EventSet* set = provider->sets_; set != nullptr; set = set->next_) {
      if (set->status() != 0) RegisterSet(set);
    }
    return StatusOf(*provider);
  }

  // Once, with the first set: a child must not find the lock held by a thread that it has not got.
  static void HandleForks() noexcept {
    if (handles_forks_) return;
    handles_forks_ = true;
    pthread_atfork([] { mutex_.lock(); }, [] { mutex_.unlock(); },
                   [] {
                     mutex_.unlock();
                     CheckUserEventsBeforeNextWrite();
                     ForkActivityIds();
                   });
  }

  static constinit std::mutex mutex_;
  static constinit AnyProvider* providers_;
  static constinit bool handles_forks_;
};

constinit std::mutex Registry::mutex_;
constinit AnyProvider* Registry::providers_ = nullptr;
constinit bool Registry::handles_forks_ = false;

namespace {

// A program keeps its descriptor to the end, since its threads may write until then; a shared
// object that is unloaded must not leave it behind.
bool IsInSharedObject() noexcept {
  return getauxval(AT_PHDR) !=
         reinterpret_cast<std::uintptr_t>(&__ehdr_start) + __ehdr_start.e_phoff;
}

// The lowest priority: after the static sets, which need the descriptor to unregister.
[[gnu::destructor(101)]] void Unload() noexcept {
  if (IsInSharedObject()) CloseUserEvents();
}

}  // namespace
}  // namespace internal

inline void AnyProvider::CountWritten() noexcept {
  // Thread control blocks are pages apart; the product's highest bits spread them over the shards.
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  const std::size_t shard = std::uint64_t{thread} * 0x9E3779B97F4A7C15 >> 61;
  static_assert(kShards == 1 << (64 - 61));
  shards_[shard].written.fetch_add(1, std::memory_order_relaxed);
}

void AnyProvider::CountFailed(int error) noexcept {
  last_error_.store(error, std::memory_order_relaxed);
  failed_[error < Counters::kErrnos ? error : 0].fetch_add(1, std::memory_order_relaxed);
}

AnyProvider::~AnyProvider() { internal::Registry::Remove(this); }

int AnyProvider::status() const noexcept { return internal::Registry::Status(*this); }

int AnyProvider::Retry() noexcept { return internal::Registry::Retry(this); }

int AnyProvider::SetTransport(Transport* transport) noexcept {
  return internal::Registry::SetTransport(this, transport);
}

int RetryAll() noexcept { return internal::Registry::RetryAll(); }

AnyProvider::Counters AnyProvider::counters() const noexcept {
  Counters counters;
  for (const Shard& shard : shards_) {
    counters.written += shard.written.load(std::memory_order_relaxed);
  }
  counters.too_big = too_big_.load(std::memory_order_relaxed);
  counters.invalid = invalid_.load(std::memory_order_relaxed);
  counters.last_error = last_error_.load(std::memory_order_relaxed);
  for (int i = 0; i < Counters::kErrnos; ++i) {
    counters.failed_by_errno[i] = failed_[i].load(std::memory_order_relaxed);
    counters.failed += counters.failed_by_errno[i];
  }
  return counters;
}

void EventSet::Register() noexcept { internal::Registry::Add(this); }
void EventSet::Unregister() noexcept {
  if (listed_) internal::Registry::Remove(this);
}

WriteResult EventSet::Write(std::span<std::byte> record) const noexcept {
  if (record.size() > kRecordPrefix + kMaxEventSize) [[unlikely]] {
    return Refuse(WriteResult::kTooBig);
  }
  internal::UserEvents& user_events = internal::user_events_transport;
  if (provider_.transport_.load(std::memory_order_relaxed) != nullptr || !user_events.IsFresh())
      [[unlikely]] {
    return WriteOtherwise(record);
  }
  const int error = user_events.WriteUnchecked(handle_.load(std::memory_order_relaxed), record);
  if (error != 0) [[unlikely]]
    return Failed(error);
  provider_.CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::WriteOtherwise(std::span<std::byte> record) const noexcept {
  const int error = internal::Registry::TransportOf(provider_).Write(
      handle_.load(std::memory_order_relaxed), record);
  if (error != 0) return Failed(error);
  provider_.CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::Failed(int error) const noexcept {
  // Who listened is gone: the event would have gone nowhere a moment later, too.
  if (error == EBADF && !enabled()) return WriteResult::kDisabled;
  provider_.CountFailed(error);
  return WriteResult::kFailed;
}

WriteResult EventSet::Refuse(WriteResult reason) const noexcept {
  auto& counter = reason == WriteResult::kTooBig ? provider_.too_big_ : provider_.invalid_;
  counter.fetch_add(1, std::memory_order_relaxed);
  return reason;
}

const char* RegistrationErrorText(int error) noexcept {
  switch (error) {
    case 0:
      return "registered";
    case ENOENT:
      return "no user_events: mount tracefs at /sys/kernel/tracing; needs Linux 6.4 or newer with "
             "CONFIG_USER_EVENTS=y";
    case EACCES:
    case EPERM:
      return "no permission to write to user_events_data: run as root, or give it to a group "
             "(mount "
             "-o remount,gid=GROUP,mode=0755 /sys/kernel/tracing && chmod g+w "
             "/sys/kernel/tracing/user_events_data)";
    case EADDRINUSE:
      return "the name is in use with other fields, or registered twice: find who has it in "
             "user_events_status and end that, or rename the provider";
    case EMFILE:
      return "no more events or descriptors to be had: raise kernel.user_events_max or the limit "
             "of open files";
    case ENOSPC:
      return "one provider object holds 64 sets of level and keyword: use fewer, or another "
             "provider object";
    case EINVAL:
      return "provider name, group or level are out of form, or the name is too long";
    case ENOTCONN:
      return "not registered: not yet, or no longer";
    default:
      return "the kernel refused the registration";
  }
}

}  // namespace eventheader
