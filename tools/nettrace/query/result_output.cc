#include "tools/nettrace/query/result_output.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/base/text_width.h"
#include "tools/nettrace/export/csv/csv_exporter.h"

namespace tools::query {
namespace {

std::string_view TextOf(sqlite3_stmt* statement, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr
             ? std::string_view()
             : std::string_view(text,
                                static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

// Returns two hexadecimal digits for each byte of a blob.
std::string HexOf(sqlite3_stmt* statement, int column) {
  const auto* const bytes = static_cast<const std::byte*>(sqlite3_column_blob(statement, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  return bytes == nullptr ? "" : base::FormatHex(std::span(bytes, size));
}

// Returns the shortest text that reads back as the same number.
std::string RealText(double value) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  base::PutFloat(&json, value);
  return std::string(buffer.GetString(), buffer.GetSize());
}

// Computes the widths of the columns from the first rows, and therefore keeps these rows. Appends
// each later row immediately.
class TableOutput : public ResultOutput {
 public:
  explicit TableOutput(sqlite3_stmt* statement) : statement_(*statement) {
    const int columns = sqlite3_column_count(&statement_);
    std::vector<std::string> heads;
    heads.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) {
      heads.push_back(base::Printable(sqlite3_column_name(&statement_, i)));
    }
    is_right_.assign(heads.size(), true);
    widths_.assign(heads.size(), 0);
    Keep(std::move(heads));
  }

  void Add(std::string* out) override {
    std::vector<std::string> cells;
    for (int i = 0; i < static_cast<int>(widths_.size()); ++i) {
      cells.push_back(CellOf(i));
      const int type = sqlite3_column_type(&statement_, i);
      const bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT || type == SQLITE_NULL;
      if (!is_measured_ && !is_number) is_right_[static_cast<std::size_t>(i)] = false;
    }
    if (is_measured_) return Append(cells, out);
    Keep(std::move(cells));
    if (kept_.size() > kMaxRows || kept_bytes_ > kMaxBytes) Finish(out);
  }
  void Finish(std::string* out) override {
    is_measured_ = true;
    for (const std::vector<std::string>& cells : kept_) Append(cells, out);
    kept_.clear();
  }

 private:
  // Limits of the rows from which the widths are computed: their number, and the bytes of text.
  static constexpr std::size_t kMaxRows = 1000;
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;

  std::string CellOf(int column) {
    switch (sqlite3_column_type(&statement_, column)) {
      case SQLITE_NULL:
        return "NULL";
      case SQLITE_BLOB:
        return absl::StrCat("x'", HexOf(&statement_, column), "'");
      default:
        return base::Printable(TextOf(&statement_, column));
    }
  }
  void Keep(std::vector<std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths_[i] = std::max(widths_[i], base::WidthOf(cells[i]));
      kept_bytes_ += cells[i].size();
    }
    kept_.push_back(std::move(cells));
  }
  void Append(const std::vector<std::string>& cells, std::string* out) const {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) *out += "  ";
      const std::size_t width = base::WidthOf(cells[i]);
      const std::string padding(widths_[i] - std::min(widths_[i], width), ' ');
      if (is_right_[i]) *out += padding;
      *out += cells[i];
      if (!is_right_[i] && i + 1 < cells.size()) *out += padding;
    }
    *out += '\n';
  }

  sqlite3_stmt& statement_;
  // By column: whether all values of the first rows are numbers or NULL.
  std::vector<bool> is_right_;
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> kept_;
  std::size_t kept_bytes_ = 0;
  bool is_measured_ = false;
};

class CsvOutput : public ResultOutput {
 public:
  explicit CsvOutput(sqlite3_stmt* statement) : statement_(*statement) {
    for (int i = 0; i < sqlite3_column_count(&statement_); ++i) {
      if (i != 0) head_ += ',';
      head_ += csv::Cell(sqlite3_column_name(&statement_, i));
    }
    head_ += '\n';
  }

  void Add(std::string* out) override {
    Finish(out);
    for (int i = 0; i < sqlite3_column_count(&statement_); ++i) {
      if (i != 0) *out += ',';
      *out += CellOf(i);
    }
    *out += '\n';
  }
  void Finish(std::string* out) override { *out += std::exchange(head_, ""); }

 private:
  std::string CellOf(int column) {
    switch (sqlite3_column_type(&statement_, column)) {
      case SQLITE_NULL:
        return "";
      case SQLITE_FLOAT:
        return csv::Cell(RealText(sqlite3_column_double(&statement_, column)));
      case SQLITE_BLOB:
        return HexOf(&statement_, column);
      case SQLITE_TEXT:
        // An empty text has quotes, unlike NULL.
        if (TextOf(&statement_, column).empty()) return "\"\"";
        return csv::Cell(TextOf(&statement_, column));
      default:
        return std::string(TextOf(&statement_, column));
    }
  }

  sqlite3_stmt& statement_;
  std::string head_;
};

class JsonOutput : public ResultOutput {
 public:
  explicit JsonOutput(sqlite3_stmt* statement) : statement_(*statement) {
    absl::flat_hash_set<std::string> taken;
    for (int i = 0; i < sqlite3_column_count(&statement_); ++i) {
      const std::string name = sqlite3_column_name(&statement_, i);
      std::string key = name;
      for (int count = 2; !taken.insert(key).second; ++count) key = absl::StrCat(name, "_", count);
      keys_.push_back(std::move(key));
    }
  }

  void Add(std::string* out) override {
    buffer_.Clear();
    json_.Reset(buffer_);
    json_.StartObject();
    for (int i = 0; i < static_cast<int>(keys_.size()); ++i) {
      base::PutKey(&json_, keys_[static_cast<std::size_t>(i)]);
      PutValue(i);
    }
    json_.EndObject();
    base::AppendPrintable({buffer_.GetString(), buffer_.GetSize()}, out);
    *out += '\n';
  }
  void Finish(std::string* /*out*/) override {}

 private:
  void PutValue(int column) {
    switch (sqlite3_column_type(&statement_, column)) {
      case SQLITE_NULL:
        json_.Null();
        break;
      case SQLITE_INTEGER:
        base::PutInteger(&json_, std::int64_t{sqlite3_column_int64(&statement_, column)});
        break;
      case SQLITE_FLOAT:
        base::PutFloat(&json_, sqlite3_column_double(&statement_, column));
        break;
      case SQLITE_BLOB:
        base::PutString(&json_, HexOf(&statement_, column));
        break;
      default:
        base::PutString(&json_, TextOf(&statement_, column));
    }
  }

  sqlite3_stmt& statement_;
  std::vector<std::string> keys_;
  rapidjson::StringBuffer buffer_;
  base::JsonWriter json_{buffer_};
};

}  // namespace

std::unique_ptr<ResultOutput> CreateOutput(Format format, sqlite3_stmt* statement) {
  switch (format) {
    case Format::kCsv:
      return std::make_unique<CsvOutput>(statement);
    case Format::kJson:
      return std::make_unique<JsonOutput>(statement);
    case Format::kTable:
      break;
  }
  return std::make_unique<TableOutput>(statement);
}

}  // namespace tools::query
