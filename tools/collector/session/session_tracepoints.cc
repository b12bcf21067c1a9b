#include "tools/collector/session/session_tracepoints.h"

#include <algorithm>

#include "tools/collector/perf/session_clock.h"

namespace collector {

bool SessionTracepoints::HasFilter() const {
  return std::any_of(selectors_.begin(), selectors_.end(),
                     [](const Selector& selector) { return !selector.filter.empty(); });
}

bool SessionTracepoints::HasStacks() const {
  return std::any_of(selectors_.begin(), selectors_.end(),
                     [](const Selector& selector) { return selector.stacks.has_value(); });
}

bool SessionTracepoints::HasKernelStacks() const {
  return std::any_of(selectors_.begin(), selectors_.end(), [](const Selector& selector) {
    return selector.StacksFor(selector.system).kernel && !selector.needs_user_events();
  });
}

bool SessionTracepoints::HasPatternFor(const Tracefs::Name& name) const {
  return std::any_of(selectors_.begin(), selectors_.end(), [&name](const Selector& selector) {
    return selector.kind != Selector::Kind::kTracepoint &&
           selector.Matches(name.system, name.event);
  });
}

void SessionTracepoints::Skip(const std::string& name, const std::string& why) {
  const std::uint64_t now = SessionClockNow();
  if (skipped_.Add(name, why, now)) account_->TracepointLeftOut(name, why, now);
}

void SessionTracepoints::Warn(const std::string& warning) {
  if (warnings_.size() < SkippedTracepoints::kMaxReasons) warnings_.push_back(warning);
}

void SessionTracepoints::Meet(const std::string& name) {
  account_->TracepointMet(name, SessionClockNow());
}

std::vector<std::string> SessionTracepoints::FindUnmatched() const {
  std::vector<std::string> unmatched;
  for (std::size_t i = 0; i < selectors_.size(); ++i) {
    if (!matched_[i]) unmatched.push_back(selectors_[i].text);
  }
  return unmatched;
}

}  // namespace collector
