// Writes comma-separated values (RFC 4180): a line for each event, with columns for what all events
// have and for the fields of any; and a line for each loss.
//
// A cell is the text, the number, or the JSON of an array. Text has control characters as \u and
// four digits, so that a line of the file is one event; where it begins like a formula of a
// spreadsheet, it has an apostrophe before it: the file's author is not its reader's.
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
#include "absl/status/status.h"
#include "nettrace/schema.h"
#include "nettrace/sink.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/text_output.h"

namespace tools::csv {

// The cell of a text or a number.
std::string Cell(std::string_view text);

// The columns of the fields of all events. A struct's member has its own, named by the struct, a
// point and its name. Fields of one name share a column, but for those of one event.
class FieldColumns {
 public:
  static constexpr std::size_t kMaxColumns = 16000;  // spreadsheets have 16,384

  FieldColumns();
  // Adds what is not there. ResourceExhausted at more than kMaxColumns.
  absl::Status Add(const nettrace::EventMetadata& metadata);
  // The columns of the events of this row, which was added, in the order of their values.
  std::vector<std::size_t> ColumnsOf(const nettrace::EventMetadata& metadata) const;
  const std::vector<std::string>& names() const { return names_; }

 private:
  // By a field's name, and how many of its event's fields before it have the same one.
  absl::flat_hash_map<std::pair<std::string, std::size_t>, std::size_t> places_;
  absl::flat_hash_set<std::string> taken_;
  std::vector<std::string> names_;
};

class CsvExporter : public exporting::Exporter {
 public:
  // `sink` must live as long.
  CsvExporter(FieldColumns columns, nettrace::Sink* sink);

  // The first line.
  absl::Status WriteHeader();
  bool wants_payload_json() const override { return true; }
  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const exporting::Loss& loss) override;
  void OnRowsEnd(bool threads_too) override;
  absl::Status Finish() override { return output_.Flush(); }

 private:
  absl::Status WriteRow();

  const FieldColumns columns_;
  exporting::TextOutput output_;
  absl::flat_hash_map<const nettrace::EventMetadata*, std::vector<std::size_t>> columns_of_row_;
  std::vector<std::string> cells_;
};

}  // namespace tools::csv

#endif  // TOOLS_NETTRACE_EXPORT_CSV_CSV_EXPORTER_H_
