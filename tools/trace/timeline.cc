#include "tools/trace/timeline.h"

#include "eventheader/wire.h"
#include "tools/trace/event_name.h"

namespace trace {
namespace {

bool HasActivityAnd(eh::Opcode opcode, const nettrace::Event& event) {
  return event.labels->activity_id && event.opcode() == static_cast<std::uint8_t>(opcode);
}

}  // namespace

bool KnownNames::Changes(const Ids& ids, std::string_view name) {
  if (name.empty()) return false;
  if (names_.size() >= kMaxRemembered) names_.clear();
  std::string& known = names_[ids];
  if (known == name) return false;
  known = name;
  return true;
}

bool BeginsSlice(const nettrace::Event& event) {
  return HasActivityAnd(eh::Opcode::kActivityStart, event);
}

bool EndsSlice(const nettrace::Event& event) {
  return HasActivityAnd(eh::Opcode::kActivityStop, event);
}

std::string OpenSlices::OnEvent(const nettrace::Event& event, absl::Time time) {
  std::string own(EventName(*event.metadata));
  const nettrace::Guid& activity = *event.labels->activity_id;
  if (BeginsSlice(event)) {
    if (count_ == kMaxRemembered) {
      open_.clear();
      count_ = 0;
    }
    ++count_;
    open_[activity].push_back({own, IdsOf(*event.thread), time});
    return own;
  }
  const auto open = open_.find(activity);
  if (open == open_.end()) return own;
  std::string name = std::move(open->second.back().name);
  open->second.pop_back();
  --count_;
  if (open->second.empty()) open_.erase(open);
  return name;
}

const OpenSlices::Slice* OpenSlices::Innermost(const nettrace::Guid& activity) const {
  const auto open = open_.find(activity);
  return open == open_.end() ? nullptr : &open->second.back();
}

}  // namespace trace
