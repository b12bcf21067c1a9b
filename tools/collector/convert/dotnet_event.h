// Reads events of the .NET runtime from its tracepoints of user_events. Makes the metadata rows of
// events from these tracepoints and from EventPipe streams.
//
// .NET 10 and newer write events of the runtime and of EventSources to a tracepoint that a tool
// chooses (tools/collector/dotnet/). Each record has a version, the event's id, an extension and
// the payload. The extension has the description of the event (only in the first event of its kind
// in a process) and the ids of activities. The payload has the form of NetTrace V4 and V5. All
// functions accept untrusted bytes, need linear time, and return views of the bytes that they were
// given.
#ifndef TOOLS_COLLECTOR_CONVERT_DOTNET_EVENT_H_
#define TOOLS_COLLECTOR_CONVERT_DOTNET_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/schema.h"

namespace collector {

struct DotnetEvent {
  std::uint16_t id = 0;
  // Description of the event; empty if the event is not the first of its kind in its process.
  std::span<const std::byte> metadata;
  std::optional<nettrace::Guid> activity_id;
  std::optional<nettrace::Guid> related_activity_id;
  std::span<const std::byte> payload;
};

// Returns whether `fields` are the fields of a tracepoint for .NET (kDotnetFields in
// tools/collector/dotnet/dotnet_provider.h). They come from the tracepoint's schema
// (tracepoint_schema.h).
bool AreDotnetFields(const std::vector<nettrace::Field>& fields);

// Parses a record of a tracepoint for .NET, without its common fields, into `*event`. Returns null,
// or a text that says what is wrong.
const char* ParseDotnetEvent(std::span<const std::byte> fields, DotnetEvent* event);

// Parses DotnetEvent::metadata into a metadata row. The row has types that a V6 file can contain: a
// DateTime is an Int64 with the time in units of 100 ns since 1601. Bits of the keywords that
// EventSource adds for sessions are cleared. An event without a name gets the name "Event" followed
// by its id. The runtime's own events get no name, because readers know them by their ids. Fails
// with InvalidArgument if the bytes are malformed, if they describe another event than `id`, or if
// a file cannot contain the fields.
absl::StatusOr<nettrace::EventMetadata> ParseDotnetMetadata(std::span<const std::byte> metadata,
                                                            std::uint16_t id);

// Does the work of ParseDotnetMetadata() for a row of a stream of NetTrace V4 or V5.
absl::StatusOr<nettrace::EventMetadata> ConvertDotnetMetadata(nettrace::EventMetadata row);

// Returns whether `payload` contains a value of each field.
bool IsDotnetPayload(const std::vector<nettrace::Field>& fields,
                     std::span<const std::byte> payload);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_DOTNET_EVENT_H_
