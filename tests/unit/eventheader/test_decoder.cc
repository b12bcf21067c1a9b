#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "eventheader/decoder.h"
#include "eventheader/internal/field_rules.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh {
namespace {

using testing::AsBytes;
using testing::EventBytes;
using testing::FromHex;
using testing::Name;

std::string ToHex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte byte : bytes) {
    text += "0123456789abcdef"[static_cast<int>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<int>(byte) & 15];
  }
  return text;
}

struct Decoded {
  std::string items;  // "a=01 s{ b=02 } c[2 =03 =04 ]"
  ParseError error;
  std::string rest;
};

Decoded Decode(const std::string& bytes) {
  EventView event;
  EXPECT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  Decoded decoded;
  for (Item item; decoder.Next(&item);) {
    std::string text = item.is_element ? "" : std::string(item.field->name);
    switch (item.kind) {
      case ItemKind::kValue:
        text += "=" + ToHex(item.bytes);
        break;
      case ItemKind::kArrayBegin:
        text += "[" + std::to_string(item.array_length);
        break;
      case ItemKind::kStructBegin:
        text += "{";
        break;
      case ItemKind::kArrayEnd:
        text = "]";
        break;
      case ItemKind::kStructEnd:
        text = "}";
        break;
    }
    if (!decoded.items.empty()) decoded.items += " ";
    decoded.items += text;
  }
  decoded.error = decoder.error();
  decoded.rest = ToHex(decoder.rest());
  return decoded;
}

// Returns the items of a well-formed event whose payload is decoded to its end.
std::string Items(const std::string& fields, const std::string& payload) {
  const Decoded decoded = Decode(EventBytes(Name("E") + fields, payload));
  EXPECT_EQ(decoded.error, ParseError::kNone) << ParseErrorText(decoded.error);
  EXPECT_EQ(decoded.rest, "");
  return decoded.items;
}

ParseError Error(const std::string& fields, const std::string& payload) {
  return Decode(EventBytes(Name("E") + fields, payload)).error;
}

TEST(Decoder, EventWithoutMetadataHasNoItems) {
  const Decoded decoded = Decode(FromHex("03 00 00 00 00 00 00 04 01 02"));
  EXPECT_EQ(decoded.items, "");
  EXPECT_EQ(decoded.error, ParseError::kNone);
  EXPECT_EQ(decoded.rest, "0102");
}

TEST(Decoder, GivesEventsNameAndAttributes) {
  const std::string bytes = EventBytes(Name("Start;k=v"), "");
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  const Decoder decoder(event);
  EXPECT_EQ(decoder.event_name(), "Start");
  EXPECT_EQ(decoder.event_attributes(), "k=v");
}

TEST(Decoder, BrokenMetadataIsAnErrorAtOnce) {
  EXPECT_EQ(Decode(EventBytes("no NUL", "")).error, ParseError::kTruncatedMetadata);
}

TEST(Decoder, LeavesPaddingBehindTheLastField) {
  const Decoded decoded =
      Decode(EventBytes(Name("E") + Name("a") + FromHex("02"), FromHex("07 00 00 00")));
  EXPECT_EQ(decoded.items, "a=07");
  EXPECT_EQ(decoded.rest, "000000");
}

TEST(Decoder, FixedSizeValues) {
  EXPECT_EQ(Items(Name("a") + FromHex("02") + Name("b") + FromHex("03") + Name("c") +
                      FromHex("04") + Name("d") + FromHex("05") + Name("e") + FromHex("06"),
                  FromHex("01 0202 03030303 0404040404040404 05050505050505050505050505050505")),
            "a=01 b=0202 c=03030303 d=0404040404040404 e=05050505050505050505050505050505");
}

TEST(Decoder, ZStringsEndAtTheirZeroUnit) {
  EXPECT_EQ(Items(Name("a") + FromHex("07") + Name("b") + FromHex("08") + Name("c") + FromHex("09"),
                  FromHex("6100 0100 0001 0000 01000000 00000001 00000000")),
            "a=61 b=01000001 c=0100000000000001");
}

TEST(Decoder, EmptyZStrings) {
  EXPECT_EQ(Items(Name("a") + FromHex("07") + Name("b") + FromHex("08") + Name("c") + FromHex("09"),
                  FromHex("00 0000 00000000")),
            "a= b= c=");
}

TEST(Decoder, CountedStringsCountCodeUnits) {
  EXPECT_EQ(Items(Name("a") + FromHex("0a") + Name("b") + FromHex("0b") + Name("c") +
                      FromHex("0c") + Name("d") + FromHex("0d"),
                  FromHex("0200 6100 0200 61006200 0100 61000000 0300 000102")),
            "a=6100 b=61006200 c=61000000 d=000102");
}

TEST(Decoder, EmptyCountedStrings) {
  EXPECT_EQ(Items(Name("a") + FromHex("0a") + Name("b") + FromHex("0c"), FromHex("0000 0000")),
            "a= b=");
}

TEST(Decoder, BigEndianCounts) {
  const std::string metadata = Name("E") + Name("a") + FromHex("0b") + Name("b") + FromHex("42") +
                               Name("c") + FromHex("22 0002");
  const std::string bytes = FromHex("04 00 0000 0000 00 04") + FromHex("00") +
                            static_cast<char>(metadata.size()) + FromHex("0001") + metadata +
                            FromHex("0001 0061 0002 0102 0304");
  const Decoded decoded = Decode(bytes);
  EXPECT_EQ(decoded.items, "a=0061 b[2 =01 =02 ] c[2 =03 =04 ]");
  EXPECT_EQ(decoded.error, ParseError::kNone);
}

TEST(Decoder, ConstantArray) {
  EXPECT_EQ(Items(Name("a") + FromHex("23 0300"), FromHex("0100 0200 0300")),
            "a[3 =0100 =0200 =0300 ]");
}

TEST(Decoder, VariableArray) {
  EXPECT_EQ(
      Items(Name("a") + FromHex("43") + Name("b") + FromHex("43"), FromHex("0200 0100 0200 0000")),
      "a[2 =0100 =0200 ] b[0 ]");
}

TEST(Decoder, ArraysOfStrings) {
  EXPECT_EQ(Items(Name("a") + FromHex("27 0200") + Name("b") + FromHex("4a"),
                  FromHex("6100 6200 0200 0100 63 0000")),
            "a[2 =61 =62 ] b[2 =63 = ]");
}

TEST(Decoder, Struct) {
  EXPECT_EQ(Items(Name("s") + FromHex("81 02") + Name("a") + FromHex("02") + Name("b") +
                      FromHex("02") + Name("c") + FromHex("02"),
                  FromHex("01 02 03")),
            "s{ a=01 b=02 } c=03");
}

TEST(Decoder, ArraysOfStructsRepeatTheirFields) {
  EXPECT_EQ(Items(Name("s") + FromHex("a1 02 0200") + Name("a") + FromHex("02") + Name("b") +
                      FromHex("07") + Name("c") + FromHex("02"),
                  FromHex("01 6100 02 6200 03")),
            "s[2 { a=01 b=61 } { a=02 b=62 } ] c=03");
}

TEST(Decoder, EmptyArrayOfStructsHasNoPayload) {
  EXPECT_EQ(Items(Name("s") + FromHex("c1 02") + Name("t") + FromHex("81 01") + Name("a") +
                      FromHex("02") + Name("b") + FromHex("02") + Name("c") + FromHex("02"),
                  FromHex("0000 03")),
            "s[0 ] c=03");
}

TEST(Decoder, ArraysOfStructsNest) {
  // s[] { t[] { a[] } b }
  EXPECT_EQ(Items(Name("s") + FromHex("c1 02") + Name("t") + FromHex("c1 01") + Name("a") +
                      FromHex("42") + Name("b") + FromHex("02"),
                  FromHex("0200") +                                                             //
                      FromHex("0200") + FromHex("0100 01") + FromHex("0000") + FromHex("0a") +  //
                      FromHex("0000") + FromHex("0b")),
            "s[2 { t[2 { a[1 =01 ] } { a[0 ] } ] b=0a } { t[0 ] b=0b } ]");
}

TEST(Decoder, DeepestNesting) {
  std::string fields;
  std::string expected;
  for (int i = 0; i < kMaxStructNesting; ++i) {
    fields += Name("s") + FromHex("a1 01 0100");
    expected += "s[1 { ";
  }
  expected += "a=01";
  for (int i = 0; i < kMaxStructNesting; ++i) expected += " } ]";
  EXPECT_EQ(Items(fields + Name("a") + FromHex("02"), FromHex("01")), expected);
}

TEST(Decoder, ItemsCarryTheirDefinition) {
  const std::string bytes = EventBytes(
      Name("E") + Name("s;x=y") + FromHex("a1 01 0100") + Name("a;k=v") + FromHex("84 83 0900"),
      FromHex("01000000"));
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  Item item;
  std::vector<std::string> names;
  while (decoder.Next(&item)) {
    names.emplace_back(item.field->name);
    if (item.kind == ItemKind::kValue) {
      EXPECT_EQ(item.field->attributes, "k=v");
      EXPECT_EQ(item.field->format, Format::kHexInt);
      EXPECT_EQ(item.field->tag, 9);
      EXPECT_EQ(item.field->depth, 1);
      EXPECT_FALSE(item.is_element);
    } else {
      EXPECT_EQ(item.field->attributes, "x=y");
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"s", "s", "a", "s", "s"}));
}

TEST(Decoder, PayloadCutAnywhereIsTruncated) {
  const std::string fields = Name("a") + FromHex("04") + Name("b") + FromHex("07") + Name("c") +
                             FromHex("08") + Name("d") + FromHex("0b") + Name("e") + FromHex("43") +
                             Name("s") + FromHex("c1 01") + Name("f") + FromHex("06");
  const std::string payload =
      FromHex("01000000 6100 6100 0000 0100 6100 0100 0100 0100") + std::string(16, 'u');
  ASSERT_EQ(Error(fields, payload), ParseError::kNone);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_EQ(Error(fields, payload.substr(0, size)), ParseError::kTruncatedData) << size;
  }
}

TEST(Decoder, WideZStringWithoutTerminatorIsTruncated) {
  EXPECT_EQ(Error(Name("a") + FromHex("08"), FromHex("6100 00")), ParseError::kTruncatedData);
  // The two adjacent zeros belong to different code units.
  EXPECT_EQ(Error(Name("a") + FromHex("08"), FromHex("6100 0061 0061")),
            ParseError::kTruncatedData);
  EXPECT_EQ(Error(Name("a") + FromHex("09"), FromHex("61000000 000000")),
            ParseError::kTruncatedData);
}

TEST(Decoder, ErrorInLaterDefinitionComesAfterTheItemsBefore) {
  const Decoded decoded = Decode(EventBytes(
      Name("E") + Name("a") + FromHex("02") + Name("b") + FromHex("00"), FromHex("01 02")));
  EXPECT_EQ(decoded.items, "a=01");
  EXPECT_EQ(decoded.error, ParseError::kBadEncoding);
}

TEST(Decoder, StructEndsWhereItsMembersDo) {
  const auto items = [](const std::string& fields, const std::string& payload) {
    const Decoded decoded = Decode(EventBytes(Name("E") + fields, payload));
    EXPECT_EQ(decoded.error, ParseError::kNone);
    EXPECT_TRUE(decoded.rest.empty()) << decoded.rest;
    return decoded.items;
  };
  EXPECT_EQ(items(Name("s") + FromHex("81 02") + Name("a") + FromHex("02"), FromHex("01")),
            "s{ a=01 }");
  EXPECT_EQ(items(Name("s") + FromHex("c1 7f") + Name("a") + FromHex("02"), FromHex("0200 01 02")),
            "s[2 { a=01 } { a=02 } ]");
  EXPECT_EQ(items(Name("s") + FromHex("c1 02") + Name("a") + FromHex("02"), FromHex("0000")),
            "s[0 ]");
  EXPECT_EQ(items(Name("n") + FromHex("02") + Name("s") + FromHex("c1 03") + Name("t") +
                      FromHex("a1 02 0200") + Name("a") + FromHex("02"),
                  FromHex("07 0200 01 02 03 04")),
            "n=07 s[2 { t[2 { a=01 } { a=02 } ] } { t[2 { a=03 } { a=04 } ] } ]");
}

TEST(Decoder, StructOfWhichNoMemberFollowsIsTruncated) {
  EXPECT_EQ(Error(Name("s") + FromHex("81 02"), FromHex("01")), ParseError::kTruncatedMetadata);
  EXPECT_EQ(Error(Name("s") + FromHex("c1 02"), FromHex("ffff")), ParseError::kTruncatedMetadata);
  EXPECT_EQ(Error(Name("s") + FromHex("81 02") + Name("t") + FromHex("81 01"), FromHex("01")),
            ParseError::kTruncatedMetadata);
}

TEST(Decoder, StaysAtItsErrorOnceFailed) {
  const std::string bytes =
      EventBytes(Name("E") + Name("a") + FromHex("04") + Name("b") + FromHex("02"), "x");
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  Item item;
  EXPECT_FALSE(decoder.Next(&item));
  EXPECT_FALSE(decoder.Next(&item));
  EXPECT_EQ(decoder.error(), ParseError::kTruncatedData);
}

TEST(Decoder, HugeNestedArraysWithoutPayloadEndEarly) {
  std::string fields;
  for (int i = 0; i < kMaxStructNesting; ++i) fields += Name("s") + FromHex("a1 01 ffff");
  const Decoded decoded =
      Decode(EventBytes(Name("E") + fields + Name("a") + FromHex("22 ffff"), ""));
  EXPECT_EQ(decoded.error, ParseError::kTruncatedData);
  EXPECT_LT(decoded.items.size(), 200u);
}

TEST(Decoder, ItemsOfOneEventAreBounded) {
  // One byte of payload makes 33 items.
  std::string fields = Name("s") + FromHex("a1 01 ffff");
  for (int i = 1; i < kMaxStructNesting; ++i) fields += Name("s") + FromHex("a1 01 0100");
  const std::string bytes =
      EventBytes(Name("E") + fields + Name("a") + FromHex("22 0100"), std::string(0xffff, 'x'));
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  std::size_t items = 0;
  for (Item item; decoder.Next(&item);) ++items;
  EXPECT_EQ(decoder.error(), ParseError::kTooMuchWork);
  EXPECT_LE(items, kMaxWork);
}

TEST(Decoder, DefinitionsSkippedForEveryElementAreBounded) {
  // Each element of `s` has two bytes: the count of the array `none`, which is 0. For each element,
  // the decoder must skip the definitions of the 127 fields of `none`.
  std::string fields = Name("s") + FromHex("c1 01") + Name("none") + FromHex("c1 7f");
  for (int i = 0; i < 127; ++i) fields += Name("") + FromHex("02");
  const std::string bytes =
      EventBytes(Name("E") + fields, FromHex("ff0f") + std::string(2 * 0xfff, 0));
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  std::size_t items = 0;
  for (Item item; decoder.Next(&item);) ++items;
  EXPECT_EQ(decoder.error(), ParseError::kTooMuchWork);
  EXPECT_LE(items, 4 * kMaxWork / 127);
}

TEST(Decoder, NamesReadAgainForEveryElementAreBounded) {
  const std::string fields =
      Name("s") + FromHex("c1 01") + Name(std::string(30'000, 'n')) + FromHex("02");
  const std::string bytes =
      EventBytes(Name("E") + fields, FromHex("ffff") + std::string(0xffff, 'x'));
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  Decoder decoder(event);
  std::size_t items = 0;
  for (Item item; decoder.Next(&item);) ++items;
  EXPECT_EQ(decoder.error(), ParseError::kTooMuchWork);
  EXPECT_LE(items, 3 * kMaxWork / (30'000 / 16));
}

TEST(Decoder, LargestArrayOfAnEventTheKernelTakesIsDecoded) {
  const std::string bytes =
      EventBytes(Name("E") + Name("a") + FromHex("42"), FromHex("e01f") + std::string(0x1fe0, 'x'));
  ASSERT_LE(bytes.size(), kMaxEventSize);
  const Decoded decoded = Decode(bytes);
  EXPECT_EQ(decoded.error, ParseError::kNone);
  EXPECT_EQ(decoded.rest, "");
}

TEST(ReadUnsigned, TakesTheByteOrder) {
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("80")), true), 0x80u);
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("0102")), true), 0x0201u);
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("0102")), false), 0x0102u);
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("01020304")), true), 0x04030201u);
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("0102030405060708")), false), 0x0102030405060708u);
  EXPECT_EQ(ReadUnsigned(AsBytes(FromHex("010203")), true), 0u);
  EXPECT_EQ(ReadUnsigned({}, true), 0u);
}

TEST(ReadSigned, ExtendsTheSignOfEverySize) {
  EXPECT_EQ(ReadSigned(AsBytes(FromHex("ff")), true), -1);
  EXPECT_EQ(ReadSigned(AsBytes(FromHex("7f")), true), 127);
  EXPECT_EQ(ReadSigned(AsBytes(FromHex("feff")), true), -2);
  EXPECT_EQ(ReadSigned(AsBytes(FromHex("fffffffd")), false), -3);
  EXPECT_EQ(ReadSigned(AsBytes(FromHex("ffffffffffffff7f")), true), INT64_MAX);
}

TEST(ValueFormat, NullableFieldsAreNullWhenEmpty) {
  for (const Encoding encoding : {Encoding::kStringLength16Char8, Encoding::kBinaryLength16Char8}) {
    EXPECT_EQ(ValueFormat(encoding, Format::kSignedInt, 0), Format::kDefault);
    EXPECT_EQ(ValueFormat(encoding, Format::kUuid, 0), Format::kDefault);
    EXPECT_EQ(ValueFormat(encoding, Format::kSignedInt, 4), Format::kSignedInt);
    EXPECT_EQ(ValueFormat(encoding, Format::kUuid, 16), Format::kUuid);
  }
}

TEST(ValueFormat, NullableOfOtherSizeHasTheDefaultFormat) {
  EXPECT_EQ(ValueFormat(Encoding::kStringLength16Char8, Format::kSignedInt, 3), Format::kStringUtf);
  EXPECT_EQ(ValueFormat(Encoding::kBinaryLength16Char8, Format::kSignedInt, 3), Format::kHexBytes);
}

TEST(ValueFormat, EmptyTextAndBytesAreNotNull) {
  EXPECT_EQ(ValueFormat(Encoding::kStringLength16Char8, Format::kStringUtf, 0), Format::kStringUtf);
  EXPECT_EQ(ValueFormat(Encoding::kBinaryLength16Char8, Format::kHexBytes, 0), Format::kHexBytes);
  EXPECT_EQ(ValueFormat(Encoding::kBinaryLength16Char8, Format::kStringJson, 0),
            Format::kStringJson);
}

TEST(ValueFormat, UnknownFormatIsTheDefault) {
  const auto unknown = static_cast<Format>(0x7f);
  EXPECT_EQ(ValueFormat(Encoding::kValue32, unknown, 4), Format::kUnsignedInt);
  EXPECT_EQ(ValueFormat(Encoding::kBinaryLength16Char8, unknown, 0), Format::kHexBytes);
  EXPECT_EQ(ValueFormat(Encoding::kZStringChar16, unknown, 2), Format::kStringUtf);
}

// Tests every encoding of fixed size with every format, by the specification's list.
TEST(ValueFormat, FixedSizeEncodingsTakeTheFormatsOfTheirSize) {
  const struct {
    Encoding encoding;
    std::vector<int> formats;
  } kCases[] = {
      {Encoding::kValue8, {1, 2, 3, 7, 9, 10, 11}},
      {Encoding::kValue16, {1, 2, 3, 7, 9, 11, 16}},
      {Encoding::kValue32, {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 17}},
      {Encoding::kValue64, {1, 2, 3, 6, 8, 9}},
      {Encoding::kValue128, {9, 15, 17}},
  };
  for (const auto& c : kCases) {
    for (int format = 1; format <= 17; ++format) {
      const bool suits = std::find(c.formats.begin(), c.formats.end(), format) != c.formats.end();
      EXPECT_EQ(
          ValueFormat(c.encoding, static_cast<Format>(format), eh::internal::FixedSize(c.encoding)),
          suits ? static_cast<Format>(format) : eh::internal::DefaultFormat(c.encoding))
          << "encoding " << static_cast<int>(c.encoding) << " format " << format;
    }
  }
}

TEST(ValueFormat, ObsoleteIpAddressIsIpAddress) {
  EXPECT_EQ(ValueFormat(Encoding::kValue128, Format::kIpAddressObsolete, 16), Format::kIpAddress);
  EXPECT_EQ(ValueFormat(Encoding::kValue32, Format::kIpAddressObsolete, 4), Format::kIpAddress);
}

TEST(ValueFormat, WideStringsAreNotLatin1) {
  EXPECT_EQ(ValueFormat(Encoding::kZStringChar8, Format::kString8, 4), Format::kString8);
  EXPECT_EQ(ValueFormat(Encoding::kZStringChar16, Format::kString8, 4), Format::kStringUtf);
  EXPECT_EQ(ValueFormat(Encoding::kStringLength16Char32, Format::kString8, 4), Format::kStringUtf);
}

TEST(ValueFormat, OnlyCountedBytesAreNullable) {
  EXPECT_EQ(ValueFormat(Encoding::kZStringChar8, Format::kSignedInt, 0), Format::kStringUtf);
  EXPECT_EQ(ValueFormat(Encoding::kStringLength16Char16, Format::kSignedInt, 0),
            Format::kStringUtf);
}

}  // namespace
}  // namespace eh
