// The facts that `eventheader doctor` examines: facts of the machine, of its subject (a process,
// unit or user), and of the daemon.
//
// The input is files below a root folder (tests use another root), the user database, and functions
// that ask systemd, the daemon and the kernel. The output is Facts; a fact that could not be
// determined has no value. This code changes nothing and judges nothing.
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
#include "tools/control/service.h"
#include "tools/eventheader/mount_table.h"
#include "tools/eventheader/tracepoints.h"

namespace tools {

// The owner and mode of a file or folder.
struct FileFacts {
  std::string path;
  int error = 0;  // errno if it could not be examined, else 0
  uid_t user = 0;
  gid_t group = 0;
  mode_t mode = 0;
};

// The rights of a process.
struct Identity {
  uid_t user = 0;
  std::vector<gid_t> groups;
  std::uint64_t capabilities = 0;  // effective capabilities, as bits
};

struct ProcessFacts {
  pid_t pid = 0;
  std::string name;
  std::optional<Identity> identity;
  std::optional<std::vector<Mount>> mounts;
  // The path to user_events_data as the process sees it: the facts of each folder, and then of the
  // file. Empty if the process sees no tracefs, or `mounts` has no value.
  std::vector<FileFacts> way;
  // The path to the socket of services as the process sees it, in the form of `way`. Empty if the
  // kernel has user_events; see Facts::ring_socket.
  std::vector<FileFacts> way_to_socket;
  // Phrase for messages if the process is in a user namespace, such as "its user 0 is user 1000 of
  // the machine". "" in the initial user namespace, or if unknown.
  std::string uid_map;
  bool has_user_events_open = false;        // whether it has user_events_data open
  std::optional<std::uint64_t> open_files;  // open descriptors; no value if they are unknown
  std::optional<std::uint64_t> open_files_limit;
  std::optional<std::uint64_t> locked_bytes_limit;  // no value if unlimited or unknown
};

// The properties of a unit by their names, as `systemctl show` prints them.
using UnitFacts = std::map<std::string, std::string>;

// Returns the property `name` of the unit; "" if the unit does not have it.
std::string UnitProperty(const UnitFacts& unit, const std::string& name);

struct DaemonFacts {
  // The sessions, or the error if the daemon cannot list them.
  absl::StatusOr<std::vector<control::SessionStatus>> sessions;
  // Connections of services that the daemon has refused within the last hour.
  std::vector<control::RefusedServices> refused;
  // Services that send their events over the socket instead of in shared memory.
  std::vector<control::ServiceStatus> inline_services;
  UnitFacts unit;  // empty if systemd is not running
  std::optional<ProcessFacts> process;
};

// The socket to which services without user_events connect.
struct RingSocketFacts {
  std::string path;
  bool exists = false;
  bool has_collector = false;  // a collector listens, or systemd on its behalf
};

struct Facts {
  std::string release;                     // release of the kernel; "" if unknown
  std::optional<bool> config_user_events;  // whether the kernel has CONFIG_USER_EVENTS
  std::vector<Mount> mounts;               // mounts of this process
  // The file user_events_data; no value if tracefs is not mounted.
  std::optional<FileFacts> data;
  // The socket of services. No value if the kernel has user_events. Has a value if tracefs is not
  // mounted, because it is then unknown whether the kernel has user_events.
  std::optional<RingSocketFacts> ring_socket;
  // The tracepoints of user_events, or the error if they cannot be listed. No value if tracefs is
  // not mounted or the kernel has no user_events.
  std::optional<absl::StatusOr<std::vector<Tracepoint>>> tracepoints;
  std::optional<std::uint64_t> user_events_max;
  std::optional<std::uint64_t> all_tracepoints;
  std::optional<int> perf_event_paranoid;
  // Locked memory that perf allows, in KiB, for each CPU and each user.
  std::optional<std::uint64_t> perf_event_mlock_kib;
  std::optional<std::uint64_t> cpus;  // number of CPUs that are online

  // The process, unit or user that the doctor examines; see Subject. At most one of `unit` and
  // `user_name` is set. For a unit, `subject` is its main process, if it is running. For a user,
  // `subject` has pid 0 and stands for the user's processes.
  std::optional<ProcessFacts> subject;
  std::string unit_name;
  std::optional<UnitFacts> unit;
  std::string user_name;

  DaemonFacts daemon;
};

// The sources of the facts. Tests replace them.
struct FactSources {
  std::string root;  // "": the machine's root folder
  std::function<UnitFacts(const std::string& unit)> show_unit;
  std::function<absl::StatusOr<std::vector<control::SessionStatus>>()> daemon_sessions;
  // Returns the services, with the connections that were refused within the last hour.
  std::function<control::ServicesStatus()> services;
  std::function<absl::StatusOr<std::vector<Tracepoint>>()> tracepoints;
  std::function<RingSocketFacts()> ring_socket;
};
// Returns the sources for this machine; `socket` is the path of the daemon's socket.
FactSources MachineSources(const std::string& socket);

// The process (by its pid), unit or user that the doctor examines. All members are empty if the
// doctor examines only the machine and the daemon.
struct Subject {
  pid_t pid = 0;
  std::string unit;
  std::string user;
};
// Parses a pid, or the name of a unit or user; "" gives an empty Subject. Fails with
// InvalidArgument if there is no such process, loaded unit or user. Asks systemd for units.
absl::StatusOr<Subject> ParseSubject(const std::string& text, const FactSources& sources);

Facts GatherFacts(const Subject& subject, const FactSources& sources);

// The next functions parse the texts that the facts come from. ListsListener returns whether
// `text`, the contents of /proc/net/unix, has a listening socket with this path. ParseProcessStatus
// reads /proc/PID/status; it returns no value if the text has no user. ParseUnitProperties reads
// the output of `systemctl show`.
bool ListsListener(std::string_view text, std::string_view path);
std::optional<Identity> ParseProcessStatus(std::string_view text);
UnitFacts ParseUnitProperties(std::string_view text);
// Returns whether a kernel was built with user_events; `config` is the text of its configuration.
bool HasConfigUserEvents(std::string_view config);

}  // namespace tools

#endif  // TOOLS_EVENTHEADER_DOCTOR_FACTS_H_
