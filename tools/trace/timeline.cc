#include "tools/trace/timeline.h"

#include <optional>
#include <utility>

#include "tools/trace/event_name.h"

namespace trace {

bool KnownNames::Changes(const Ids& ids, std::string_view name) {
  if (name.empty()) return false;
  if (names_.size() >= kMaxRemembered) names_.clear();
  std::string& known = names_[ids];
  if (known == name) return false;
  known = name;
  return true;
}

std::string OpenSlices::OnEvent(const nettrace::Event& event, absl::Time time) {
  std::string own(EventName(*event.metadata));
  if (BeginsActivity(event)) {
    open_.Add(event, {own, IdsOf(*event.thread), time});
    return own;
  }
  std::optional<Slice> slice = open_.Take(event);
  return slice ? std::move(slice->name) : own;
}

}  // namespace trace
