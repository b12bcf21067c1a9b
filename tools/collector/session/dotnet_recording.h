// Records the events of .NET processes in a session.
//
// Input: providers of .NET (tools/collector/dotnet/dotnet_provider.h). Output: a session that
// records the tracepoints of these providers, processes that write to them, and a report on each
// process. The session's file also states which processes have failed.
#ifndef TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_
#define TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/collector/dotnet/dotnet_sessions.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/session.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

// The processes of .NET whose events one session records. Holds the tracepoints that they write to.
class DotnetRecording {
 public:
  // Registers the tracepoints, and adds a selector for each of them to the session. The text of a
  // selector is `label` and the name of the provider. Also excludes kernel events of the thread
  // that sends requests to the processes from the recording.
  absl::Status Prepare(std::vector<DotnetProvider> providers, const std::string& label,
                       CaptureOptions* capture, SessionOptions* session);
  // Starts to request the events from the processes. Must be called when the session records the
  // tracepoints.
  void Begin() { sessions_->Begin(); }
  // Records in the session which processes could not be enabled, and why. Returns whether any
  // process has enabled its events.
  bool Report(Session* session);
  // Returns what the last call of Report found.
  const DotnetReport& report() const { return report_; }

 private:
  UserEventRegistrations registrations_;
  std::unique_ptr<DotnetSessions> sessions_;
  DotnetReport report_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_DOTNET_RECORDING_H_
