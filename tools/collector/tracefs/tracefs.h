// The floor of tracefs: what tracepoints there are, and those of user_events that are registered
// before the service that writes to them has run.
//
// In: names of systems, tracepoints and EventHeader events. Out: the id and the format of a
// tracepoint, as text; the list of user_events_status; registrations (user_event_registrations.h),
// which last until they are destroyed or, persistent, until the machine restarts.
//
// Promises: nothing is mounted, and nothing is changed but by registering. An error says which file
// could not be read and, where the caller can do something about it, what. The floor records
// nothing and knows nothing of perf, so that programs that only look after tracepoints link no more
// than it.
//
// libtracefs finds the mount point. The files below it are read here: libtracefs's readers open
// them without O_CLOEXEC, mount tracefs where it is not, and do not promise an errno, by which the
// remedy is chosen. Its header is not valid C++, so that each further call would need a wrapper in
// C.
#ifndef TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_
#define TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_

#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/tracefs/user_events_status.h"

namespace collector {

// A mounted and readable tracefs.
class Tracefs {
 public:
  // NotFound: none is mounted. PermissionDenied: not readable. Both say what to do.
  static absl::StatusOr<Tracefs> Find();

  const std::string& directory() const { return directory_; }

  // Whether the kernel has user_events.
  bool HasUserEvents() const;
  // Calls `found` for each event that is registered with user_events now. Returns the number of
  // lines of the kernel's list in which no event could be told.
  absl::StatusOr<std::size_t> ForEachUserEvent(
      const std::function<void(const UserEvent&)>& found) const;

  // The tracepoints that there are now, in the order of their names.
  struct Name {
    std::string system;
    std::string event;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for one with 0.
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  std::vector<Name> Tracepoints() const;
  // The kernel's text of those that were made by writing to kprobe_events, uprobe_events and
  // synthetic_events: what has changed in it has changed in Tracepoints, which takes far longer.
  std::string MadeTracepoints() const;
  // Whether a tracepoint can be enabled. Those of system ftrace describe what ftrace itself writes.
  bool CanBeEnabled(const Name& name) const;

  // The id of a tracepoint and the text of its `format` file. NotFound if it does not exist,
  // InvalidArgument if it has a name that tracefs cannot show.
  struct Tracepoint {
    int id = 0;
    std::string format;
  };
  absl::StatusOr<Tracepoint> ReadTracepoint(const std::string& system,
                                            const std::string& event) const;

 private:
  explicit Tracefs(std::string directory) : directory_(std::move(directory)) {}
  absl::StatusOr<std::string> ReadFile(const std::string& path) const;

  std::string directory_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_
