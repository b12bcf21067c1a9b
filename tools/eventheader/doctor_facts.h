// What `eventheader doctor` knows before it judges: facts of the machine, of the one for whom it is
// asked, and of the daemon.
//
// In: /proc, /sys and /boot below a root, which is another folder in tests; what systemd and the
// daemon say, by functions. Out: Facts, in which what could not be found out has no value. Nothing
// is changed, and nothing is judged here.
#ifndef TOOLS_EVENTHEADER_DOCTOR_FACTS_H_
#define TOOLS_EVENTHEADER_DOCTOR_FACTS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/control/service.h"
#include "tools/eventheader/mount_table.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {

// Owner and mode of a file or folder.
struct FileFacts {
  std::string path;
  int error = 0;  // why it cannot be looked at: an errno; 0 if it was
  uid_t user = 0;
  gid_t group = 0;
  mode_t mode = 0;
};

// The rights that a process has.
struct Identity {
  uid_t user = 0;
  std::vector<gid_t> groups;
  std::uint64_t capabilities = 0;  // effective, by their bits
};

struct ProcessFacts {
  pid_t pid = 0;
  std::string name;
  std::optional<Identity> identity;
  std::optional<std::vector<Mount>> mounts;
  // Of the way to user_events_data, as the process sees it: each folder, and the file itself at the
  // end. Empty if it sees no tracefs.
  std::vector<FileFacts> way;
  std::string uid_map;  // of its user namespace, if that is not the machine's; else ""
  bool has_user_events_open = false;
  std::optional<std::uint64_t> open_files;
  std::optional<std::uint64_t> open_files_limit;
  std::optional<std::uint64_t> locked_bytes_limit;  // no value, too, if there is none
};

// What systemd says of a unit: `systemctl show`, by the names of its properties.
using UnitFacts = std::map<std::string, std::string>;

struct DaemonFacts {
  // The sessions, or why nobody says which there are.
  absl::StatusOr<std::vector<collector::SessionStatus>> sessions;
  UnitFacts unit;  // empty if systemd is not there
  std::optional<ProcessFacts> process;
};

struct Facts {
  std::string release;                     // of the kernel; "" if not known
  std::optional<bool> config_user_events;  // what its configuration says
  std::vector<Mount> mounts;               // of this process
  // user_events_data where tracefs is mounted, else no value.
  std::optional<FileFacts> data;
  // Those of user_events, or why they cannot be listed. No value where there is no such thing.
  std::optional<absl::StatusOr<std::vector<Tracepoint>>> tracepoints;
  std::optional<std::uint64_t> user_events_max;
  std::optional<std::uint64_t> all_tracepoints;
  std::optional<int> perf_event_paranoid;
  std::optional<std::uint64_t> perf_event_mlock_kib;  // of each CPU, for each user
  std::optional<std::uint64_t> cpus;                  // that are online

  // For whom it is asked. At most one of unit and user has a value, and the unit's process, if it
  // runs, is `subject`.
  std::optional<ProcessFacts> subject;
  std::string unit_name;
  std::optional<UnitFacts> unit;
  std::string user_name;

  DaemonFacts daemon;
};

// Where facts come from. Tests have others.
struct FactSources {
  std::string root;  // "": the machine's own
  std::function<UnitFacts(const std::string& unit)> show_unit;
  std::function<absl::StatusOr<std::vector<collector::SessionStatus>>()> daemon_sessions;
  std::function<absl::StatusOr<std::vector<Tracepoint>>()> tracepoints;
};
// The machine itself; `socket` is the daemon's.
FactSources MachineSources(const std::string& socket);

// For whom it is asked: a process by its pid, a unit, a user, or nobody in particular.
struct Subject {
  pid_t pid = 0;
  std::string unit;
  std::string user;
};
// InvalidArgument if `text` is none of these; "" is nobody. Asks systemd for units.
absl::StatusOr<Subject> ParseSubject(const std::string& text, const FactSources& sources);

Facts GatherFacts(const Subject& subject, const FactSources& sources);

// The parts that read texts.
std::optional<Identity> ParseProcessStatus(std::string_view text);
UnitFacts ParseUnitProperties(std::string_view text);
// Whether a kernel's configuration, whose text this is, has user_events.
bool HasConfigUserEvents(std::string_view config);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_DOCTOR_FACTS_H_
