#include "tools/trace/timeline.h"

#include "absl/strings/str_cat.h"
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

std::string HostIds::NameOf(const nettrace::ThreadInfo& thread, std::string_view process) const {
  const std::string host = hosts_.TextOf(hosts_.Find(thread));
  return host.empty()
             ? std::string(process)
             : absl::StrCat(absl::string_view(process.data(), process.size()), " on ", host);
}

void OpenSlices::Begin(const nettrace::Event& event, absl::Time time, const Ids& ids) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  open_.Add(event, {std::string(EventName(metadata)), metadata.provider, ids, time});
}

}  // namespace trace
