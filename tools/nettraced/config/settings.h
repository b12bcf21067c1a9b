// The daemon's settings, as read from the files NAME.toml in /etc/nettraced and /usr/lib/nettraced.
//
// docs/man/nettraced.toml.5 is the reference for the names and forms in the files.
#ifndef TOOLS_NETTRACED_CONFIG_SETTINGS_H_
#define TOOLS_NETTRACED_CONFIG_SETTINGS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/trigger.h"
#include "tools/output/files_settings.h"

namespace nettraced {

// Selects the processes whose events are recorded: at most one of pids, cgroup and unit. `command`
// can be combined with each of them.
struct TargetSettings {
  std::vector<pid_t> pids;
  std::string command;  // thread name (comm); "": any
  std::string cgroup;   // path below the mount of cgroup v2
  std::string unit;     // systemd unit; it may start or restart later

  friend bool operator==(const TargetSettings&, const TargetSettings&) = default;
};

struct CompressionSettings {
  bool enabled = false;
  int level = 1;

  friend bool operator==(const CompressionSettings&, const CompressionSettings&) = default;
};

struct PipeSettings {
  std::string path;  // path of a named pipe

  friend bool operator==(const PipeSettings&, const PipeSettings&) = default;
};

// Settings of a flight recorder, which keeps data in memory until a snapshot is requested.
// FilesSettings has the settings of the files that snapshots are written to.
struct FlightSettings {
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;   // maximum bytes of data in memory
  absl::Duration keep_time = absl::InfiniteDuration();  // maximum age of data in memory
  std::vector<collector::Trigger> triggers;             // events that request a snapshot
  absl::Duration after = absl::Seconds(2);  // time after a trigger that a snapshot includes
  // Triggers cause at most limit_count snapshots within limit_time.
  std::uint64_t limit_count = 4;
  absl::Duration limit_time = absl::Hours(1);

  friend bool operator==(const FlightSettings&, const FlightSettings&) = default;
};

struct SessionSettings {
  enum class Kind : std::uint8_t { kFiles, kPipe, kFlight };

  std::string name;                         // [A-Za-z0-9][A-Za-z0-9_.-]{0,63}
  std::string origin;                       // "file:line", for messages; ignored by SameAs
  std::string file;                         // base name of the settings file; ignored by SameAs
  bool start = true;                        // whether the session starts with the daemon
  std::vector<collector::Selector> select;  // empty only with samples or `dotnet`
  // Providers of .NET, each in the form that collector::ParseDotnetProviders accepts. The function
  // also accepts all of them together, separated by commas.
  std::vector<std::string> dotnet;
  std::uint32_t cpu_rate = 0;  // samples of CPU time per second and CPU; 0: none
  bool off_cpu = false;        // whether off-CPU times of threads are recorded
  TargetSettings target;
  absl::Duration interval = absl::Seconds(1);  // time between sequence points
  // Bytes of each CPU's ring, a power of two. Sessions without a target, filters, stacks and
  // samples share rings. These rings have the largest ring_size of all sessions in the settings.
  std::size_t ring_size = std::size_t{1} << 20;
  // Limit of the queue between the rings and the output, in bytes.
  std::size_t queue_bytes = std::size_t{16} << 20;
  Kind kind = Kind::kFiles;
  output::FilesSettings files;  // for kFiles and kFlight
  PipeSettings pipe;
  FlightSettings flight;
  CompressionSettings compression;

  // Returns whether the session records samples of CPU time or off-CPU times.
  bool has_samples() const { return cpu_rate != 0 || off_cpu; }
  // Returns whether a running session can continue unchanged with the settings `other`. All
  // settings must be equal, except their place in a file and whether the session starts with the
  // daemon.
  bool SameAs(const SessionSettings& other) const;
};

// Returns the session with its files.directory set. If the settings name no directory, this is a
// directory with the session's name in `state_directory`.
SessionSettings InDirectory(SessionSettings session, const std::string& state_directory);

// Returns whether the two sessions may write and delete the same files. This is true if their
// directories are the same, even by different paths, and their templates may produce the same name.
// Both sessions must come from InDirectory.
bool ShareFiles(const SessionSettings& a, const SessionSettings& b);
// Parts of the error for two sessions that share files: the words between their names, and the
// remedy.
inline constexpr char kSharesFiles[] =
    "writes files with the same names into the same directory as";
inline constexpr char kSharesFilesRemedy[] =
    "each would delete the other's files; use another directory, or {session} in files.name of "
    "both";

// Settings of the socket for services with rings in user space.
struct RingsSettings {
  enum class Accept : std::uint8_t {
    // The daemon opens the socket only if the kernel has no user_events, tracefs is not mounted, or
    // the daemon's variable EVENTHEADER_TRANSPORT is ring or ring-inline.
    kAuto,
    kAlways,
    kNever,
  };
  Accept accept = Accept::kAuto;
  std::string socket;  // path; "": services/events in the runtime directory
  // Maximum numbers of connected services: of all users together, and of each user.
  std::uint64_t services = 1024;
  std::uint64_t services_of_user = 512;
  // Maximum bytes of memory for events: of all services of a user together, and of each service. If
  // bytes_of_service is 0, the ring_size of the sessions applies, but at least 64 KiB.
  std::uint64_t bytes_of_user = std::uint64_t{512} << 20;
  std::uint64_t bytes_of_service = 0;
};

struct DaemonSettings {
  std::string state_directory = "/var/lib/nettraced";
  std::string runtime_directory = "/run/nettraced";
  std::string control_group;           // group whose members may change sessions; "": none
  std::string look_group = "tracing";  // group whose members may view and tail sessions; "": none
  std::uint64_t remembered_names = 4096;  // maximum number of names in the pattern memory
  RingsSettings rings;
  std::vector<SessionSettings> sessions;  // by name, in ascending order
  // Errors in files, one per line; OK if there are none. The members above contain no settings from
  // a file with an error.
  absl::Status errors;
  std::vector<std::string> wrong_files;  // base names of the files with errors
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_SETTINGS_H_
