// Messages of the diagnostics protocol of .NET, by which a tool asks a process for its events.
//
// CollectTracing5 exists since .NET 10. It makes the process write events to tracepoints of
// user_events. After this request, the tool sends one byte with a descriptor of user_events_data.
// CollectTracing2 and 3 make the process write a stream of NetTrace V4 to the connection, after the
// reply (this is called EventPipe). The session ends when the connection ends. Replies are
// untrusted.
#ifndef TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_IPC_H_
#define TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_IPC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/collector/dotnet/dotnet_provider.h"

namespace collector {

// Returns the request that makes a process write the events of `providers` to their tracepoints.
// Names are ASCII. The request has at most 65535 bytes if ParseDotnetProviders has returned the
// providers and the names of tracepoints have at most 255 bytes.
std::string MakeCollectRequest(const std::vector<DotnetProvider>& providers);

// Requests for a stream.
enum class StreamRequest : std::uint8_t {
  kWithoutStacks,  // since .NET 8
  kAny,            // since .NET Core 3.1; the events have stacks
};
// Returns the request that makes a process write the events of `providers` to the connection.
// Ignores the names of tracepoints. Names of providers are ASCII. The request has at most 65535
// bytes if ParseDotnetProviders has returned the providers.
std::string MakeStreamRequest(StreamRequest kind, const std::vector<DotnetProvider>& providers);
// Returns the request that ends a session. It must be sent on another connection than that of the
// session. If the session is a stream, the process then writes its remaining events to the
// connection of the session. The process replies when the session has ended.
std::string MakeStopRequest(std::uint64_t session);

// Returns the request that makes a process start or stop a list, in /tmp/perf-PID.map, of the
// functions that it compiles. Needs .NET 8 or newer.
std::string MakePerfMapRequest(bool enable);

struct DiagnosticsReply {
  enum class Kind : std::uint8_t {
    kIncomplete,  // more bytes are needed
    kStarted,     // the session has started
    kError,       // the process refuses the request, with `error`
    kInvalid,     // the bytes are not a reply to the request
  };
  Kind kind = Kind::kIncomplete;
  std::uint32_t error = 0;    // an HRESULT
  std::uint64_t session = 0;  // id that the process gave to the session
};

// HRESULT of a runtime that does not know a command.
inline constexpr std::uint32_t kUnknownCommand = 0x80131385;
// HRESULT of a runtime that cannot set up the session now. .NET 10 replies this sometimes if
// another session of the process has just ended.
inline constexpr std::uint32_t kFailed = 0x80004005;
// Maximum bytes of a reply.
inline constexpr std::size_t kMaxReply = 28;

enum class RequestKind : std::uint8_t { kSession, kPerfMap };
// Parses the bytes that were received so far in reply to a request. The reply to MakePerfMapRequest
// has no id of a session.
DiagnosticsReply ParseDiagnosticsReply(std::string_view received,
                                       RequestKind request = RequestKind::kSession);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_IPC_H_
