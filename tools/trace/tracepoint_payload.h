// Formats the payloads of kernel tracepoints whose metadata rows have notes
// (tools/trace/tracepoint_keys.h).
#ifndef TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_
#define TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/trace/field_value.h"
#include "tools/trace/tracepoint_keys.h"
#include "tools/trace/tracepoint_symbol.h"

namespace trace {

// Holds the fields and notes of one metadata row, and the values of its last event.
class TracepointPayload {
 public:
  // Returns null if the row has no notes, or has fields that no kernel tracepoint has.
  static std::unique_ptr<TracepointPayload> Read(const nettrace::EventMetadata& metadata);

  // Reads the values of `event`, which must be of that row. If the payload does not match its
  // fields, the values before the mismatch are read, and an error is returned.
  absl::Status Load(const nettrace::Event& event);

  // Writes the payload as an object. In the style for people, each number is followed by its
  // symbol. If several fields share a name, their member is an array of their values.
  void Put(ValueStyle style, base::JsonWriter* json) const;
  // Writes the symbols as an object with a member for each field that has one. Writes nothing if no
  // field has one.
  void PutSymbols(const char* key, base::JsonWriter* json) const;

 private:
  struct FieldNotes {
    std::string name;
    bool is_bool = false;
    std::size_t size = 0;  // bytes of the number, or of each number in an array
    TracepointNote note;
  };
  void PutValue(std::size_t field, ValueStyle style, base::JsonWriter* json) const;

  std::vector<FieldNotes> fields_;
  absl::flat_hash_map<std::string, std::size_t> places_;
  TracepointValues values_;
  std::size_t loaded_ = 0;  // number of fields that the last event has
  std::vector<std::optional<std::string>> symbols_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_TRACEPOINT_PAYLOAD_H_
