// Asks .NET processes for their events, and records what became of each process.
//
// Input: the providers with their tracepoints. The caller must have created the tracepoints and
// must record them before Begin, because the first event of a kind describes the later ones.
// Output: processes that write to the tracepoints until Stop, or streams of processes (EventPipe),
// and a report on each process. A process is asked for a stream if there are no tracepoints, or if
// its runtime is too old for them. A thread looks for processes: it asks those that run, and those
// that start later. All connections are non-blocking, so that no process delays another. Stop is
// the only function that waits for the thread. It waits for a limited time, because the file
// systems of containers may hang.
// Processes are untrusted: see diagnostics_socket.h. A process gets a descriptor of
// user_events_data, which it shares with no other process.
#ifndef TOOLS_COLLECTOR_DOTNET_DOTNET_SESSIONS_H_
#define TOOLS_COLLECTOR_DOTNET_DOTNET_SESSIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/collector/dotnet/eventpipe_inbox.h"

namespace collector {

// The state of a process.
struct DotnetProcess {
  enum class State : std::uint8_t {
    kNoSocket,  // it has no diagnostics socket so far
    kAsked,     // it has not replied yet; if the reply is overdue, `reason` says so
    kEnabled,   // it writes its events
    kRefused,   // it does not write its events, for `reason`
    kTooOld,    // its runtime does not know the request
  };
  pid_t pid = 0;
  std::uint64_t start = 0;  // start time, in clock ticks since the machine started
  std::string name;
  State state = State::kNoSocket;
  // Why the process writes no events, or which of its events are missing. "" if it writes its
  // events, or did so until its end.
  std::string reason;
  bool by_stream = false;     // it sends its events in an EventPipe stream, not by user_events
  bool has_perf_map = false;  // it lists the functions that it compiles in /tmp/perf-PID.map
  bool ended = false;
  bool given_up = false;  // it is unlikely to enable its events later
};

// The processes that were found.
struct DotnetReport {
  static constexpr std::size_t kMaxProcesses = 1024;
  // At most kMaxProcesses. Running processes come first, then ended processes, the latest first.
  std::vector<DotnetProcess> processes;
  std::uint64_t not_listed = 0;  // further processes that have ended
  // Numbers of all processes so far: those that enabled their events; those that ended or were
  // given up before that; and those that were not asked. A process is not asked while
  // DotnetOptions::max_processes processes that were asked run, or 3/4 of this number of its user.
  std::uint64_t enabled = 0;
  std::uint64_t not_enabled = 0;
  std::uint64_t not_asked = 0;
};

struct DotnetOptions {
  std::vector<DotnetProvider> providers;
  std::vector<pid_t> pids;  // processes to ask; empty: all
  // Names or paths of cgroups of version 2, as for --cgroup. Only processes in these cgroups, or in
  // cgroups below them, are asked; empty: all processes. Ignored if `pids` is not empty.
  std::vector<std::string> cgroups;
  std::string folder = "/tmp";  // folder of the sockets, in the root directory of each process
  // Maximum time from a request to its reply, and from the end of a session to the exit of its
  // process. A process that takes longer is reported with a reason. If it replies later, it still
  // enables its events.
  absl::Duration reply_within = absl::Seconds(10);
  // Maximum number of processes that were asked and have not ended. Others are asked when one
  // of them ends.
  std::size_t max_processes = DotnetReport::kMaxProcesses;
  // Opens the descriptor that a process gets. Returns a descriptor or a negative errno. Empty if
  // the providers have no tracepoints.
  std::function<int()> open_data;
  // Whether processes that enable their events are also asked for a perf map, until Stop.
  bool perf_maps = false;
  // Receives the EventPipe streams of processes that cannot write to tracepoints. Null: no streams
  // are requested.
  std::shared_ptr<EventPipeInbox> streams;
};

// Returns the name of a state in JSON, such as "noSocket".
const char* DotnetStateName(DotnetProcess::State state);

// Thread-safe, except for Stop and the destructor.
class DotnetSessions {
 public:
  // Starts the thread, which waits for Begin.
  static absl::StatusOr<std::unique_ptr<DotnetSessions>> Create(DotnetOptions options);
  // Calls Stop.
  virtual ~DotnetSessions() = default;
  DotnetSessions() = default;
  DotnetSessions(const DotnetSessions&) = delete;
  DotnetSessions& operator=(const DotnetSessions&) = delete;

  virtual pid_t thread_id() const = 0;
  // Starts to ask processes for their events.
  virtual void Begin() = 0;
  // Ends the thread and its connections. The processes then stop writing to tracepoints. Streams
  // continue, because their connections belong to DotnetOptions::streams. If a file system hangs,
  // the thread is left behind after 5 s, and ends when the file system continues.
  virtual void Stop() = 0;
  virtual DotnetReport Report() const = 0;
  // Returns a number that changes when the report changes.
  virtual std::uint64_t report_number() const = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DOTNET_SESSIONS_H_
