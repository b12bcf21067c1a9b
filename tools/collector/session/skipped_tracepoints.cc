#include "tools/collector/session/skipped_tracepoints.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace collector {
namespace {

// Average time between the tries of two skipped tracepoints, in ns.
constexpr std::uint64_t kBetween = 10'000'000;

std::size_t HashName(std::string_view text) {
  return absl::HashOf(absl::string_view(text.data(), text.size()));
}

}  // namespace

bool SkippedTracepoints::IsDue(std::string_view name, std::uint64_t now) const {
  const auto due = due_.find(HashName(name));
  return due == due_.end() || now >= due->second;
}

bool SkippedTracepoints::Add(const std::string& name, const std::string& reason,
                             std::uint64_t now) {
  // Limits the memory. Tracepoints that still exist are reported again afterwards. They are few,
  // because nearly all entries are then of tracepoints that no longer exist.
  if (due_.size() >= kMaxEntries) due_.clear();
  const auto [due, added] = due_.try_emplace(HashName(name));
  due->second = now + std::max<std::uint64_t>(kTryAgain, due_.size() * kBetween);
  if (!added) return false;
  ++count_;
  if (names_.size() < kMaxNames) names_.push_back(name);
  if (reasons_.size() < kMaxReasons) reasons_.push_back(reason);
  return true;
}

SkippedTracepoints SkippedTracepoints::CopyNamed() const {
  SkippedTracepoints named;
  named.count_ = count_;
  named.names_ = names_;
  named.reasons_ = reasons_;
  return named;
}

void SkippedTracepoints::Forget(std::string_view name) { due_.erase(HashName(name)); }

void SkippedTracepoints::Remove(std::string_view name) {
  if (due_.empty()) return;
  if (const auto due = due_.find(HashName(name)); due != due_.end()) due->second = 0;
}

}  // namespace collector
