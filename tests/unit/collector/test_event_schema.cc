// Tests the conversion of EventHeader fields to NetTrace types and payloads, with bytes written by
// hand.
#include <gtest/gtest.h>

#include <string>

#include "tools/collector/convert/event_schema.h"

namespace collector {
namespace {

using namespace std::string_literals;
using nettrace::Type;
using nettrace::TypeCode;

std::vector<std::byte> ToBytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string ToText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Compiles an event named E with the given field definitions.
class SchemaTest : public ::testing::Test {
 protected:
  void Compile(const std::string& fields, TextForm text = TextForm::kBytes,
               std::string_view seen = "") {
    metadata_ = ToBytes("E\0"s + fields);
    eh::EventView event = {};
    event.header = {7, 3, 5, 0x21, 1, 4};
    event.little_endian = little_endian_;
    event.metadata = metadata_;
    const auto name = eh::ParseTracepointName(kName);
    ASSERT_TRUE(name.has_value());
    absl::StatusOr<EventSchema> schema = CompileEventSchema(event, *name, kName, {text, seen});
    ASSERT_TRUE(schema.ok()) << schema.status();
    schema_ = *std::move(schema);
  }

  // Returns the converted payload; "!" if it cannot be decoded.
  std::string Run(const std::string& payload) {
    const std::vector<std::byte> source = ToBytes(payload);
    std::vector<std::byte> out;
    outcome_ = schema_.program.Run(source, &out);
    const bool ok = outcome_.result == PayloadProgram::Result::kOk;
    if (schema_.program.identity()) {
      // A run without an output, which only checks the payload, must have the same result.
      const auto walked = schema_.program.Run(source, nullptr);
      EXPECT_EQ(walked.result, outcome_.result);
      if (ok) {
        EXPECT_EQ(walked.consumed, outcome_.consumed);
        EXPECT_EQ(walked.non_ascii, outcome_.non_ascii);
        EXPECT_EQ(ToText(out), payload.substr(0, outcome_.consumed));
      }
    }
    return ok ? ToText(out) : "!";
  }

  const Type& type(std::size_t field = 0) const { return schema_.metadata.fields[field].type; }

  static constexpr char kName[] = "P_L4K2Ggroup";
  bool little_endian_ = true;
  std::vector<std::byte> metadata_;
  EventSchema schema_;
  PayloadProgram::Outcome outcome_;
};

Type Simple(TypeCode code) { return Type::Simple(code); }

TEST_F(SchemaTest, RowHasTheValuesOfHeaderAndTracepoint) {
  Compile("");
  const nettrace::EventMetadata& row = schema_.metadata;
  EXPECT_EQ(row.provider, "P");
  EXPECT_EQ(row.name, "E");
  EXPECT_EQ(row.level, 4);
  EXPECT_EQ(row.keywords, 2u);
  EXPECT_EQ(row.event_id, 5u);
  EXPECT_EQ(row.opcode, 1);
  EXPECT_EQ(row.version, 3);
  EXPECT_EQ(row.key_values, (nettrace::KeyValues{{"EventHeader.Tracepoint", kName},
                                                 {"EventHeader.Id", "5"},
                                                 {"EventHeader.Tag", "0x21"},
                                                 {"EventHeader.Group", "group"}}));
  EXPECT_TRUE(row.fields.empty());
  EXPECT_EQ(Run(""), "");
}

TEST_F(SchemaTest, Integers) {
  Compile(
      "a\0\x02"s
      "b\0\x83\x02"s
      "c\0\x04"s
      "d\0\x85\x02"s);
  EXPECT_EQ(type(0), Simple(TypeCode::kByte));
  EXPECT_EQ(type(1), Simple(TypeCode::kInt16));
  EXPECT_EQ(type(2), Simple(TypeCode::kUInt32));
  EXPECT_EQ(type(3), Simple(TypeCode::kInt64));
  EXPECT_TRUE(schema_.program.identity());
  EXPECT_EQ(Run("\1\2\2\3\3\3\3\4\4\4\4\4\4\4\4"s), "\1\2\2\3\3\3\3\4\4\4\4\4\4\4\4"s);
  EXPECT_EQ(Run("\1\2\2\3\3\3\3\4\4\4\4\4\4\4"s), "!");
}

TEST_F(SchemaTest, PaddingAfterTheLastFieldIsNotPayload) {
  Compile("a\0\x02"s);
  EXPECT_EQ(Run("\1\0\0\0\0\0\0\0"s), "\1");
  EXPECT_EQ(outcome_.consumed, 1u);
}

TEST_F(SchemaTest, BooleansAndFloats) {
  Compile(
      "a\0\x82\x07"s
      "b\0\x84\x07"s
      "c\0\x84\x08"s
      "d\0\x85\x08"s);
  EXPECT_EQ(type(0), Simple(TypeCode::kBoolean8));
  EXPECT_EQ(type(1), Simple(TypeCode::kBoolean32));
  EXPECT_EQ(type(2), Simple(TypeCode::kSingle));
  EXPECT_EQ(type(3), Simple(TypeCode::kDouble));
  EXPECT_TRUE(schema_.program.identity());
}

TEST_F(SchemaTest, FormatsThatTheTypeDoesNotSayAreNoted) {
  Compile(
      "a\0\x84\x03"s
      "b\0\x02"s
      "c;k=v\0\x84\x83\x34\x12"s);
  const auto& keys = schema_.metadata.key_values;
  ASSERT_GE(keys.size(), 2u);
  EXPECT_EQ(keys[keys.size() - 2],
            (std::pair<std::string, std::string>("EventHeader.Field.0", "value32 hex_int")));
  EXPECT_EQ(keys.back(), (std::pair<std::string, std::string>(
                             "EventHeader.Field.2", "value32 hex_int tag=0x1234 attr=k=v")));
  EXPECT_EQ(schema_.metadata.fields[2].name, "c");
}

TEST_F(SchemaTest, UnsuitableFormatsBecomeTheDefaultWithANote) {
  Compile(
      "a\0\x82\x04"s    // value8 errno
      "b\0\x83\x0A"s    // value16 string8
      "c\0\x85\x11"s    // value64 ip_address
      "d\0\x87\x02"s    // zstring_char8 signed_int
      "e\0\x8A\x7F"s    // string_length16_char8 of an unknown format
      "f\0\x8B\x0F"s    // string_length16_char16 uuid
      "g\0\x82\x0B"s);  // value8 string_utf, which readers show as a character
  EXPECT_EQ(type(0), Simple(TypeCode::kByte));
  EXPECT_EQ(type(1), Simple(TypeCode::kUInt16));
  EXPECT_EQ(type(2), Simple(TypeCode::kUInt64));
  EXPECT_EQ(type(3), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_EQ(type(4), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_EQ(type(5), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(type(6), Simple(TypeCode::kUtf8CodeUnit));
  std::vector<std::string> notes;
  for (const auto& [key, value] : schema_.metadata.key_values) {
    if (key.starts_with("EventHeader.Field.")) notes.push_back(value);
  }
  EXPECT_EQ(notes,
            (std::vector<std::string>{"value8 errno", "value16 string8", "value64 ip_address",
                                      "zstring_char8 signed_int", "string_length16_char8 format127",
                                      "string_length16_char16 uuid"}));
}

TEST_F(SchemaTest, CountedTextIsUnchanged) {
  Compile("s\0\x0A"s);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_TRUE(schema_.program.identity());
  EXPECT_EQ(Run("\3\0abc\0\0"s), "\3\0abc"s);
  EXPECT_FALSE(outcome_.non_ascii);
  Run("\2\0\xC3\xA9"s);
  EXPECT_TRUE(outcome_.non_ascii);
  Run("\1\0\xC3"s);
  EXPECT_TRUE(outcome_.non_ascii);
}

TEST_F(SchemaTest, TextBeyondAsciiHasAFormInUtf16) {
  Compile(
      "s\0\x0A"s
      "n\0\x02"s,
      TextForm::kUtf16);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(Run("\3\0a\xC3\xA9\7"s), "\2\0a\0\xE9\0\7"s);
}

TEST_F(SchemaTest, InvalidCharactersAreReplaced) {
  Compile("s\0\x0A"s, TextForm::kUtf16);
  EXPECT_EQ(Run("\2\0a\xC3"s), "\2\0a\0\xFD\xFF"s);
}

TEST_F(SchemaTest, Latin1HasAFormInUtf16) {
  Compile("s\0\x8A\x0A"s);
  Run("\1\0\xE9"s);
  EXPECT_TRUE(outcome_.non_ascii);
  Compile("s\0\x8A\x0A"s, TextForm::kUtf16);
  EXPECT_EQ(Run("\1\0\xE9"s), "\1\0\xE9\0"s);
}

TEST_F(SchemaTest, CharactersHaveAFormInUtf16) {
  const std::string fields =
      "a\0\x82\x0A"s      // value8 string8
      "b\0\x82\x0B"s      // value8 string_utf
      "c\0\xA2\x0A\4\0"s  // a constant array of 4 value8 string8
      "d\0\xC2\x0B"s      // a variable array of value8 string_utf
      "e\0\x83\x0B"s;     // value16 string_utf
  const std::string payload = "\xE9\xE9pq\0x\2\0\xC3\xA9\xAC\x20"s;
  Compile(fields);
  EXPECT_EQ(type(2), Type::FixedLengthArray(Simple(TypeCode::kUtf8CodeUnit), 4));
  EXPECT_EQ(type(3), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_EQ(Run(payload), payload);
  EXPECT_TRUE(outcome_.non_ascii);
  Compile(fields, TextForm::kUtf16);
  EXPECT_EQ(type(0), Simple(TypeCode::kUtf16CodeUnit));
  EXPECT_EQ(type(1), Simple(TypeCode::kUtf16CodeUnit));
  EXPECT_EQ(type(2), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(type(3), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(type(4), Simple(TypeCode::kUtf16CodeUnit));
  EXPECT_EQ(Run(payload), "\xE9\0\xFD\xFF\2\0p\0q\0\1\0\xE9\0\xAC\x20"s);
}

TEST_F(SchemaTest, CharactersOf4BytesAreText) {
  Compile(
      "a\0\x84\x0B"s
      "b\0\xA4\x0B\2\0"s);
  EXPECT_EQ(type(0), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(type(1), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(Run("\x00\xF6\x01\x00\x41\0\0\0\0\0\0\0"s), "\2\0\x3D\xD8\0\xDE\1\0A\0"s);
  EXPECT_EQ(Run(std::string(12, '\0')), "\1\0\0\0\0\0"s);
}

TEST_F(SchemaTest, ByteOrderMarkIsObeyedAndNoPartOfTheText) {
  Compile("s\0\x8A\x0C"s);
  Run("\4\0\xFE\xFF\0a"s);
  EXPECT_TRUE(outcome_.non_ascii);
  Compile("s\0\x8A\x0C"s, TextForm::kUtf16);
  EXPECT_EQ(Run("\4\0\xFE\xFF\0a"s), "\1\0a\0"s);
  EXPECT_EQ(Run("\4\0\xEF\xBB\xBF"s + "a"), "\1\0a\0"s);
  Compile("s\0\x8B\x0C"s);
  EXPECT_EQ(Run("\2\0\xFE\xFF\0a"s), "\1\0a\0"s);
  Compile("s\0\x88\x0D"s);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(Run("\xFF\xFE\x61\0\0\0"s), "\1\0a\0"s);
}

TEST_F(SchemaTest, ZeroEndedTextGetsACount) {
  Compile(
      "s\0\x07"s
      "n\0\x02"s);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_EQ(Run("ab\0\7"s), "\2\0ab\7"s);
  EXPECT_EQ(Run("\0\7"s), "\0\0\7"s);
  EXPECT_EQ(Run("ab"), "!");
}

TEST_F(SchemaTest, ZeroEndedUtf16IsUnchanged) {
  Compile("s\0\x08"s);
  EXPECT_EQ(type(), Simple(TypeCode::kNullTerminatedUtf16String));
  EXPECT_TRUE(schema_.program.identity());
  EXPECT_EQ(Run("a\0b\0\0\0"s), "a\0b\0\0\0"s);
}

TEST_F(SchemaTest, Utf32BecomesUtf16) {
  Compile("s\0\x0C"s);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf16CodeUnit)));
  EXPECT_EQ(Run("\2\0a\0\0\0\x00\xF6\x01\x00"s), "\3\0a\0\x3D\xD8\0\xDE"s);
}

TEST_F(SchemaTest, BinaryAndNullableAreBytes) {
  Compile(
      "b\0\x0D"s
      "n\0\x8D\x02"s);
  EXPECT_EQ(type(0), Type::Array(Simple(TypeCode::kByte)));
  EXPECT_EQ(type(1), Type::Array(Simple(TypeCode::kByte)));
  EXPECT_EQ(schema_.metadata.key_values.back().second, "binary_length16_char8 signed_int");
  EXPECT_EQ(Run("\1\0x\0\0"s), "\1\0x\0\0"s);
  Compile("w\0\x8B\x09"s);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kByte)));
  EXPECT_EQ(Run("\1\0ab"s), "\2\0ab"s);
}

// Compiles a nullable field for events in which it has the values `seen`, a set of SeenValue.
class NullableTest : public SchemaTest {
 protected:
  void CompileSeen(const std::string& field, int seen) {
    Compile(field, TextForm::kBytes, std::string(1, static_cast<char>(seen)));
    EXPECT_EQ(schema_.nullable_fields, 1u);
  }
  bool HasNote() const {
    return schema_.metadata.key_values.back().first.starts_with("EventHeader.Field.");
  }
};

// Events of one schema that differ in which values are null have different metadata rows, called
// forms. Only one form can have the id of the event. It must be the most common form, so that this
// form has the same row in every recording, whichever form occurs first.
TEST_F(NullableTest, MostCommonFormHasTheIdOfTheEvent) {
  CompileSeen("n\0\x8D\x02"s, kSeen4Bytes);
  EXPECT_EQ(schema_.metadata.event_id, 5u);
  CompileSeen("n\0\x8D\x02"s, kSeenNull);
  EXPECT_EQ(schema_.metadata.event_id, 0u);
  CompileSeen("n\0\x8D\x02"s, kSeenNull | kSeen4Bytes);
  EXPECT_EQ(schema_.metadata.event_id, 0u);
  CompileSeen("n\0\xCD\x02"s, 0);  // An array without elements.
  EXPECT_EQ(schema_.metadata.event_id, 0u);
  Compile("s\0\x0A"s, TextForm::kUtf16);
  EXPECT_EQ(schema_.metadata.event_id, 0u);
}

TEST_F(NullableTest, RunReturnsTheKindsOfValues) {
  Compile(
      "a\0\x8D\x02"s
      "b\0\x8A\x04"s
      "c\0\xCD\x02"s);
  const std::vector<std::byte> payload = ToBytes("\0\0\3\0abc\3\0\2\0ab\0\0\5\0abcde"s);
  std::string seen(3, '\0');
  outcome_ = schema_.program.Run(payload, nullptr, seen);
  EXPECT_EQ(outcome_.result, PayloadProgram::Result::kOk);
  EXPECT_EQ(seen[0], kSeenNull);
  EXPECT_EQ(seen[1], kSeenMisfit);
  EXPECT_EQ(seen[2], kSeen2Bytes | kSeenNull | kSeenMisfit);
}

TEST_F(NullableTest, ValuesOfOneSizeHaveTheirType) {
  const std::string field = "n\0\x8D\x02"s;
  CompileSeen(field, kSeen4Bytes);
  EXPECT_EQ(type(), Simple(TypeCode::kInt32));
  EXPECT_FALSE(HasNote());
  EXPECT_EQ(Run("\4\0\xFB\xFF\xFF\xFF"s), "\xFB\xFF\xFF\xFF"s);
  CompileSeen("n\0\xCD\x03"s, kSeen2Bytes);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUInt16)));
  EXPECT_EQ(schema_.metadata.key_values.back().second, "value16 hex_int");
  EXPECT_EQ(Run("\2\0\2\0ab\2\0cd"s), "\2\0abcd"s);
  CompileSeen("u\0\x8D\x0F"s, kSeen16Bytes);
  EXPECT_EQ(type(), Simple(TypeCode::kGuid));
  CompileSeen("i\0\x8D\x11"s, kSeen4Bytes);
  EXPECT_EQ(type(), Type::FixedLengthArray(Simple(TypeCode::kByte), 4));
}

TEST_F(NullableTest, NullIsAnEmptyText) {
  CompileSeen("n\0\x8D\x02"s, kSeenNull);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  EXPECT_EQ(schema_.metadata.key_values.back().second, "binary_length16_char8 signed_int");
  EXPECT_EQ(Run("\0\0"s), "\0\0"s);
}

TEST_F(NullableTest, ValuesOfWhichSomeAreNullAreArrays) {
  CompileSeen("n\0\x8D\x02"s, kSeenNull | kSeen2Bytes);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kInt16)));
  EXPECT_EQ(Run("\2\0ab"s), "\1\0ab"s);
  EXPECT_EQ(Run("\0\0"s), "\0\0"s);
  CompileSeen("n\0\xCD\x02"s, kSeenNull | kSeen2Bytes);
  EXPECT_EQ(type(), Type::Array(Type::Object({{"Value", Type::Array(Simple(TypeCode::kInt16))}})));
}

TEST_F(NullableTest, ValuesOfOtherSizesHaveTheDefaultFormat) {
  CompileSeen("n\0\x8A\x02"s, kSeenMisfit);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kUtf8CodeUnit)));
  CompileSeen("n\0\x8D\x02"s, kSeenMisfit);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kByte)));
  CompileSeen("n\0\x8D\x02"s, kSeen2Bytes | kSeen4Bytes);
  EXPECT_EQ(type(), Type::Array(Simple(TypeCode::kByte)));
}

TEST_F(NullableTest, NumbersOfBigEndianEventsAreTurned) {
  little_endian_ = false;
  CompileSeen("n\0\x8D\x02"s, kSeen4Bytes);
  EXPECT_EQ(Run("\0\4\xFF\xFF\xFF\xFB"s), "\xFB\xFF\xFF\xFF"s);
  CompileSeen("n\0\x8D\x02"s, kSeenNull | kSeen4Bytes);
  EXPECT_EQ(Run("\0\4\xFF\xFF\xFF\xFB"s), "\1\0\xFB\xFF\xFF\xFF"s);
  CompileSeen("n\0\x8D\x02"s, kSeen2Bytes | kSeen4Bytes | kSeenMisfit);
  EXPECT_EQ(Run("\0\4\xFF\xFF\xFF\xFB"s), "\4\0\xFB\xFF\xFF\xFF"s);
  EXPECT_EQ(Run("\0\3abc"s), "\3\0abc"s);
  CompileSeen("p\0\x8D\x10"s, 0);
  EXPECT_EQ(Run("\0\2\x1F\x90"s), "\2\0\x1F\x90"s);
  CompileSeen("p\0\x8D\x10"s, kSeen2Bytes);
  EXPECT_EQ(Run("\0\2\x1F\x90"s), "\x90\x1F"s);
}

TEST_F(SchemaTest, UuidIsAGuid) {
  Compile("u\0\x86\x0F"s);
  EXPECT_EQ(type(), Simple(TypeCode::kGuid));
  EXPECT_EQ(Run("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"s),
            "\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"s);
}

TEST_F(SchemaTest, PortIsANumberAndAnAddressIsBytes) {
  Compile(
      "p\0\x83\x10"s
      "i\0\x84\x11"s);
  EXPECT_EQ(type(0), Simple(TypeCode::kUInt16));
  EXPECT_EQ(type(1), Type::FixedLengthArray(Simple(TypeCode::kByte), 4));
  EXPECT_EQ(Run("\x1F\x90\x7F\0\0\1"s), "\x90\x1F\x7F\0\0\1"s);
}

TEST_F(SchemaTest, ArraysOfNumbers) {
  Compile(
      "c\0\x23\2\0"s
      "v\0\x44"s);
  EXPECT_EQ(type(0), Type::FixedLengthArray(Simple(TypeCode::kUInt16), 2));
  EXPECT_EQ(type(1), Type::Array(Simple(TypeCode::kUInt32)));
  EXPECT_TRUE(schema_.program.identity());
  EXPECT_EQ(Run("\1\1\2\2\1\0\3\3\3\3"s), "\1\1\2\2\1\0\3\3\3\3"s);
  EXPECT_EQ(Run("\1\1\2\2\xFF\xFF\3\3\3\3"s), "!");
}

TEST_F(SchemaTest, ArraysOfTextAreArraysOfText) {
  const std::string fields =
      "v\0\x4A"s
      "z\0\x27\2\0"s;
  Compile(fields);
  EXPECT_EQ(type(0), Type::Array(Type::Array(Simple(TypeCode::kUtf8CodeUnit))));
  EXPECT_EQ(type(1), Type::FixedLengthArray(Type::Array(Simple(TypeCode::kUtf8CodeUnit)), 2));
  EXPECT_EQ(Run("\2\0\1\0a\2\0\0b\0c\0"s), "\2\0\1\0a\2\0\0b\0\0\1\0c"s);
  Compile(fields, TextForm::kUtf16);
  EXPECT_EQ(type(0), Type::Array(Type::Array(Simple(TypeCode::kUtf16CodeUnit))));
  EXPECT_EQ(Run("\1\0\2\0\xC3\xA9\0c\0"s), "\1\0\1\0\xE9\0\0\0\1\0c\0"s);
  Compile("w\0\x48"s);
  EXPECT_EQ(type(0), Type::Array(Simple(TypeCode::kNullTerminatedUtf16String)));
  EXPECT_TRUE(schema_.program.identity());
}

TEST_F(SchemaTest, StructHasTheMembersThatFollow) {
  Compile(
      "s\0\x81\5"s
      "a\0\x02"s
      "t\0\xC1\3"s
      "b\0\x02"s);
  EXPECT_EQ(type(),
            Type::Object({{"a", Simple(TypeCode::kByte)},
                          {"t", Type::Array(Type::Object({{"b", Simple(TypeCode::kByte)}}))}}));
  EXPECT_EQ(Run("\1\2\0\3\4"s), "\1\2\0\3\4"s);
}

TEST_F(SchemaTest, ArraysOfArraysAreWrapped) {
  Compile(
      "b\0\x4D"s
      "w\0\x46"s);
  EXPECT_EQ(type(0), Type::Array(Type::Object({{"Value", Type::Array(Simple(TypeCode::kByte))}})));
  EXPECT_EQ(
      type(1),
      Type::Array(Type::Object({{"Value", Type::FixedLengthArray(Simple(TypeCode::kByte), 16)}})));
  EXPECT_TRUE(schema_.program.identity());
}

TEST_F(SchemaTest, StructsNest) {
  Compile(
      "s\0\x81\2"s
      "a\0\x02"s
      "t\0\x81\1"s
      "b\0\x02"s
      "c\0\x02"s);
  EXPECT_EQ(type(0), Type::Object({{"a", Simple(TypeCode::kByte)},
                                   {"t", Type::Object({{"b", Simple(TypeCode::kByte)}})}}));
  EXPECT_EQ(type(1), Simple(TypeCode::kByte));
  EXPECT_EQ(Run("\1\2\3"), "\1\2\3");
}

TEST_F(SchemaTest, ArraysOfStructs) {
  Compile(
      "s\0\xC1\2"s
      "a\0\x02"s
      "z\0\x07"s
      "f\0\xA1\1\2\0"s
      "x\0\x03"s);
  EXPECT_EQ(type(0),
            Type::Array(Type::Object({{"a", Simple(TypeCode::kByte)},
                                      {"z", Type::Array(Simple(TypeCode::kUtf8CodeUnit))}})));
  EXPECT_EQ(type(1), Type::FixedLengthArray(Type::Object({{"x", Simple(TypeCode::kUInt16)}}), 2));
  EXPECT_EQ(Run("\2\0\1p\0\2\0\1\1\2\2"s), "\2\0\1\1\0p\2\0\0\1\1\2\2"s);
}

TEST_F(SchemaTest, HugeCountsAreBoundedByThePayload) {
  // Arrays of arrays of structs, each claiming 65535 elements.
  Compile(
      "s\0\xC1\1"s
      "t\0\xC1\1"s
      "u\0\xC1\1"s
      "x\0\x02"s);
  EXPECT_EQ(Run(std::string(8000, '\xFF')), "!");
}

class BigEndianSchemaTest : public SchemaTest {
 protected:
  BigEndianSchemaTest() { little_endian_ = false; }
};

TEST_F(BigEndianSchemaTest, NumbersCountsAndTextAreTurned) {
  Compile(
      "n\0\x04"s
      "v\0\x43"s
      "s\0\x0A"s
      "w\0\x0B"s
      "c\0\x23\0\2"s);
  EXPECT_FALSE(schema_.program.identity());
  EXPECT_EQ(Run("\1\2\3\4\0\1\5\6\0\2ab\0\1\0a\1\2\3\4"s),
            "\4\3\2\1\1\0\6\5\2\0ab\1\0a\0\2\1\4\3"s);
}

TEST_F(BigEndianSchemaTest, PortsAreInNetworkOrderAnyway) {
  Compile("p\0\x83\x10"s);
  EXPECT_EQ(Run("\x1F\x90"), "\x90\x1F");
}

// A payload that ends anywhere within its fields cannot be decoded, whichever fields are processed
// together. A payload with padding after its fields can be decoded.
TEST_F(SchemaTest, PayloadThatIsCutAnywhereDoesNotDecode) {
  const auto check = [this](const std::string& fields, const std::string& payload) {
    Compile(fields);
    ASSERT_TRUE(schema_.program.identity());
    for (std::size_t size = 0; size < payload.size(); ++size) {
      EXPECT_EQ(Run(payload.substr(0, size)), "!") << size;
    }
    EXPECT_EQ(Run(payload), payload);
    EXPECT_EQ(outcome_.consumed, payload.size());
    EXPECT_EQ(Run(payload + "\0\0\0"s), payload);
  };
  // Numbers of every size.
  check("a\0\x02"s + "b\0\x03"s + "c\0\x04"s + "d\0\x05"s,
        "1"
        "22"
        "4444"
        "88888888");
  // Numbers before, between and after texts.
  const std::string text = "\x0A"s;
  check("a\0\x04"s + "s\0"s + text + "b\0\x02"s + "c\0\x03"s + "t\0"s + text + "d\0\x05"s,
        "4444"
        "\3\0abc"
        "1"
        "22"
        "\0\0"
        "88888888"s);
  // Constant and counted arrays, text of 2-byte units, and a struct with an array and a number.
  check("a\0\x24\2\0"s + "b\0\x43"s + "s\0\x81\2"s + "c\0\x02"s + "t\0\x0B"s + "d\0\x02"s,
        "44445555"
        "\2\0"
        "2233"
        "1"
        "\2\0"
        "u\0v\0"
        "6"s);
}

// The conversion checks several code units at a time, so the test puts the unit at each position.
TEST_F(SchemaTest, UnitThatIsNotAsciiIsSeenAnywhereInATextOfAnyLength) {
  Compile("a\0\x04"s + "s\0\x0A"s + "b\0\x02"s);
  for (std::size_t size = 0; size < 40; ++size) {
    std::string payload =
        "\x80\x81\x82\x83"s + static_cast<char>(size) + '\0' + std::string(size, 'x') + "\x84"s;
    EXPECT_EQ(Run(payload), payload);
    EXPECT_FALSE(outcome_.non_ascii) << size;
    for (std::size_t at = 0; at < size; ++at) {
      std::string other = payload;
      other[6 + at] = '\xE9';
      EXPECT_EQ(Run(other), other);
      EXPECT_TRUE(outcome_.non_ascii) << size << " " << at;
    }
  }
}

}  // namespace
}  // namespace collector
