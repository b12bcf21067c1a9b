#include "tools/collector/convert/schema_shares.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace collector {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
// A Pace limits the rate of new entries. For this limit, an entry counts as 1, plus 1 for every
// kMetadataBytes bytes of its metadata.
constexpr std::size_t kMetadataBytes = 512;
// When a share exceeds its bounds, entries are evicted until the share is at most 15/16 of the
// bounds, so that the next eviction is not needed soon.
constexpr std::size_t kSpare = 16;
// Number of new entries after which age() changes, so that callers mark entries in use again. It is
// small compared with the bounds, so that entries in use are never among the least recently used.
constexpr std::size_t kEntriesPerAge = 1024;

}  // namespace

class SchemaShares::Provider {
 private:
  friend class SchemaShares;
  std::string name;  // in upper case
  std::size_t added = 0;
  Held held;
  Entries entries;
};

struct SchemaShares::Process {
  User* user;
  Purse purse;
  std::uint64_t looked_up = 0;  // ns, time when its user was looked up
  Held held;
  Entries entries;
};

void SchemaShares::Purse::Fill(const Pace& pace, std::uint64_t now) {
  if (now <= filled) return;
  const double seconds = static_cast<double>(now - filled) / static_cast<double>(kSecond);
  left = std::min(pace.at_once, left + pace.per_second * seconds);
  filled = now;
}

SchemaShares::SchemaShares(const Limits& limits, Evict evict, UserOf user_of)
    : limits_(limits), evict_(std::move(evict)), user_of_(std::move(user_of)) {}

SchemaShares::~SchemaShares() = default;

SchemaShares::Provider* SchemaShares::AddProvider(std::string_view name) {
  std::string upper = absl::AsciiStrToUpper(absl::string_view(name.data(), name.size()));
  std::unique_ptr<Provider>& provider = providers_[upper];
  if (provider == nullptr) {
    provider = std::make_unique<Provider>();
    provider->name = std::move(upper);
  }
  ++provider->added;
  return provider.get();
}

void SchemaShares::RemoveProvider(Provider* provider) {
  if (--provider->added == 0) providers_.erase(providers_.find(provider->name));
}

SchemaShares::Process* SchemaShares::ProcessOf(std::uint32_t pid, std::uint64_t now) {
  if (processes_.size() + former_.size() >= drop_idle_at_) DropIdle(now);
  std::unique_ptr<Process>& process = processes_[pid];
  // Looks the user up again after a second, because another process may have got the pid.
  if (process != nullptr && now < process->looked_up + kSecond) return process.get();
  const std::optional<std::uint32_t> number = user_of_(pid);
  if (process != nullptr && !number) return process.get();  // the process has ended
  std::unique_ptr<User>& user = users_[number];
  if (user == nullptr) {
    user = std::make_unique<User>();
    user->purse = {limits_.user_pace.at_once, now};
  }
  if (process != nullptr && process->user != user.get()) {
    former_.push_back(std::exchange(process, nullptr));
  }
  if (process == nullptr) {
    process = std::make_unique<Process>();
    process->user = user.get();
    process->purse = {limits_.process_pace.at_once, now};
    ++user->processes;
  }
  process->looked_up = now;
  return process.get();
}

bool SchemaShares::IsIdle(Process* process, std::uint64_t now) const {
  process->purse.Fill(limits_.process_pace, now);
  return process->held.entries == 0 && process->purse.left >= limits_.process_pace.at_once;
}

void SchemaShares::DropIdle(std::uint64_t now) {
  const auto is_idle = [this, now](const std::unique_ptr<Process>& process) {
    const bool idle = IsIdle(process.get(), now);
    if (idle) --process->user->processes;
    return idle;
  };
  absl::erase_if(processes_, [&](const auto& process) { return is_idle(process.second); });
  std::erase_if(former_, [](const std::unique_ptr<Process>& process) {
    // The pid now belongs to a process of another user, so the former process gets no more entries.
    // Removes it when it has none.
    const bool idle = process->held.entries == 0;
    if (idle) --process->user->processes;
    return idle;
  });
  absl::erase_if(users_, [this, now](const auto& entry) {
    User& user = *entry.second;
    user.purse.Fill(limits_.user_pace, now);
    return user.processes == 0 && user.purse.left >= limits_.user_pace.at_once;
  });
  drop_idle_at_ = 1024 + 2 * (processes_.size() + former_.size());
  payer_ = nullptr;
}

bool SchemaShares::MayAdd(std::uint32_t pid, std::size_t metadata_size, std::uint64_t now) {
  payer_ = ProcessOf(pid, now);
  Purse& own = payer_->purse;
  Purse& users = payer_->user->purse;
  own.Fill(limits_.process_pace, now);
  users.Fill(limits_.user_pace, now);
  const std::size_t entries = 1 + metadata_size / kMetadataBytes;
  const auto cost = static_cast<double>(entries);
  if (own.left < cost || users.left < cost) return false;
  own.left -= cost;
  users.left -= cost;
  return true;
}

void SchemaShares::Add(Entry* entry, Provider* provider, std::size_t bytes, const Entry* keep) {
  entry->process_ = payer_;
  entry->provider_ = provider;
  entry->bytes_ = bytes;
  payer_->entries.push_front(entry);
  entry->of_process_ = payer_->entries.begin();
  provider->entries.push_front(entry);
  entry->of_provider_ = provider->entries.begin();
  for (Held* held : {&sum_, &payer_->held, &payer_->user->held, &provider->held}) held->Add(bytes);
  if (++added_since_age_ >= kEntriesPerAge) {
    added_since_age_ = 0;
    ++age_;
  }
  const Kept kept = {entry, keep};
  if (payer_->held.IsOver(limits_.process)) {
    EvictOldest(payer_->entries, payer_->held, limits_.process, kept);
  }
  if (provider->held.IsOver(limits_.provider)) {
    EvictOldest(provider->entries, provider->held, limits_.provider, kept);
  }
  const auto shrink = [&](const User* user, const Held& held, const Bounds& bounds) {
    while (held.IsOver(bounds)) {
      const Process* const largest = Largest(user, kept);
      if (largest == nullptr) return;
      EvictOldest(largest->entries, held, bounds, kept);
    }
  };
  shrink(payer_->user, payer_->user->held, limits_.user);
  shrink(nullptr, sum_, limits_.sum);
}

std::size_t SchemaShares::Kept::Of(const Process* process) const {
  const bool has_other = other != nullptr && other != added && other->process_ == process;
  return (added->process_ == process ? 1 : 0) + (has_other ? 1 : 0);
}

SchemaShares::Process* SchemaShares::Largest(const User* user, const Kept& kept) const {
  Process* largest = nullptr;
  const auto size = [](const Process* process) {
    return std::pair(process->user->held.weight(), process->held.weight());
  };
  const auto consider = [&](Process* process) {
    if (user != nullptr && process->user != user) return;
    if (process->held.entries <= kept.Of(process)) return;
    if (largest == nullptr || size(process) > size(largest)) largest = process;
  };
  for (const auto& [pid, process] : processes_) consider(process.get());
  for (const auto& process : former_) consider(process.get());
  return largest;
}

void SchemaShares::EvictOldest(const Entries& entries, const Held& held, const Bounds& bounds,
                               const Kept& kept) {
  const Bounds wanted = {bounds.entries - bounds.entries / kSpare,
                         bounds.bytes - bounds.bytes / kSpare};
  while (held.IsOver(wanted)) {
    const auto oldest = std::find_if(entries.rbegin(), entries.rend(),
                                     [&kept](const Entry* entry) { return !kept.Has(entry); });
    if (oldest == entries.rend()) break;
    Entry* const victim = *oldest;
    Remove(victim);
    evict_(victim);
  }
  added_since_age_ = 0;
  ++age_;
}

void SchemaShares::Use(Entry* entry) {
  Entries& of_process = entry->process_->entries;
  of_process.splice(of_process.begin(), of_process, entry->of_process_);
  Entries& of_provider = entry->provider_->entries;
  of_provider.splice(of_provider.begin(), of_provider, entry->of_provider_);
}

void SchemaShares::Remove(Entry* entry) {
  Process* const process = entry->process_;
  if (process == nullptr) return;
  for (Held* held : {&sum_, &process->held, &process->user->held, &entry->provider_->held}) {
    held->Remove(entry->bytes_);
  }
  process->entries.erase(entry->of_process_);
  entry->provider_->entries.erase(entry->of_provider_);
  entry->process_ = nullptr;
}

}  // namespace collector
