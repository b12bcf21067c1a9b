#include <gtest/gtest.h>

#include <cstring>

#include "tools/collector/convert/tracepoint_schema.h"

namespace collector {
namespace {

using nettrace::Type;
using nettrace::TypeCode;

constexpr char kCommon[] =
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
    "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

TracepointSchema Parse(const std::string& fields) {
  const std::string text = "name: test\nID: 77\nformat:\n" + std::string(kCommon) + fields +
                           "\nprint fmt: \"%d\", __unknown_function(REC->x)\n";
  absl::StatusOr<TracepointSchema> schema = ParseTracepointFormat("sys", "test", 77, text);
  EXPECT_TRUE(schema.ok()) << schema.status();
  return schema.ok() ? *schema : TracepointSchema();
}

TEST(TracepointFormat, NumbersKeepSizeAndSign) {
  const TracepointSchema schema = Parse(
      "\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"
      "\tfield:u8 b;\toffset:12;\tsize:1;\tsigned:0;\n"
      "\tfield:bool c;\toffset:13;\tsize:1;\tsigned:0;\n"
      "\tfield:void * d;\toffset:16;\tsize:8;\tsigned:0;\n");
  EXPECT_EQ(schema.payload_offset, 8u);
  EXPECT_EQ(schema.fixed_size, 16u);
  EXPECT_EQ(schema.first_field, "a");
  ASSERT_EQ(schema.metadata.fields.size(), 5u);
  EXPECT_EQ(schema.metadata.fields[0].type, Type::Simple(TypeCode::kInt32));
  EXPECT_EQ(schema.metadata.fields[1].type, Type::Simple(TypeCode::kByte));
  EXPECT_EQ(schema.metadata.fields[2].type, Type::Simple(TypeCode::kBoolean8));
  EXPECT_EQ(schema.metadata.fields[3].name, "__pad14");
  EXPECT_EQ(schema.metadata.fields[3].type,
            Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 2));
  EXPECT_EQ(schema.metadata.fields[4].type, Type::Simple(TypeCode::kUInt64));
}

TEST(TracepointFormat, FixedTextIsAnArrayOfCodeUnits) {
  const TracepointSchema schema = Parse(
      "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
      "\tfield:unsigned long args[6];\toffset:24;\tsize:48;\tsigned:0;\n");
  ASSERT_EQ(schema.metadata.fields.size(), 2u);
  EXPECT_EQ(schema.metadata.fields[0].type,
            Type::FixedLengthArray(Type::Simple(TypeCode::kUtf8CodeUnit), 16));
  EXPECT_EQ(schema.metadata.fields[1].type,
            Type::FixedLengthArray(Type::Simple(TypeCode::kUInt64), 6));
}

TEST(TracepointFormat, TidIsWhereTheFormatSays) {
  const TracepointSchema schema = Parse("\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n");
  const char raw[] = "\x4D\0\0\0\x07\1\0\0\0\0\0";
  EXPECT_EQ(schema.ReadTid(std::as_bytes(std::span(raw))), 263u);
  EXPECT_EQ(schema.ReadTid(std::as_bytes(std::span(raw, 7))), std::nullopt);
  EXPECT_EQ(TracepointSchema().ReadTid(std::as_bytes(std::span(raw))), std::nullopt);
}

class DataLocTest : public ::testing::Test {
 protected:
  DataLocTest()
      : schema_(Parse("\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n"
                      "\tfield:int x;\toffset:12;\tsize:4;\tsigned:1;\n")),
        raw_(16 + 8) {
    std::memcpy(raw_.data() + 16, "abc", 4);
  }
  void SetLocation(std::uint32_t position, std::uint32_t size) {
    const std::uint32_t value = size << 16 | position;
    std::memcpy(raw_.data() + 8, &value, 4);
  }
  bool Make() { return schema_.MakePayload(raw_, &scratch_, &payload_); }

  TracepointSchema schema_;
  std::vector<std::byte> raw_;
  std::vector<std::byte> scratch_;
  std::span<const std::byte> payload_;
};

TEST_F(DataLocTest, PositionCountsFromThePayload) {
  ASSERT_EQ(schema_.metadata.fields.size(), 2u);
  EXPECT_EQ(schema_.metadata.fields[0].type, Type::DataLoc(Type::Simple(TypeCode::kUtf8CodeUnit)));
  SetLocation(16, 4);
  ASSERT_TRUE(Make());
  std::uint32_t value;
  std::memcpy(&value, payload_.data(), 4);
  EXPECT_EQ(value, 4u << 16 | 8u);
  EXPECT_EQ(std::memcmp(payload_.data() + 8, "abc", 4), 0);
}

TEST_F(DataLocTest, LocationOutsideTheRecordIsRefused) {
  SetLocation(16, 9);
  EXPECT_FALSE(Make());
  SetLocation(0xFFFF, 1);
  EXPECT_FALSE(Make());
  SetLocation(0, 4);
  EXPECT_FALSE(Make());
}

TEST_F(DataLocTest, EmptyLocationIsFine) {
  SetLocation(0, 0);
  EXPECT_TRUE(Make());
}

TEST_F(DataLocTest, ShortRecordIsRefused) {
  raw_.resize(15);
  EXPECT_FALSE(Make());
}

TEST(TracepointFormat, GarbageIsAnError) {
  EXPECT_FALSE(ParseTracepointFormat("s", "e", 1, "").ok());
  EXPECT_FALSE(ParseTracepointFormat("s", "e", 1, "name: x\nID: 2\nformat:\n").ok());
}

}  // namespace
}  // namespace collector
