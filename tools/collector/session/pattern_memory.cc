#include "tools/collector/session/pattern_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/read_file.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/output/atomic_file.h"

namespace collector {
namespace {

// Text that follows the name in the line of a tracepoint that has had events.
constexpr std::string_view kUsed = " used";
constexpr std::string_view kComment =
    "# EventHeader tracepoints that matched patterns of nettraced, the most recent one first.\n";

// Returns the provider in an EventHeader tracepoint's name; "" for other names.
std::string ProviderIn(std::string_view name) {
  const std::optional<eh::TracepointName> parts = eh::ParseTracepointName(name);
  return parts ? std::string(parts->provider) : "";
}

// Reads up to `max` bytes of the file. Fails with NotFound if it does not exist.
absl::StatusOr<std::string> ReadUpTo(const std::string& path, std::size_t max) {
  // O_NONBLOCK: if the file is a pipe, open must not wait.
  const base::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid()) return absl::ErrnoToStatus(errno, path);
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file; remove it"));
  }
  return base::ReadOpenFile(fd.get(), max, path);
}

}  // namespace

PatternMemory::PatternMemory(std::size_t max_names)
    : max_names_(std::max<std::size_t>(max_names, 1)) {}

absl::StatusOr<std::size_t> PatternMemory::Load(const std::string& path) {
  constexpr std::size_t kMaxLine = 512;
  absl::StatusOr<std::string> text = ReadUpTo(path, (max_names_ + 1) * kMaxLine);
  if (absl::IsNotFound(text.status())) return 0;
  if (!text.ok()) return text.status();
  return Parse(*text);
}

absl::Status PatternMemory::Save(const std::string& path) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(changed_, false)) return absl::OkStatus();
    text = ToTextLocked();
  }
  const auto save = [&]() -> absl::Status {
    output::AtomicFile file(path);
    ASSIGN_OR_RETURN(std::unique_ptr<nettrace::FdSink> sink, file.Create({}));
    std::size_t taken = 0;
    absl::Status status = sink->Append(std::as_bytes(std::span(text)), &taken);
    if (status.ok()) status = sink->Sync();
    return status.ok() ? file.Keep() : status;
  };
  absl::Status saved = save();
  if (saved.ok()) return saved;
  const std::lock_guard lock(mutex_);
  changed_ = true;
  return absl::Status(saved.code(), absl::StrCat(path, ": ", saved.message()));
}

std::size_t PatternMemory::Parse(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::size_t refused = 0;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n', absl::SkipEmpty())) {
    std::string_view line(part.data(), part.size());
    if (line.starts_with('#')) continue;
    const bool used = line.ends_with(kUsed);
    if (used) line.remove_suffix(kUsed.size());
    if (!Append(line, used)) ++refused;
  }
  return refused;
}

std::string PatternMemory::ToText() const {
  const std::lock_guard lock(mutex_);
  return ToTextLocked();
}

std::string PatternMemory::ToTextLocked() const {
  std::string text(kComment);
  for (const Entry& entry : entries_) {
    text += entry.name;
    if (entry.used) text += kUsed;
    text += '\n';
  }
  return text;
}

bool PatternMemory::IsFull(const std::string& provider) const {
  const auto count = of_provider_.find(provider);
  return count != of_provider_.end() &&
         count->second >= std::max<std::size_t>(max_names_ / kShares, 1);
}

bool PatternMemory::Append(std::string_view name, bool used) {
  const std::string provider = ProviderIn(name);
  if (provider.empty() || by_name_.contains(std::string(name)) || IsFull(provider) ||
      entries_.size() >= max_names_) {
    return false;
  }
  Index(entries_.insert(entries_.end(), {std::string(name), provider, used}));
  return true;
}

void PatternMemory::Index(Entries::iterator entry) {
  by_name_.emplace(entry->name, entry);
  ++of_provider_[entry->provider];
}

bool PatternMemory::Meet(std::string_view name) {
  const std::string provider = ProviderIn(name);
  if (provider.empty()) return false;
  const std::lock_guard lock(mutex_);
  if (by_name_.contains(std::string(name))) return false;
  if (IsFull(provider) || entries_.size() >= max_names_) ForgetOne(provider);
  Index(entries_.insert(entries_.begin(), {std::string(name), provider}));
  changed_ = true;
  return true;
}

void PatternMemory::ForgetOne(const std::string& provider) {
  const bool only_its = IsFull(provider);
  auto first_to_go = entries_.rend();
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (only_its && entry->provider != provider) continue;
    if (first_to_go == entries_.rend()) first_to_go = entry;
    if (entry->used) continue;
    first_to_go = entry;
    break;
  }
  const auto of_provider = of_provider_.find(first_to_go->provider);
  if (--of_provider->second == 0) of_provider_.erase(of_provider);
  by_name_.erase(first_to_go->name);
  entries_.erase(std::next(first_to_go).base());
}

void PatternMemory::Use(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(std::string(name));
  if (known == by_name_.end()) return;
  known->second->used = true;
  entries_.splice(entries_.begin(), entries_, known->second);
  changed_ = true;
}

std::vector<std::string> PatternMemory::ListNames() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  names.reserve(entries_.size());
  for (const Entry& entry : entries_) names.push_back(entry.name);
  return names;
}

}  // namespace collector
