// Tests the cells and columns of `nettrace export --to csv`. tests/conformance reads whole files
// with Python.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

}  // namespace
}  // namespace tools::csv
