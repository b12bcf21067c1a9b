// Formats the payloads of events as JSON objects.
#ifndef TOOLS_TRACE_PAYLOAD_JSON_H_
#define TOOLS_TRACE_PAYLOAD_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/eventheader_keys.h"
#include "tools/trace/tracepoint_payload.h"

namespace trace {

enum class PayloadStyle {
  kForPrograms,   // EventHeader fields in their formats; see tools/trace/field_value.h
  kForPeople,     // like kForPrograms, with the names of errnos
  kRaw,           // all fields by their types in the file; malformed text as its code units
  kRawForPeople,  // like kRaw, but large numbers have no quotes
};

// The form in which the values of a field are shown.
struct FieldFormat {
  enum class Values : std::uint8_t {
    kAsTyped,
    kNumbers,              // numbers in the format of the note
    kBytes,                // an array of integers that holds the bytes of one value
    kWrappedBytes,         // the same, for the only member of each Object in an array
    kNullOrText,           // null for an empty text
    kNullOrNumber,         // an array of at most one number in the note's format; null if empty
    kWrappedNullOrNumber,  // the same, for the only member of each Object in an array
  };
  Values values = Values::kAsTyped;
  FieldNote note;
  std::string path;              // the field's name; for a struct's member, with the struct's path
  std::size_t integer_size = 0;  // bytes of each integer, for kBytes and kWrappedBytes
  std::vector<FieldFormat>
      members;  // members of the field's Object, or of the Objects in its array
};

// Holds what the keys of a metadata row say about its events.
struct RowNotes {
  // Id that the event's author gave it. Recorders of EventHeader store it in a key, separate from
  // the row's id.
  std::uint32_t id = 0;
  std::vector<FieldFormat> formats;  // empty: fields are shown by their types
  bool repeats_names = false;        // whether two fields of the row or of an Object share a name
  // Names and JSON values of the EventHeader properties that the event has: tag, group, attributes,
  // fieldTags and fieldAttributes. The members of the last two are named by the paths of fields.
  std::vector<std::pair<std::string, std::string>> extras;
  std::unique_ptr<TracepointPayload> tracepoint;  // null unless the row is of a kernel tracepoint
  // Text that all events of the row share. Empty if PayloadJson has kept enough of it.
  std::string text;  // provider and name
  std::string json;  // the members provider, name and id of an object
};

// Holds the names of one field's errnos in one event.
struct ErrnoSymbols {
  const FieldFormat* field;
  bool in_array;
  std::vector<const char*> names;  // null for numbers without a name
};

class PayloadJson {
 public:
  // Maximum number of bytes of RowNotes::text and RowNotes::json that are kept.
  static constexpr std::size_t kMaxKeptText = std::size_t{16} << 20;

  explicit PayloadJson(PayloadStyle style) : style_(style) {}

  // Returns the notes of a row. The reference is valid until ForgetRows.
  const RowNotes& NotesOf(const nettrace::EventMetadata& metadata);
  // Return RowNotes::text and RowNotes::json of the row. Valid until the next call.
  std::string_view TextOf(const nettrace::EventMetadata& metadata);
  std::string_view JsonOf(const nettrace::EventMetadata& metadata);

  // Returns an empty buffer, and a writer to it, for the next object. Both are reused for each
  // event, which saves allocating them.
  base::JsonWriter* StartJson();
  std::string_view json() const { return {buffer_.GetString(), buffer_.GetSize()}; }
  base::UtcFormatter* times() { return &times_; }

  // Writes the payload of `event` with a member for each field. If the payload does not match its
  // fields, writes the values that can be read, completes the object, and returns an error. A value
  // that cannot be read is null; for people, it is the word unreadable without quotes. If several
  // fields share a name, their member is an array of their values.
  absl::Status Put(const nettrace::Event& event, base::JsonWriter* json);

  // Writes an object under `key` with the symbols of the fields of the last event that Put wrote.
  // Writes nothing if there are none. Symbols are the names of numbers in kernel tracepoints, and
  // of errnos in EventHeader fields. For a field in an array, they are an array, with null for each
  // number without a name.
  void PutSymbols(const char* key, base::JsonWriter* json) const;

  // Drops the notes of all rows. Must be called at each sequence point, where the events' reader
  // may drop metadata rows.
  void ForgetRows();

 private:
  const PayloadStyle style_;
  // Filled when the first event of a row is read.
  absl::node_hash_map<const nettrace::EventMetadata*, RowNotes> rows_;
  const nettrace::EventMetadata* last_row_ = nullptr;  // the last one that was found
  RowNotes* last_notes_ = nullptr;                     // its notes
  std::size_t kept_text_ = 0;
  std::string text_;  // of a row whose text is not kept
  rapidjson::StringBuffer buffer_;
  base::JsonWriter writer_{buffer_};
  base::UtcFormatter times_;
  TracepointPayload* last_tracepoint_ = nullptr;
  std::vector<ErrnoSymbols> last_errnos_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_PAYLOAD_JSON_H_
