#include "eventheader/provider.h"

#include <cerrno>
#include <cstring>

namespace eventheader {

int Provider::status() const noexcept {
  const std::lock_guard lock(mutex_);
  for (const EventSet* set : sets_) {
    if (set != nullptr && set->status_ != 0) return set->status_;
  }
  return overflowed_ ? ENOSPC : 0;
}

int Provider::Retry() noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (EventSet* set : sets_) {
      if (set != nullptr && !set->registered_) set->status_ = set->Register();
    }
  }
  return status();
}

Provider::Counters Provider::counters() const noexcept {
  Counters counters;
  counters.written = written_.load(std::memory_order_relaxed);
  counters.too_big = too_big_.load(std::memory_order_relaxed);
  counters.failed = failed_.load(std::memory_order_relaxed);
  counters.last_error = last_error_.load(std::memory_order_relaxed);
  return counters;
}

void Provider::SetTransport(Transport* transport) noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (EventSet* set : sets_) {
      if (set == nullptr || !set->registered_) continue;
      this->transport().Unregister(&enabled_, set->bit_);
      set->registered_ = false;
    }
    enabled_ = 0;
    transport_ = transport;
  }
  Retry();
}

EventSet::EventSet(Provider& provider, Level level, std::uint64_t keyword) noexcept
    : level_(level), keyword_(keyword) {
  const std::lock_guard lock(provider.mutex_);
  for (std::size_t bit = 0; bit < provider.sets_.size(); ++bit) {
    if (provider.sets_[bit] != nullptr) continue;
    provider.sets_[bit] = this;
    bit_ = static_cast<unsigned>(bit);
    provider_ = &provider;
    status_ = Register();
    return;
  }
  provider.overflowed_ = true;
  status_ = ENOSPC;
}

EventSet::~EventSet() {
  if (provider_ == nullptr) return;
  const std::lock_guard lock(provider_->mutex_);
  if (registered_) provider_->transport().Unregister(&provider_->enabled_, bit_);
  provider_->sets_[bit_] = nullptr;
}

int EventSet::Register() noexcept {
  char options[1 + Provider::kMaxGroup];
  TracepointName name;
  name.provider = provider_->name_;
  name.level = static_cast<std::uint8_t>(level_);
  name.keyword = keyword_;
  if (!provider_->group_.empty()) {
    options[0] = 'G';
    std::memcpy(options + 1, provider_->group_.data(), provider_->group_.size());
    name.options = std::string_view(options, 1 + provider_->group_.size());
  }
  char text[kMaxTracepointName + 1];
  if (FormatTracepointName(name, text) == 0) return EINVAL;
  const int saved = errno;
  const int error = provider_->transport().Register(text, &provider_->enabled_, bit_, &index_);
  errno = saved;
  registered_ = error == 0;
  return error;
}

WriteResult EventSet::Write(std::span<std::byte> record) noexcept {
  const int saved = errno;
  const int error = provider_->transport().Write(index_, record);
  errno = saved;
  if (error == 0) {
    provider_->written_.fetch_add(1, std::memory_order_relaxed);
    return WriteResult::kWritten;
  }
  // Who listened is gone: the event would have gone nowhere a moment later, too.
  if (error == EBADF && !enabled()) return WriteResult::kDisabled;
  provider_->failed_.fetch_add(1, std::memory_order_relaxed);
  provider_->last_error_.store(error, std::memory_order_relaxed);
  return WriteResult::kFailed;
}

WriteResult EventSet::RefuseTooBig() noexcept {
  provider_->too_big_.fetch_add(1, std::memory_order_relaxed);
  return WriteResult::kTooBig;
}

}  // namespace eventheader
