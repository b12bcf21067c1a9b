// Tests the encodings of `nettrace export --to parquet`: Thrift's compact protocol, runs, pages and
// the metadata of files. The bytes are written by hand; tests/conformance reads whole files with
// other implementations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/support/parquet_file.h"
#include "tools/nettrace/export/parquet/column_writer.h"
#include "tools/nettrace/export/parquet/page_compressor.h"
#include "tools/nettrace/export/parquet/run_encoding.h"
#include "tools/nettrace/export/parquet/table_writer.h"
#include "tools/nettrace/export/parquet/thrift_writer.h"

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
  // 2 packed values, 6 of the 20 equal values in the same group, then a run of 14.
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
  // Repetition 0 0 0 1 1, definition 0 1 3 2 3, and two bits.
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
  // Each value fills a page, and pages are compressed by themselves.
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

}  // namespace
}  // namespace tools::parquet
