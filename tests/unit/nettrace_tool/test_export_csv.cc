// Tests the cells and columns of `nettrace export --to csv`. tests/conformance reads whole files
// with Python.
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nettrace/sink.h"
#include "tools/nettrace/export/csv/csv_exporter.h"

namespace tools::csv {
namespace {

using nettrace::Type;
using nettrace::TypeCode;

TEST(CsvCell, IsQuotedWhereItMustBe) {
  EXPECT_EQ(Cell("plain text"), "plain text");
  EXPECT_EQ(Cell("a,b"), R"("a,b")");
  EXPECT_EQ(Cell("say \"a\""), R"("say ""a""")");
  EXPECT_EQ(Cell(" a"), R"(" a")");
  EXPECT_EQ(Cell(""), "");
}

TEST(CsvCell, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(Cell("a\r\nb"), R"(a\u000d\u000ab)");
  EXPECT_EQ(Cell(std::string("\0\x1b[2J", 5)), R"(\u0000\u001b[2J)");
}

TEST(CsvCell, IsNotAFormula) {
  EXPECT_EQ(Cell("=1+1"), "'=1+1");
  EXPECT_EQ(Cell("@SUM(A1,A2)"), R"x("'@SUM(A1,A2)")x");
  EXPECT_EQ(Cell("-cmd"), "'-cmd");
  EXPECT_EQ(Cell("\uFF1D1+1"), "'\uFF1D1+1");
  EXPECT_EQ(Cell(" =1+1"), "\" '=1+1\"");
  EXPECT_EQ(Cell(";=1+1; -cmd"), ";'=1+1; '-cmd");
  EXPECT_EQ(Cell("a=1; b-c"), "a=1; b-c");
  EXPECT_EQ(Cell("-1"), "-1");
  EXPECT_EQ(Cell("-9223372036854775808"), "-9223372036854775808");
  EXPECT_EQ(Cell("+1.5e3"), "+1.5e3");
}

TEST(CsvCell, IsTheSameWhenItIsAppended) {
  constexpr std::string_view kCharacters = "a1 =+-@;,\"\x1b\x7f\xff";
  for (const char a : kCharacters) {
    for (const char b : kCharacters) {
      for (const char c : kCharacters) {
        const std::string text = {a, b, c};
        std::string row = "cell,";
        AppendCell(text, &row);
        EXPECT_EQ(row, "cell," + Cell(text));
      }
    }
  }
  std::string row;
  AppendCell("", &row);
  EXPECT_EQ(row, "");
}

nettrace::EventMetadata Metadata(std::vector<nettrace::Field> fields) {
  nettrace::EventMetadata metadata;
  metadata.fields = std::move(fields);
  return metadata;
}

TEST(CsvColumns, AreSharedByName) {
  const Type number = Type::Simple(TypeCode::kInt32);
  const auto first = Metadata({{"a", number}, {"s", Type::Object({{"b", number}, {"a", number}})}});
  const auto second = Metadata({{"s.b", number}, {"a", number}, {"a", number}, {"pid", number}});
  FieldColumns columns;
  ASSERT_TRUE(columns.Add(first).ok());
  ASSERT_TRUE(columns.Add(second).ok());
  ASSERT_TRUE(columns.Add(first).ok());
  EXPECT_EQ(columns.names(), (std::vector<std::string>{"a", "s.b", "s.a", "a_2", "pid_2"}));
  EXPECT_EQ(columns.ColumnsOf(first), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(columns.ColumnsOf(second), (std::vector<std::size_t>{1, 0, 3, 4}));
}

TEST(CsvColumns, AreBounded) {
  std::vector<nettrace::Field> fields(FieldColumns::kMaxColumns + 1,
                                      {"a", Type::Simple(TypeCode::kInt32)});
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i].name += std::to_string(i);
  FieldColumns columns;
  EXPECT_TRUE(absl::IsUnimplemented(columns.Add(Metadata(fields))));
  fields.pop_back();
  FieldColumns others;
  EXPECT_TRUE(others.Add(Metadata(fields)).ok());
}

// Returns the cells of the fields in the line of an event with `metadata` and this payload. The
// columns are the fields of `first`, and then the further fields of `metadata`.
std::string CellsOf(const nettrace::EventMetadata& metadata, const nettrace::EventMetadata& first,
                    const std::vector<std::byte>& payload) {
  FieldColumns columns;
  EXPECT_TRUE(columns.Add(first).ok());
  EXPECT_TRUE(columns.Add(metadata).ok());
  nettrace::MemorySink sink;
  CsvExporter exporter(columns, &sink);
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  const nettrace::ThreadInfo thread;
  const nettrace::Labels labels;
  nettrace::Event event;
  event.metadata = &metadata;
  event.thread = event.capture_thread = &thread;
  event.labels = &labels;
  event.processor = nettrace::kNoProcessor;
  event.payload = payload;
  exporting::ExportedEvent exported;
  exported.event = &event;
  exported.payloads = &payloads;
  EXPECT_TRUE(exporter.OnEvent(exported).ok());
  EXPECT_TRUE(exporter.Finish().ok());
  const std::string line(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
  constexpr std::size_t kCellsBefore = 15;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kCellsBefore; ++i) at = line.find(',', at) + 1;
  return line.substr(at);
}

std::vector<std::byte> Bytes(std::initializer_list<int> bytes) {
  std::vector<std::byte> result;
  for (const int each : bytes) result.push_back(static_cast<std::byte>(each));
  return result;
}

TEST(CsvFields, HaveSeparateCellsIfTheyShareAName) {
  const Type number = Type::Simple(TypeCode::kByte);
  const auto metadata = Metadata({{"a", number}, {"a", number}, {"b", number}});
  EXPECT_EQ(CellsOf(metadata, metadata, Bytes({1, 2, 3})), "1,2,3\r\n");
}

TEST(CsvFields, AreInTheirColumnsInAnyOrder) {
  const Type number = Type::Simple(TypeCode::kByte);
  const Type flag = Type::Simple(TypeCode::kBoolean8);
  const auto first = Metadata({{"a", number}, {"b", number}, {"c", number}, {"d", number}});
  const auto metadata = Metadata({{"d", Type::Array(number)},
                                  {"s", Type::Object({{"x", flag}, {"y", number}})},
                                  {"b", number}});
  EXPECT_EQ(CellsOf(metadata, first, Bytes({2, 0, 7, 8, 1, 5, 6})), ",6,,\"[7,8]\",true,5\r\n");
  // The payload ends before y.
  EXPECT_EQ(CellsOf(metadata, first, Bytes({2, 0, 7, 8, 1})), ",,,\"[7,8]\",true,\r\n");
}

}  // namespace
}  // namespace tools::csv
