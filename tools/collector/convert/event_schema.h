// Compiles the metadata of an EventHeader event into a NetTrace metadata row, with the keys of
// tools/common/eventheader_keys.h, and a payload program.
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

// The form in which text of 1-byte units is written. TraceEvent shows UTF-8 code units byte by
// byte, so that only ASCII looks right in them; text beyond it is written as UTF-16, in a schema of
// its own.
enum class TextForm { kBytes, kUtf16 };

struct EventSchema {
  nettrace::EventMetadata metadata;  // event_id is left to the caller
  PayloadProgram program;
};

// Compiles the schema of `event`, which came from the tracepoint `tracepoint_name` = `name`.
// InvalidArgument if its metadata is malformed.
absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name, TextForm form);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
