// Columns with types for the fields of one kind of event.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_TYPED_FIELDS_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_TYPED_FIELDS_H_

#include <rapidjson/stringbuffer.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/base/json_text.h"
#include "tools/nettrace/export/parquet/column_writer.h"
#include "tools/nettrace/export/parquet/table_writer.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/value_output.h"

namespace tools::parquet {

// Returns a column for each field of the events of `metadata`. A struct has a column for each of
// its members, named STRUCT.MEMBER. An array of values is a list. An array of structs or of arrays
// is JSON. A column gets the prefix "field." if one of `taken` has its name, and a number if the
// event already has a field of this name. Names that differ only in case count as the same, because
// some readers do not distinguish them. If `is_raw` is set, types do not depend on the formats of
// EventHeader.
std::vector<Column> FieldColumns(const nettrace::EventMetadata& metadata,
                                 const trace::RowNotes& notes, bool is_raw,
                                 const std::vector<Column>& taken);

// Adds the values of payloads to the columns that FieldColumns returns. Not thread-safe.
class TypedFields final : private trace::ValueOutput {
 public:
  // Adds a value of the event to each column of `table` with an index in [first, end). If the
  // payload does not match its fields, or if a value does not fit the type of its column, adds null
  // to the columns without a suitable value, and returns an error.
  absl::Status Put(const nettrace::Event& event, std::size_t first, std::size_t end,
                   trace::PayloadJson* payloads, TableWriter* table);

 private:
  void Key(std::string_view name) override {
    if (is_json_) json_.Key(name);
  }
  void BeginObject(bool repeats_names) override {
    if (is_json_) json_.BeginObject(repeats_names);
  }
  void EndObject(bool repeats_names) override {
    if (is_json_) json_.EndObject(repeats_names);
  }
  void BeginArray() override;
  void EndArray() override;
  void Null() override;
  void Bool(bool value) override;
  void Whole(std::int64_t value) override;
  void Whole(std::uint64_t value) override;
  void Double(double value) override;
  void Single(float value) override;
  void Text(std::string_view utf8) override;
  void Bytes(std::span<const std::byte> bytes) override;

  // Returns the column of the next value, which must not be part of JSON. Returns null if the value
  // is part of an array that does not fit its column, or if there are no more columns.
  ColumnWriter* Target();
  ColumnType type() const { return table_->columns()[next_].type; }
  // Adds null for a value that does not fit its column.
  void Mismatch(ColumnWriter* column);
  // Must be called after a value was added: moves to the next column, unless an array is open.
  void Advance() {
    if (depth_ == 0) ++next_;
  }

  TableWriter* table_ = nullptr;
  std::size_t next_ = 0;  // the column of the next value
  std::size_t end_ = 0;
  int depth_ = 0;    // number of open arrays
  int skipped_ = 0;  // depth_ of the open array that does not fit its column; 0 if there is none
  bool is_json_ = false;
  std::string mismatch_;  // name of a column whose value did not fit
  std::string text_;      // bytes as hexadecimal digits, or a number
  rapidjson::StringBuffer buffer_;
  base::JsonWriter writer_;
  trace::JsonValueOutput json_{trace::ValueStyle::kForPrograms, &writer_};
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_TYPED_FIELDS_H_
