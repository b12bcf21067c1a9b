#include "tools/collector/perf/inherited_events.h"

#include <algorithm>

namespace collector {

void InheritedEvents::Opened(pid_t tid, std::uint64_t before, std::uint64_t after) {
  opened_.insert_or_assign(tid, Span{before, after});
}

void InheritedEvents::Created(pid_t tid, pid_t creator, std::uint64_t time) {
  const auto [entry, is_new] = created_.try_emplace(tid, Creation{creator, time});
  if (!is_new) {
    // Either the same creation is recorded again, or a later thread has got the tid.
    if (time <= entry->second.time) return;
    entry->second = {creator, time};
  }
  creations_[creator].push_back(time);
}

InheritedEvents::State InheritedEvents::Find(pid_t tid) const {
  // A creator for which the event was not opened may have inherited it from its own creator.
  // Therefore the chain of creators is followed, also through threads that have ended.
  for (std::size_t steps = 0; steps <= created_.size(); ++steps) {
    if (steps == 0 && opened_.contains(tid)) return State::kHas;
    const auto creation = created_.find(tid);
    // A creator without a record of its creation existed before the event was first opened, and
    // ended before the event could be opened for it. It never had the event, so `tid` did not
    // inherit it.
    if (creation == created_.end()) return steps == 0 ? State::kUnclear : State::kLacks;
    const auto [creator, time] = creation->second;
    if (const auto opened = opened_.find(creator); opened != opened_.end()) {
      if (time < opened->second.before) return State::kLacks;
      // A thread creates other threads one at a time. If an earlier creation by the same thread was
      // complete after the event was opened, this creation also began after the event was opened.
      const std::vector<std::uint64_t>& times = creations_.at(creator);
      const bool is_certain = std::any_of(times.begin(), times.end(),
                                          [after = opened->second.after, end = time](auto earlier) {
                                            return earlier > after && earlier < end;
                                          });
      return is_certain ? State::kHas : State::kUnclear;
    }
    tid = creator;
  }
  return State::kUnclear;  // reused tids form a cycle
}

}  // namespace collector
