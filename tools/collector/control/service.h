// What the control socket's requests ask for. The daemon implements it, tests have others.
#ifndef TOOLS_COLLECTOR_CONTROL_SERVICE_H_
#define TOOLS_COLLECTOR_CONTROL_SERVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/unique_fd.h"

namespace collector {

struct SessionStatus {
  enum class State : std::uint8_t {
    kRunning,
    kSuspended,  // its output takes nothing: events are counted as lost
    kFailed,     // it is tried again by itself; `error` says what is wrong
    kStopped,
  };
  std::string name;
  std::string kind;  // "files", "pipe", "flight"
  State state = State::kStopped;
  absl::Time state_since;
  absl::Time started = absl::InfinitePast();
  std::string error;  // the last one, also if the session runs again; "" if there was none
  absl::Time error_time = absl::InfinitePast();
  // All counts are since the session started.
  std::uint64_t events = 0;
  std::uint64_t lost = 0;     // by the kernel and by the output; the account has where
  std::uint64_t dropped = 0;  // of those, by the output
  std::uint64_t undecoded = 0;
  std::uint64_t bytes = 0;       // written to files or the pipe, compressed as they are there
  double events_per_second = 0;  // over the last seconds
  double bytes_per_second = 0;
  std::uint64_t tracepoints = 0;
  // {CPU, "system:event"}, "" where it is not known.
  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> losses;
  std::uint64_t ring_bytes = 0;   // of each CPU
  std::uint64_t queue_bytes = 0;  // that wait for the output
  std::uint64_t queue_limit = 0;
  std::uint64_t memory_bytes = 0;  // held by a flight recorder
  std::uint64_t files = 0;         // of the session on disk
  std::uint64_t file_bytes = 0;    // of all of them
  std::string current_file;        // "" if there is none
  std::uint64_t snapshots = 0;
  std::uint64_t snapshots_refused = 0;  // by the limit of their rate
  std::vector<std::string> unmatched;   // selectors that have no tracepoint
  std::vector<std::string> left_out;    // tracepoints, with why
};

// A stream that Service::StartTail has started. Used by one thread at a time.
class Tail {
 public:
  // Ends the stream, if it has not ended, as NetTrace streams end, and closes the socket. It may
  // wait for the peer to read; the server shuts the socket down if that takes too long.
  virtual ~Tail() = default;
  // Whether nothing more comes: the session has ended, or the socket has failed.
  virtual bool IsEnded() = 0;
};

// Thread-safe; calls may wait, for seconds where files are to be completed. NotFound if there is no
// such session.
class Service {
 public:
  virtual ~Service() = default;

  virtual std::vector<SessionStatus> List() = 0;  // by name, in ascending order
  virtual absl::StatusOr<SessionStatus> Status(std::string_view session) = 0;
  // Starts a session of the settings that has been stopped.
  virtual absl::Status Start(std::string_view session) = 0;
  // Starts the sessions of `toml`, in the language of the files; they are gone with the daemon.
  // InvalidArgument says line and remedy. Returns their names.
  virtual absl::StatusOr<std::vector<std::string>> StartFrom(std::string_view toml) = 0;
  // Returns when its last file is complete.
  virtual absl::Status Stop(std::string_view session) = 0;
  // Completes the current file and returns its path.
  virtual absl::StatusOr<std::string> Rotate(std::string_view session) = 0;
  // Has the flight recorder write its file, with what comes within `after`; returns its path.
  virtual absl::StatusOr<std::string> Snapshot(std::string_view session, absl::Duration after) = 0;
  virtual absl::Status Reload() = 0;
  // Writes `first` to the socket, and then the session's events, from now on, as a NetTrace stream,
  // until the session or the Tail ends. What the peer is too slow for is lost to it alone, and
  // counted. After an error nothing has been written. The server watches for the peer's going away.
  virtual absl::StatusOr<std::unique_ptr<Tail>> StartTail(std::string_view session, UniqueFd socket,
                                                          std::string first) = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_SERVICE_H_
