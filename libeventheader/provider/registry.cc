#include "libeventheader/provider/registry.h"

#include <pthread.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <span>
#include <string_view>

#include "eventheader/tracepoint_name.h"
#include "libeventheader/base/user_events.h"
#include "libeventheader/provider/ring_transport.h"
#include "libeventheader/provider/user_events_transport.h"

namespace eh::internal {
namespace {

// The transport of a provider whose transport was destroyed (Transport::Detach()).
class NoTransport final : public Transport {
 public:
  int Register(const char*, std::uint64_t*, unsigned, std::uint64_t*) noexcept override {
    return EOWNERDEAD;
  }
  void Unregister(std::uint64_t*, unsigned) noexcept override {}
  bool IsCurrent(std::uint64_t) noexcept override { return false; }
  int Write(std::uint64_t, std::span<std::byte>) noexcept override { return EBADF; }
};
constinit NoTransport no_transport;

}  // namespace

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
    if ((*at)->provider_ == &provider) {
      RemoveAt(at);
    } else {
      at = &(*at)->next_;
    }
  }
}

int Registry::Status(const ProviderBase& provider) noexcept {
  const std::lock_guard lock(mutex_);
  return StatusOf(&provider, ENOTCONN);
}

int Registry::Retry(const ProviderBase* provider) noexcept {
  const std::lock_guard lock(mutex_);
  // First unregisters all sets whose handle is no longer valid. Otherwise RegisterSet could give a
  // set the registration of another set whose handle is not valid either.
  ForEach(provider, [this](EventSet* set) {
    Transport* const transport = set->transport_.Load();
    if (set->status() == 0 && !transport->IsCurrent(set->handle_.Load())) {
      UnregisterSet(set);
    }
  });
  ForEach(provider, [this](EventSet* set) {
    if (set->status() != 0) RegisterSet(set);
  });
  return StatusOf(provider, provider != nullptr ? ENOTCONN : 0);
}

int Registry::SetTransport(ProviderBase& provider, Transport* transport) noexcept {
  const std::lock_guard lock(mutex_);
  ForEach(&provider, [this](EventSet* set) { UnregisterSet(set); });
  provider.transport_.Store(transport);
  ForEach(&provider, [this](EventSet* set) { RegisterSet(set); });
  return StatusOf(&provider, 0);
}

void Registry::Detach(const Transport* transport) noexcept {
  const std::lock_guard lock(mutex_);
  ForEach(nullptr, [this, transport](EventSet* set) {
    if (set->transport_.Load() == transport) UnregisterSet(set);
    ProviderBase& provider = *set->provider_;
    if (provider.transport_.Load() == transport) provider.transport_.Store(&no_transport);
    if (provider.transport_.Load() == &no_transport) set->status_.Store(EOWNERDEAD);
  });
}

// Calls `function` for each set of one provider, or of all providers if `provider` is null.
template <typename Function>
void Registry::ForEach(const ProviderBase* provider, Function function) noexcept {
  for (EventSet* set = sets_; set != nullptr; set = set->next_) {
    if (provider == nullptr || set->provider_ == provider) function(set);
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

// Returns another registered set of the tracepoint of `like`; null if there is none.
EventSet* Registry::FindRegistered(const EventSet& like) noexcept {
  for (EventSet* set = sets_; set != nullptr; set = set->next_) {
    if (set != &like && set->provider_ == like.provider_ && set->level_ == like.level_ &&
        set->keyword_ == like.keyword_ && set->mask_.Load() != 0) {
      return set;
    }
  }
  return nullptr;
}

void Registry::RegisterSet(EventSet* set) noexcept {
  if (const EventSet* registered = FindRegistered(*set)) {
    Enter(set, registered->transport_.Load(), registered->handle_.Load(), registered->mask_.Load());
    return;
  }
  set->status_.Store(RegisterTracepoint(set));
}

// Unregisters the set and all other sets that share its registration.
void Registry::UnregisterSet(EventSet* set) noexcept {
  ProviderBase& provider = *set->provider_;
  const std::uint64_t mask = set->mask_.Load();
  Transport* const transport = set->transport_.Load();
  Forget(set);
  if (mask == 0) return;
  ForEach(&provider, [mask](EventSet* other) {
    if (other->mask_.Load() == mask) Forget(other);
  });
  transport->Unregister(EnableWord(&provider), static_cast<unsigned>(std::countr_zero(mask)));
  provider.enabled_.ClearBits(mask);
  provider.used_bits_.ClearBits(mask);
}

int Registry::RegisterTracepoint(EventSet* set) noexcept {
  ProviderBase& provider = *set->provider_;
  char name[kMaxTracepointName + 1];
  char options[kMaxTracepointName];
  const std::string_view group = provider.group();
  if (group.size() >= sizeof(options) || !IsValidGroup(group)) return EINVAL;
  options[0] = 'G';
  group.copy(options + 1, group.size());
  const std::size_t options_size = group.empty() ? 0 : 1 + group.size();
  const TracepointName parts{provider.name(),
                             static_cast<std::uint8_t>(set->level_),
                             set->keyword_,
                             {options, options_size}};
  if (FormatTracepointName(parts, name) == 0) return EINVAL;
  const std::uint64_t mask = TakeBit(&provider);
  if (mask == 0) return ENOSPC;
  Transport* transport = provider.transport_.Load();
  std::uint64_t handle = 0;
  const auto bit = static_cast<unsigned>(std::countr_zero(mask));
  const int error = transport == nullptr
                        ? RegisterWithDefault(name, EnableWord(&provider), bit, &transport, &handle)
                        : transport->Register(name, EnableWord(&provider), bit, &handle);
  if (error != 0) {
    provider.used_bits_.ClearBits(mask);
    return error;
  }
  Enter(set, transport, handle, mask);
  return 0;
}

// Registers with user_events or rings, and stores the transport that was used. Returns 0 or an
// errno; ECANCELED if EVENTHEADER_TRANSPORT is "none".
int Registry::RegisterWithDefault(const char* name, std::uint64_t* enable_word, unsigned bit,
                                  Transport** transport, std::uint64_t* handle) noexcept {
  const TransportChoice choice = ChosenTransport();
  state_error_ = ECANCELED;
  state_ = TransportState::kOff;
  if (choice == TransportChoice::kNone) return ECANCELED;
  state_ = TransportState::kUserEvents;
  if (choice != TransportChoice::kRing && choice != TransportChoice::kRingInline) {
    *transport = &user_events_transport;
    state_error_ = user_events_transport.Register(name, enable_word, bit, handle);
    if (state_error_ == 0) return 0;
    // Without permission to search tracefs, opening user_events_data fails with EACCES even if the
    // kernel has no user_events. IsInKernel() distinguishes the two cases.
    const bool is_missing =
        state_error_ == ENOENT ||
        ((state_error_ == EACCES || state_error_ == EPERM) && !user_events::IsInKernel());
    if (choice == TransportChoice::kUserEvents || !is_missing) {
      state_ = TransportState::kUnavailable;
      return state_error_;
    }
  }
  *transport = &ring_transport;
  state_error_ = ring_transport.Register(name, enable_word, bit, handle);
  state_ = state_error_ == 0 ? TransportState::kRingWaiting : TransportState::kUnavailable;
  return state_error_;
}

TransportState Registry::DescribeTransport(std::span<char> text) noexcept {
  const std::lock_guard lock(mutex_);
  const auto put = [text](const char* format, auto... values) {
    if (!text.empty()) std::snprintf(text.data(), text.size(), format, values...);
  };
  switch (state_) {
    case TransportState::kNotUsed:
      put("%s", "none: no event set has been registered with the library's own transport");
      break;
    case TransportState::kUserEvents:
      put("%s", "user_events: the kernel passes events to tools");
      break;
    case TransportState::kOff:
      put("%s", "none: switched off by EVENTHEADER_TRANSPORT=none");
      break;
    case TransportState::kUnavailable:
      put("none: %s", RegistrationErrorText(state_error_));
      break;
    default:
      return ring_transport.Describe(text);
  }
  return state_;
}

std::uint64_t* Registry::EnableWord(ProviderBase* provider) noexcept {
  return provider->enabled_.address();
}

// Takes a free bit of the enable word and returns it as a mask; 0 if there is none. Atomic, because
// registries of other shared objects may use the same provider.
std::uint64_t Registry::TakeBit(ProviderBase* provider) noexcept {
  std::uint64_t used = provider->used_bits_.Load();
  for (;;) {
    const std::uint64_t mask = ~used & (used + 1);
    if (mask == 0 || provider->used_bits_.Replace(&used, used | mask)) {
      return mask;
    }
  }
}

void Registry::Enter(EventSet* set, Transport* transport, std::uint64_t handle,
                     std::uint64_t mask) noexcept {
  set->transport_.Store(transport);
  set->handle_.Store(handle);
  const bool is_own = transport == &user_events_transport || transport == &ring_transport;
  set->fast_handle_.Store(is_own ? handle : EventSet::kNoHandle);
  set->status_.Store(0);
  // From here on, other threads may see the set as enabled.
  set->mask_.Publish(mask);
}

void Registry::Forget(EventSet* set) noexcept {
  set->mask_.Store(0);
  set->fast_handle_.Store(EventSet::kNoHandle);
  set->transport_.Store(nullptr);
  set->status_.Store(ENOTCONN);
}

int Registry::StatusOf(const ProviderBase* provider, int without_sets) noexcept {
  bool has_sets = false;
  int status = 0;
  ForEach(provider, [&](const EventSet* set) {
    has_sets = true;
    if (status == 0) status = set->status();
  });
  return has_sets ? status : without_sets;
}

// Registers the fork handlers on its first call. Without them, a child could find the lock held by
// a thread that does not exist in the child.
void Registry::HandleForks() noexcept {
  if (handles_forks_) return;
  handles_forks_ = true;
  pthread_atfork(
      [] {
        registry.mutex_.lock();
        ring_transport.BeforeFork();
      },
      [] {
        ring_transport.AfterForkInParent();
        registry.mutex_.unlock();
      },
      [] {
        ring_transport.AfterForkInChild();
        registry.mutex_.unlock();
        user_events_transport.CheckBeforeNextWrite();
      });
}

}  // namespace eh::internal
