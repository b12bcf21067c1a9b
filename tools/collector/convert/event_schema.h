// From the metadata of an EventHeader event to a NetTrace metadata row and a payload program.
#ifndef TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
#define TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "eventheader/decoder.h"
#include "eventheader/tracepoint_name.h"
#include "nettrace/schema.h"
#include "tools/collector/convert/payload_program.h"

namespace collector {

// How text of 1-byte units is written. Readers show UTF-8 code units byte by byte, so that only
// ASCII looks right in them; text beyond it is written as UTF-16, in a schema of its own.
enum class TextForm { kBytes, kUtf16 };

struct EventSchema {
  nettrace::EventMetadata metadata;  // event_id is left to the caller
  PayloadProgram program;
};

// Keys in the metadata row that keep what the format has no place for.
inline constexpr char kKeyId[] = "EventHeader.Id";
inline constexpr char kKeyTag[] = "EventHeader.Tag";
inline constexpr char kKeyAttributes[] = "EventHeader.Attributes";
inline constexpr char kKeyTracepoint[] = "EventHeader.Tracepoint";
inline constexpr char kKeyGroup[] = "EventHeader.Group";
// + index of the field definition (members of structs counted, from 0); the value is the field's
// encoding and format, then its tag and attributes, e.g. "value32 hex_int tag=0x12 attr=…". Written
// where the type alone does not say it.
inline constexpr char kKeyField[] = "EventHeader.Field.";

// Compiles the schema of `event`, which came from the tracepoint `tracepoint_name` = `name`.
// InvalidArgument if its metadata is malformed.
absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name, TextForm form);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
