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

namespace eh {
namespace internal {

// Every set that this object (see above) has registered, and the one lock for all that is not
// writing events. A set is taken out of the registry that lists it, whoever's code does that.
class Registry {
 public:
  static Registry registry;

  void Add(EventSet* set) noexcept {
    const std::lock_guard lock(mutex_);
    if (set->registry_ != nullptr) return;
    HandleForks();
    set->next_ = sets_;
    sets_ = set;
    set->registry_ = this;
    RegisterSet(set);
  }

  void Remove(EventSet* set) noexcept {
    const std::lock_guard lock(mutex_);
    EventSet** at = &sets_;
    while (*at != set) at = &(*at)->next_;
    RemoveAt(at);
  }

  void Remove(const AnyProvider& provider) noexcept {
    const std::lock_guard lock(mutex_);
    for (EventSet** at = &sets_; *at != nullptr;) {
      if (&(*at)->provider_ == &provider) {
        RemoveAt(at);
      } else {
        at = &(*at)->next_;
      }
    }
  }

  int Status(const AnyProvider& provider) noexcept {
    const std::lock_guard lock(mutex_);
    return StatusOf(&provider);
  }

  // Of one provider, or of all (null).
  int Retry(const AnyProvider* provider) noexcept {
    const std::lock_guard lock(mutex_);
    // All that has gone first, so that no set takes a twin's place that is itself out of date.
    ForEach(provider, [this](EventSet* set) {
      Transport* const transport = set->transport_.load(std::memory_order_relaxed);
      if (set->status() == 0 &&
          !transport->IsCurrent(set->handle_.load(std::memory_order_relaxed))) {
        UnregisterSet(set);
      }
    });
    ForEach(provider, [this](EventSet* set) {
      if (set->status() != 0) RegisterSet(set);
    });
    return StatusOf(provider);
  }

  int SetTransport(AnyProvider* provider, Transport* transport) noexcept {
    const std::lock_guard lock(mutex_);
    ForEach(provider, [this](EventSet* set) { UnregisterSet(set); });
    provider->transport_.store(transport, std::memory_order_relaxed);
    ForEach(provider, [this](EventSet* set) { RegisterSet(set); });
    return StatusOf(provider);
  }

 private:
  template <typename Function>
  void ForEach(const AnyProvider* provider, Function function) noexcept {
    for (EventSet* set = sets_; set != nullptr; set = set->next_) {
      if (provider == nullptr || &set->provider_ == provider) function(set);
    }
  }

  void RemoveAt(EventSet** at) noexcept {
    EventSet* const set = *at;
    *at = set->next_;
    set->next_ = nullptr;
    set->registry_ = nullptr;
    if (FindTwin(*set) != nullptr) {
      Forget(set);
    } else {
      UnregisterSet(set);
    }
  }

  // A registered set of the same tracepoint.
  EventSet* FindTwin(const EventSet& set) noexcept {
    for (EventSet* other = sets_; other != nullptr; other = other->next_) {
      if (other != &set && &other->provider_ == &set.provider_ && other->level_ == set.level_ &&
          other->keyword_ == set.keyword_ && other->mask_.load(std::memory_order_relaxed) != 0) {
        return other;
      }
    }
    return nullptr;
  }

  static std::uint64_t* EnableWord(AnyProvider* provider) noexcept {
    static_assert(sizeof(provider->enabled_) == sizeof(std::uint64_t));
    return reinterpret_cast<std::uint64_t*>(&provider->enabled_);
  }

  void RegisterSet(EventSet* set) noexcept {
    if (const EventSet* twin = FindTwin(*set)) {
      Enter(set, twin->transport_.load(std::memory_order_relaxed),
            twin->handle_.load(std::memory_order_relaxed),
            twin->mask_.load(std::memory_order_relaxed));
      return;
    }
    set->status_.store(RegisterTracepoint(set), std::memory_order_relaxed);
  }

  static int RegisterTracepoint(EventSet* set) noexcept {
    AnyProvider& provider = set->provider_;
    char name[kMaxTracepointName + 1];
    char options[kMaxTracepointName];
    // Behind a capital letter would be another option.
    constexpr std::string_view kGroup = "abcdefghijklmnopqrstuvwxyz0123456789";
    if (provider.group_.size() >= sizeof(options) ||
        provider.group_.find_first_not_of(kGroup) != std::string_view::npos) {
      return EINVAL;
    }
    options[0] = 'G';
    provider.group_.copy(options + 1, provider.group_.size());
    const std::size_t options_size = provider.group_.empty() ? 0 : 1 + provider.group_.size();
    const TracepointName parts{provider.name_,
                               static_cast<std::uint8_t>(set->level_),
                               set->keyword_,
                               {options, options_size}};
    if (FormatTracepointName(parts, name) == 0) return EINVAL;
    const std::uint64_t mask = TakeBit(&provider);
    if (mask == 0) return ENOSPC;
    Transport* transport = provider.transport_.load(std::memory_order_relaxed);
    if (transport == nullptr) transport = &UserEventsTransport();
    std::uint64_t handle = 0;
    const int error = transport->Register(name, EnableWord(&provider),
                                          static_cast<unsigned>(std::countr_zero(mask)), &handle);
    if (error != 0) {
      provider.used_bits_.fetch_and(~mask, std::memory_order_relaxed);
      return error;
    }
    Enter(set, transport, handle, mask);
    return 0;
  }

  // A bit of the enable word that was free, as a mask; 0 if there is none. Other objects'
  // registries may have the same provider.
  static std::uint64_t TakeBit(AnyProvider* provider) noexcept {
    std::uint64_t used = provider->used_bits_.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t mask = ~used & (used + 1);
      if (mask == 0 || provider->used_bits_.compare_exchange_weak(used, used | mask,
                                                                  std::memory_order_relaxed)) {
        return mask;
      }
    }
  }

  static void Enter(EventSet* set, Transport* transport, std::uint64_t handle,
                    std::uint64_t mask) noexcept {
    set->transport_.store(transport, std::memory_order_relaxed);
    set->handle_.store(handle, std::memory_order_relaxed);
    set->status_.store(0, std::memory_order_relaxed);
    // From here on it may be found enabled.
    set->mask_.store(mask, std::memory_order_release);
  }

  // Its twins with it.
  void UnregisterSet(EventSet* set) noexcept {
    AnyProvider& provider = set->provider_;
    const std::uint64_t mask = set->mask_.load(std::memory_order_relaxed);
    Transport* const transport = set->transport_.load(std::memory_order_relaxed);
    Forget(set);
    if (mask == 0) return;
    ForEach(&provider, [mask](EventSet* twin) {
      if (twin->mask_.load(std::memory_order_relaxed) == mask) Forget(twin);
    });
    transport->Unregister(EnableWord(&provider), static_cast<unsigned>(std::countr_zero(mask)));
    provider.enabled_.fetch_and(~mask, std::memory_order_relaxed);
    provider.used_bits_.fetch_and(~mask, std::memory_order_relaxed);
  }

  static void Forget(EventSet* set) noexcept {
    set->mask_.store(0, std::memory_order_relaxed);
    set->transport_.store(nullptr, std::memory_order_relaxed);
    set->status_.store(ENOTCONN, std::memory_order_relaxed);
  }

  // The errno of a set, the newest first, that is not registered.
  int StatusOf(const AnyProvider* provider) noexcept {
    int status = 0;
    ForEach(provider, [&status](const EventSet* set) {
      if (status == 0) status = set->status();
    });
    return status;
  }

  // Once, with the first set: a child must not find the lock held by a thread that it has not got.
  void HandleForks() noexcept {
    if (handles_forks_) return;
    handles_forks_ = true;
    pthread_atfork([] { registry.mutex_.lock(); }, [] { registry.mutex_.unlock(); },
                   [] {
                     registry.mutex_.unlock();
                     CheckUserEventsBeforeNextWrite();
                   });
  }

  std::mutex mutex_;
  EventSet* sets_ = nullptr;
  bool handles_forks_ = false;
};

constinit Registry Registry::registry;

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

AnyProvider::~AnyProvider() { internal::Registry::registry.Remove(*this); }

int AnyProvider::status() const noexcept { return internal::Registry::registry.Status(*this); }

int AnyProvider::Retry() noexcept { return internal::Registry::registry.Retry(this); }

int AnyProvider::SetTransport(Transport* transport) noexcept {
  return internal::Registry::registry.SetTransport(this, transport);
}

int RetryAll() noexcept { return internal::Registry::registry.Retry(nullptr); }

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

void EventSet::Register() noexcept { internal::Registry::registry.Add(this); }
void EventSet::Unregister() noexcept {
  if (registry_ != nullptr) registry_->Remove(this);
}

WriteResult EventSet::Write(std::span<std::byte> record) const noexcept {
  if (record.size() > kRecordPrefix + kMaxEventSize) [[unlikely]] {
    return Refuse(WriteResult::kTooBig);
  }
  internal::UserEvents& user_events = internal::user_events_transport;
  if (transport_.load(std::memory_order_relaxed) != &user_events || !user_events.IsFresh())
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
  Transport* const transport = transport_.load(std::memory_order_relaxed);
  if (transport == nullptr) return Failed(EBADF);
  const int error = transport->Write(handle_.load(std::memory_order_relaxed), record);
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
             "(mount -o remount,gid=GROUP,mode=0755 /sys/kernel/tracing && "
             "chmod g+w /sys/kernel/tracing/user_events_data)";
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

}  // namespace eh
