#include "tools/nettrace/report/single_events.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tools::report {
namespace {

// Share of the bytes of each reason, in percent. Other reasons cannot take it, except that errors
// may take the share of the samples, down to about kLeastSample percent.
constexpr std::array<std::size_t, kReasons> kShares = {35, 25, 10, 30};

std::size_t SizeOf(const SingleEvent& event) { return event.json.size() + SingleEvents::kRowBytes; }

}  // namespace

bool SingleEvents::Wants(Reason reason, std::size_t key) {
  Group& group = parts_[Index(reason)].groups[key];
  const std::uint64_t number = group.offered++;
  return group.every != 0 && number % group.every == 0;
}

void SingleEvents::Add(Reason reason, std::size_t key, SingleEvent event) {
  Part& part = parts_[Index(reason)];
  Group& group = part.groups[key];
  const std::size_t size = SizeOf(event);
  group.events.push_back(std::move(event));
  group.bytes += size;
  part.bytes += size;
  bytes_ += size;
  ++count_;
  while (bytes_ > max_bytes_ && count_ != 0) Shrink();
}

std::size_t SingleEvents::PartToShrink() const {
  std::size_t most = 0;
  const auto use = [this](std::size_t i) { return parts_[i].bytes * 100 / kShares[i]; };
  for (std::size_t i = 1; i < kReasons; ++i) {
    if (use(i) > use(most)) most = i;
  }
  constexpr std::size_t kSamples = Index(Reason::kSample);
  // Errors take bytes from the samples, whose minimum is kLeastSample percent of all bytes. Shrink
  // may remove half of the samples, so they must have more than twice their minimum.
  const bool has_samples = parts_[kSamples].bytes > max_bytes_ / 100 * 2 * kLeastSample;
  return most == Index(Reason::kError) && has_samples ? kSamples : most;
}

void SingleEvents::Shrink() {
  const std::size_t most = PartToShrink();
  Part& part = parts_[most];
  const auto largest = std::max_element(
      part.groups.begin(), part.groups.end(),
      [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
  if (most == Index(Reason::kActivity) && largest->second.bytes * 2 <= part.bytes) {
    // An activity is useful only with all its events, so the activity with the highest rank is
    // removed. If one activity has more than half of the bytes of this reason, every second event
    // of this activity is removed instead.
    auto last = part.groups.rbegin();
    while (last->second.events.empty()) ++last;
    Drop(&part, &last->second);
    return;
  }
  Halve(&part, &largest->second);
}

void SingleEvents::Drop(Part* part, Group* group) {
  count_ -= group->events.size();
  bytes_ -= group->bytes;
  part->bytes -= group->bytes;
  group->every = 0;
  group->bytes = 0;
  group->events.clear();
  group->events.shrink_to_fit();
}

void SingleEvents::Halve(Part* part, Group* group) {
  // The group has the offered events with the numbers 0, every, 2 * every and so on. Without every
  // second event, it has the numbers that are multiples of the doubled `every`.
  std::vector<SingleEvent> kept;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < group->events.size(); i += 2) {
    if (group->events.size() == 1) break;  // removes the only event of the group
    bytes += SizeOf(group->events[i]);
    kept.push_back(std::move(group->events[i]));
  }
  count_ -= group->events.size() - kept.size();
  bytes_ -= group->bytes - bytes;
  part->bytes -= group->bytes - bytes;
  group->every *= 2;
  group->bytes = bytes;
  group->events = std::move(kept);
}

std::vector<const SingleEvent*> SingleEvents::InOrder() const {
  std::vector<const SingleEvent*> events;
  events.reserve(count_);
  for (const Part& part : parts_) {
    for (const auto& [key, group] : part.groups) {
      std::transform(group.events.begin(), group.events.end(), std::back_inserter(events),
                     [](const SingleEvent& event) { return &event; });
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const SingleEvent* a, const SingleEvent* b) { return a->ticks < b->ticks; });
  return events;
}

}  // namespace tools::report
