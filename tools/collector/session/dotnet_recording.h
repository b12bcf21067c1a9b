// Records the events of .NET processes in a session.
//
// Input: providers of .NET (tools/collector/dotnet/dotnet_provider.h). Output: a session that
// records the tracepoints of these providers, processes that write to them, and a report on each
// process. The session's file also states which processes have failed. Without user_events, and for
// runtimes that are too old for them, the session records streams of the processes (EventPipe).
#ifndef TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_
#define TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/collector/dotnet/dotnet_sessions.h"
#include "tools/collector/dotnet/eventpipe_inbox.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/session.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

// The processes of .NET whose events one session records. Keeps the tracepoints registered to which
// they write.
class DotnetRecording {
 public:
  // Registers the tracepoints, and adds a selector for each of them to the session. The text of a
  // selector is `label` and the name of the provider. Also excludes from the recording the kernel
  // events of the thread that sends requests to the processes. If the tracepoints cannot be
  // registered, only streams are recorded; why_only_streams() is the reason.
  absl::Status Prepare(std::vector<DotnetProvider> providers, const std::string& label,
                       CaptureOptions* capture, SessionOptions* session);
  // Allows events to come through EventPipe streams, too. Must be called before Prepare. If streams
  // are not allowed, Prepare fails if the tracepoints cannot be registered.
  void AllowStreams() { allows_streams_ = true; }
  // Also asks the processes for perf maps, which list the functions that they compile.
  // Must be called before Prepare.
  void RequestPerfMaps() { wants_perf_maps_ = true; }
  const absl::Status& why_only_streams() const { return why_only_streams_; }
  // Starts to request the events from the processes. Must be called after the session has begun to
  // record the tracepoints. Reports to the session if this process lacks the rights to ask
  // processes of other users.
  void Begin(Session* session);
  // Records in the session which processes have ended or were given up without enabling their
  // events, except those of earlier calls. Must be called on the capture's thread. Costs nothing if
  // nothing has changed.
  void ReportGivenUp(Session* session);
  // Waits until the ends of streams are in the report, for at most 1 s. Must be called after the
  // streams have ended, and before Stop.
  void WaitForEnds();
  // Records in the session which processes have not enabled their events, and why. Returns whether
  // any process has enabled its events. Capture::EndStreams() should have been called.
  bool Report(Session* session);
  // Ends the connections to all processes, which then stop writing their events.
  void Stop() { sessions_->Stop(); }
  // Returns the current report. Thread-safe, and does not block.
  DotnetReport ReadReport() const { return sessions_->Report(); }
  // Returns the report that the last call of Report or ReportGivenUp has read.
  const DotnetReport& report() const { return report_; }

 private:
  // Reports processes to the session: if `all` is set, all that have not enabled their events;
  // otherwise only those that were given up.
  void LeaveOut(bool all, Session* session);

  UserEventRegistrations registrations_;
  bool allows_streams_ = false;
  bool wants_perf_maps_ = false;
  absl::Status why_only_streams_;
  std::shared_ptr<EventPipeInbox> streams_;
  std::unique_ptr<DotnetSessions> sessions_;
  DotnetReport report_;
  std::uint64_t report_number_ = 0;
  // Processes that the last call of LeaveOut left out, by pid and start time. The next call does
  // not report them again.
  std::set<std::pair<pid_t, std::uint64_t>> left_out_;
  std::uint64_t not_asked_ = 0;  // DotnetReport::not_asked at the last report to the session
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_
