// Reads the kernel's list of user_events with any names in it, as the kernel writes it, and any
// text instead of the list. Names with line feeds must not hide a name without them. If no name has
// line feeds, the list must be read exactly.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/collector/tracefs/user_events_status.h"

namespace {

void Require(bool promise) {
  if (!promise) std::abort();
}

struct Listed {
  std::vector<std::string> names;
  std::size_t unclear = 0;
};

Listed Read(std::string_view text, const std::set<std::string>& folders) {
  Listed listed;
  listed.unclear = collector::ForEachUserEvent(
      text,
      [&](const collector::UserEvent& event) {
        Require(event.name.empty() ||
                (event.name.data() >= text.data() &&
                 event.name.data() + event.name.size() <= text.data() + text.size()));
        listed.names.emplace_back(event.name);
      },
      [&folders](std::string_view name) { return folders.contains(std::string(name)); });
  return listed;
}

// Returns the parts of `data` that can be names: the kernel ends them at blanks and NUL.
std::vector<std::string> Names(std::string_view data) {
  std::set<std::string> names;
  while (!data.empty()) {
    const std::size_t end = std::min(data.find_first_of(std::string_view(" \0", 2)), data.size());
    if (end > 0 && end < 400) names.emplace(data.substr(0, end));
    data.remove_prefix(std::min(end + 1, data.size()));
  }
  return {names.begin(), names.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view data(reinterpret_cast<const char*>(bytes), size);
  Read(data, {});

  const std::vector<std::string> names = Names(data);
  std::set<std::string> folders;
  std::string text;
  bool any_line_feed = false;
  for (const std::string& name : names) {
    if (collector::IsFolderName(name)) folders.insert(name);
    any_line_feed = any_line_feed || name.find('\n') != std::string::npos;
    text += name + (name.size() % 3 == 0 ? " # Used by perf\n" : "\n");
  }
  text += "\nActive: " + std::to_string(names.size()) + "\nBusy: 0\n";
  const Listed listed = Read(text, folders);
  if (!any_line_feed) {
    Require(listed.names == names && listed.unclear == 0);
    return 0;
  }
  const std::set<std::string> found(listed.names.begin(), listed.names.end());
  for (const std::string& name : names) {
    if (folders.contains(name) && name.find('\n') == std::string::npos)
      Require(found.contains(name));
  }
  return 0;
}
