// Interface for the requests of the control socket, and the structs that they return. The daemon
// implements the interface; tests have other implementations.
#ifndef TOOLS_CONTROL_SERVICE_H_
#define TOOLS_CONTROL_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"

namespace control {

// A .NET process that a session has found. docs/reference/json.md explains the values of `state`.
struct DotnetProcess {
  std::uint64_t pid = 0;
  std::string name;
  std::string state;   // "noSocket", "asked", "enabled", "refused", "tooOld"
  std::string reason;  // why all or some of its events are missing; "" if none are
  bool ended = false;
  std::string by;  // how the process delivers its events: "userEvents" or "eventPipe"
};
// Maximum number of entries of SessionStatus::dotnet_processes.
inline constexpr std::size_t kMaxDotnetShown = 100;

struct SessionStatus {
  enum class State : std::uint8_t {
    kRunning,
    // The output takes no data. Events wait in the queue, and are counted as lost once it is full.
    kSuspended,
    kFailed,  // retried automatically; `error` has the reason
    kStopped,
  };
  std::string name;
  std::string kind;  // "files", "pipe", "flight"
  State state = State::kStopped;
  absl::Time state_since;
  absl::Time started = absl::InfinitePast();
  std::string error;  // last error, even if the session runs again; "": none
  absl::Time error_time = absl::InfinitePast();
  // All counts are since the session started.
  std::uint64_t events = 0;
  std::uint64_t lost = 0;     // events lost in rings or by the output; see `losses`
  std::uint64_t dropped = 0;  // part of `lost` that the output lost
  // Events that waited for the output and were discarded when the session stopped. They are
  // included in `events`, not in `lost`.
  std::uint64_t discarded = 0;
  std::uint64_t undecoded = 0;   // part of `events` that was written as bytes, without fields
  std::uint64_t bytes = 0;       // bytes written to files or the pipe, after compression
  double events_per_second = 0;  // average over the last five seconds
  double bytes_per_second = 0;
  std::uint64_t tracepoints = 0;
  // Lost events by {CPU, "system:event"}; the text is "" if the tracepoint is unknown.
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> losses;
  std::uint64_t ring_bytes = 0;         // size of each CPU's ring
  std::uint64_t queue_bytes = 0;        // bytes that wait for the output
  std::uint64_t queue_limit = 0;        // maximum of queue_bytes
  std::uint64_t memory_bytes = 0;       // memory of a flight recorder
  std::uint64_t files = 0;              // files of the session on disk, also of earlier runs
  std::uint64_t file_bytes = 0;         // size of these files
  std::string current_file;             // path of the file that is being written; "": none
  std::uint64_t snapshots = 0;          // files that a flight recorder has written
  std::uint64_t snapshots_refused = 0;  // snapshots that the rate limit refused
  std::vector<std::string> unmatched;   // selectors without a tracepoint
  std::vector<std::string> left_out;    // tracepoints that cannot be recorded, with the reason
  // Warnings about what is recorded, such as stacks without names.
  std::vector<std::string> warnings;
  // Settings of the running session.
  std::uint64_t cpu_rate = 0;       // samples of CPU time per second and CPU; 0: none
  bool off_cpu = false;             // whether off-CPU times are recorded
  std::vector<std::string> stacks;  // selectors with stacks, each as "SELECTOR: PARTS"
  std::vector<std::string> dotnet;  // providers of .NET
  // Numbers of .NET processes since the session started. `dotnet_enabled` counts processes that
  // enabled their events. `dotnet_not_enabled` counts processes that have not, and are not expected
  // to: they ended, or several attempts failed. `dotnet_not_asked` counts processes that were not
  // asked for events, because 1,024 others, or 768 others of the same user, ran.
  std::uint64_t dotnet_enabled = 0;
  std::uint64_t dotnet_not_enabled = 0;
  std::uint64_t dotnet_not_asked = 0;
  // At most kMaxDotnetShown .NET processes. Running processes come first, then ended processes, the
  // latest first.
  std::vector<DotnetProcess> dotnet_processes;
};

// A service that passes its events to the daemon through rings in user space. `pid` and `uid` come
// from the kernel. `tracepoints` come from the service itself, so they may be wrong.
struct ServiceStatus {
  struct Tracepoint {
    std::string name;
    std::vector<std::string> sessions;  // names of the sessions that record the tracepoint
  };
  struct Loss {
    std::string reason;  // "ringFull", "signalHandler", "tooManyThreads"
    std::uint64_t events = 0;
  };
  std::uint64_t pid = 0;  // in the pid namespace of the daemon; 0 if the process has none there
  std::uint64_t uid = 0;
  // Name, executable and cgroup of the process; each is "" if it is not known.
  std::string name;
  std::string executable;
  std::string cgroup;  // path below the mount of cgroup v2
  absl::Time started = absl::InfinitePast();
  absl::Time connected = absl::InfinitePast();
  std::string transport;         // "memfd", or "inline": events come over the socket
  std::string inline_reason;     // why `transport` is "inline"; "" if it is not
  std::uint64_t ring_bytes = 0;  // memory for events that the service may use
  // Counts since the service connected.
  std::uint64_t events = 0;
  std::uint64_t lost = 0;
  std::vector<Loss> losses;             // `lost` by reason, without reasons that lost no event
  std::uint64_t corrupt = 0;            // records that a correct service cannot have written
  std::vector<Tracepoint> tracepoints;  // tracepoints that are registered now, by name
  bool has_more_tracepoints = false;    // whether tracepoints were left out
};

// The connections that the daemon has refused or ended for one reason, from services of one user.
struct RefusedServices {
  std::optional<std::uint64_t> uid;  // no value if it is not known
  std::uint64_t pid = 0;             // process of the last connection; 0 if it is not known
  std::string reason;                // in camelCase, for programs
  std::string message;               // the reason, for users, with details of the last connection
  std::string remedy;
  std::uint64_t count = 0;  // number of connections
  absl::Time last = absl::InfinitePast();
};

// Totals for services with rings in user space, since the daemon opened the socket. Except for
// ring_bytes, they include services that have ended. The metrics contain these totals; replies of
// the method Services do not.
struct ServicesTotals {
  std::uint64_t ring_bytes = 0;  // memory for events that the connected services may use
  std::uint64_t events = 0;
  // Numbers of lost events and of refused connections, by reason. A reason has an entry even if its
  // number is 0.
  std::vector<std::pair<std::string, std::uint64_t>> lost;
  std::vector<std::pair<std::string, std::uint64_t>> refused;
  std::uint64_t corrupt = 0;  // records that a correct service cannot have written
};

struct ServicesStatus {
  std::string socket;    // path to which services connect; "" if services cannot connect
  std::string why_none;  // why services cannot connect; "" if they can
  std::vector<ServiceStatus> services;
  std::vector<RefusedServices> refused;  // the latest first
  ServicesTotals totals;
};

// A stream that Service::StartTail has started. Must be used by only one thread at a time.
class Tail {
 public:
  // Writes the end block of the NetTrace stream, unless the session has ended and written it, and
  // closes the socket. May wait for the peer to read. The server shuts the socket down if that
  // takes too long.
  virtual ~Tail() = default;
  // Returns whether the stream is over: the session has ended, or the socket has failed.
  virtual bool IsEnded() = 0;
};

// Carries out the requests of the control socket. Thread-safe. A call may block for seconds, if it
// must complete files. Calls fail with NotFound if the session does not exist, and with Unavailable
// if the session does not answer in time.
class Service {
 public:
  virtual ~Service() = default;

  virtual std::vector<SessionStatus> List() = 0;  // by name, in ascending order
  virtual absl::StatusOr<SessionStatus> Status(std::string_view session) = 0;
  // Starts a session that is stopped or failed. If the start fails, returns the error, and the
  // session retries the start later. Fails with FailedPrecondition, without a retry, if the session
  // is running.
  virtual absl::Status Start(std::string_view session) = 0;
  // Starts the sessions of `toml`, a text like a settings file, and returns their names. The daemon
  // does not start these sessions again when it restarts. Fails with InvalidArgument if the text is
  // wrong; the message has the line and a remedy. Fails with AlreadyExists if a name or file is in
  // use, and with another error if a session cannot start. After an error, the sessions that this
  // call has added are removed again, except those that do not stop in time.
  virtual absl::StatusOr<std::vector<std::string>> StartFrom(std::string_view toml) = 0;
  // Stops the session, and returns when its last file is complete. Removes it if StartFrom has
  // started it. Fails if events could not be written; the session has then stopped, too.
  virtual absl::Status Stop(std::string_view session) = 0;
  // Completes the current file and returns its path. Fails with FailedPrecondition if the session
  // does not run, or does not write a series of files.
  virtual absl::StatusOr<std::string> Rotate(std::string_view session) = 0;
  // Writes a file of the flight recorder and returns its path. Waits for `after` first, so that the
  // file contains the events of this time. Fails with FailedPrecondition if the session does not
  // run, or is no flight recorder.
  virtual absl::StatusOr<std::string> Snapshot(std::string_view session, absl::Duration after) = 0;
  // Reads the settings again. Fails with InvalidArgument if a file is invalid; the other files then
  // still take effect. Fails with InvalidArgument, and changes nothing, if a directory of settings
  // cannot be read.
  virtual absl::Status Reload() = 0;
  // Returns the services that pass events through rings in user space, and the latest connections
  // that were refused or ended.
  virtual absl::StatusOr<ServicesStatus> Services() = 0;
  // Writes `first` to the socket, and then the session's events from now on as a NetTrace stream,
  // until the session or the Tail ends. If the peer reads too slowly, only this stream loses
  // events, and counts them. An error usually means that nothing was written to the socket. The
  // exception is a capture that fails after the stream has begun. The Tail does not detect that the
  // peer closes the connection; the server does.
  virtual absl::StatusOr<std::unique_ptr<Tail>> StartTail(std::string_view session,
                                                          base::UniqueFd socket,
                                                          std::string first) = 0;
};

}  // namespace control

#endif  // TOOLS_CONTROL_SERVICE_H_
