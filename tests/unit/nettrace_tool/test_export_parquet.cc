// Tests the encodings of `nettrace export --to parquet`: Thrift's compact protocol, runs, pages and
// the metadata of files. The bytes are written by hand; tests/conformance reads whole files with
// other implementations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tests/support/parquet_file.h"
#include "tools/nettrace/export/parquet/column_writer.h"
#include "tools/nettrace/export/parquet/dataset_exporter.h"
#include "tools/nettrace/export/parquet/page_compressor.h"
#include "tools/nettrace/export/parquet/run_encoding.h"
#include "tools/nettrace/export/parquet/table_writer.h"
#include "tools/nettrace/export/parquet/thrift_writer.h"
#include "tools/nettrace/export/parquet/typed_fields.h"
#include "tools/trace/eventheader_keys.h"
#include "tools/trace/payload_json.h"

namespace tools::parquet {
namespace {

using namespace std::string_literals;
using tests::ParquetPage;
using tests::ReadParquetMetadata;
using tests::ReadParquetPages;
using tests::Thrift;

TEST(ThriftWriter, HasTheBytesOfTheCompactProtocol) {
  std::string out;
  ThriftWriter writer(&out);
  writer.BeginStruct();
  writer.I32(1, 150);
  writer.Bool(2, true);
  writer.Bool(3, false);
  writer.I64(4, -1);
  writer.Binary(20, "ab");  // more than 15 after the field before
  writer.BeginStruct(21);
  writer.I8(1, -2);
  writer.EndStruct();
  writer.EmptyStruct(22);
  writer.EndStruct();
  EXPECT_EQ(out,
            "\x15\xAC\x02"
            "\x11"
            "\x12"
            "\x16\x01"
            "\x08\x28\x02"
            "ab"
            "\x1C\x13\xFE\0"
            "\x1C\0"
            "\0"s);
}

TEST(ThriftWriter, ListsHaveTheirSizeInOneByteIfItIsBelow15) {
  std::string out;
  ThriftWriter writer(&out);
  writer.BeginStruct();
  writer.List(1, ThriftType::kI32, 2);
  writer.ElementI32(0);
  writer.ElementI32(-1);
  writer.List(2, ThriftType::kBinary, 15);
  for (int i = 0; i < 15; ++i) writer.ElementBinary("");
  writer.List(3, ThriftType::kStruct, 1);
  writer.BeginStruct();
  writer.EndStruct();
  writer.EndStruct();
  EXPECT_EQ(out, "\x19\x25\0\1\x19\xF8\x0F"s + std::string(15, '\0') + "\x19\x1C\0\0"s);
}

template <typename Value>
std::string Runs(const std::vector<Value>& values, int width) {
  std::string out;
  AppendRuns(std::span<const Value>(values), width, &out);
  return out;
}

TEST(RunEncoding, EqualValuesAreARun) {
  EXPECT_EQ(Runs(std::vector<std::uint8_t>(10, 1), 1), "\x14\x01");
  EXPECT_EQ(Runs(std::vector<std::uint32_t>(100, 0x1234), 13), "\xC8\x01\x34\x12");
  EXPECT_EQ(Runs(std::vector<std::uint8_t>(), 1), "");
}

TEST(RunEncoding, OtherValuesArePackedFromTheLowestBit) {
  // The example of the specification of Parquet.
  EXPECT_EQ(Runs<std::uint32_t>({0, 1, 2, 3, 4, 5, 6, 7}, 3), "\x03\x88\xC6\xFA");
  EXPECT_EQ(Runs<std::uint8_t>({1, 0, 1}, 1), "\x03\x05");
}

TEST(RunEncoding, ARunFirstCompletesTheGroupBeforeIt) {
  // A packed group has 8 values: here the 2 different ones, and 6 of the 20 equal ones. The other
  // 14 are a run.
  std::vector<std::uint8_t> values = {1, 0};
  values.insert(values.end(), 20, 1);
  EXPECT_EQ(Runs(values, 1), "\x03\xFD\x1C\x01");
}

// Decodes runs as the specification describes them.
std::vector<std::uint32_t> DecodeRuns(std::string_view bytes, int width, std::size_t count) {
  std::vector<std::uint32_t> values;
  std::size_t at = 0;
  const auto byte = [&] { return static_cast<std::uint8_t>(bytes.at(at++)); };
  while (values.size() < count) {
    std::uint64_t head = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint8_t part = byte();
      head |= std::uint64_t{part & 0x7Fu} << shift;
      if (part < 0x80) break;
    }
    if ((head & 1) == 0) {
      std::uint32_t value = 0;
      for (int i = 0; i < (width + 7) / 8; ++i) value |= std::uint32_t{byte()} << 8 * i;
      values.insert(values.end(), head >> 1, value);
      continue;
    }
    const std::size_t begin = at;
    for (std::size_t i = 0; i < (head >> 1) * 8; ++i) {
      std::uint32_t value = 0;
      for (std::size_t bit = 0; bit < static_cast<std::size_t>(width); ++bit) {
        const std::size_t position = i * static_cast<std::size_t>(width) + bit;
        const auto packed = static_cast<std::uint8_t>(bytes.at(begin + position / 8));
        value |= std::uint32_t{packed >> position % 8 & 1u} << bit;
      }
      values.push_back(value);
    }
    at = begin + (head >> 1) * static_cast<std::size_t>(width);
  }
  EXPECT_EQ(at, bytes.size());
  for (std::size_t i = count; i < values.size(); ++i) EXPECT_EQ(values[i], 0u);
  values.resize(count);
  return values;
}

TEST(RunEncoding, IsDecodedToTheSameValues) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const int width = 1 + static_cast<int>(random() % 32);
    std::vector<std::uint32_t> values;
    while (values.size() < 300) {
      values.insert(values.end(), 1 + random() % (random() % 3 == 0 ? 40 : 2),
                    static_cast<std::uint32_t>(random()) >> (32 - width));
    }
    EXPECT_EQ(DecodeRuns(Runs(values, width), width, values.size()), values) << width;
  }
}

TEST(RunEncoding, BooleansAreBits) {
  std::string out;
  AppendBits("\1\0\1\1\0\0\0\0\1"s, &out);
  EXPECT_EQ(out, "\x0D\x01");
}

// A table with one column, in memory.
class OneColumn {
 public:
  explicit OneColumn(Column column)
      : table_({std::move(column)}, {{"key", "value"}}, &compressor_,
               [this](std::string_view bytes) {
                 file_ += bytes;
                 return absl::OkStatus();
               }) {}
  ColumnWriter& column() { return table_.column(0); }
  TableWriter& table() { return table_; }
  void EndRow() { ASSERT_TRUE(table_.EndRow().ok()); }
  void Finish() {
    ASSERT_TRUE(table_.Finish().ok());
    metadata_ = ReadParquetMetadata(file_).value();
  }
  const Thrift& metadata() const { return metadata_; }
  // Returns the ColumnMetaData in a row group.
  const Thrift& Chunk(std::size_t group = 0) const {
    return metadata_[4].list.at(group)[1].list.at(0)[3];
  }
  std::vector<ParquetPage> Pages(std::size_t group = 0) const {
    return ReadParquetPages(file_, Chunk(group)).value();
  }
  const std::string& file() const { return file_; }

 private:
  PageCompressor compressor_;
  std::string file_;
  TableWriter table_;
  Thrift metadata_;
};

TEST(ParquetTable, WithoutRowsHasASchemaOnly) {
  OneColumn table({.name = "a", .type = ColumnType::kUint16});
  table.Finish();
  EXPECT_TRUE(table.file().starts_with("PAR1\x15\x04"s)) << "no row group, and version 2";
  EXPECT_EQ(table.metadata()[3].number, 0);
  EXPECT_TRUE(table.metadata()[4].list.empty());
  EXPECT_EQ(table.metadata()[5].list.at(0)[2].bytes, "value");
  EXPECT_EQ(table.metadata()[7].list.size(), 1u);
  const Thrift& leaf = table.metadata()[2].list.at(1);
  EXPECT_EQ(leaf[1].number, 1) << "INT32";
  EXPECT_EQ(leaf[3].number, 1) << "optional";
  EXPECT_EQ(leaf[4].bytes, "a");
  EXPECT_EQ(leaf[6].number, 12) << "UINT_16";
  EXPECT_EQ(leaf[10][10][1].number, 16) << "bits";
  EXPECT_EQ(leaf[10][10][2].number, 0) << "unsigned";
}

TEST(ParquetTable, SchemaHasTimestampsUuidsAndLists) {
  std::string out;
  ThriftWriter writer(&out);
  AppendSchema({.name = "t", .type = ColumnType::kTimestamp, .is_optional = false}, &writer);
  EXPECT_EQ(out, "\x15\x04\x25\0\x18\x01t\x6C\x8C\x11\x1C\x3C\0\0\0\0\0"s);
  out.clear();
  AppendSchema({.name = "u", .type = ColumnType::kUuid}, &writer);
  EXPECT_EQ(out, "\x15\x0E\x15\x20\x15\x02\x18\x01u\x6C\xEC\0\0\0"s);
  out.clear();
  const Column list = {.name = "l", .type = ColumnType::kString, .is_list = true};
  AppendSchema(list, &writer);
  EXPECT_EQ(CountSchemaElements(list), 3u);
  EXPECT_EQ(out,
            "\x35\x02\x18\x01l\x15\x02\x15\x06\x4C\x3C\0\0\0"
            "\x35\x04\x18\x04list\x15\x02\0"
            "\x15\x0C\x25\x02\x18\x07"
            "element\x25\0\x4C\x1C\0\0\0"s);
}

TEST(ParquetTable, PageHasLevelsAndValues) {
  OneColumn table({.name = "a", .type = ColumnType::kInt32});
  table.column().Whole(1);
  table.EndRow();
  table.column().Null();
  table.EndRow();
  table.column().Whole(static_cast<std::uint64_t>(-2));
  table.EndRow();
  table.Finish();
  ASSERT_EQ(table.Pages().size(), 1u);
  EXPECT_EQ(table.Pages()[0].bytes, "\2\0\0\0\x03\x05\1\0\0\0\xFE\xFF\xFF\xFF"s);
  const Thrift header = table.Pages()[0].header;
  EXPECT_EQ(header[1].number, 0) << "data page";
  EXPECT_EQ(header[5][1].number, 3) << "values";
  EXPECT_EQ(header[5][2].number, 0) << "PLAIN";
  const Thrift& chunk = table.Chunk();
  EXPECT_EQ(chunk[4].number, 6) << "ZSTD";
  EXPECT_EQ(chunk[5].number, 3) << "values";
  EXPECT_EQ(chunk[12][3].number, 1) << "nulls";
  EXPECT_EQ(chunk[12][5].bytes, "\1\0\0\0"s) << "greatest";
  EXPECT_EQ(chunk[12][6].bytes, "\xFE\xFF\xFF\xFF") << "least";
  EXPECT_EQ(table.metadata()[4].list.at(0)[3].number, 3) << "rows";
}

TEST(ParquetTable, BoundsOfUnsignedNumbersAreUnsigned) {
  OneColumn table({.name = "a", .type = ColumnType::kUint64, .has_dictionary = true});
  for (const std::uint64_t value : {std::uint64_t{5}, ~std::uint64_t{0}, std::uint64_t{5}}) {
    table.column().Whole(value);
    table.EndRow();
  }
  table.Finish();
  EXPECT_EQ(table.Chunk()[12][5].bytes, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
  EXPECT_EQ(table.Chunk()[12][6].bytes, "\5\0\0\0\0\0\0\0"s);
  ASSERT_EQ(table.Pages().size(), 2u);
  EXPECT_EQ(table.Pages()[0].bytes, "\5\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(table.Pages()[1].bytes, "\2\0\0\0\x03\x07\1\x03\x02"s) << "levels, width, indices";
}

TEST(ParquetTable, BoundsOfRealNumbersIncludeBothZerosAndExcludeNan) {
  for (const bool has_nan : {false, true}) {
    OneColumn table({.name = "a", .type = ColumnType::kDouble, .is_optional = false});
    for (const double value :
         {0.0, -std::numeric_limits<double>::infinity(), -0.0, has_nan ? std::nan("") : -1.0}) {
      table.column().Real(value);
      table.EndRow();
    }
    table.Finish();
    EXPECT_EQ(table.Chunk()[12].has(5), !has_nan);
    EXPECT_EQ(table.Chunk()[12].has(6), !has_nan);
    if (has_nan) continue;
    EXPECT_EQ(table.Chunk()[12][5].bytes, std::string(8, '\0')) << "+0, not -0";
    EXPECT_EQ(table.Chunk()[12][6].bytes, "\0\0\0\0\0\0\xF0\xFF"s);
  }
  OneColumn zero({.name = "a", .type = ColumnType::kFloat, .is_optional = false});
  zero.column().Real(0.0);
  zero.EndRow();
  zero.Finish();
  EXPECT_EQ(zero.Chunk()[12][5].bytes, std::string(4, '\0'));
  EXPECT_EQ(zero.Chunk()[12][6].bytes, "\0\0\0\x80"s);
}

TEST(ParquetTable, LongTextsAreNoExactBounds) {
  OneColumn table({.name = "a", .type = ColumnType::kString, .is_optional = false});
  const std::string least = std::string(63, 'a') + "\u00E9" + "end";
  for (const std::string& value : {least, std::string("b")}) {
    table.column().Bytes(value);
    table.EndRow();
  }
  ASSERT_TRUE(table.table().EndGroup().ok());
  table.column().Bytes(std::string(65, 'z'));
  table.EndRow();
  table.Finish();
  EXPECT_EQ(table.Chunk()[12][6].bytes, std::string(63, 'a')) << "cut between characters";
  EXPECT_EQ(table.Chunk()[12][8].number, 0) << "not exact";
  EXPECT_EQ(table.Chunk()[12][5].bytes, "b");
  EXPECT_EQ(table.Chunk()[12][7].number, 1) << "exact";
  EXPECT_FALSE(table.Chunk(1)[12].has(5));
  EXPECT_EQ(table.Chunk(1)[12][6].bytes, std::string(64, 'z'));
}

TEST(ParquetTable, ListsHaveLevelsOfNullEmptyAndElements) {
  OneColumn table({.name = "a", .type = ColumnType::kBoolean, .is_list = true});
  table.column().Null();
  table.EndRow();
  table.column().BeginList();
  table.column().EndList();
  table.EndRow();
  table.column().BeginList();
  table.column().Whole(1);
  table.column().Null();
  table.column().Whole(0);
  table.column().EndList();
  table.EndRow();
  table.Finish();
  // Repetition levels 0 0 0 1 1, definition levels 0 1 3 2 3, and two values of 1 bit.
  EXPECT_EQ(table.Pages().at(0).bytes, "\2\0\0\0\x03\x18\3\0\0\0\x03\xB4\x03\x01"s);
  EXPECT_EQ(table.Chunk()[3].list.at(2).bytes, "element");
  EXPECT_EQ(table.Chunk()[5].number, 5) << "values";
}

TEST(ParquetTable, DictionaryIsDroppedIfItSavesNothing) {
  OneColumn table(
      {.name = "a", .type = ColumnType::kString, .is_optional = false, .has_dictionary = true});
  const std::size_t count = ColumnWriter::kCheckedEntries + 10;
  for (std::size_t i = 0; i < count; ++i) {
    table.column().Bytes(std::to_string(i));
    table.EndRow();
  }
  table.Finish();
  const std::vector<ParquetPage> pages = table.Pages();
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].header[1].number, 2) << "dictionary page";
  EXPECT_EQ(pages[0].header[7][1].number, ColumnWriter::kCheckedEntries);
  EXPECT_EQ(pages[1].header[5][1].number, ColumnWriter::kCheckedEntries);
  EXPECT_EQ(pages[1].header[5][2].number, 8) << "RLE_DICTIONARY";
  EXPECT_EQ(pages[2].header[5][1].number, 10);
  EXPECT_EQ(pages[2].header[5][2].number, 0) << "PLAIN";
  EXPECT_TRUE(pages[2].bytes.starts_with("\4\0\0\0004096"s)) << pages[2].bytes;
  EXPECT_EQ(table.Chunk()[12][6].bytes, "0");
  EXPECT_EQ(table.Chunk()[12][5].bytes, "999");
}

TEST(ParquetTable, DictionaryHasABoundedSize) {
  OneColumn table({.name = "a", .type = ColumnType::kString, .has_dictionary = true});
  for (int i = 0; i < 10; ++i) {
    for (int repeated = 0; repeated < 3; ++repeated) {
      table.column().Bytes(
          std::string(ColumnWriter::kMaxDictionaryBytes / 4, static_cast<char>('a' + i)));
      table.EndRow();
    }
  }
  table.Finish();
  EXPECT_LE(table.Pages().at(0).bytes.size(), ColumnWriter::kMaxDictionaryBytes * 5 / 4 + 16);
  EXPECT_GT(table.Pages().size(), 3u);
}

TEST(ParquetTable, ColumnOfNullsHasNoDictionary) {
  OneColumn table({.name = "a", .type = ColumnType::kString, .has_dictionary = true});
  table.column().Null();
  table.EndRow();
  table.Finish();
  ASSERT_EQ(table.Pages().size(), 1u);
  EXPECT_EQ(table.Pages()[0].header[5][2].number, 0) << "PLAIN";
  EXPECT_FALSE(table.Chunk().has(11));
  EXPECT_FALSE(table.Chunk()[12].has(5));
  EXPECT_EQ(table.Chunk()[2].list.size(), 2u);
}

TEST(ParquetTable, RowGroupsHaveABoundedNumberOfRows) {
  OneColumn table(
      {.name = "a", .type = ColumnType::kUint8, .is_optional = false, .has_dictionary = true});
  for (std::uint64_t i = 0; i < TableWriter::kGroupRows + 1; ++i) {
    table.column().Whole(i & 1);
    table.EndRow();
  }
  EXPECT_EQ(table.table().rows(), TableWriter::kGroupRows);
  table.Finish();
  ASSERT_EQ(table.metadata()[4].list.size(), 2u);
  EXPECT_EQ(table.metadata()[4].list[1][3].number, 1);
  EXPECT_EQ(table.metadata()[3].number, TableWriter::kGroupRows + 1);
  EXPECT_EQ(table.Pages(1).at(1).bytes, "\1\x03\0"s) << "width, and a packed index";
}

TEST(ParquetTable, RowGroupsHaveABoundedSize) {
  OneColumn table({.name = "a", .type = ColumnType::kBinary});
  std::mt19937_64 random(1);
  std::string value(1 << 20, '\0');
  for (std::size_t at = 0; at < value.size(); at += 8) {
    const std::uint64_t bits = random();
    value.replace(at, 8, reinterpret_cast<const char*>(&bits), 8);
  }
  // Each value fills a page, and each page is compressed separately.
  std::size_t most = 0;
  for (int i = 0; i < 70; ++i) {
    table.column().Bytes(value);
    table.EndRow();
    most = std::max(most, table.table().buffered());
  }
  table.Finish();
  EXPECT_LE(most, TableWriter::kGroupBytes + (2 << 20));
  EXPECT_EQ(table.metadata()[4].list.size(), 2u);
}

TEST(ParquetTable, ErrorsOfTheOutputAreReturned) {
  PageCompressor compressor;
  TableWriter table({{.name = "a"}}, {}, &compressor,
                    [](std::string_view) { return absl::DataLossError("disk full"); });
  table.column(0).Bytes("x");
  ASSERT_TRUE(table.EndRow().ok());
  EXPECT_EQ(table.Finish(), absl::DataLossError("disk full"));
}

using nettrace::Type;
using nettrace::TypeCode;

// Returns the columns as text: name, number of ColumnType, and [] for lists.
std::vector<std::string> Describe(const std::vector<Column>& columns) {
  std::vector<std::string> result;
  result.reserve(columns.size());
  for (const Column& column : columns) {
    result.push_back(column.name + " " + std::to_string(static_cast<int>(column.type)) +
                     (column.is_list ? "[]" : ""));
  }
  return result;
}

std::string Described(const std::string& name, ColumnType type, bool is_list = false) {
  return Describe({{.name = name, .type = type, .is_list = is_list}}).front();
}

nettrace::EventMetadata Metadata(std::vector<nettrace::Field> fields) {
  nettrace::EventMetadata metadata;
  metadata.provider = "P";
  metadata.name = "E";
  metadata.fields = std::move(fields);
  return metadata;
}

TEST(TypedFields, EachFieldHasAColumnOfItsType) {
  const Type number = Type::Simple(TypeCode::kUInt16);
  const Type text = Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit));
  const nettrace::EventMetadata metadata = Metadata({
      {"n", number},
      {"s", Type::Object({{"x", Type::Simple(TypeCode::kDouble)}, {"t", text}})},
      {"list", Type::Array(number)},
      {"texts", Type::FixedLengthArray(text, 2)},
      {"objects", Type::Array(Type::Object({{"x", number}}))},
      {"arrays", Type::Array(Type::Array(number))},
      {"id", Type::Simple(TypeCode::kGuid)},
  });
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  EXPECT_EQ(
      Describe(FieldColumns(metadata, payloads.NotesOf(metadata), false, {})),
      (std::vector<std::string>{
          Described("n", ColumnType::kUint16), Described("s.x", ColumnType::kDouble),
          Described("s.t", ColumnType::kString), Described("list", ColumnType::kUint16, true),
          Described("texts", ColumnType::kString, true), Described("objects", ColumnType::kJson),
          Described("arrays", ColumnType::kJson), Described("id", ColumnType::kUuid)}));
}

TEST(TypedFields, NamesAreDifferentWithoutCase) {
  const Type number = Type::Simple(TypeCode::kInt32);
  const nettrace::EventMetadata metadata = Metadata(
      {{"Pid", number}, {"a", number}, {"A", number}, {"a_2", number}, {"field.pid", number}});
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  const std::vector<Column> columns =
      FieldColumns(metadata, payloads.NotesOf(metadata), false, {{.name = "pid"}});
  std::vector<std::string> names;
  names.reserve(columns.size());
  for (const Column& column : columns) names.push_back(column.name);
  EXPECT_EQ(names, (std::vector<std::string>{"field.Pid", "a", "A_2", "a_2_2", "field.pid_2"}));
}

// The files of a data set, by their paths.
class Dataset {
 public:
  explicit Dataset(const DatasetOptions& options)
      : exporter_(trace_, options, [this](const std::string& path, std::string_view bytes) {
          files_[path] += bytes;
          return absl::OkStatus();
        }) {}
  // Adds an event of `host` with this payload, `hour` hours after the beginning of 2026-11-23.
  void Add(const nettrace::EventMetadata& metadata, std::string_view payload, int hour = 0,
           const std::string& host = "") {
    nettrace::ThreadInfo thread;
    if (!host.empty()) thread.key_values = {{nettrace::kKeyHostName, host}};
    const nettrace::Labels labels;
    nettrace::Event event;
    event.metadata = &metadata;
    event.thread = event.capture_thread = &thread;
    event.labels = &labels;
    event.payload = std::as_bytes(std::span(payload.data(), payload.size()));
    exporting::ExportedEvent exported;
    exported.event = &event;
    exported.time = absl::FromUnixSeconds(1'795'392'000) + absl::Hours(hour);
    exported.payloads = &payloads_;
    ASSERT_TRUE(exporter_.OnEvent(exported).ok());
    exporter_.OnRowsEnd(true);
    payloads_.ForgetRows();
  }
  void Finish() { ASSERT_TRUE(exporter_.Finish().ok()); }
  // Returns the number of rows of each file.
  std::map<std::string, std::int64_t> Rows() const {
    std::map<std::string, std::int64_t> rows;
    for (const auto& [path, file] : files_)
      rows[path] = ReadParquetMetadata(file).value()[3].number;
    return rows;
  }
  // Returns the last page of the column with this name; "none" if there is no such column.
  std::string Page(const std::string& path, const std::string& column) const {
    const Thrift metadata = ReadParquetMetadata(files_.at(path)).value();
    for (const Thrift& chunk : metadata[4].list.at(0)[1].list) {
      if (chunk[3][3].list.at(0).bytes != column) continue;
      return ReadParquetPages(files_.at(path), chunk[3]).value().back().bytes;
    }
    return "none";
  }

 private:
  nettrace::TraceInfo trace_;
  trace::PayloadJson payloads_{trace::PayloadStyle::kForPrograms};
  std::map<std::string, std::string> files_;
  DatasetExporter exporter_;
};

TEST(ParquetDataset, KindsOfEventsHaveFiles) {
  const nettrace::EventMetadata one = Metadata({{"n", Type::Simple(TypeCode::kUInt16)}});
  const nettrace::EventMetadata other = Metadata({{"n", Type::Simple(TypeCode::kUInt32)}});
  const nettrace::EventMetadata same = Metadata({{"n", Type::Simple(TypeCode::kUInt16)}});
  nettrace::EventMetadata third = one;
  third.provider = "../P";
  Dataset dataset({.is_typed = true, .partition = {}});
  dataset.Add(one, "\1\2"s);
  dataset.Add(other, "\1\0\0\0"s);
  dataset.Add(same, "\3\4"s);
  dataset.Add(third, "\3\4"s);
  dataset.Finish();
  EXPECT_EQ(dataset.Rows(), (std::map<std::string, std::int64_t>{
                                {"P.E.parquet", 2}, {"P.E@2.parquet", 1}, {"_._P.E.parquet", 1}}));
  EXPECT_EQ(dataset.Page("P.E.parquet", "n"), "\2\0\0\0\x03\x03\1\2\0\0\3\4\0\0"s);
}

TEST(ParquetDataset, ValuesThatCannotBeReadAreNullWithAnError) {
  const nettrace::EventMetadata metadata =
      Metadata({{"n", Type::Simple(TypeCode::kByte)},
                {"list", Type::Array(Type::Simple(TypeCode::kByte))},
                {"last", Type::Simple(TypeCode::kByte)}});
  Dataset dataset({.is_typed = true, .partition = {}});
  dataset.Add(metadata, "\7\5\0\1"s);
  dataset.Finish();
  EXPECT_EQ(dataset.Page("P.E.parquet", "n"), "\2\0\0\0\x03\x01\7\0\0\0"s);
  EXPECT_EQ(dataset.Page("P.E.parquet", "last"), "\2\0\0\0\x03\0"s) << "null";
  EXPECT_TRUE(dataset.Page("P.E.parquet", "error").starts_with("\2\0\0\0\x03\x01\1"s));
}

TEST(ParquetDataset, EventHeaderFormatsHaveTypes) {
  const Type bytes = Type::Array(Type::Simple(TypeCode::kByte));
  nettrace::EventMetadata metadata =
      Metadata({{"hex", Type::Simple(TypeCode::kUInt32)},
                {"time", Type::Simple(TypeCode::kInt64)},
                {"bool", Type::Simple(TypeCode::kUInt16)},
                {"uuid", bytes},
                {"blob", bytes},
                {"errno", Type::Array(Type::Simple(TypeCode::kUInt32))}});
  const auto note = [&metadata](std::size_t field, eh::Encoding encoding, eh::Format format) {
    metadata.key_values.emplace_back(trace::kKeyField + std::to_string(field),
                                     trace::FormatFieldNote({encoding, format, {}, ""}));
  };
  note(0, eh::Encoding::kValue32, eh::Format::kHexInt);
  note(1, eh::Encoding::kValue64, eh::Format::kTime);
  note(2, eh::Encoding::kValue16, eh::Format::kBoolean);
  note(3, eh::Encoding::kBinaryLength16Char8, eh::Format::kUuid);
  note(4, eh::Encoding::kStringLength16Char8, eh::Format::kHexBytes);
  note(5, eh::Encoding::kValue32, eh::Format::kErrno);
  trace::PayloadJson payloads(trace::PayloadStyle::kForPrograms);
  const std::vector<std::string> columns =
      Describe(FieldColumns(metadata, payloads.NotesOf(metadata), false, {}));
  EXPECT_EQ(
      columns,
      (std::vector<std::string>{
          Described("hex", ColumnType::kUint32), Described("time", ColumnType::kTimestamp),
          Described("bool", ColumnType::kBoolean), Described("uuid", ColumnType::kUuid),
          Described("blob", ColumnType::kBinary), Described("errno", ColumnType::kInt32, true)}));
  const std::string payload =
      "\xFE\xFF\xFF\xFF"
      "\2\0\0\0\0\0\0\0"
      "\1\0"
      "\x10\0"
      "0123456789abcdef"
      "\2\0\xFF\1"
      "\1\0\xFE\xFF\xFF\xFF"s;
  Dataset dataset({.is_typed = true, .partition = {}});
  dataset.Add(metadata, payload);
  dataset.Finish();
  const std::string present = "\2\0\0\0\x03\x01"s;  // one value that is not null
  EXPECT_EQ(dataset.Page("P.E.parquet", "hex"), present + "\xFE\xFF\xFF\xFF");
  EXPECT_EQ(dataset.Page("P.E.parquet", "field.time"), present + "\0\x94\x35\x77\0\0\0\0"s);
  EXPECT_EQ(dataset.Page("P.E.parquet", "bool"), present + "\1");
  EXPECT_EQ(dataset.Page("P.E.parquet", "uuid"), present + "0123456789abcdef");
  EXPECT_EQ(dataset.Page("P.E.parquet", "blob"), present + "\2\0\0\0\xFF\1"s);
  EXPECT_EQ(dataset.Page("P.E.parquet", "errno"),
            "\2\0\0\0\x03\0\3\0\0\0\x03\x03\0\xFE\xFF\xFF\xFF"s);

  // A boolean must be 0 or 1.
  std::string other = payload;
  other[12] = 2;
  Dataset wrong({.is_typed = true, .partition = {}});
  wrong.Add(metadata, other);
  wrong.Finish();
  EXPECT_EQ(wrong.Page("P.E.parquet", "bool"), "\2\0\0\0\x03\0"s) << "null";
  EXPECT_EQ(wrong.Page("P.E.parquet", "blob"), present + "\2\0\0\0\xFF\1"s);
}

TEST(ParquetDataset, PartitionsHaveFolders) {
  const nettrace::EventMetadata metadata = Metadata({});
  Dataset dataset(
      {.is_typed = false, .partition = {.by_date = true, .by_hour = true, .by_host = true}});
  dataset.Add(metadata, "", 0, "web 1/..");
  dataset.Add(metadata, "", 0, "web 1/..");
  dataset.Add(metadata, "", 1, "web 1/..");
  dataset.Add(metadata, "", -1);
  dataset.Finish();
  EXPECT_EQ(dataset.Rows(),
            (std::map<std::string, std::int64_t>{
                {"date=2026-11-22/hour=23/host=__HIVE_DEFAULT_PARTITION__/events.parquet", 1},
                {"date=2026-11-23/hour=00/host=web%201%2F../events.parquet", 2},
                {"date=2026-11-23/hour=01/host=web%201%2F../events.parquet", 1}}));
  EXPECT_EQ(dataset.Page("date=2026-11-23/hour=01/host=web%201%2F../events.parquet", "host"),
            "none");
}

TEST(ParquetDataset, OpenFilesAreBounded) {
  const nettrace::EventMetadata metadata = Metadata({});
  Dataset dataset({.is_typed = true, .partition = {.by_host = true}});
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i <= DatasetExporter::kMaxOpen; ++i) {
      dataset.Add(metadata, "", 0, "h" + std::to_string(i));
    }
  }
  dataset.Finish();
  const std::map<std::string, std::int64_t> rows = dataset.Rows();
  EXPECT_EQ(rows.size(), 2 * (DatasetExporter::kMaxOpen + 1));
  EXPECT_EQ(rows.at("P.E/host=h0/events.parquet"), 1);
  EXPECT_EQ(rows.at("P.E/host=h0/events-2.parquet"), 1);
}

}  // namespace
}  // namespace tools::parquet
