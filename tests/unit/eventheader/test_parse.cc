#include <gtest/gtest.h>

#include <set>
#include <string>

#include "eventheader/decoder.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh {
namespace {

using testing::AsBytes;
using testing::AsText;
using testing::FromHex;
using testing::Name;

ParseError Parse(const std::string& bytes) {
  EventView view;
  return ParseEvent(AsBytes(bytes), &view);
}

// Reads all definitions of `metadata`, and returns the final status.
ParseError ReadAll(const std::string& metadata) {
  MetadataReader reader(AsBytes(metadata), true);
  FieldDefinition field;
  while (reader.Next(&field)) {
  }
  return reader.error();
}

// Returns the only definition of `fields`.
FieldDefinition ReadOne(const std::string& fields, bool little_endian = true) {
  // Static, because the definition's views outlive the function.
  static std::string metadata;
  metadata = Name("E") + fields;
  MetadataReader reader(AsBytes(metadata), little_endian);
  FieldDefinition field{};
  EXPECT_TRUE(reader.Next(&field)) << ParseErrorText(reader.error());
  FieldDefinition second;
  EXPECT_FALSE(reader.Next(&second));
  EXPECT_EQ(reader.error(), ParseError::kNone);
  return field;
}

TEST(ParseEvent, ReadsLittleEndianHeader) {
  const std::string bytes = FromHex("03 02 34 12 78 56 01 04") + "data";
  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  EXPECT_EQ(view.header.flags, 0x03);
  EXPECT_EQ(view.header.version, 2);
  EXPECT_EQ(view.header.id, 0x1234);
  EXPECT_EQ(view.header.tag, 0x5678);
  EXPECT_EQ(view.header.opcode, 1);
  EXPECT_EQ(view.header.level, 4);
  EXPECT_TRUE(view.little_endian);
  EXPECT_TRUE(view.pointer64);
  EXPECT_TRUE(view.metadata.empty());
  EXPECT_TRUE(view.activity_id.empty());
  EXPECT_TRUE(view.related_id.empty());
  EXPECT_EQ(AsText(view.data), "data");
}

TEST(ParseEvent, ReadsBigEndianHeaderWith32BitPointers) {
  const std::string bytes = FromHex("00 02 12 34 56 78 f0 ff");
  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  EXPECT_EQ(view.header.id, 0x1234);
  EXPECT_EQ(view.header.tag, 0x5678);
  EXPECT_EQ(view.header.opcode, 0xF0);
  EXPECT_EQ(view.header.level, 255);
  EXPECT_FALSE(view.little_endian);
  EXPECT_FALSE(view.pointer64);
  EXPECT_TRUE(view.data.empty());
}

TEST(ParseEvent, ReadsMetadataBehindActivityAndRelatedId) {
  const std::string bytes = FromHex("07 00 00 00 00 00 00 05") + FromHex("20 00 02 80") +
                            "0123456789abcdefABCDEFGHIJKLMNOP" + FromHex("02 00 01 00") +
                            Name("E") + "xyz";
  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  EXPECT_EQ(AsText(view.activity_id), "0123456789abcdef");
  EXPECT_EQ(AsText(view.related_id), "ABCDEFGHIJKLMNOP");
  EXPECT_EQ(AsText(view.metadata), Name("E"));
  EXPECT_EQ(AsText(view.data), "xyz");
}

TEST(ParseEvent, ReadsBigEndianExtensions) {
  const std::string bytes = FromHex("05 00 00 00 00 00 00 05") + FromHex("00 02 80 01") +
                            Name("E") + FromHex("00 10 00 02") + "0123456789abcdef" + "d";
  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  EXPECT_EQ(AsText(view.metadata), Name("E"));
  EXPECT_EQ(AsText(view.activity_id), "0123456789abcdef");
  EXPECT_TRUE(view.related_id.empty());
  EXPECT_EQ(AsText(view.data), "d");
}

TEST(ParseEvent, SkipsUnknownExtensions) {
  const std::string bytes = FromHex("07 00 00 00 00 00 00 05") + FromHex("03 00 ff ff") + "???" +
                            FromHex("00 00 03 80") + FromHex("02 00 01 00") + Name("E");
  EventView view;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &view), ParseError::kNone);
  EXPECT_EQ(AsText(view.metadata), Name("E"));
}

TEST(ParseEvent, SevenBytesAreTruncatedHeader) {
  EXPECT_EQ(Parse(""), ParseError::kTruncatedHeader);
  EXPECT_EQ(Parse(FromHex("03 00 00 00 00 00 00")), ParseError::kTruncatedHeader);
}

TEST(ParseEvent, UndefinedFlagsAreRefused) {
  for (int bit = 3; bit < 8; ++bit) {
    std::string bytes = FromHex("03 00 00 00 00 00 00 05");
    bytes[0] = static_cast<char>(3 | 1 << bit);
    EXPECT_EQ(Parse(bytes), ParseError::kBadFlags) << bit;
  }
}

TEST(ParseEvent, LevelZeroIsRefused) {
  EXPECT_EQ(Parse(FromHex("03 00 00 00 00 00 00 00")), ParseError::kBadLevel);
}

TEST(ParseEvent, ExtensionCutAnywhereIsTruncated) {
  const std::string whole = FromHex("07 00 00 00 00 00 00 05") + FromHex("10 00 02 80") +
                            "0123456789abcdef" + FromHex("02 00 01 00") + Name("E");
  ASSERT_EQ(Parse(whole), ParseError::kNone);
  for (std::size_t size = 8; size < whole.size(); ++size) {
    EXPECT_EQ(Parse(whole.substr(0, size)), ParseError::kTruncatedExtension) << size;
  }
}

TEST(ParseEvent, ActivityIdOfOddSizeIsRefused) {
  for (int size : {0, 8, 15, 17, 31, 33}) {
    std::string bytes = FromHex("07 00 00 00 00 00 00 05") + FromHex("00 00 02 00");
    bytes[8] = static_cast<char>(size);
    bytes += std::string(static_cast<std::size_t>(size), 'a');
    EXPECT_EQ(Parse(bytes), ParseError::kBadActivityId) << size;
  }
}

TEST(ParseEvent, SecondMetadataIsRefused) {
  EXPECT_EQ(Parse(FromHex("07 00 00 00 00 00 00 05") + FromHex("02 00 01 80") + Name("E") +
                  FromHex("02 00 01 00") + Name("E")),
            ParseError::kDuplicateExtension);
}

TEST(ParseEvent, SecondMetadataIsRefusedEvenIfTheFirstIsEmpty) {
  EXPECT_EQ(Parse(FromHex("07 00 00 00 00 00 00 05") + FromHex("00 00 01 80") +
                  FromHex("02 00 01 00") + Name("E")),
            ParseError::kDuplicateExtension);
}

TEST(ParseEvent, SecondActivityIdIsRefused) {
  EXPECT_EQ(Parse(FromHex("07 00 00 00 00 00 00 05") + FromHex("10 00 02 80") + "0123456789abcdef" +
                  FromHex("10 00 02 00") + "0123456789abcdef"),
            ParseError::kDuplicateExtension);
}

TEST(MetadataReader, SplitsEventNameAtFirstSemicolon) {
  const std::string metadata = Name("Start;doc=a;;b;x=1");
  MetadataReader reader(AsBytes(metadata), true);
  EXPECT_EQ(reader.event_name(), "Start");
  EXPECT_EQ(reader.event_attributes(), "doc=a;;b;x=1");
  FieldDefinition field;
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_EQ(reader.error(), ParseError::kNone);
}

TEST(MetadataReader, NameWithoutAttributesHasNone) {
  const std::string metadata = Name("Start");
  MetadataReader reader(AsBytes(metadata), true);
  EXPECT_EQ(reader.event_name(), "Start");
  EXPECT_EQ(reader.event_attributes(), "");
}

TEST(MetadataReader, ReadsFieldsMinimalDefinition) {
  const FieldDefinition field = ReadOne(Name("count") + FromHex("04"));
  EXPECT_EQ(field.name, "count");
  EXPECT_EQ(field.attributes, "");
  EXPECT_EQ(field.encoding, Encoding::kValue32);
  EXPECT_EQ(field.arity, Arity::kScalar);
  EXPECT_EQ(field.format, Format::kUnsignedInt);
  EXPECT_FALSE(field.has_tag);
  EXPECT_EQ(field.tag, 0);
  EXPECT_EQ(field.array_length, 0);
  EXPECT_EQ(field.struct_fields, 0);
  EXPECT_EQ(field.depth, 0);
}

TEST(MetadataReader, ReadsFieldsLongestDefinition) {
  const FieldDefinition field = ReadOne(Name("a;k=v;;w") + FromHex("a4 83 34 12 03 01"));
  EXPECT_EQ(field.name, "a");
  EXPECT_EQ(field.attributes, "k=v;;w");
  EXPECT_EQ(field.encoding, Encoding::kValue32);
  EXPECT_EQ(field.arity, Arity::kConstantArray);
  EXPECT_EQ(field.format, Format::kHexInt);
  EXPECT_TRUE(field.has_tag);
  EXPECT_EQ(field.tag, 0x1234);
  EXPECT_EQ(field.array_length, 0x0103);
}

TEST(MetadataReader, ReadsTagAndLengthBigEndian) {
  const FieldDefinition field = ReadOne(Name("a") + FromHex("a4 83 12 34 01 03"), false);
  EXPECT_EQ(field.tag, 0x1234);
  EXPECT_EQ(field.array_length, 0x0103);
}

TEST(MetadataReader, TagZeroIsATag) {
  const FieldDefinition field = ReadOne(Name("a") + FromHex("84 80 00 00"));
  EXPECT_TRUE(field.has_tag);
  EXPECT_EQ(field.tag, 0);
  EXPECT_EQ(field.format, Format::kUnsignedInt);
}

TEST(MetadataReader, ReadsVariableArray) {
  const FieldDefinition field = ReadOne(Name("a") + FromHex("42"));
  EXPECT_EQ(field.encoding, Encoding::kValue8);
  EXPECT_EQ(field.arity, Arity::kVariableArray);
  EXPECT_EQ(field.array_length, 0);
}

TEST(MetadataReader, DefaultFormatIsTheEncodings) {
  const struct {
    int encoding;
    Format format;
  } kCases[] = {
      {2, Format::kUnsignedInt}, {3, Format::kUnsignedInt}, {4, Format::kUnsignedInt},
      {5, Format::kUnsignedInt}, {6, Format::kHexBytes},    {7, Format::kStringUtf},
      {8, Format::kStringUtf},   {9, Format::kStringUtf},   {10, Format::kStringUtf},
      {11, Format::kStringUtf},  {12, Format::kStringUtf},  {13, Format::kHexBytes},
  };
  for (const auto& c : kCases) {
    const FieldDefinition field = ReadOne(Name("a") + static_cast<char>(c.encoding));
    EXPECT_EQ(static_cast<int>(field.encoding), c.encoding);
    EXPECT_EQ(field.format, c.format) << c.encoding;
  }
}

TEST(MetadataReader, UnknownFormatIsKept) {
  EXPECT_EQ(ReadOne(Name("a") + FromHex("84 7f")).format, static_cast<Format>(0x7f));
}

TEST(MetadataReader, CountsDepthOfNestedStructs) {
  // s { t { x } y } z
  const std::string metadata = Name("E") + Name("s") + FromHex("81 02") + Name("t") +
                               FromHex("81 01") + Name("x") + FromHex("02") + Name("y") +
                               FromHex("02") + Name("z") + FromHex("02");
  MetadataReader reader(AsBytes(metadata), true);
  const struct {
    const char* name;
    int depth;
    int members;
  } kExpected[] = {{"s", 0, 2}, {"t", 1, 1}, {"x", 2, 0}, {"y", 1, 0}, {"z", 0, 0}};
  FieldDefinition field;
  for (const auto& expected : kExpected) {
    ASSERT_TRUE(reader.Next(&field)) << expected.name;
    EXPECT_EQ(field.name, expected.name);
    EXPECT_EQ(field.depth, expected.depth) << expected.name;
    EXPECT_EQ(field.struct_fields, expected.members) << expected.name;
  }
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_EQ(reader.error(), ParseError::kNone);
}

TEST(MetadataReader, StructMayBeAnArrayWithATag) {
  const FieldDefinition expected_struct = [] {
    static const std::string kMetadata =
        Name("E") + Name("s") + FromHex("a1 ff 02 00 05 00") + Name("x") + FromHex("02");
    MetadataReader reader(AsBytes(kMetadata), true);
    FieldDefinition field{};
    EXPECT_TRUE(reader.Next(&field));
    return field;
  }();
  EXPECT_EQ(expected_struct.encoding, Encoding::kStruct);
  EXPECT_EQ(expected_struct.struct_fields, 127);
  EXPECT_EQ(expected_struct.tag, 2);
  EXPECT_EQ(expected_struct.array_length, 5);
  EXPECT_EQ(expected_struct.format, Format::kDefault);
}

TEST(MetadataReader, DefinitionCutAnywhereIsTruncated) {
  const std::string fields = Name("field") + FromHex("a4 83 34 12 03 01");
  const std::string whole = Name("E") + fields;
  ASSERT_EQ(ReadAll(whole), ParseError::kNone);
  // With 2 bytes, the metadata is an event without fields.
  for (std::size_t size = 3; size < whole.size(); ++size) {
    EXPECT_EQ(ReadAll(whole.substr(0, size)), ParseError::kTruncatedMetadata) << size;
  }
}

TEST(MetadataReader, EventNameWithoutNulIsTruncated) {
  EXPECT_EQ(ReadAll(""), ParseError::kTruncatedMetadata);
  EXPECT_EQ(ReadAll("Event"), ParseError::kTruncatedMetadata);
}

TEST(MetadataReader, StructHasTheMembersThatFollow) {
  EXPECT_EQ(ReadAll(Name("E") + Name("s") + FromHex("81 02") + Name("x") + FromHex("02")),
            ParseError::kNone);
  EXPECT_EQ(ReadAll(Name("E") + Name("s") + FromHex("81 02")), ParseError::kTruncatedMetadata);
}

TEST(MetadataReader, InvalidEncodingsAreRefused) {
  for (int encoding : {0, 14, 31}) {
    EXPECT_EQ(ReadAll(Name("E") + Name("a") + static_cast<char>(encoding)),
              ParseError::kBadEncoding)
        << encoding;
  }
}

TEST(MetadataReader, BothArrayFlagsAreRefused) {
  EXPECT_EQ(ReadAll(Name("E") + Name("a") + FromHex("62 01 00")), ParseError::kBadEncoding);
}

TEST(MetadataReader, StructWithoutFieldsIsRefused) {
  EXPECT_EQ(ReadAll(Name("E") + Name("s") + FromHex("81 00")), ParseError::kBadStruct);
  EXPECT_EQ(ReadAll(Name("E") + Name("s") + FromHex("01")), ParseError::kBadStruct);
}

TEST(MetadataReader, ConstantArrayOfNoElementsIsRefused) {
  EXPECT_EQ(ReadAll(Name("E") + Name("a") + FromHex("22 00 00")), ParseError::kZeroLengthArray);
}

TEST(MetadataReader, NestingIsBounded) {
  std::string metadata = Name("E");
  for (int i = 0; i < kMaxStructNesting; ++i) metadata += Name("s") + FromHex("81 01");
  EXPECT_EQ(ReadAll(metadata + Name("x") + FromHex("02")), ParseError::kNone);
  EXPECT_EQ(ReadAll(metadata + Name("s") + FromHex("81 01") + Name("x") + FromHex("02")),
            ParseError::kNestingTooDeep);
}

TEST(MetadataReader, FieldCountIsBounded) {
  std::string metadata = Name("E");
  for (int i = 0; i < kMaxFields; ++i) metadata += Name("") + FromHex("02");
  EXPECT_EQ(ReadAll(metadata), ParseError::kNone);
  EXPECT_EQ(ReadAll(metadata + Name("") + FromHex("02")), ParseError::kTooManyFields);
}

TEST(MetadataReader, StaysAtItsErrorOnceFailed) {
  const std::string metadata = Name("E") + Name("a") + FromHex("00") + Name("b") + FromHex("02");
  MetadataReader reader(AsBytes(metadata), true);
  FieldDefinition field;
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_FALSE(reader.Next(&field));
  EXPECT_EQ(reader.error(), ParseError::kBadEncoding);
}

TEST(ParseErrorText, IsUniqueForEveryError) {
  std::set<std::string> texts;
  constexpr int kLast = static_cast<int>(ParseError::kTooMuchWork);
  for (int i = 0; i <= kLast; ++i) {
    EXPECT_TRUE(texts.insert(ParseErrorText(static_cast<ParseError>(i))).second) << i;
  }
  EXPECT_EQ(texts.count("unknown error"), 0u);
  EXPECT_STREQ(ParseErrorText(static_cast<ParseError>(kLast + 1)), "unknown error");
}

}  // namespace
}  // namespace eh
