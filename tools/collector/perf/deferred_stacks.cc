#include "tools/collector/perf/deferred_stacks.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <optional>
#include <span>

namespace collector {
namespace {

constexpr auto kFirstMark = static_cast<std::uint64_t>(PERF_CONTEXT_MAX);
constexpr std::size_t kMarkSize = 16;  // bytes of kDeferredMark and the cookie

std::uint64_t EntryAt(std::span<const std::byte> stack, std::size_t at) {
  return internal::Load<std::uint64_t>(stack, at);
}

// Returns the cookie at the end of the stack, or no value if the user part was not deferred. Looks
// for the mark only at its place before the cookie, because the cookie may have the same value.
std::optional<std::uint64_t> FindCookie(std::span<const std::byte> stack) {
  if (stack.size() < kMarkSize) return std::nullopt;
  const std::size_t mark = stack.size() - kMarkSize;
  if (EntryAt(stack, mark) != kDeferredMark) return std::nullopt;
  return EntryAt(stack, mark + 8);
}

}  // namespace

void DeferredStacks::Clear() {
  parts_.clear();
  frames_.clear();
  waiting_.clear();
}

void DeferredStacks::Add(const PerfRecord& record) {
  SampleRecord sample;
  DeferredStackRecord stack;
  if (ParseSample(record, &sample)) {
    if (!sample.stack) return;
    if (const auto cookie = FindCookie(sample.stack->entries)) {
      waiting_.push_back({record.timestamp, {sample.tid, *cookie}});
    }
  } else if (ParseDeferredStack(record, &stack)) {
    const std::size_t first = frames_.size();
    for (std::size_t at = 0; at < stack.entries.size(); at += 8) {
      const std::uint64_t entry = EntryAt(stack.entries, at);
      if (entry < kFirstMark) frames_.push_back(entry);
    }
    parts_.insert_or_assign({stack.tid, stack.cookie}, Part{first, frames_.size() - first});
  }
}

std::uint64_t DeferredStacks::FindReady(std::uint64_t now) const {
  std::uint64_t ready = now;
  for (const Waiting& sample : waiting_) {
    const bool is_due = now >= kLongestWait && sample.timestamp <= now - kLongestWait;
    if (is_due || sample.timestamp > ready || parts_.contains(sample.key)) continue;
    ready = sample.timestamp - std::min<std::uint64_t>(sample.timestamp, 1);
  }
  return ready;
}

void DeferredStacks::Join(SampleRecord* sample) {
  if (!sample->stack) return;
  SampleStack& stack = *sample->stack;
  const auto cookie = FindCookie(stack.entries);
  if (!cookie) return;
  stack.entries = stack.entries.first(stack.entries.size() - kMarkSize);
  const auto found = parts_.find({sample->tid, *cookie});
  // The kernel writes a record without frames if it could not read the stack.
  if (found == parts_.end() || found->second.count == 0) {
    stack.lacks_user_frames = true;
    ++missing_;
    return;
  }
  joined_.clear();
  for (std::size_t at = 0; at < stack.entries.size(); at += 8) {
    joined_.push_back(EntryAt(stack.entries, at));
  }
  joined_.push_back(static_cast<std::uint64_t>(PERF_CONTEXT_USER));
  const auto first = frames_.begin() + static_cast<std::ptrdiff_t>(found->second.first);
  joined_.insert(joined_.end(), first, first + static_cast<std::ptrdiff_t>(found->second.count));
  stack.entries = std::as_bytes(std::span(joined_));
}

}  // namespace collector
