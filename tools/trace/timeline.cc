#include "tools/trace/timeline.h"

#include "tools/trace/event_name.h"

namespace trace {

bool KnownNames::Changes(const Ids& ids, std::string_view name) {
  if (name.empty()) return false;
  Recent& recent = recent_[(ids.first * 7 + ids.second) % recent_.size()];
  if (names_.size() >= kMaxRemembered) {
    names_.clear();
    recent_.fill({});
  } else if (recent.ids == ids && recent.name == name) {
    return false;
  }
  recent = {ids, std::string(name)};
  std::string& known = names_[ids];
  if (known == name) return false;
  known = name;
  return true;
}

void OpenSlices::Begin(const nettrace::Event& event, absl::Time time) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  open_.Add(event,
            {std::string(EventName(metadata)), metadata.provider, IdsOf(*event.thread), time});
}

}  // namespace trace
