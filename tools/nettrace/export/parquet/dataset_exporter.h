// Writes a folder of Parquet files. The rows are divided into files by the kind of event, or by
// date, hour and host, or by both.
#ifndef TOOLS_NETTRACE_EXPORT_PARQUET_DATASET_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_PARQUET_DATASET_EXPORTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/parquet/event_columns.h"
#include "tools/nettrace/export/parquet/page_compressor.h"
#include "tools/nettrace/export/parquet/table_writer.h"
#include "tools/nettrace/export/parquet/typed_fields.h"

namespace tools::parquet {

// The keys by which rows are divided into folders, such as date=2026-11-23/hour=13/host=web1.
struct Partition {
  bool by_date = false;
  bool by_hour = false;
  bool by_host = false;
  bool empty() const { return !by_date && !by_hour && !by_host; }
};

struct DatasetOptions {
  // Whether each kind of event has a table, with a column for each field.
  bool is_typed = false;
  Partition partition;
};

// With is_typed, the files are named TABLE.parquet, or TABLE/PARTITION/events.parquet if there is a
// partition. TABLE is the provider, a dot and the event. Without is_typed, the files are named
// PARTITION/events.parquet.
//
// At most kMaxOpen tables are open. If another one is needed, the exporter completes the least
// recently used table; later rows of that table become another file, with a number in its name. The
// rows of all open tables need at most kMaxBuffered bytes of memory. When they exceed this limit,
// the largest table writes a row group.
class DatasetExporter : public exporting::Exporter {
 public:
  static constexpr std::size_t kMaxOpen = 256;
  static constexpr std::size_t kMaxBuffered = TableWriter::kGroupBytes;
  static constexpr std::size_t kMaxFiles = 65'536;

  // Appends bytes to the file with this path in the folder of the output.
  using Append = std::function<absl::Status(const std::string& path, std::string_view bytes)>;

  // `trace` must outlive this object.
  DatasetExporter(const nettrace::TraceInfo& trace, const DatasetOptions& options, Append append);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool threads_too) override;
  absl::Status Finish() override;
  std::string Remark() const override { return events_.Remark(); }

 private:
  // The rows of a kind of event, or of all events.
  struct Kind {
    std::string name;  // TABLE in the names of its files; "" for all events
    std::vector<Column> columns;
  };
  // A file that is being written.
  struct Table {
    std::string path;
    std::unique_ptr<TableWriter> writer;
    std::uint64_t last_use = 0;
    std::size_t buffered = 0;  // bytes of the table that are counted in buffered_
  };
  using Key = std::pair<const Kind*, std::string>;  // the kind, and the folder of the partition

  bool has_host() const { return !options_.partition.by_host; }
  absl::StatusOr<const Kind*> KindOf(const exporting::ExportedEvent& event);
  // Returns the kind with these columns, and adds it if there is none. `name` is the provider, a
  // dot and the event.
  absl::StatusOr<const Kind*> AddKind(const std::string& name, std::vector<Column> columns);
  absl::StatusOr<const Kind*> LossKind();
  // Returns the folder of the partition, with a slash at its end, or "".
  const std::string& FolderOf(absl::Time time, std::string_view host);
  absl::StatusOr<Table*> TableFor(const Kind& kind, absl::Time time,
                                  const nettrace::ThreadInfo& thread);
  absl::Status CompleteOldest();
  // Counts the bytes of a row that was added to `table`. If all tables together exceed
  // kMaxBuffered, writes a row group of the largest table.
  absl::Status AddedRow(Table* table);

  const DatasetOptions options_;
  const Append append_;
  PageCompressor compressor_;
  EventColumns events_;
  TypedFields fields_;
  Kind every_event_;  // the only kind without is_typed
  // The key consists of the name of the kind, and of the names and types of its columns.
  absl::flat_hash_map<std::string, std::unique_ptr<Kind>> kinds_;
  // Number of kinds by their file name. The first kind has this Kind::name; the next ones have it
  // with @2, @3 and so on at the end.
  absl::flat_hash_map<std::string, std::size_t> names_;
  absl::flat_hash_map<const nettrace::EventMetadata*, const Kind*> kinds_of_rows_;
  absl::flat_hash_map<Key, Table> tables_;
  // Number of files by their path, without the number in their names.
  absl::flat_hash_map<std::string, std::size_t> files_;
  std::size_t file_count_ = 0;
  std::uint64_t uses_ = 0;
  std::size_t buffered_ = 0;
  // The last result of FolderOf, with its arguments.
  std::string folder_;
  std::optional<std::int64_t> folder_hour_;  // hours since 1970
  std::string folder_host_;
};

}  // namespace tools::parquet

#endif  // TOOLS_NETTRACE_EXPORT_PARQUET_DATASET_EXPORTER_H_
