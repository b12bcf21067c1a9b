// Messages of the diagnostics protocol of .NET, by which a tool asks a process for its events.
//
// The request here (CollectTracing5) exists since .NET 10. It makes the process write events to
// tracepoints of user_events. A descriptor of user_events_data follows the request, with one byte.
// The session ends when the connection ends. Replies are untrusted.
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

struct DiagnosticsReply {
  enum class Kind : std::uint8_t {
    kIncomplete,  // more bytes are needed
    kStarted,     // the session has started
    kError,       // the process refuses the request, with `error`
    kInvalid,     // the bytes are not a reply to the request
  };
  Kind kind = Kind::kIncomplete;
  std::uint32_t error = 0;  // an HRESULT
};

// HRESULT of a runtime that does not know a command.
inline constexpr std::uint32_t kUnknownCommand = 0x80131385;
// HRESULT of a runtime that cannot set up the session now. .NET 10 replies this sometimes if
// another session of the process has just ended.
inline constexpr std::uint32_t kFailed = 0x80004005;
// Maximum bytes of a reply.
inline constexpr std::size_t kMaxReply = 28;

// Parses the bytes that were received so far.
DiagnosticsReply ParseDiagnosticsReply(std::string_view received);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_IPC_H_
