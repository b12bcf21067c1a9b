#include "tools/nettrace/export/parquet/dataset_exporter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/export/parquet/parquet_exporter.h"
#include "tools/trace/event_name.h"

namespace tools::parquet {
namespace {

constexpr std::size_t kMaxName = 200;  // bytes of a name; file systems allow 255
constexpr char kUnknownHost[] = "__HIVE_DEFAULT_PARTITION__";

// Returns the name of a file for a name in the trace. Characters other than letters, digits, '_',
// '-' and '.' become '_', and so does '.' at the beginning.
std::string FileName(std::string_view name) {
  std::string result;
  for (const char c : name.substr(0, kMaxName)) {
    const bool stays = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                       (c == '.' && !result.empty());
    result += stays ? c : '_';
  }
  return result;
}

// Returns a value of a partition. Characters other than letters, digits, '_', '-' and '.' are
// written as % and two hexadecimal digits, as in the file names of Hive.
std::string PartitionValue(std::string_view value) {
  std::string result;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '_' || c == '-' || c == '.') {
      result += c;
    } else {
      absl::StrAppendFormat(&result, "%%%02X", byte);
    }
    if (result.size() >= kMaxName) break;
  }
  return result;
}

// Returns a text that consists of the name, and of the names and types of the columns.
std::string KeyOf(const std::string& name, const std::vector<Column>& columns) {
  std::string key = name;
  for (const Column& column : columns) {
    absl::StrAppend(&key, "\n", column.name, "\t", static_cast<int>(column.type),
                    column.is_list ? "[]" : "");
  }
  return key;
}

}  // namespace

DatasetExporter::DatasetExporter(const nettrace::TraceInfo& trace, const DatasetOptions& options,
                                 Append append)
    : options_(options), append_(std::move(append)), events_(trace) {
  every_event_.columns = EventTableColumns(has_host());
}

absl::Status DatasetExporter::OnEvent(const exporting::ExportedEvent& event) {
  ASSIGN_OR_RETURN(const Kind* const kind, KindOf(event));
  ASSIGN_OR_RETURN(Table* const table, TableFor(*kind, event.time, *event.event->thread));
  TableWriter* const writer = table->writer.get();
  if (!options_.is_typed) {
    RETURN_IF_ERROR(PutEventRow(event, has_host(), &events_, writer));
    return AddedRow(table);
  }
  events_.PutEvent(event, has_host(), writer);
  const std::size_t first = EventColumns::Count(has_host());
  const std::size_t error = kind->columns.size() - 1;
  const absl::Status status = fields_.Put(*event.event, first, error, event.payloads, writer);
  if (status.ok()) {
    writer->column(error).Null();
  } else {
    writer->column(error).Bytes(base::ValidUtf8(std::string(status.message())));
  }
  RETURN_IF_ERROR(writer->EndRow());
  return AddedRow(table);
}

absl::Status DatasetExporter::OnLoss(const trace::Loss& loss) {
  ASSIGN_OR_RETURN(const Kind* const kind, LossKind());
  ASSIGN_OR_RETURN(Table* const table, TableFor(*kind, loss.time, *loss.capture_thread));
  TableWriter* const writer = table->writer.get();
  if (!options_.is_typed) {
    RETURN_IF_ERROR(PutLossRow(loss, has_host(), &events_, writer));
    return AddedRow(table);
  }
  events_.PutLoss(loss, has_host(), writer);
  writer->column(kind->columns.size() - 2).Whole(loss.count);
  writer->column(kind->columns.size() - 1).Null();
  RETURN_IF_ERROR(writer->EndRow());
  return AddedRow(table);
}

void DatasetExporter::OnRowsEnd(bool /*threads_too*/) {
  events_.OnRowsEnd();
  kinds_of_rows_.clear();
}

absl::Status DatasetExporter::Finish() {
  while (!tables_.empty()) RETURN_IF_ERROR(CompleteOldest());
  return absl::OkStatus();
}

absl::StatusOr<const DatasetExporter::Kind*> DatasetExporter::KindOf(
    const exporting::ExportedEvent& event) {
  if (!options_.is_typed) return &every_event_;
  const nettrace::EventMetadata& metadata = *event.event->metadata;
  const auto [entry, added] = kinds_of_rows_.try_emplace(&metadata);
  if (!added) return entry->second;
  std::vector<Column> columns = EventColumns::Columns(has_host());
  const Column error = {.name = "error", .type = ColumnType::kString, .has_dictionary = true};
  columns.push_back(error);
  std::vector<Column> fields =
      FieldColumns(metadata, event.payloads->NotesOf(metadata), event.payloads->is_raw(), columns);
  columns.insert(columns.end() - 1, std::make_move_iterator(fields.begin()),
                 std::make_move_iterator(fields.end()));
  ASSIGN_OR_RETURN(entry->second, AddKind(absl::StrCat(metadata.provider, ".",
                                                       std::string(trace::EventName(metadata))),
                                          std::move(columns)));
  return entry->second;
}

absl::StatusOr<const DatasetExporter::Kind*> DatasetExporter::LossKind() {
  if (!options_.is_typed) return &every_event_;
  std::vector<Column> columns = EventColumns::Columns(has_host());
  columns.push_back({.name = "count", .type = ColumnType::kUint64, .is_optional = false});
  columns.push_back({.name = "error", .type = ColumnType::kString, .has_dictionary = true});
  return AddKind("nettrace.LostEvents", std::move(columns));
}

absl::StatusOr<const DatasetExporter::Kind*> DatasetExporter::AddKind(const std::string& name,
                                                                      std::vector<Column> columns) {
  std::unique_ptr<Kind>& kind = kinds_[KeyOf(name, columns)];
  if (kind != nullptr) return kind.get();
  if (kinds_.size() > kMaxFiles) {
    return absl::UnimplementedError(
        absl::StrCat("there are more than ", kMaxFiles,
                     " kinds of events, and --typed has a file for each; select events with "
                     "--provider or --event"));
  }
  kind = std::make_unique<Kind>();
  kind->name = FileName(name);
  const std::size_t number = ++names_[kind->name];
  if (number > 1) absl::StrAppend(&kind->name, "@", number);
  kind->columns = std::move(columns);
  return kind.get();
}

const std::string& DatasetExporter::FolderOf(absl::Time time, std::string_view host) {
  const Partition& partition = options_.partition;
  const std::int64_t hour =
      absl::ToInt64Hours(absl::Floor(time - absl::UnixEpoch(), absl::Hours(1)));
  if (!partition.by_host) host = "";
  if (folder_hour_ == hour && folder_host_ == host) return folder_;
  folder_hour_ = hour;
  folder_host_ = host;
  folder_.clear();
  if (partition.by_date) {
    absl::StrAppend(&folder_, "date=", absl::FormatTime("%E4Y-%m-%d", time, absl::UTCTimeZone()),
                    "/");
  }
  if (partition.by_hour) {
    absl::StrAppend(&folder_, "hour=", absl::FormatTime("%H", time, absl::UTCTimeZone()), "/");
  }
  if (partition.by_host) {
    absl::StrAppend(&folder_, "host=", host.empty() ? kUnknownHost : PartitionValue(host), "/");
  }
  return folder_;
}

absl::StatusOr<DatasetExporter::Table*> DatasetExporter::TableFor(
    const Kind& kind, absl::Time time, const nettrace::ThreadInfo& thread) {
  Key key = {&kind, {}};
  if (!options_.partition.empty()) key.second = FolderOf(time, events_.HostOf(thread));
  if (const auto found = tables_.find(key); found != tables_.end()) {
    found->second.last_use = ++uses_;
    return &found->second;
  }
  if (tables_.size() == kMaxOpen) RETURN_IF_ERROR(CompleteOldest());
  if (++file_count_ > kMaxFiles) {
    return absl::UnimplementedError(absl::StrCat(
        "the output would have more than ", kMaxFiles,
        " files; select events with --provider, --event or --since, or use fewer partitions"));
  }
  std::string path = kind.name;
  if (!options_.partition.empty()) {
    if (!path.empty()) path += "/";
    path += key.second + "events";
  }
  const std::size_t number = ++files_[path];
  if (number > 1) absl::StrAppend(&path, "-", number);
  path += ".parquet";
  Table& table = tables_[std::move(key)];
  table.path = path;
  table.last_use = ++uses_;
  table.writer = std::make_unique<TableWriter>(
      kind.columns, nettrace::KeyValues(), &compressor_,
      [this, path](std::string_view bytes) { return append_(path, bytes); });
  return &table;
}

absl::Status DatasetExporter::CompleteOldest() {
  const auto oldest =
      std::min_element(tables_.begin(), tables_.end(), [](const auto& one, const auto& other) {
        return one.second.last_use < other.second.last_use;
      });
  RETURN_IF_ERROR(oldest->second.writer->Finish());
  buffered_ -= oldest->second.buffered;
  tables_.erase(oldest);
  return absl::OkStatus();
}

absl::Status DatasetExporter::AddedRow(Table* table) {
  buffered_ +=
      table->writer->buffered() - std::exchange(table->buffered, table->writer->buffered());
  if (buffered_ <= kMaxBuffered) return absl::OkStatus();
  const auto largest =
      std::max_element(tables_.begin(), tables_.end(), [](const auto& one, const auto& other) {
        return one.second.buffered < other.second.buffered;
      });
  RETURN_IF_ERROR(largest->second.writer->EndGroup());
  buffered_ -= std::exchange(largest->second.buffered, 0);
  return absl::OkStatus();
}

}  // namespace tools::parquet
