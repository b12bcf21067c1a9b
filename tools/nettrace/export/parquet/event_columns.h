// The columns that all events have in Parquet files.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_EVENT_COLUMNS_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_EVENT_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/parquet/column_writer.h"
#include "tools/nettrace/export/parquet/table_writer.h"
#include "tools/trace/event_stream.h"

namespace tools::parquet {

// Writes the columns that all events have, which are the first columns of a table, for events and
// losses. Not thread-safe.
class EventColumns {
 public:
  // Returns the columns. The host is the last of them, and is left out without `has_host`.
  static std::vector<Column> Columns(bool has_host);
  // Returns the number of columns.
  static constexpr std::size_t Count(bool has_host) { return has_host ? 20 : 19; }

  // `trace` must outlive this object.
  explicit EventColumns(const nettrace::TraceInfo& trace) : trace_(trace) {}

  // Add a value to each of the columns of `table`.
  void PutEvent(const exporting::ExportedEvent& event, bool has_host, TableWriter* table);
  void PutLoss(const trace::Loss& loss, bool has_host, TableWriter* table);

  // Returns the name of the thread's host, or "" if the file does not state it. The result is valid
  // until the next call of a function.
  std::string_view HostOf(const nettrace::ThreadInfo& thread) { return SourceOf(thread).host; }
  // Must be called when the metadata rows and threads of all previous events become invalid.
  void OnRowsEnd();
  // Returns the text for Exporter::Remark() about the rows so far.
  std::string Remark() const;

 private:
  // Texts that the events of a metadata row share.
  struct Row {
    std::string provider;
    std::string name;
  };
  // Properties of a thread row; "" for those that it does not have.
  struct Source {
    std::string thread;
    std::string unit;
    std::string container;
    std::string host;
  };

  const Row& RowOf(const nettrace::EventMetadata& metadata);
  const Source& SourceOf(const nettrace::ThreadInfo& thread);
  void PutTime(absl::Time time, TableWriter* table);
  void PutSource(const nettrace::ThreadInfo& thread, std::string_view process, TableWriter* table);

  const nettrace::TraceInfo& trace_;
  // Caches by the addresses of rows. OnRowsEnd clears the caches, because later rows may have the
  // addresses of earlier ones.
  absl::node_hash_map<const nettrace::EventMetadata*, Row> rows_;
  absl::node_hash_map<const nettrace::ThreadInfo*, Source> sources_;
  std::uint64_t clamped_ = 0;  // rows whose time does not fit into the column
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_EVENT_COLUMNS_H_
