// The payloads of events as JSON objects.
#ifndef TOOLS_NETTRACE_PAYLOAD_JSON_H_
#define TOOLS_NETTRACE_PAYLOAD_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/common/eventheader_keys.h"
#include "tools/common/json_text.h"
#include "tools/nettrace/tracepoint_payload.h"

namespace tools {

enum class PayloadStyle {
  kForPrograms,  // EventHeader fields as their formats say; see tools/common/field_value.h
  kForPeople,    // the same, and errnos have their names, too
  kRaw,          // all fields as their types in the file say
};

// The form in which the values of a field are shown.
struct FieldFormat {
  enum class Values : std::uint8_t {
    kAsTyped,
    kNumbers,              // numbers in the format of the note
    kBytes,                // an array of integers is the bytes of one value
    kWrappedBytes,         // so is the only member of each Object in an array
    kNullOrText,           // an empty text is null
    kNullOrNumber,         // an array of no or one number in the format of the note is null or that
    kWrappedNullOrNumber,  // so is the only member of each Object in an array
  };
  Values values = Values::kAsTyped;
  FieldNote note;
  std::string path;  // the field's name; of a struct's member after the struct's and a point
  std::size_t integer_size = 0;      // bytes of each integer of kBytes and kWrappedBytes
  std::vector<FieldFormat> members;  // of the field's Object, or of those in its array
};

// What the keys of a metadata row say of its events.
struct RowNotes {
  // The id that the event's author gave it: recorders of EventHeader keep it beside the row's own.
  std::uint32_t id = 0;
  std::vector<FieldFormat> formats;  // empty: fields are shown as typed
  // Names and values, in JSON, of what EventHeader has beside an event's fields, as far as it is
  // there: tag, group, attributes, and fieldTags and fieldAttributes, whose members are named by
  // the fields' paths.
  std::vector<std::pair<std::string, std::string>> extras;
  std::unique_ptr<TracepointPayload> tracepoint;  // null if the row is none of a kernel tracepoint
};

// The names of one field's errnos in one event.
struct ErrnoSymbols {
  const FieldFormat* field;
  bool in_array;
  std::vector<const char*> names;  // null: the number has none
};

class PayloadJson {
 public:
  explicit PayloadJson(PayloadStyle style) : style_(style) {}

  // Valid until ForgetRows.
  const RowNotes& NotesOf(const nettrace::EventMetadata& metadata);

  // Writes the payload of `event`, a member for each field. If it does not fit its fields, the
  // values before the misfit are written, and the object is whole all the same.
  absl::Status Put(const nettrace::Event& event, JsonWriter* json);

  // Writes the symbols of that event's fields, an object under `key`; nothing if it has none. They
  // are what kernel tracepoints call their numbers, and the names of errnos in EventHeader fields:
  // a list of them, with null for a number without, if the field is in an array.
  void PutSymbols(const char* key, JsonWriter* json) const;

  // To be called at every sequence point of the events' reader, which may drop metadata rows then.
  void ForgetRows();

 private:
  const PayloadStyle style_;
  // Read at the rows' first events.
  absl::node_hash_map<const nettrace::EventMetadata*, RowNotes> rows_;
  TracepointPayload* last_tracepoint_ = nullptr;
  std::vector<ErrnoSymbols> last_errnos_;
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_PAYLOAD_JSON_H_
