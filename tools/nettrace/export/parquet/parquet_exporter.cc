#include "tools/nettrace/export/parquet/parquet_exporter.h"

#include <cstddef>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace tools::parquet {

std::vector<Column> EventTableColumns(bool has_host) {
  std::vector<Column> columns = EventColumns::Columns(has_host);
  columns.push_back({.name = "fields",
                     .type = ColumnType::kJson,
                     .is_optional = false,
                     .has_bounds = false});  // bounds of JSON would skip no row group
  columns.push_back({.name = "error", .type = ColumnType::kString, .has_dictionary = true});
  return columns;
}

absl::Status PutEventRow(const exporting::ExportedEvent& event, bool has_host, EventColumns* events,
                         TableWriter* table) {
  events->PutEvent(event, has_host, table);
  const absl::Status status = event.payloads->Put(*event.event, event.payloads->StartJson());
  const std::size_t fields = table->columns().size() - 2;
  table->column(fields).Bytes(event.payloads->json());
  ColumnWriter& error = table->column(fields + 1);
  if (status.ok()) {
    error.Null();
  } else {
    error.Bytes(std::string(status.message()));
  }
  return table->EndRow();
}

absl::Status PutLossRow(const trace::Loss& loss, bool has_host, EventColumns* events,
                        TableWriter* table) {
  events->PutLoss(loss, has_host, table);
  const std::size_t fields = table->columns().size() - 2;
  table->column(fields).Bytes(absl::StrCat("{\"count\":", loss.count, "}"));
  table->column(fields + 1).Null();
  return table->EndRow();
}

ParquetExporter::ParquetExporter(const nettrace::TraceInfo& trace, nettrace::Sink* sink)
    : output_(sink),
      events_(trace),
      table_(EventTableColumns(/*has_host=*/true), {}, &compressor_,
             [this](std::string_view bytes) { return output_.Write(bytes); }) {}

absl::Status ParquetExporter::Finish() {
  RETURN_IF_ERROR(table_.Finish());
  return output_.Flush();
}

}  // namespace tools::parquet
