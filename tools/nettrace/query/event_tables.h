// The tables of events and of their fields, and the fields of a payload for other parts of
// nettrace.
#ifndef TOOLS_NETTRACE_QUERY_EVENT_TABLES_H_
#define TOOLS_NETTRACE_QUERY_EVENT_TABLES_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/nettrace/export/payload_reader.h"
#include "tools/nettrace/query/inputs.h"
#include "tools/nettrace/query/table.h"

namespace tools::query {

extern const Table kEventTable;
extern const Table kFieldTable;

// A field of an event. Each member of a struct is a field, but not the struct. An array is one
// field.
struct FieldValue {
  using Type = exporting::ValueType;
  std::string path;  // the names of structs and of the field, separated by dots
  Type type = Type::kNull;
  std::string text;  // the text, or the JSON of the value; "" for kNull
};

// Returns the fields of an event. `payload` is the JSON that trace::PayloadJson writes.
std::vector<FieldValue> FieldsOf(std::string_view payload);
// Passes the value to SQLite: NULL, an integer (1 or 0 for a boolean), a real, or a text (an array
// as JSON).
void PutFieldValue(sqlite3_context* to, const FieldValue& field);

// Reads the events that meet conditions.
class EventCursor : public Cursor {
 public:
  explicit EventCursor(Inputs* inputs) : inputs_(*inputs) {}

  // If `conditions.number` is not lower than the number of the current event, continues from that
  // event instead of the beginning of the input.
  absl::Status Start(const Conditions& conditions) override;
  absl::Status Next() override;
  bool is_at_end() const override { return is_at_end_; }
  void Put(int column, sqlite3_context* to) override;
  std::int64_t row_id() const override { return static_cast<std::int64_t>(reading_->number()); }

  Inputs::Reading& reading() { return *reading_; }

 private:
  absl::Status Find();
  // Returns whether the current event meets the conditions. Sets is_at_end_ if its number
  // or time shows that neither it nor any later event meets them.
  bool Meets();

  Inputs& inputs_;
  Conditions conditions_;
  std::unique_ptr<Inputs::Reading> reading_;
  bool is_read_to_end_ = false;
  bool is_at_end_ = true;
};

}  // namespace tools::query

#endif  // TOOLS_NETTRACE_QUERY_EVENT_TABLES_H_
