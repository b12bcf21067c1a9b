#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "libnettrace-writer/core/byte_reader.h"
#include "libnettrace-writer/core/byte_writer.h"

namespace nettrace::internal {
namespace {

using namespace std::string_view_literals;

ByteReader ReaderOf(std::string_view text) { return ByteReader(std::as_bytes(std::span(text))); }

// The results are the same on hosts of either byte order.
TEST(ByteReader, NumbersAreLittleEndian) {
  ByteReader reader = ReaderOf(
      "\x01"
      "\x02\x01"
      "\x04\x03\x02\x01"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\xFE\xFF"
      "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\x7F"
      "\x00\x00\xC0\x3F"
      "\x00\x00\x00\x00\x00\x00\xF8\xBF"sv);
  EXPECT_EQ(reader.Number<std::uint8_t>(), 1u);
  EXPECT_EQ(reader.Number<std::uint16_t>(), 0x0102u);
  EXPECT_EQ(reader.Number<std::uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.Number<std::uint64_t>(), 0x0102030405060708u);
  EXPECT_EQ(reader.Number<std::int16_t>(), -2);
  EXPECT_EQ(reader.Number<std::int64_t>(), INT64_MAX - 1);
  EXPECT_EQ(reader.Number<float>(), 1.5f);
  EXPECT_EQ(reader.Number<double>(), -1.5);
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.empty());
}

TEST(ByteReader, ReadsBackVarUIntsOfAllLengths) {
  ByteWriter writer;
  for (unsigned bits = 0; bits < 64; ++bits) {
    const std::uint64_t value = std::uint64_t{1} << bits;
    for (const std::uint64_t number : {value - 1, value, value + 1}) writer.VarUInt(number);
  }
  ByteReader reader(writer.bytes());
  for (unsigned bits = 0; bits < 64; ++bits) {
    const std::uint64_t value = std::uint64_t{1} << bits;
    for (const std::uint64_t number : {value - 1, value, value + 1}) {
      EXPECT_EQ(reader.VarUInt64(), number);
    }
  }
  EXPECT_TRUE(reader.ok());
  EXPECT_TRUE(reader.empty());
}

TEST(ByteReader, VarUIntsHaveTheirLowBitsFirst) {
  EXPECT_EQ(ReaderOf("\x7F\0\0\0"sv).VarUInt32(), 0x7Fu);
  EXPECT_EQ(ReaderOf("\x80\x01\0\0"sv).VarUInt32(), 0x80u);
  EXPECT_EQ(ReaderOf("\x81\x82\x04\0"sv).VarUInt32(), 1u | 2 << 7 | 4 << 14);
  EXPECT_EQ(ReaderOf("\x81\x82\x84\x08"sv).VarUInt32(), 1u | 2 << 7 | 4 << 14 | 8 << 21);
}

TEST(ByteReader, ValueThatDoesNotFitAndAllAfterItAreZero) {
  ByteReader reader = ReaderOf("\x01\x02\x03"sv);
  EXPECT_EQ(reader.Number<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.Number<std::uint8_t>(), 0u);
  EXPECT_TRUE(reader.Bytes(1).empty());
}

}  // namespace
}  // namespace nettrace::internal
