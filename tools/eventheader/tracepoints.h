// Lists the tracepoints of user_events and their users, as far as the kernel reports them.
// ring_tracepoints.h lists those of services without user_events.
//
// The input is tracefs and /proc, with names that any process may choose. `list`, `unregister`,
// `watch` and `doctor` show the result.
#ifndef TOOLS_EVENTHEADER_TRACEPOINTS_H_
#define TOOLS_EVENTHEADER_TRACEPOINTS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "eventheader/tracepoint_name.h"
#include "tools/collector/tracefs/tracefs.h"

namespace tools {

struct Tracepoint {
  std::string name;
  // Users as the kernel reports them, e.g. "ftrace perf", or "nettraced:SESSION" for each session
  // if `services` has a value. "" if the tracepoint is not enabled.
  std::string used_by;
  // Fields in the form of collector::UserEventDefinition; no value if they are not known.
  std::optional<std::string> fields;
  // Number of hits; no value unless a histogram is set on the tracepoint.
  std::optional<std::uint64_t> hits;
  // Number of services that have registered the tracepoint, if they pass its events through rings
  // in user space. No value for a tracepoint of user_events.
  std::optional<std::uint64_t> services = std::nullopt;

  // Whether all of these services send their events over the socket instead of in shared memory.
  bool is_inline = false;

  // Returns how services pass the events: "user_events", "memfd" or "inline".
  std::string_view Transport() const {
    if (!services) return "user_events";
    return is_inline ? "inline" : "memfd";
  }
  // Returns the parts of the name if this is an EventHeader tracepoint. Returns no value if its
  // name or fields are not EventHeader's. If the fields cannot be read, only the name decides.
  std::optional<eh::TracepointName> EventHeader() const;
  // Returns whether the name is that of an EventHeader tracepoint, but the fields are not. No
  // EventHeader service can register such a tracepoint.
  bool IsTaken() const;
};

// Returns whether the name matches one of the shell patterns. Every name matches an empty list.
bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns);

// Finds tracefs. Fails with NotFound or PermissionDenied like Tracefs::Find, and with Unimplemented
// if the kernel has no user_events.
absl::StatusOr<collector::Tracefs> FindUserEvents();

struct TracepointList {
  std::vector<Tracepoint> tracepoints;  // sorted by name
  // Number of lines of the kernel's list that could not be parsed.
  std::size_t unclear = 0;
};
// Returns the tracepoints whose names match one of the patterns (MatchesAny), with their fields and
// hits. Fails if the kernel's list cannot be read.
absl::StatusOr<TracepointList> ListTracepoints(const collector::Tracefs& tracefs,
                                               const std::vector<std::string>& patterns);
// Reads the fields and hits of the tracepoint `tracepoint->name`. Changes neither if the format of
// the tracepoint cannot be read.
void ReadDetails(const collector::Tracefs& tracefs, Tracepoint* tracepoint);

// Returns the number of hits in the text of a tracepoint's `hist` file. Returns no value if the
// text has none.
std::optional<std::uint64_t> HitsOfHistogram(std::string_view text);

struct Process {
  pid_t pid = 0;
  std::string name;  // may contain any bytes
};
// The processes that may have registered or enabled tracepoints. The kernel does not report which
// tracepoint a descriptor belongs to.
struct Holders {
  std::vector<Process> registrants;  // processes that have user_events_data open
  std::vector<Process> recorders;    // processes that have perf events open
  bool all = true;                   // whether all processes of the machine could be examined
};
// Examines the descriptors of all processes that `proc` lists, except this process.
Holders FindHolders(const std::string& proc = "/proc");

// Returns whether the tracepoint is persistent: it exists until it is unregistered, even if no
// process uses it. The kernel does not report this. Returns true if no process can be using the
// tracepoint, false if services pass its events through rings in user space, else no value
// (unknown).
std::optional<bool> IsPersistent(const Tracepoint& tracepoint, const Holders& holders);

// Returns text that names the users that may prevent the deletion of the tracepoint.
std::string DescribeUsers(const Tracepoint& tracepoint, const Holders& holders);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_TRACEPOINTS_H_
