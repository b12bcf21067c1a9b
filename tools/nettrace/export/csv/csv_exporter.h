// Writes comma-separated values (RFC 4180). Each event and each loss is one line. There are columns
// for the common properties of events, and for the fields of all events.
//
// A cell is empty, a text, a number, true, false, or the JSON of an array. Control characters in
// text are written as \u and four hexadecimal digits, so that each event is one line of the file.
// Text that begins like a spreadsheet formula gets an apostrophe before it, because the trace may
// come from an untrusted source.
#ifndef TOOLS_NETTRACE_EXPORT_CSV_CSV_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_CSV_CSV_EXPORTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"
#include "tools/base/text.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/field_values.h"

namespace tools::csv {

// Formats `text` as a cell. Escapes control characters (base::Printable), adds apostrophes before
// parts that may be read as formulas, and adds quotes if necessary. A number stays unchanged.
std::string Cell(std::string_view text);
// Appends Cell(text).
void AppendCell(std::string_view text, std::string* out);

// Assigns columns to the fields of all events. Each member of a struct has a separate column, named
// STRUCT.MEMBER. Fields that share a name also share a column, except within one event.
class FieldColumns {
 public:
  static constexpr std::size_t kMaxColumns = 16000;  // spreadsheets allow 16,384 in total

  FieldColumns();
  // Adds columns for new fields. Fails with Unimplemented if there would be more than kMaxColumns.
  absl::Status Add(const nettrace::EventMetadata& metadata);
  // Returns the column of each field of `metadata`, in the order of the values in a payload.
  // `metadata` must have been passed to Add.
  std::vector<std::size_t> ColumnsOf(const nettrace::EventMetadata& metadata) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  // Indices in names_. The key is a field's name, and the number of earlier fields with that name
  // in the same event.
  absl::flat_hash_map<std::pair<std::string, std::size_t>, std::size_t> places_;
  absl::flat_hash_set<std::string> taken_;  // names of all columns
  std::vector<std::string> names_;
};

class CsvExporter : public exporting::Exporter {
 public:
  // `sink` must outlive this object.
  CsvExporter(FieldColumns columns, nettrace::Sink* sink);

  // Writes the line with the names of the columns.
  absl::Status WriteHeader();
  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool threads_too) override;
  absl::Status Finish() override { return output_.Flush(); }

 private:
  // Data that all events of a metadata row share.
  struct Row {
    std::string names;  // cells of the provider and the name, each after a comma
    // The columns of the fields in ascending order, each with the index of its value in the
    // payload.
    std::vector<std::pair<std::size_t, std::size_t>> columns;
  };

  const Row& RowOf(const nettrace::EventMetadata& metadata);
  // Append cells of an event to `out`. AppendProperties appends the cells before the fields, and
  // AppendFields the cells of the fields in values_. `error` states why the payload does not match
  // its fields; "" if it matches.
  void AppendProperties(const exporting::ExportedEvent& event, std::string_view error,
                        const Row& row, std::string* out);
  void AppendFields(const Row& row, std::string* out) const;

  const FieldColumns columns_;
  base::TextOutput output_;
  absl::node_hash_map<const nettrace::EventMetadata*, Row> rows_;
  // The last result of RowOf and its argument; null if there is none.
  const nettrace::EventMetadata* last_metadata_ = nullptr;
  const Row* last_row_ = nullptr;
  exporting::FieldValues values_;  // fields of the current event
  base::UtcFormatter times_;
};

}  // namespace tools::csv

#endif  // TOOLS_NETTRACE_EXPORT_CSV_CSV_EXPORTER_H_
