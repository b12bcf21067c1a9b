// Formats an event as one line of JSON or text.
#ifndef TOOLS_TRACE_EVENT_JSON_H_
#define TOOLS_TRACE_EVENT_JSON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nettrace/reader.h"
#include "tools/trace/code_map.h"
#include "tools/trace/payload_json.h"

namespace trace {

// Returns the line for `event`, without a line feed. Its keys are timestamp, time, provider, name,
// id, version, level, keywords, opcode, pid, tid, thread, cpu, activityId, relatedActivityId,
// labels, the keys in RowNotes::extras, and payload. The value of a key from pid to
// relatedActivityId is null if it is unknown. `threadInfo` is added if the thread has key-value
// pairs, and `stack` if the event has a stack. `symbols` is added if fields have symbols (see
// PayloadJson::PutSymbols), and `error` if the payload does not match its fields. The line is safe
// to print, like the result of base::Printable.
std::string EventToJson(const nettrace::Reader& reader, const nettrace::Event& event,
                        PayloadJson* payloads);
// Appends the line that EventToJson returns. If `code` is not null, a line with `stack` also has
// `frames`, the code at the addresses of the stack.
void AppendEventJson(const nettrace::Reader& reader, const nettrace::Event& event,
                     PayloadJson* payloads, std::string* out, const CodeMap* code = nullptr);

// Returns the line of text that describes `event`, without a line feed. With `verbose`, the line
// includes the result of ExtrasToText(). A log record of OpenTelemetry (common_schema.h) is shown
// as its severity, name, ids, body and attributes instead of its payload. The line is safe to
// print, like the result of base::Printable.
std::string EventToText(const nettrace::Reader& reader, const nettrace::Event& event, bool verbose,
                        PayloadJson* payloads);
// Appends the line that EventToText returns, but with the text `time` in place of the event's time.
void AppendEventText(std::string_view time, const nettrace::Event& event, bool verbose,
                     PayloadJson* payloads, std::string* out);

// Widths of the columns of AppendAlignedEventText() so far, in columns of a terminal: time, CPU,
// thread, pid and tid, event, and level with keywords and opcode. Each width except the first
// includes the space before the column.
using EventTextWidths = std::array<std::size_t, 6>;
// Appends the line of AppendEventText with its columns aligned. Each column becomes wider when a
// line needs it, up to a limit. Longer text moves the columns after it.
void AppendAlignedEventText(std::string_view time, const nettrace::Event& event, bool verbose,
                            PayloadJson* payloads, EventTextWidths* widths, std::string* out);

// Appends a line for each frame of the event's stack, leaf first. If callers may be missing, also
// appends a line that states this. Each line begins with a line feed and an indentation. The lines
// are safe to print, like the result of base::Printable.
void AppendStackText(const nettrace::Reader& reader, const nettrace::Event& event,
                     const CodeMap& code, std::string* out);

// Returns RowNotes::extras of the row, each after a space: ` tag=0x12 attributes={"unit":"ms"}`.
std::string ExtrasToText(const nettrace::EventMetadata& metadata, PayloadJson* payloads);

// Returns the CPU that the event was written on, if known.
std::optional<std::uint64_t> ProcessorOf(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_EVENT_JSON_H_
