// Writes Parquet, the file format of data lakes: one table with a row for each event and each loss.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_PARQUET_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_PARQUET_EXPORTER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/parquet/event_columns.h"
#include "tools/nettrace/export/parquet/page_compressor.h"
#include "tools/nettrace/export/parquet/table_writer.h"

namespace tools::parquet {

// Return the columns of a table of all events, and add a row to such a table. The columns are those
// of EventColumns, the fields as JSON, and the error if the payload does not match the fields.
std::vector<Column> EventTableColumns(bool has_host);
absl::Status PutEventRow(const exporting::ExportedEvent& event, bool has_host, EventColumns* events,
                         TableWriter* table);
absl::Status PutLossRow(const trace::Loss& loss, bool has_host, EventColumns* events,
                        TableWriter* table);

class ParquetExporter : public exporting::Exporter {
 public:
  // `trace` and `sink` must outlive this object.
  ParquetExporter(const nettrace::TraceInfo& trace, nettrace::Sink* sink);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override {
    return PutEventRow(event, /*has_host=*/true, &events_, &table_);
  }
  absl::Status OnLoss(const trace::Loss& loss) override {
    return PutLossRow(loss, /*has_host=*/true, &events_, &table_);
  }
  void OnRowsEnd(bool /*threads_too*/) override { events_.OnRowsEnd(); }
  absl::Status Finish() override;
  std::string Remark() const override { return events_.Remark(); }

 private:
  base::TextOutput output_;
  PageCompressor compressor_;
  EventColumns events_;
  TableWriter table_;
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_PARQUET_EXPORTER_H_
