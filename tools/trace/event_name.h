// The names of events, including those that the .NET runtime does not write into its files.
#ifndef TOOLS_TRACE_EVENT_NAME_H_
#define TOOLS_TRACE_EVENT_NAME_H_

#include <string_view>

#include "nettrace/schema.h"

namespace trace {

// Returns the name in the metadata row. If the name is empty, and the provider is
// Microsoft-Windows-DotNETRuntime, Microsoft-Windows-DotNETRuntimeRundown or
// Microsoft-DotNETCore-SampleProfiler, returns the documented name of the event id, such as
// "GC/Start". TraceEvent shows the same names. Returns "" if the event has no name. The result is
// valid as long as the row. Thread-safe.
std::string_view EventName(const nettrace::EventMetadata& metadata);

}  // namespace trace

#endif  // TOOLS_TRACE_EVENT_NAME_H_
