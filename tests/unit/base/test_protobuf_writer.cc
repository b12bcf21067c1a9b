// Tests the bytes of messages of Protocol Buffers. The expected bytes follow the specification of
// the wire format.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "tools/base/protobuf_writer.h"

namespace base {
namespace {

std::string Hex(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

template <typename Write>
std::string Written(const Write& write) {
  std::string out;
  ProtobufWriter writer(&out);
  write(&writer);
  return Hex(out);
}

TEST(ProtobufWriter, NumbersAreVarintsAfterTheirTag) {
  const auto number = [](std::uint32_t field, std::uint64_t value) {
    return Written([&](ProtobufWriter* writer) { writer->Number(field, value); });
  };
  EXPECT_EQ(number(1, 0), "0800");
  EXPECT_EQ(number(1, 150), "089601");
  EXPECT_EQ(number(15, 127), "787f");
  EXPECT_EQ(number(16, 128),
            "8001"
            "8001");
  EXPECT_EQ(number(1, std::numeric_limits<std::uint64_t>::max()), "08ffffffffffffffffff01");
}

TEST(ProtobufWriter, VarintSizeIsTheNumberOfBytesWritten) {
  for (int bits = 0; bits <= 64; ++bits) {
    const std::uint64_t most = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    std::string out;
    ProtobufWriter(&out).Varint(most);
    EXPECT_EQ(ProtobufWriter::VarintSize(most), out.size()) << bits;
  }
}

TEST(ProtobufWriter, FixedNumbersAreLittleEndian) {
  EXPECT_EQ(Written([](ProtobufWriter* writer) { writer->Fixed32(8, 0x01020304); }), "4504030201");
  EXPECT_EQ(Written([](ProtobufWriter* writer) { writer->Fixed64(1, 0x0102030405060708); }),
            "090807060504030201");
  EXPECT_EQ(Written([](ProtobufWriter* writer) { writer->Double(4, 1.0); }), "21000000000000f03f");
}

TEST(ProtobufWriter, BytesFollowTheirLength) {
  EXPECT_EQ(Written([](ProtobufWriter* writer) { writer->Bytes(2, "testing"); }),
            "120774657374696e67");
  EXPECT_EQ(Written([](ProtobufWriter* writer) { writer->Bytes(2, ""); }), "1200");
}

TEST(ProtobufWriter, LengthOfANestedMessageIsThatOfItsBytes) {
  EXPECT_EQ(Written([](ProtobufWriter* writer) {
              const std::size_t outer = writer->Begin(3);
              writer->Number(1, 150);
              writer->End(writer->Begin(2));
              writer->End(outer);
              writer->Number(1, 1);
            }),
            "1a05"
            "089601"
            "1200"
            "0801");
}

TEST(ProtobufWriter, MessagesOfMoreThan127BytesMove) {
  for (const std::size_t size : {127U, 128U, 16383U, 16384U}) {
    std::string out = "before";
    ProtobufWriter writer(&out);
    const std::size_t outer = writer.Begin(1);
    const std::size_t inner = writer.Begin(2);
    out.append(size, 'x');
    writer.End(inner);
    writer.End(outer);
    out += "after";
    std::string expected_inner;
    ProtobufWriter(&expected_inner).Bytes(2, std::string(size, 'x'));
    std::string expected = "before";
    ProtobufWriter(&expected).Bytes(1, expected_inner);
    EXPECT_EQ(out, expected + "after") << size;
  }
}

}  // namespace
}  // namespace base
