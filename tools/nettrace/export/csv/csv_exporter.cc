#include "tools/nettrace/export/csv/csv_exporter.h"

#include <rapidjson/reader.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/nettrace/export/payload_reader.h"
#include "tools/trace/event_name.h"

namespace tools::csv {
namespace {

// The columns that come before those of the fields. A line with a value in kLost is a loss, not an
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

// Calls `use` with the name of each field that has a column, in the order of the values in a
// payload.
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

// Writes the values of a payload to cells. A handler for rapidjson::Reader.
class CellFiller : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, CellFiller> {
 public:
  CellFiller(const std::vector<std::size_t>& columns, std::vector<std::string>* cells)
      : columns_(columns), cells_(cells) {}

  bool Null() { return depth_ == 0 ? Put("") : array_.Null(); }
  bool Bool(bool value) {
    return depth_ == 0 ? PutWhole(value ? "true" : "false") : array_.Bool(value);
  }
  bool RawNumber(const char* digits, rapidjson::SizeType size, bool /*copy*/) {
    return depth_ == 0 ? PutWhole({digits, size})
                       : array_.RawValue(digits, size, rapidjson::kNumberType);
  }
  bool String(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return depth_ == 0 ? Put({text, size}) : array_.String(text, size);
  }
  bool Key(const char* text, rapidjson::SizeType size, bool /*copy*/) {
    return depth_ == 0 || array_.Key(text, size);
  }
  bool StartObject() { return depth_ == 0 || array_.StartObject(); }
  bool EndObject(rapidjson::SizeType /*members*/) { return depth_ == 0 || array_.EndObject(); }
  bool StartArray() {
    if (depth_++ == 0) {
      buffer_.Clear();
      array_.Reset(buffer_);
    }
    return array_.StartArray();
  }
  bool EndArray(rapidjson::SizeType /*elements*/) {
    array_.EndArray();
    return --depth_ != 0 || Put({buffer_.GetString(), buffer_.GetSize()});
  }

 private:
  // Sets the next cell to `text`, which must be text that Cell returns unchanged. Returns false if
  // there is no further column.
  bool PutWhole(std::string_view text) {
    if (next_ == columns_.size()) return false;
    (*cells_)[kColumns + columns_[next_++]] = text;
    return true;
  }
  // Sets the next cell to Cell(text). Returns false if there is no further column.
  bool Put(std::string_view text) {
    if (next_ == columns_.size()) return false;
    SetCell(text, &(*cells_)[kColumns + columns_[next_++]]);
    return true;
  }

  const std::vector<std::size_t>& columns_;
  std::vector<std::string>* cells_;
  std::size_t next_ = 0;
  int depth_ = 0;  // number of open arrays
  rapidjson::StringBuffer buffer_;
  base::JsonWriter array_;
};

void SetNumber(const std::optional<std::uint64_t>& number, std::string* cell) {
  if (number) base::AppendNumber(*number, cell);
}

void SetGuid(const std::optional<nettrace::Guid>& guid, std::string* cell) {
  if (guid) base::AppendGuid(*guid, cell);
}

// Returns true if Cell would return the text unchanged. May return false for some of these texts.
bool IsPlainCell(std::string_view text) {
  constexpr std::string_view kBeginnings = " =+-@";
  if (text.empty()) return true;
  return base::IsPrintableAscii(text) && kBeginnings.find(text.front()) == kBeginnings.npos &&
         text.back() != ' ' && std::none_of(text.begin(), text.end(), [](char c) {
           return c == '"' || c == ',' || c == ';';
         });
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

void SetCell(std::string_view text, std::string* cell) {
  if (IsPlainCell(text)) {
    cell->assign(text);
  } else {
    *cell = Cell(text);
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
      " fields, and csv has a column for each; select events with --provider and --event"));
}

std::vector<std::size_t> FieldColumns::ColumnsOf(const nettrace::EventMetadata& metadata) const {
  std::vector<std::size_t> columns;
  ForEachKey(metadata, [&](const std::pair<std::string, std::size_t>& key) {
    columns.push_back(places_.at(key));
  });
  return columns;
}

CsvExporter::CsvExporter(FieldColumns columns, nettrace::Sink* sink)
    : columns_(std::move(columns)), output_(sink), cells_(kColumns + columns_.names().size()) {}

absl::Status CsvExporter::WriteRow() {
  row_.clear();
  for (std::string& cell : cells_) {
    if (&cell != &cells_.front()) row_ += ',';
    row_ += cell;
    cell.clear();
  }
  row_ += "\r\n";
  return output_.Write(row_);
}

absl::Status CsvExporter::WriteHeader() {
  for (std::size_t i = 0; i < kColumns; ++i) cells_[i] = kNames[i];
  for (std::size_t i = 0; i < columns_.names().size(); ++i) {
    cells_[kColumns + i] = Cell(columns_.names()[i]);
  }
  return WriteRow();
}

absl::Status CsvExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  const nettrace::EventMetadata& metadata = *event.metadata;
  cells_[kTime] = times_.Format(exported.time);
  SetCell(metadata.provider, &cells_[kProvider]);
  SetCell(trace::EventName(metadata), &cells_[kEvent]);
  base::AppendNumber(event.level(), &cells_[kLevel]);
  base::AppendHexNumber(event.keywords(), &cells_[kKeywords]);
  base::AppendNumber(event.opcode(), &cells_[kOpcode]);
  SetNumber(event.thread->process_id, &cells_[kPid]);
  SetNumber(event.thread->thread_id, &cells_[kTid]);
  SetCell(exported.process, &cells_[kProcess]);
  if (event.thread->name) SetCell(*event.thread->name, &cells_[kThread]);
  if (event.processor != nettrace::kNoProcessor) {
    base::AppendNumber(event.processor, &cells_[kCpu]);
  }
  SetGuid(event.labels->activity_id, &cells_[kActivityId]);
  SetGuid(event.labels->related_activity_id, &cells_[kRelatedActivityId]);
  SetCell(exported.payload_error, &cells_[kError]);
  const auto [columns, added] = columns_of_row_.try_emplace(&metadata);
  if (added) columns->second = columns_.ColumnsOf(metadata);
  CellFiller filler(columns->second, &cells_);
  exporting::ReadPayload(exported.payload_json, &filler);
  return WriteRow();
}

absl::Status CsvExporter::OnLoss(const trace::Loss& loss) {
  cells_[kTime] = base::FormatUtc(loss.time);
  if (loss.next != nullptr && loss.next->processor != nettrace::kNoProcessor) {
    cells_[kCpu] = absl::StrCat(loss.next->processor);
  }
  if (loss.capture_thread->name) cells_[kThread] = Cell(*loss.capture_thread->name);
  cells_[kLost] = absl::StrCat(loss.count);
  return WriteRow();
}

void CsvExporter::OnRowsEnd(bool /*threads_too*/) { columns_of_row_.clear(); }

}  // namespace tools::csv
