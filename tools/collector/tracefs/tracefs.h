// Reads tracepoints from tracefs, and registers tracepoints of user_events before the service that
// writes to them has run.
//
// Input: names of systems, tracepoints and EventHeader events. Output: the id and the format of a
// tracepoint, as text; the list of user_events_status; and registrations
// (user_event_registrations.h). Registrations last until they are destroyed or, if they are
// persistent, until the machine restarts.
//
// Guarantees: Nothing is mounted. Only registrations, and the temporary instance of FilterCheck
// (filter_check.h), change the system. An error says which file could not be read and, if possible,
// what to do. This layer does not record and does not use perf, so that programs that only manage
// tracepoints need not link perf code.
//
// libtracefs finds the mount point. The files below the mount point are read without libtracefs,
// because its functions open files without O_CLOEXEC, mount tracefs if it is not mounted, and do
// not guarantee an errno, from which error messages derive a remedy. The header of libtracefs is
// not valid C++, so each further function would also need a wrapper in C.
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
  // Finds the mounted tracefs. Fails with NotFound if none is mounted, and with PermissionDenied or
  // another error if it is not readable. The messages say what to do.
  static absl::StatusOr<Tracefs> Find();

  // Returns a Tracefs without tracepoints, for a collector without access to tracefs.
  static Tracefs None() { return Tracefs("/nonexistent"); }

  const std::string& directory() const { return directory_; }

  // Returns whether the kernel has user_events. Also returns true if this process may not search
  // the folder of tracefs, because the kernel may have user_events in this case.
  bool HasUserEvents() const;
  // Calls `found` for each event that is registered with user_events now. Returns the number of
  // lines of the kernel's list in which no event could be identified. Fails if the list cannot be
  // read.
  absl::StatusOr<std::size_t> ForEachUserEvent(
      const std::function<void(const UserEvent&)>& found) const;

  // The name of a tracepoint.
  struct Name {
    std::string system;
    std::string event;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the comparison for one with 0.
    friend auto operator<=>(const Name&, const Name&) = default;
  };
  // Returns the tracepoints that exist now, sorted by name; none if tracefs cannot be read.
  std::vector<Name> Tracepoints() const;
  // Returns the kernel's list of the tracepoints that were made by writing to kprobe_events,
  // uprobe_events and synthetic_events. When such a tracepoint is added or removed, this text
  // changes. Reading it is far faster than a call of Tracepoints().
  std::string MadeTracepoints() const;
  // Returns whether a tracepoint can be enabled. The tracepoints of the system ftrace describe
  // records of ftrace itself and cannot be enabled.
  bool CanBeEnabled(const Name& name) const;

  struct Tracepoint {
    int id = 0;
    std::string format;  // the text of its `format` file
  };
  // Reads the id and the format of a tracepoint. Fails with NotFound if it does not exist, with
  // InvalidArgument if tracefs cannot have a folder of its name, and with another error if its
  // files cannot be read.
  absl::StatusOr<Tracepoint> ReadTracepoint(const std::string& system,
                                            const std::string& event) const;

 private:
  explicit Tracefs(std::string directory) : directory_(std::move(directory)) {}
  absl::StatusOr<std::string> ReadFile(const std::string& path) const;

  std::string directory_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_TRACEFS_TRACEFS_H_
