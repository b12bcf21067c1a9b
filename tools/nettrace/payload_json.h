// The payload of an event as a JSON object.
#ifndef TOOLS_NETTRACE_PAYLOAD_JSON_H_
#define TOOLS_NETTRACE_PAYLOAD_JSON_H_

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/common/json_text.h"

namespace tools {

enum class PayloadStyle {
  kForPrograms,  // EventHeader fields as their formats say; see tools/common/field_value.h
  kForPeople,    // the same, and errnos have their names, too
  kRaw,          // all fields as their types in the file say
};

// Writes the payload, a member for each field. If it does not fit its fields, the values before the
// misfit are written, and the object is whole all the same.
absl::Status PutPayload(const nettrace::Event& event, PayloadStyle style, JsonWriter* json);

}  // namespace tools

#endif  // TOOLS_NETTRACE_PAYLOAD_JSON_H_
