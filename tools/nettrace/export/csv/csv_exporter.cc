#include "tools/nettrace/export/csv/csv_exporter.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/short_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::csv {
namespace {

// The columns before the columns of the fields. A line with a value in kLost is a loss, not an
// event.
enum Column : std::size_t {
  kTime,
  kProvider,
  kEvent,
  kLevel,
  kKeywords,
  kOpcode,
  kPid,
  kTid,
  kProcess,
  kThread,
  kCpu,
  kActivityId,
  kRelatedActivityId,
  kLost,
  kError,
  kColumns
};
constexpr std::array<const char*, kColumns> kNames = {"time",
                                                      "provider",
                                                      "event",
                                                      "level",
                                                      "keywords",
                                                      "opcode",
                                                      "pid",
                                                      "tid",
                                                      "process",
                                                      "thread",
                                                      "cpu",
                                                      "activity_id",
                                                      "related_activity_id",
                                                      "lost",
                                                      "error"};

// Calls `use` with the column name of each field, in the order of the values in a payload. A struct
// has no column; its members have the columns STRUCT.MEMBER. `parent` precedes each name.
void ForEachField(const std::vector<nettrace::Field>& fields, const std::string& parent,
                  const std::function<void(const std::string&)>& use) {
  for (const nettrace::Field& field : fields) {
    const std::string name = parent + base::ValidUtf8(field.name);
    if (field.type.code == nettrace::TypeCode::kObject) {
      ForEachField(field.type.fields, name + ".", use);
    } else {
      use(name);
    }
  }
}

// Calls `use` with the key of each field of `metadata`: see FieldColumns::places_.
void ForEachKey(const nettrace::EventMetadata& metadata,
                const std::function<void(const std::pair<std::string, std::size_t>&)>& use) {
  absl::flat_hash_map<std::string, std::size_t> counts;
  ForEachField(metadata.fields, "", [&](const std::string& name) { use({name, counts[name]++}); });
}

// Holds successive cells with numbers and ids. The maximum size is enough for all of them, but
// texts from the file may be longer and must not be added.
using Cells = base::ShortText<256>;

// Adds a comma and a cell. The cell is empty if the argument has no value.
void AddCell(const std::optional<std::uint64_t>& number, Cells* out) {
  out->Add(',');
  if (number) out->AddNumber(*number);
}
void AddCell(const std::optional<nettrace::Guid>& guid, Cells* out) {
  out->Add(',');
  if (guid) out->AddGuid(*guid);
}

// Returns true only if Cell() would return the text unchanged. May return false for a text that
// Cell() would not change.
bool IsPlainCell(std::string_view text) {
  constexpr std::string_view kBeginnings = " =+-@";
  return text.empty() || (base::IsPrintableAsciiWithout(text, {'"', ',', ';'}) &&
                          kBeginnings.find(text.front()) == kBeginnings.npos && text.back() != ' ');
}

// Returns the text with an apostrophe before each part that a spreadsheet may read as a formula,
// unless the text is a number. Spreadsheets in some languages split cells at semicolons, some
// ignore spaces, and some read full-width characters like the ASCII ones.
std::string WithoutFormulas(const std::string& text) {
  constexpr std::string_view kBeginnings[] = {"=",      "+",      "-",      "@",
                                              "\uFF1D", "\uFF0B", "\uFF0D", "\uFF20"};
  double number = 0;
  if (absl::SimpleAtod(text, &number)) return text;
  std::string result;
  bool is_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i);
    if (is_start && std::any_of(std::begin(kBeginnings), std::end(kBeginnings),
                                [rest](std::string_view each) { return rest.starts_with(each); })) {
      result += '\'';
    }
    is_start = text[i] == ';' || (is_start && text[i] == ' ');
    result += text[i];
  }
  return result;
}

}  // namespace

std::string Cell(std::string_view text) {
  std::string cell = WithoutFormulas(base::Printable(text));
  if (cell.find_first_of("\",") == cell.npos && !cell.starts_with(' ') && !cell.ends_with(' ')) {
    return cell;
  }
  std::string quoted = "\"";
  for (const char c : cell) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

void AppendCell(std::string_view text, std::string* out) {
  if (IsPlainCell(text)) {
    *out += text;
  } else {
    *out += Cell(text);
  }
}

FieldColumns::FieldColumns() : taken_(kNames.begin(), kNames.end()) {}

absl::Status FieldColumns::Add(const nettrace::EventMetadata& metadata) {
  bool fits = true;
  ForEachKey(metadata, [&](const std::pair<std::string, std::size_t>& key) {
    if (places_.contains(key)) return;
    fits = fits && names_.size() < kMaxColumns;
    if (!fits) return;
    std::string name = key.first;
    for (std::size_t count = 2; !taken_.insert(name).second; ++count) {
      name = absl::StrCat(key.first, "_", count);
    }
    places_.emplace(key, names_.size());
    names_.push_back(std::move(name));
  });
  if (fits) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "the events have more than ", kMaxColumns,
      " fields, and csv has a column for each; select events with --provider or --event"));
}

std::vector<std::size_t> FieldColumns::ColumnsOf(const nettrace::EventMetadata& metadata) const {
  std::vector<std::size_t> columns;
  ForEachKey(metadata, [&](const std::pair<std::string, std::size_t>& key) {
    columns.push_back(places_.at(key));
  });
  return columns;
}

CsvExporter::CsvExporter(FieldColumns columns, nettrace::Sink* sink)
    : columns_(std::move(columns)), output_(sink) {}

absl::Status CsvExporter::WriteHeader() {
  std::string& out = *output_.text();
  for (const char* const name : kNames) {
    if (name != kNames.front()) out += ',';
    out += name;
  }
  for (const std::string& name : columns_.names()) {
    out += ',';
    AppendCell(name, &out);
  }
  out += "\r\n";
  return output_.Appended();
}

const CsvExporter::Row& CsvExporter::RowOf(const nettrace::EventMetadata& metadata) {
  if (last_metadata_ == &metadata) return *last_row_;
  const auto [entry, added] = rows_.try_emplace(&metadata);
  Row& row = entry->second;
  if (added) {
    for (const std::string_view name :
         {std::string_view(metadata.provider), trace::EventName(metadata)}) {
      row.names += ',';
      AppendCell(name, &row.names);
    }
    for (const std::size_t column : columns_.ColumnsOf(metadata)) {
      row.columns.emplace_back(column, row.columns.size());
    }
    std::sort(row.columns.begin(), row.columns.end());
  }
  last_metadata_ = &metadata;
  last_row_ = &row;
  return row;
}

absl::Status CsvExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const Row& row = RowOf(*exported.event->metadata);
  std::string& out = *output_.text();
  const absl::Status status = values_.Read(*exported.event, exported.payloads);
  AppendProperties(exported, std::string(status.message()), row, &out);
  AppendFields(row, &out);
  out += "\r\n";
  return output_.Appended();
}

void CsvExporter::AppendProperties(const exporting::ExportedEvent& exported, std::string_view error,
                                   const Row& row, std::string* out) {
  const nettrace::Event& event = *exported.event;
  *out += times_.Format(exported.time);
  *out += row.names;
  Cells cells;
  cells.Add(',');
  cells.AddNumber(event.level());
  cells.Add(",0x");
  cells.AddNumber(event.keywords(), 16);
  cells.Add(',');
  cells.AddNumber(event.opcode());
  AddCell(event.thread->process_id, &cells);
  AddCell(event.thread->thread_id, &cells);
  cells.Add(',');
  *out += cells.text();
  AppendCell(exported.process, out);
  *out += ',';
  if (event.thread->name) AppendCell(*event.thread->name, out);
  Cells more;
  more.Add(',');
  if (event.processor != nettrace::kNoProcessor) more.AddNumber(event.processor);
  AddCell(event.labels->activity_id, &more);
  AddCell(event.labels->related_activity_id, &more);
  more.Add(",,");  // the cell kLost of an event is empty
  *out += more.text();
  AppendCell(error, out);
}

void CsvExporter::AppendFields(const Row& row, std::string* out) const {
  using Kind = exporting::FieldValues::Kind;
  std::size_t written = 0;  // columns of fields for which a comma was appended
  for (const auto& [column, index] : row.columns) {
    if (index >= values_.values().size()) continue;  // the payload ends before this field
    out->append(column + 1 - written, ',');
    written = column + 1;
    const exporting::FieldValues::Value& value = values_.values()[index];
    switch (value.kind) {
      case Kind::kNull:
        break;
      case Kind::kFalse:
        *out += "false";
        break;
      case Kind::kTrue:
        *out += "true";
        break;
      case Kind::kNumber:
        *out += values_.TextOf(value);  // AppendCell would append it unchanged
        break;
      case Kind::kText:
      case Kind::kArray:
        AppendCell(values_.TextOf(value), out);
        break;
    }
  }
  out->append(columns_.names().size() - written, ',');
}

absl::Status CsvExporter::OnLoss(const trace::Loss& loss) {
  std::array<std::string, kColumns> cells;
  cells[kTime] = base::FormatUtc(loss.time);
  if (loss.next != nullptr && loss.next->processor != nettrace::kNoProcessor) {
    cells[kCpu] = absl::StrCat(loss.next->processor);
  }
  if (loss.capture_thread->name) cells[kThread] = Cell(*loss.capture_thread->name);
  cells[kLost] = absl::StrCat(loss.count);
  std::string& out = *output_.text();
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) out += ',';
    out += cell;
  }
  out.append(columns_.names().size(), ',');
  out += "\r\n";
  return output_.Appended();
}

void CsvExporter::OnRowsEnd(bool /*threads_too*/) {
  rows_.clear();
  last_metadata_ = nullptr;
}

}  // namespace tools::csv
