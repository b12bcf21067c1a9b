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
#include "tools/trace/value_output.h"

namespace trace {

enum class PayloadStyle {
  kForPrograms,   // EventHeader fields in their formats; see tools/trace/field_value.h
  kForPeople,     // like kForPrograms, with symbols (PutSymbols); large numbers have no quotes
  kRaw,           // all fields by their types in the file; malformed text as its code units
  kRawForPeople,  // like kRaw, but large numbers have no quotes
};

// The form in which the file stores the values of a field, and the form in which they are shown.
struct FieldFormat {
  enum class Values : std::uint8_t {
    kAsTyped,       // by the type in the metadata row
    kNumbers,       // numbers, shown in the format of `note`
    kBytes,         // stored as an array of integers, shown as one value with their bytes
    kWrappedBytes,  // an array of Objects; for each, its only member is shown, as in kBytes
    kNullOrText,    // text, shown as null if it is empty
    kNullOrNumber,  // stored as an array of at most one number, shown like kNumbers or as null
    kWrappedNullOrNumber,  // like kWrappedBytes, but each member is shown as in kNullOrNumber
  };
  Values values = Values::kAsTyped;
  FieldNote note;
  std::string path;              // name of the field, or "STRUCT.NAME"; empty if it is not needed
  std::size_t integer_size = 0;  // bytes of each integer, for kBytes and kWrappedBytes
  // Formats of the members of the field's Object, or of the Objects in its array.
  std::vector<FieldFormat> members;
};

// Holds the properties of events that the keys of their metadata row state.
struct RowNotes {
  // Event id that the event's author chose. If the EventId of the row differs, this is the value of
  // the key EventHeader.Id.
  std::uint32_t id = 0;
  std::vector<FieldFormat> formats;  // formats of the fields; empty if all are shown by their types
  bool repeats_names = false;        // whether two fields of the row or of an Object share a name
  bool has_common_schema = false;    // HasCommonSchema of the row
  // Names and JSON values of the EventHeader properties that the event has: tag, group, attributes,
  // fieldTags and fieldAttributes. The JSON of fieldTags and fieldAttributes is an object whose
  // keys are the paths of fields.
  std::vector<std::pair<std::string, std::string>> extras;
  std::unique_ptr<TracepointPayload> tracepoint;  // null if there are no notes of a tracepoint
  // Text that all events of the row share. Empty if PayloadJson already keeps kMaxKeptText bytes.
  std::string text;  // provider and name
  std::string json;  // JSON members provider, name and id
};

// Holds the names of the errnos in one field of one event.
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

  // Returns whether values are shown by their types, and not in their EventHeader formats.
  bool is_raw() const {
    return style_ == PayloadStyle::kRaw || style_ == PayloadStyle::kRawForPeople;
  }
  // Returns the notes of a row. The reference is valid until the next call of ForgetRows().
  const RowNotes& NotesOf(const nettrace::EventMetadata& metadata);
  // Return RowNotes::text and RowNotes::json of the row. The result is valid until the next call of
  // TextOf(), JsonOf() or ForgetRows().
  std::string_view TextOf(const nettrace::EventMetadata& metadata);
  std::string_view JsonOf(const nettrace::EventMetadata& metadata);

  // Empties the buffer, and returns a writer to it for the next object. json() returns the contents
  // of the buffer. Buffer and writer are reused for each event, to save allocations.
  base::JsonWriter* StartJson();
  std::string_view json() const { return {buffer_.GetString(), buffer_.GetSize()}; }
  base::UtcFormatter* times() { return &times_; }

  // Writes the payload of `event` with a member for each field. If the payload does not match its
  // fields, writes the values that can be read, completes the object, and returns an error. A value
  // that cannot be read is written by PutUnreadable. If several fields share a name, their member
  // is an array of their values.
  absl::Status Put(const nettrace::Event& event, base::JsonWriter* json);

  // Passes the payload to `out`: a key before each value, and the values in the form that Put()
  // writes for programs. Calls neither BeginObject() nor EndObject() for the payload. Returns an
  // error like Put(). Does not write symbols; PutSymbols() does.
  absl::Status PutMembers(const nettrace::Event& event, ValueOutput* out);

  // Writes an object under `key` with the symbols of the fields of the last event that Put() wrote.
  // Writes nothing if no field has symbols. Symbols are the names of numbers in kernel tracepoints,
  // and of errnos in EventHeader fields. If a field has several values, its symbols are an array,
  // with null for each number without a name.
  void PutSymbols(const char* key, base::JsonWriter* json) const;

  // Drops the notes of all rows. Must be called at each sequence point, because the reader of the
  // events may drop metadata rows there.
  void ForgetRows();

 private:
  template <typename Output>
  absl::Status Visit(const nettrace::Event& event, const RowNotes& row, Output* out);

  const PayloadStyle style_;
  // Notes of metadata rows, which NotesOf adds when it is first called for a row.
  absl::node_hash_map<const nettrace::EventMetadata*, RowNotes> rows_;
  const nettrace::EventMetadata* last_row_ = nullptr;  // row of the last call of NotesOf
  RowNotes* last_notes_ = nullptr;                     // notes of last_row_
  std::size_t kept_text_ = 0;  // bytes of all RowNotes::text and RowNotes::json that are kept
  std::string text_;           // result of TextOf or JsonOf for a row whose text is not kept
  rapidjson::StringBuffer buffer_;
  base::JsonWriter writer_{buffer_};
  base::UtcFormatter times_;
  TracepointPayload* last_tracepoint_ = nullptr;
  std::vector<ErrnoSymbols> last_errnos_;
};

}  // namespace trace

#endif  // TOOLS_TRACE_PAYLOAD_JSON_H_
