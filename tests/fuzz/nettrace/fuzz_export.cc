// Exports hostile files in every format. The JSON must be valid, each fxt record must have the
// length that it states and refer to earlier records only, all csv lines must have the same
// columns, each line of folded stacks must have a sum, and the metadata of parquet must describe
// its pages.
#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tests/support/parquet_file.h"
#include "tools/nettrace/export/csv/csv_exporter.h"
#include "tools/nettrace/export/ctf/ctf_exporter.h"
#include "tools/nettrace/export/export_feed.h"
#include "tools/nettrace/export/fxt/fxt_exporter.h"
#include "tools/nettrace/export/json/trace_event_exporter.h"
#include "tools/nettrace/export/parquet/dataset_exporter.h"
#include "tools/nettrace/export/parquet/parquet_exporter.h"
#include "tools/nettrace/export/stacks/stacks_exporter.h"
#include "tools/output/atomic_file.h"

namespace {

using nettrace::MemorySink;
using nettrace::Reader;
using tools::exporting::Exporter;

// A small file may have very many events; this many are enough.
constexpr int kMaxEvents = 1024;

void Require(bool condition) {
  if (!condition) __builtin_trap();
}

// Stops the export after kMaxEvents.
class Limited : public Exporter {
 public:
  explicit Limited(Exporter* exporter) : exporter_(exporter) {}
  absl::Status OnEvent(const tools::exporting::ExportedEvent& event) override {
    return ++events_ > kMaxEvents ? absl::CancelledError("") : exporter_->OnEvent(event);
  }
  void OnOtherEvent(const nettrace::Event& event) override { exporter_->OnOtherEvent(event); }
  absl::Status OnLoss(const trace::Loss& loss) override {
    return ++events_ > kMaxEvents ? absl::CancelledError("") : exporter_->OnLoss(loss);
  }
  void OnRowsEnd(bool threads_too) override { exporter_->OnRowsEnd(threads_too); }
  absl::Status Finish() override { return exporter_->Finish(); }

 private:
  Exporter* const exporter_;
  int events_ = 0;
};

std::unique_ptr<Reader> Open(std::span<const std::byte> bytes) {
  auto opened = Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  return opened.ok() ? *std::move(opened) : nullptr;
}

// Returns whether the whole file was exported.
bool Run(std::span<const std::byte> bytes, Exporter* exporter) {
  const trace::EventFilter filter;
  tools::ExportFeed feed(filter, trace::PayloadStyle::kForPrograms, Open(bytes));
  Limited limited(exporter);
  return feed.Run(&limited).ok();
}

std::string_view TextOf(const MemorySink& sink) {
  return {reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size()};
}

void ExportJson(std::span<const std::byte> bytes, tools::json::Profile profile) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  MemorySink sink;
  tools::json::TraceEventExporter exporter(*reader, profile, &sink);
  if (!Run(bytes, &exporter)) return;
  rapidjson::Document document;
  // Iterative, because types may be nested deeper than the stack of an instrumented parser allows.
  document.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      TextOf(sink).data(), TextOf(sink).size());
  Require(!document.HasParseError() && document.IsObject());
}

void ExportCsv(std::span<const std::byte> bytes) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  tools::csv::FieldColumns columns;
  for (auto step = reader->Next(); step != Reader::Step::kEnd; step = reader->Next()) {
    if (step != Reader::Step::kEvent) continue;
    if (!columns.Add(*reader->event().metadata).ok() || columns.names().size() > 100) return;
  }
  MemorySink sink;
  tools::csv::CsvExporter exporter(std::move(columns), &sink);
  Require(exporter.WriteHeader().ok());
  if (!Run(bytes, &exporter)) return;
  std::set<int> cells;
  int commas = 0;
  bool quoted = false;
  for (const char c : TextOf(sink)) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) ++commas;
    if (c != '\n') continue;
    Require(!quoted);
    cells.insert(std::exchange(commas, 0));
  }
  Require(cells.size() == 1);
}

void ExportFxt(std::span<const std::byte> bytes) {
  MemorySink sink;
  tools::fxt::FxtExporter exporter(&sink);
  if (!Run(bytes, &exporter)) return;
  const std::span<const std::byte> records = sink.bytes();
  std::set<std::uint64_t> strings = {0};
  std::set<std::uint64_t> threads;
  for (std::size_t at = 0, size = 0; at < records.size(); at += size) {
    std::uint64_t head = 0;
    Require(records.size() - at >= sizeof head);
    std::memcpy(&head, &records[at], sizeof head);
    size = (head >> 4 & 0xFFF) * 8;
    Require(size >= 8 && size <= records.size() - at);
    switch (static_cast<tools::fxt::RecordType>(head & 0xF)) {
      case tools::fxt::RecordType::kString:
        strings.insert(head >> 16 & 0x7FFF);
        break;
      case tools::fxt::RecordType::kThread:
        threads.insert(head >> 16 & 0xFF);
        break;
      case tools::fxt::RecordType::kEvent:
        Require(threads.contains(head >> 24 & 0xFF));
        Require(strings.contains(head >> 32 & 0xFFFF) && strings.contains(head >> 48));
        break;
      default:
        break;
    }
  }
}

// Each column of a row group must have as many values as its metadata states. A column without
// lists must have as many values as the row group has rows.
void CheckParquet(std::string_view file) {
  const std::optional<tests::Thrift> metadata = tests::ReadParquetMetadata(file);
  Require(metadata.has_value());
  for (const tests::Thrift& group : (*metadata)[4].list) {
    for (const tests::Thrift& chunk : group[1].list) {
      const auto pages = tests::ReadParquetPages(file, chunk[3]);
      Require(pages.has_value());
      std::int64_t values = 0;
      for (const tests::ParquetPage& page : *pages) values += page.header[5][1].number;
      const bool is_list = chunk[3][3].list.size() > 1;
      Require(values == chunk[3][5].number && (is_list || values == group[3].number));
    }
  }
}

void ExportParquet(std::span<const std::byte> bytes) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  MemorySink sink;
  tools::parquet::ParquetExporter exporter(reader->trace(), &sink);
  if (Run(bytes, &exporter)) CheckParquet(TextOf(sink));
}

void ExportParquetTables(std::span<const std::byte> bytes) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  std::map<std::string, std::string> files;
  tools::parquet::DatasetExporter exporter(
      reader->trace(), {.is_typed = true, .partition = {.by_date = true, .by_host = true}},
      [&files](const std::string& path, std::string_view part) {
        Require(path.find("/../") == path.npos && !path.starts_with('/'));
        files[path] += part;
        return absl::OkStatus();
      });
  if (!Run(bytes, &exporter)) return;
  for (const auto& [path, file] : files) CheckParquet(file);
}

void ExportCtf(std::span<const std::byte> bytes, tools::ctf::Version version) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  // The folder is not kept, so its destructor removes it.
  output::AtomicFolder folder((std::filesystem::temp_directory_path() / "fuzz-export").string());
  if (!folder.Create({}).ok()) return;
  tools::ctf::CtfExporter exporter(*reader, version, tools::ctf::Profile::kPlain, &folder);
  Run(bytes, &exporter);
}

// The lines of folded stacks must end with a sum, and the JSON of speedscope must be valid. The
// contents of pprof, which is binary, are not checked.
void ExportStacks(std::span<const std::byte> bytes, tools::stacks::Format format) {
  const std::unique_ptr<Reader> reader = Open(bytes);
  MemorySink sink;
  tools::stacks::StacksExporter exporter(*reader, format, tools::stacks::Weight::kEvents, "",
                                         &sink);
  if (!Run(bytes, &exporter)) return;
  const std::string_view text = TextOf(sink);
  if (format == tools::stacks::Format::kSpeedscope) {
    rapidjson::Document document;
    document.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(), text.size());
    Require(!document.HasParseError() && document.IsObject());
  }
  if (format != tools::stacks::Format::kFolded) return;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    Require(end != text.npos);
    const std::size_t space = text.substr(0, end).rfind(' ');
    Require(space != text.npos && space > at && space + 1 < end);
    Require(text.substr(space + 1, end - space - 1).find_first_not_of("0123456789") == text.npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  if (Open(bytes) == nullptr) return 0;
  ExportJson(bytes, tools::json::Profile::kPlain);
  ExportJson(bytes, tools::json::Profile::kSpeedscope);
  ExportCsv(bytes);
  ExportFxt(bytes);
  ExportParquet(bytes);
  ExportParquetTables(bytes);
  ExportStacks(bytes, tools::stacks::Format::kFolded);
  ExportStacks(bytes, tools::stacks::Format::kSpeedscope);
  ExportStacks(bytes, tools::stacks::Format::kPprof);
  ExportCtf(bytes, tools::ctf::Version::k1);
  ExportCtf(bytes, tools::ctf::Version::k2);
  return 0;
}
