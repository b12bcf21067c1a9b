// An event as one line of JSON.
#ifndef TOOLS_NETTRACE_EVENT_JSON_H_
#define TOOLS_NETTRACE_EVENT_JSON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nettrace/reader.h"

namespace tools {

// The line for `event`, without its end. Keys: timestamp, time, provider, name, id, version, level,
// keywords, opcode, pid, tid, thread, cpu (null where they are not known), activityId,
// relatedActivityId, labels, stack where there is one, payload; error where the payload does not
// fit its fields. Always valid UTF-8.
std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event);

// The payload alone, as a JSON object.
std::string PayloadToJson(const nettrace::Event& event);

// The same text on one line: with '?' for control characters.
std::string OneLine(std::string text);

// UTC to the nanosecond, e.g. 2026-11-21T10:00:00.123456789Z.
std::string FormatUtc(absl::Time time);

// An activity id as people write it.
std::string FormatGuid(const nettrace::Guid& guid);

// The CPU that the event was written on, where that is known.
std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event);
// The id that the event's author gave it: recorders of EventHeader keep it beside the row's own.
std::string AuthorsId(const nettrace::EventMetadata& metadata);

}  // namespace tools

#endif  // TOOLS_NETTRACE_EVENT_JSON_H_
