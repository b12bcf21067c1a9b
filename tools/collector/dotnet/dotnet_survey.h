// Examines which .NET processes can write events to user_events, without asking them for events.
#ifndef TOOLS_COLLECTOR_DOTNET_DOTNET_SURVEY_H_
#define TOOLS_COLLECTOR_DOTNET_DOTNET_SURVEY_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace collector {

// A process that has a diagnostics socket.
struct DotnetRuntime {
  pid_t pid = 0;
  std::string name;
  std::string version;  // version of its runtime; "" if it is not known
  std::string problem;  // why it cannot write events to user_events; "" if it can
  std::string remedy;
};

struct DotnetSurvey {
  std::vector<DotnetRuntime> runtimes;
  bool is_complete = true;  // false: there are more processes, or the time did not suffice for all
};

// Examines at most `max` processes, for about `limit` at most. `folder` is the folder of the
// sockets in the root directory of each process, such as "/tmp". The processes are untrusted; see
// diagnostics_socket.h.
DotnetSurvey SurveyDotnet(const std::string& folder, std::size_t max, absl::Duration limit);

// Parses the bytes that were received so far in reply to the request ProcessInfo2. Returns the
// version of the runtime, which consists of visible ASCII characters. Fails with Unavailable if
// bytes are missing, with Unimplemented if the runtime does not know the request, and with
// InvalidArgument if the bytes are no reply.
absl::StatusOr<std::string> ParseRuntimeVersion(std::string_view received);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DOTNET_SURVEY_H_
