// The tracepoints of user_events that there are, and who uses them, as far as the kernel tells.
//
// In: tracefs and /proc, with names that are anybody's. Out: what `list`, `unregister`, `watch` and
// `doctor` show.
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
  std::string used_by;  // "ftrace perf" in the kernel's words; "" if nobody has it enabled
  // In the form of collector::UserEventDefinition; no value if they cannot be read.
  std::optional<std::string> fields;
  // Counted by a histogram that somebody has set on it; no value if there is none.
  std::optional<std::uint64_t> hits;

  // The parts of an EventHeader tracepoint's name; no value if its name or fields are not
  // EventHeader's. Fields that cannot be read are taken for right.
  std::optional<eh::TracepointName> EventHeader() const;
  // Its name is an EventHeader tracepoint's, and its fields are not.
  bool IsTaken() const;
};

// Whether a name matches one of the shell patterns; all do if there are none.
bool MatchesAny(std::string_view name, const std::vector<std::string>& patterns);

// NotFound and PermissionDenied as Tracefs::Find; Unimplemented if the kernel has no user_events.
absl::StatusOr<collector::Tracefs> FindUserEvents();

struct TracepointList {
  std::vector<Tracepoint> tracepoints;  // by name, in ascending order
  // Lines of the kernel's list in which no name could be told.
  std::size_t unclear = 0;
};
// Those whose names match one of the patterns.
absl::StatusOr<TracepointList> ListTracepoints(const collector::Tracefs& tracefs,
                                               const std::vector<std::string>& patterns);
// Fields and hits of one, by its name.
void ReadDetails(const collector::Tracefs& tracefs, Tracepoint* tracepoint);

// The sum in the text of a tracepoint's `hist` file; no value if there is none.
std::optional<std::uint64_t> HitsOfHistogram(std::string_view text);

struct Process {
  pid_t pid = 0;
  std::string name;  // any bytes
};
// Which processes may have registered tracepoints, or enabled them. The kernel does not say which
// tracepoint a descriptor stands for.
struct Holders {
  std::vector<Process> registrants;  // have user_events_data open
  std::vector<Process> recorders;    // have perf events open
  bool all = true;                   // every process of the machine could be looked at
};
Holders FindHolders(const std::string& proc = "/proc");

// Whether the tracepoint stays when nobody uses it. The kernel does not say that; it is sure where
// nothing else can be what keeps it. No value if it is not known.
std::optional<bool> IsPersistent(const Tracepoint& tracepoint, const Holders& holders);

// Who may keep the tracepoint from being deleted, for people.
std::string DescribeUsers(const Tracepoint& tracepoint, const Holders& holders);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_TRACEPOINTS_H_
