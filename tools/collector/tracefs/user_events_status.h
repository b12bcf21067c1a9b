// Parses the kernel's list of the events that are registered with user_events. The list is
// untrusted, because any process can register an event and choose its name.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_

#include <cstddef>
#include <functional>
#include <string_view>

namespace collector {

// An entry of user_events_status. The views refer to its text.
struct UserEvent {
  std::string_view name;     // any bytes except NUL and blanks
  std::string_view used_by;  // from the kernel, for example "ftrace perf"; "" if it is not used
};

// Calls `found` for each entry of `text`, the contents of user_events_status. Returns the number of
// other lines, which are parts of names that could not be identified.
//
// An entry is one line, but names may contain line feeds. The number of entries at the end of the
// text shows whether there are names with line feeds. In that case, lines are combined if a
// tracepoint of the combined name exists. A single line is an entry if a tracepoint of its name
// exists, whatever precedes it, so that no name can hide another one. `exists` returns whether a
// tracepoint exists. It is called at most kMaxQuestions times; after that, all lines are treated as
// entries, and are also counted in the result.
std::size_t ForEachUserEvent(std::string_view text,
                             const std::function<void(const UserEvent&)>& found,
                             const std::function<bool(std::string_view)>& exists);
inline constexpr std::size_t kMaxQuestions = 4096;

// Returns whether a tracepoint of this name can be found in tracefs, where its name is the name of
// a folder.
bool IsFolderName(std::string_view name);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_
