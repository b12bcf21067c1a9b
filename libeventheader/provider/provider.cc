#include "eventheader/provider.h"

#include <cerrno>

#include "eventheader/testing/transport.h"
#include "libeventheader/provider/registry.h"
#include "libeventheader/provider/user_events_transport.h"

namespace eh {

inline void ProviderBase::CountWritten() noexcept {
  // Thread control blocks are pages apart; the product's highest bits spread them over the shards.
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  const std::size_t shard = std::uint64_t{thread} * 0x9E3779B97F4A7C15 >> 61;
  static_assert(kShards == 1 << (64 - 61));
  shards_[shard].written.fetch_add(1, std::memory_order_relaxed);
}

void ProviderBase::CountFailed(int error) noexcept {
  last_error_.store(error, std::memory_order_relaxed);
  failed_[error < Counters::kErrnos ? error : 0].fetch_add(1, std::memory_order_relaxed);
}

ProviderBase::~ProviderBase() { internal::Registry::registry.Remove(*this); }

int ProviderBase::status() const noexcept { return internal::Registry::registry.Status(*this); }

int ProviderBase::Retry() noexcept { return internal::Registry::registry.Retry(this); }

int ProviderBase::SetTransport(Transport* transport) noexcept {
  return internal::Registry::registry.SetTransport(*this, transport);
}

int RetryAll() noexcept { return internal::Registry::registry.Retry(nullptr); }

ProviderBase::Counters ProviderBase::counters() const noexcept {
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
    return WriteSlow(record);
  }
  const int error = user_events.WriteUnchecked(handle_.load(std::memory_order_relaxed), record);
  if (error != 0) [[unlikely]]
    return Failed(error);
  provider_.CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::WriteSlow(std::span<std::byte> record) const noexcept {
  Transport* const transport = transport_.load(std::memory_order_relaxed);
  if (transport == nullptr) return Failed(EBADF);
  const int error = transport->Write(handle_.load(std::memory_order_relaxed), record);
  if (error != 0) return Failed(error);
  provider_.CountWritten();
  return WriteResult::kWritten;
}

WriteResult EventSet::Failed(int error) const noexcept {
  // Disabled since enabled() was asked: a moment later the event would not have been written.
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
      return "provider name, group or level is not valid, or the name is too long";
    case ENOTCONN:
      return "not registered: not yet, or no longer";
    default:
      return "the kernel refused the registration";
  }
}

}  // namespace eh
