// Compiles the metadata of an EventHeader event into a NetTrace metadata row, with the keys of
// tools/trace/eventheader_keys.h, and a payload program.
#ifndef TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
#define TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "eventheader/decoder.h"
#include "eventheader/tracepoint_name.h"
#include "nettrace/schema.h"
#include "tools/collector/convert/payload_program.h"

namespace collector {

// Encoding in which text of 1-byte units is written. TraceEvent displays UTF-8 code units byte by
// byte, which is correct for ASCII only. Text with other characters is written as UTF-16, with a
// separate metadata row.
enum class TextForm { kBytes, kUtf16 };

// Properties of an event's values that determine the types of its fields.
struct ValueForms {
  TextForm text = TextForm::kBytes;
  // A set of SeenValue for each nullable field. The program is valid only for events with these
  // values, because a field has one NetTrace type, and no type has null or two sizes. If
  // `seen` is empty, a nullable field is a sequence of bytes, and the program is valid for all
  // events.
  std::string_view seen;

  // Returns whether all text is ASCII and no nullable field is null or an array without elements.
  // In most recordings, events have no other forms.
  bool AreUsual() const;
};

struct EventSchema {
  // `event_id` is the event's own id if ValueForms::AreUsual() is true, and otherwise 0. In every
  // recording, the id therefore belongs to the usual form. A trace changes the id of a row if
  // another row has it.
  nettrace::EventMetadata metadata;
  PayloadProgram program;
  std::size_t nullable_fields = 0;
};

// Compiles the schema of `event`. The event was written to the tracepoint `tracepoint_name`, whose
// name was parsed into `name`. Fails with InvalidArgument if the event's metadata is malformed.
absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name,
                                               const ValueForms& forms);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
