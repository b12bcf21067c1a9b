#include "libeventheader/provider/registry.h"

#include <pthread.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <string_view>

#include "eventheader/tracepoint_name.h"
#include "libeventheader/provider/user_events_transport.h"

namespace eh::internal {

constinit Registry Registry::registry;

void Registry::Add(EventSet* set) noexcept {
  const std::lock_guard lock(mutex_);
  if (set->registry_ != nullptr) return;
  HandleForks();
  set->next_ = sets_;
  sets_ = set;
  set->registry_ = this;
  RegisterSet(set);
}

void Registry::Remove(EventSet* set) noexcept {
  const std::lock_guard lock(mutex_);
  EventSet** at = &sets_;
  while (*at != set) at = &(*at)->next_;
  RemoveAt(at);
}

void Registry::Remove(const ProviderBase& provider) noexcept {
  const std::lock_guard lock(mutex_);
  for (EventSet** at = &sets_; *at != nullptr;) {
    if (&(*at)->provider_ == &provider) {
      RemoveAt(at);
    } else {
      at = &(*at)->next_;
    }
  }
}

int Registry::Status(const ProviderBase& provider) noexcept {
  const std::lock_guard lock(mutex_);
  return StatusOf(&provider);
}

int Registry::Retry(const ProviderBase* provider) noexcept {
  const std::lock_guard lock(mutex_);
  // Sets whose registration is gone first, so that no set joins one that is itself out of date.
  ForEach(provider, [this](EventSet* set) {
    Transport* const transport = set->transport_.load(std::memory_order_relaxed);
    if (set->status() == 0 && !transport->IsCurrent(set->handle_.load(std::memory_order_relaxed))) {
      UnregisterSet(set);
    }
  });
  ForEach(provider, [this](EventSet* set) {
    if (set->status() != 0) RegisterSet(set);
  });
  return StatusOf(provider);
}

int Registry::SetTransport(ProviderBase& provider, Transport* transport) noexcept {
  const std::lock_guard lock(mutex_);
  ForEach(&provider, [this](EventSet* set) { UnregisterSet(set); });
  provider.transport_.store(transport, std::memory_order_relaxed);
  ForEach(&provider, [this](EventSet* set) { RegisterSet(set); });
  return StatusOf(&provider);
}

// Calls `function` for each set of one provider, or of all (null).
template <typename Function>
void Registry::ForEach(const ProviderBase* provider, Function function) noexcept {
  for (EventSet* set = sets_; set != nullptr; set = set->next_) {
    if (provider == nullptr || &set->provider_ == provider) function(set);
  }
}

void Registry::RemoveAt(EventSet** at) noexcept {
  EventSet* const set = *at;
  *at = set->next_;
  set->next_ = nullptr;
  set->registry_ = nullptr;
  if (FindRegistered(*set) != nullptr) {
    Forget(set);
  } else {
    UnregisterSet(set);
  }
}

// Finds another set of the same tracepoint that is registered.
EventSet* Registry::FindRegistered(const EventSet& like) noexcept {
  for (EventSet* set = sets_; set != nullptr; set = set->next_) {
    if (set != &like && &set->provider_ == &like.provider_ && set->level_ == like.level_ &&
        set->keyword_ == like.keyword_ && set->mask_.load(std::memory_order_relaxed) != 0) {
      return set;
    }
  }
  return nullptr;
}

void Registry::RegisterSet(EventSet* set) noexcept {
  if (const EventSet* registered = FindRegistered(*set)) {
    Enter(set, registered->transport_.load(std::memory_order_relaxed),
          registered->handle_.load(std::memory_order_relaxed),
          registered->mask_.load(std::memory_order_relaxed));
    return;
  }
  set->status_.store(RegisterTracepoint(set), std::memory_order_relaxed);
}

// Unregisters the set and all others that share its registration.
void Registry::UnregisterSet(EventSet* set) noexcept {
  ProviderBase& provider = set->provider_;
  const std::uint64_t mask = set->mask_.load(std::memory_order_relaxed);
  Transport* const transport = set->transport_.load(std::memory_order_relaxed);
  Forget(set);
  if (mask == 0) return;
  ForEach(&provider, [mask](EventSet* other) {
    if (other->mask_.load(std::memory_order_relaxed) == mask) Forget(other);
  });
  transport->Unregister(EnableWord(&provider), static_cast<unsigned>(std::countr_zero(mask)));
  provider.enabled_.fetch_and(~mask, std::memory_order_relaxed);
  provider.used_bits_.fetch_and(~mask, std::memory_order_relaxed);
}

int Registry::RegisterTracepoint(EventSet* set) noexcept {
  ProviderBase& provider = set->provider_;
  char name[kMaxTracepointName + 1];
  char options[kMaxTracepointName];
  if (provider.group_.size() >= sizeof(options) || !IsValidGroup(provider.group_)) return EINVAL;
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
  if (transport == nullptr) transport = &user_events_transport;
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

std::uint64_t* Registry::EnableWord(ProviderBase* provider) noexcept {
  static_assert(sizeof(provider->enabled_) == sizeof(std::uint64_t));
  return reinterpret_cast<std::uint64_t*>(&provider->enabled_);
}

// Takes a bit of the enable word that was free and returns it as a mask; 0 if there is none. Other
// objects' registries may have the same provider.
std::uint64_t Registry::TakeBit(ProviderBase* provider) noexcept {
  std::uint64_t used = provider->used_bits_.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t mask = ~used & (used + 1);
    if (mask == 0 ||
        provider->used_bits_.compare_exchange_weak(used, used | mask, std::memory_order_relaxed)) {
      return mask;
    }
  }
}

void Registry::Enter(EventSet* set, Transport* transport, std::uint64_t handle,
                     std::uint64_t mask) noexcept {
  set->transport_.store(transport, std::memory_order_relaxed);
  set->handle_.store(handle, std::memory_order_relaxed);
  set->status_.store(0, std::memory_order_relaxed);
  // From here on it may be found enabled.
  set->mask_.store(mask, std::memory_order_release);
}

void Registry::Forget(EventSet* set) noexcept {
  set->mask_.store(0, std::memory_order_relaxed);
  set->transport_.store(nullptr, std::memory_order_relaxed);
  set->status_.store(ENOTCONN, std::memory_order_relaxed);
}

int Registry::StatusOf(const ProviderBase* provider) noexcept {
  int status = 0;
  ForEach(provider, [&status](const EventSet* set) {
    if (status == 0) status = set->status();
  });
  return status;
}

// Called with each set, does its work once: a child must not find the lock held by a thread that it
// does not have.
void Registry::HandleForks() noexcept {
  if (handles_forks_) return;
  handles_forks_ = true;
  pthread_atfork([] { registry.mutex_.lock(); }, [] { registry.mutex_.unlock(); },
                 [] {
                   registry.mutex_.unlock();
                   user_events_transport.CheckBeforeNextWrite();
                 });
}

}  // namespace eh::internal
