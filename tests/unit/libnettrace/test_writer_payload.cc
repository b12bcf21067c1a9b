#include <gtest/gtest.h>

#include "nettrace/payload_encoder.h"
#include "tests/support/nettrace/writer_to_string.h"
#include "tests/unit/libnettrace/annotated_bytes.h"

namespace nettrace {
namespace {

using testing::Hex;
using testing::Span;

std::string Encoded(PayloadEncoder* encoder) {
  const auto payload = encoder->Finish();
  if (!payload.ok()) return std::string(payload.status().message());
  return Hex({reinterpret_cast<const char*>(payload->data()), payload->size()});
}

std::vector<Field> Of(const Type& type) { return {{"f", type}}; }

TEST(PayloadEncoder, EveryNumber) {
  std::vector<Field> fields = {MakeField<std::int8_t>("a"),
                               MakeField<std::uint8_t>("b"),
                               MakeField<std::int16_t>("c"),
                               MakeField<std::uint16_t>("d"),
                               MakeField<std::int32_t>("e"),
                               MakeField<std::uint32_t>("f"),
                               MakeField<std::int64_t>("g"),
                               MakeField<std::uint64_t>("h"),
                               MakeField<float>("i"),
                               MakeField<double>("j"),
                               MakeField<bool>("k"),
                               {"l", Type::Simple(TypeCode::kBoolean32)},
                               {"m", Type::Simple(TypeCode::kVarInt)},
                               {"n", Type::Simple(TypeCode::kVarUInt)}};
  PayloadEncoder encoder(&fields);
  for (int again = 0; again < 2; ++again) {
    encoder.Int(-1).UInt(255).Int(-2).UInt(65535).Int(-3).UInt(4).Int(-5).UInt(6);
    encoder.Single(1).Double(1).Bool(true).Bool(true).Int(-65).UInt(300);
    EXPECT_EQ(
        Encoded(&encoder),
        Hex(testing::Bytes("FF FF FEFF FFFF FDFFFFFF 04000000 FBFFFFFFFFFFFFFF 0600000000000000"
                           "0000803F 000000000000F03F 01 01000000 8101 AC02")));
  }
}

TEST(PayloadEncoder, TextArraysAndObjects) {
  std::vector<Field> fields = {
      MakeField<std::string_view>("a"),
      MakeField<std::u16string_view>("b"),
      {"c", Type::Simple(TypeCode::kNullTerminatedUtf16String)},
      {"d", Type::Array(Type::Object({MakeField<std::uint8_t>("x"), MakeField<bool>("y")}))},
      {"e", Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 2)}};
  PayloadEncoder encoder(&fields);
  encoder.Utf8("hi").Utf16(u"\u20AC").Utf16(u"z");
  encoder.BeginArray(2);
  for (const unsigned i : {1, 2}) encoder.BeginObject().UInt(i).Bool(false).EndObject();
  encoder.EndArray().BeginArray(2).UInt(8).UInt(9).EndArray();
  EXPECT_EQ(Encoded(&encoder),
            Hex(testing::Bytes("0200 'hi' 0100 AC20 7A00 0000 0200 01 00 02 00 08 09")));
}

TEST(PayloadEncoder, LocatedDataFollowTheFields) {
  const Type unit = Type::Simple(TypeCode::kUInt16);
  std::vector<Field> fields = {
      {"r", Type::RelLoc(unit)}, {"d", Type::DataLoc(unit)}, MakeField<std::uint8_t>("n")};
  PayloadEncoder encoder(&fields);
  encoder.Located(Span("ab")).Located(Span("cdef")).UInt(7);
  EXPECT_EQ(Encoded(&encoder), Hex(testing::Bytes("0500 0200  0B00 0400  07  'ab' 'cdef'")));
  encoder.Located(Span("abc"));
  EXPECT_FALSE(encoder.Finish().ok());
}

TEST(PayloadEncoder, RefusesValuesThatDoNotFitTheField) {
  const auto refuses = [](const Type& type, auto put) {
    const std::vector<Field> fields = Of(type);
    PayloadEncoder encoder(&fields);
    put(&encoder);
    return absl::IsInvalidArgument(encoder.Finish().status());
  };
  const Type i8 = TypeFor<std::int8_t>();
  const Type u8 = TypeFor<std::uint8_t>();
  EXPECT_FALSE(refuses(i8, [](PayloadEncoder* e) { e->Int(-128); }));
  EXPECT_FALSE(refuses(i8, [](PayloadEncoder* e) { e->Int(127); }));
  EXPECT_TRUE(refuses(i8, [](PayloadEncoder* e) { e->Int(-129); }));
  EXPECT_TRUE(refuses(i8, [](PayloadEncoder* e) { e->Int(128); }));
  EXPECT_TRUE(refuses(i8, [](PayloadEncoder* e) { e->UInt(1); }));
  EXPECT_TRUE(refuses(u8, [](PayloadEncoder* e) { e->UInt(256); }));
  EXPECT_TRUE(refuses(u8, [](PayloadEncoder* e) { e->Bool(true); }));
  EXPECT_TRUE(refuses(u8, [](PayloadEncoder* e) { e->UInt(1).UInt(1); }));
  EXPECT_TRUE(refuses(u8, [](PayloadEncoder*) {}));
  EXPECT_TRUE(refuses(u8, [](PayloadEncoder* e) { e->UInt(1).EndObject(); }));
  EXPECT_TRUE(refuses(Type::Array(u8), [](PayloadEncoder* e) { e->BeginArray(2).UInt(1); }));
  EXPECT_TRUE(
      refuses(Type::Array(u8), [](PayloadEncoder* e) { e->BeginArray(2).UInt(1).EndArray(); }));
  EXPECT_TRUE(refuses(Type::Array(u8), [](PayloadEncoder* e) { e->BeginArray(0).EndObject(); }));
  EXPECT_TRUE(refuses(Type::Array(u8), [](PayloadEncoder* e) { e->BeginArray(65536); }));
  EXPECT_TRUE(refuses(Type::FixedLengthArray(u8, 2),
                      [](PayloadEncoder* e) { e->BeginArray(1).UInt(1).EndArray(); }));
  EXPECT_TRUE(refuses(Type::Simple(TypeCode::kNullTerminatedUtf16String), [](PayloadEncoder* e) {
    e->Utf16({u"a\0b", 3});
  }));
}

TEST(PayloadEncoder, ErrorNamesTheFieldAndEndsWithThePayload) {
  const std::vector<Field> fields = {
      {"outer", Type::Array(Type::Object({MakeField<std::uint8_t>("inner")}))}};
  PayloadEncoder encoder(&fields);
  encoder.BeginArray(1).BeginObject().UInt(256);
  EXPECT_EQ(Encoded(&encoder),
            "payload, at 'outer[0].inner': 256 does not fit in an unsigned integer of 8 bits");
  encoder.BeginArray(0).EndArray();
  EXPECT_EQ(Encoded(&encoder), Hex(testing::Bytes("0000")));
}

}  // namespace
}  // namespace nettrace
