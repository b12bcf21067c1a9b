// Key in the metadata rows of events that the .NET runtime and its EventSources wrote to
// user_events. The collector writes it, and programs that show traces read it.
//
//   DotNet.EventId   the event's id in its provider, decimal. The row's id may differ if two
//                    processes have different events with this id
#ifndef TOOLS_TRACE_DOTNET_KEYS_H_
#define TOOLS_TRACE_DOTNET_KEYS_H_

namespace trace {

inline constexpr char kKeyDotnetEventId[] = "DotNet.EventId";

}  // namespace trace

#endif  // TOOLS_TRACE_DOTNET_KEYS_H_
