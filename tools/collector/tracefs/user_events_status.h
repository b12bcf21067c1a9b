// The kernel's list of the events that are registered with user_events, whose names are anybody's.
#ifndef TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_
#define TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_

#include <cstddef>
#include <functional>
#include <string_view>

namespace collector {

// One entry of user_events_status. Views into its text.
struct UserEvent {
  std::string_view name;     // as its author gave it: any bytes but NUL and blanks
  std::string_view used_by;  // e.g. "ftrace perf", in the kernel's words; "" if nobody does
};

// Calls `found` for each entry of `text`, that of user_events_status, and returns the number of
// lines that remain, which are parts of names that cannot be told.
//
// An entry is a line, but the kernel takes names with line feeds, too. Where there are such names,
// which the number of entries at the end says, lines are put together as far as there are
// tracepoints of such names, and a line alone is an entry if there is one of its name, whatever is
// before it: no name hides another one's. `exists` says whether there is one. It is asked
// kMaxQuestions times at most; after that all lines are taken for entries.
std::size_t ForEachUserEvent(std::string_view text,
                             const std::function<void(const UserEvent&)>& found,
                             const std::function<bool(std::string_view)>& exists);
inline constexpr std::size_t kMaxQuestions = 4096;

// Whether a tracepoint of this name can be found in tracefs, where its name is that of a folder.
bool IsFolderName(std::string_view name);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_USER_EVENTS_STATUS_H_
