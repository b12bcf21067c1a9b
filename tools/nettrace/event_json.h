// An event as one line, of JSON or of text.
#ifndef TOOLS_NETTRACE_EVENT_JSON_H_
#define TOOLS_NETTRACE_EVENT_JSON_H_

#include <cstdint>
#include <optional>
#include <string>

#include "nettrace/reader.h"
#include "tools/nettrace/payload_json.h"

namespace tools {

// The line for `event`, without its end. Keys: timestamp, time, provider, name, id, version, level,
// keywords, opcode, pid, tid, thread, cpu (null where they are not known), activityId,
// relatedActivityId, labels, those of RowNotes::extras that are there, stack where there is one,
// payload; symbols where fields of a kernel tracepoint have some; error where the payload does not
// fit its fields. Printable.
std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event,
                        PayloadJson* payloads);

// The line for people, without its end; with `verbose`, it has ExtrasToText. Printable.
std::string EventToText(const nettrace::Reader& reader, const nettrace::Event& event, bool verbose,
                        PayloadJson* payloads);

// The payload alone, as a JSON object, and after it in parentheses why it does not fit its fields.
std::string PayloadToText(const nettrace::Event& event, PayloadJson* payloads);

// RowNotes::extras of the row, each after a space: ` tag=0x12 attributes={"unit":"ms"}`.
std::string ExtrasToText(const nettrace::EventMetadata& metadata, PayloadJson* payloads);

// The CPU that the event was written on, where that is known.
std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event);

}  // namespace tools

#endif  // TOOLS_NETTRACE_EVENT_JSON_H_
