// Compiles the metadata of an EventHeader event into a NetTrace metadata row, with the keys of
// tools/common/eventheader_keys.h, and a payload program.
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

// The form in which text of 1-byte units is written. TraceEvent shows UTF-8 code units byte by
// byte, so that only ASCII looks right in them; text beyond it is written as UTF-16, in a schema of
// its own.
enum class TextForm { kBytes, kUtf16 };

// What of an event's values the types of its fields depend on.
struct ValueForms {
  TextForm text = TextForm::kBytes;
  // A set of SeenValue for each nullable field: the program is for events with these values only.
  // A type of NetTrace is of one size, and none has a null. Without them, a nullable field is a
  // sequence of bytes, and the program is for all events.
  std::string_view seen;

  // No text but ASCII, and no null: the forms of which there is one in most recordings.
  bool AreUsual() const;
};

struct EventSchema {
  // With the event's own id, or 0: it has one, and not in more than one form, for it is to be the
  // same in all recordings.
  nettrace::EventMetadata metadata;
  PayloadProgram program;
  std::size_t nullable_fields = 0;
};

// Compiles the schema of `event`, which came from the tracepoint `tracepoint_name` = `name`.
// InvalidArgument if its metadata is malformed.
absl::StatusOr<EventSchema> CompileEventSchema(const eh::EventView& event,
                                               const eh::TracepointName& name,
                                               std::string_view tracepoint_name,
                                               const ValueForms& forms);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_EVENT_SCHEMA_H_
