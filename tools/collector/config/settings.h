// What the daemon is to do: its settings, as the files /etc/nettraced/*.toml say them.
//
// docs/man/nettraced.toml.5 is the reference for the names and forms in the files.
#ifndef TOOLS_COLLECTOR_CONFIG_SETTINGS_H_
#define TOOLS_COLLECTOR_CONFIG_SETTINGS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tools/collector/output/files_settings.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/trigger.h"

namespace collector {

// Whose events: at most one of pids, cgroup and unit; `command` with any.
struct TargetSettings {
  std::vector<pid_t> pids;
  std::string command;  // the thread's name, as the kernel has it
  std::string cgroup;   // path below the mount of cgroup v2
  std::string unit;     // a systemd unit; it need not run yet, and may start again

  friend bool operator==(const TargetSettings&, const TargetSettings&) = default;
};

struct CompressionSettings {
  bool enabled = false;
  int level = 1;

  friend bool operator==(const CompressionSettings&, const CompressionSettings&) = default;
};

struct PipeSettings {
  std::string path;  // of a named pipe

  friend bool operator==(const PipeSettings&, const PipeSettings&) = default;
};

// What is kept in memory until it is asked for; snapshots are files as by FilesSettings.
struct FlightSettings {
  std::uint64_t keep_bytes = std::uint64_t{64} << 20;  // of memory
  absl::Duration keep_time = absl::InfiniteDuration();
  std::vector<Trigger> triggers;            // events that have the file written
  absl::Duration after = absl::Seconds(2);  // recorded after the trigger, too
  // At most so many snapshots by triggers in so long a time.
  std::uint64_t limit_count = 4;
  absl::Duration limit_time = absl::Hours(1);

  friend bool operator==(const FlightSettings&, const FlightSettings&) = default;
};

struct SessionSettings {
  enum class Kind : std::uint8_t { kFiles, kPipe, kFlight };

  std::string name;    // [A-Za-z0-9][A-Za-z0-9_.-]{0,63}
  std::string origin;  // "file:line", for messages; not compared
  bool start = true;   // when the daemon starts
  std::vector<Selector> select;
  TargetSettings target;
  absl::Duration interval = absl::Seconds(1);  // also the flush interval
  // Bytes of each CPU's ring, a power of two. Sessions without target and filters share rings,
  // which are as large as the largest of theirs.
  std::size_t ring_size = std::size_t{1} << 20;
  std::size_t queue_bytes = std::size_t{16} << 20;  // between the rings and the output
  Kind kind = Kind::kFiles;
  FilesSettings files;  // kFiles and kFlight
  PipeSettings pipe;
  FlightSettings flight;
  CompressionSettings compression;

  // Whether a running session may go on as it is: all is the same but where it was said, and
  // whether it is to start with the daemon.
  bool SameAs(const SessionSettings& other) const;
};

struct DaemonSettings {
  std::string state_directory = "/var/lib/nettraced";
  std::string runtime_directory = "/run/nettraced";
  std::string control_group;              // its members may change sessions; "": root alone
  std::string look_group = "tracing";     // its members may look and tail
  std::uint64_t remembered_names = 4096;  // of tracepoints that patterns have met
  std::vector<SessionSettings> sessions;  // by name, in ascending order
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_SETTINGS_H_
