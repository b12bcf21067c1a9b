// Tests payloads of EventHeader events, converted as in a recording, in the form that `nettrace
// dump` shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/support/bytes.h"
#include "tools/collector/convert/event_schema.h"
#include "tools/trace/payload_json.h"

namespace trace {
namespace {

using namespace std::string_literals;

// Returns the object that PutMembers passes to an output, as JSON.
std::string ShowMembers(const nettrace::Event& event, PayloadStyle style) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  JsonValueOutput json_output(ValueStyle::kForPrograms, &json);
  ValueOutput& out = json_output;
  PayloadJson payloads(style);
  const bool repeats_names = payloads.NotesOf(*event.metadata).repeats_names;
  out.BeginObject(repeats_names);
  EXPECT_TRUE(payloads.PutMembers(event, &out).ok());
  out.EndObject(repeats_names);
  return buffer.GetString();
}

std::string Show(const nettrace::EventMetadata& metadata, const std::vector<std::byte>& payload,
                 PayloadStyle style) {
  nettrace::Event event;
  event.metadata = &metadata;
  event.payload = payload;
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  const absl::Status status = PayloadJson(style).Put(event, &json);
  EXPECT_TRUE(json.IsComplete()) << buffer.GetString();
  if (status.ok() && (style == PayloadStyle::kForPrograms || style == PayloadStyle::kRaw)) {
    EXPECT_EQ(ShowMembers(event, style), buffer.GetString());
  }
  return buffer.GetString() + (status.ok() ? "" : " (" + std::string(status.message()) + ")");
}

// Returns what is shown for an event with the field definitions and the payload. `seen`: as in
// collector::ValueForms.
std::string Show(const std::string& fields, const std::string& payload,
                 PayloadStyle style = PayloadStyle::kForPrograms, std::string_view seen = "") {
  const std::vector<std::byte> definitions = tests::ToBytes("E\0"s + fields);
  constexpr char kName[] = "P_L4K2";
  eh::EventView event = {};
  event.header = {7, 0, 0, 0, 0, 4};
  event.little_endian = true;
  event.metadata = definitions;
  const auto schema =
      collector::CompileEventSchema(event, *eh::ParseTracepointName(kName), kName, {.seen = seen});
  EXPECT_TRUE(schema.ok()) << schema.status();
  if (!schema.ok()) return "";
  std::vector<std::byte> converted;
  EXPECT_EQ(schema->program.Run(tests::ToBytes(payload), &converted).result,
            collector::PayloadProgram::Result::kOk);
  return Show(schema->metadata, converted, style);
}

TEST(PayloadJson, EachFieldHasItsFormat) {
  const std::string fields =
      "n\0\x04"s
      "e\0\x84\x04"s
      "x\0\x85\x03"s
      "b\0\x83\x07"s
      "i\0\x84\x11"s
      "p\0\x83\x10"s
      "h\0\x0D"s;
  const std::string payload = "\2\0\0\0"s + "\2\0\0\0"s + "\x34\x12\0\0\0\0\0\0"s + "\1\0"s +
                              "\x7F\0\0\1"s + "\x1F\x90"s + "\2\0\xAB\xCD"s;
  EXPECT_EQ(Show(fields, payload),
            R"({"n":2,"e":2,"x":"0x1234","b":true,"i":"127.0.0.1","p":8080,"h":"abcd"})");
  EXPECT_EQ(Show(fields, payload, PayloadStyle::kForPeople),
            R"~({"n":2,"e":"2 (ENOENT)",)~"
            R"("x":"0x1234","b":true,"i":"127.0.0.1","p":8080,"h":"abcd"})");
  EXPECT_EQ(Show(fields, payload, PayloadStyle::kRaw),
            R"({"n":2,"e":2,"x":4660,"b":1,"i":[127,0,0,1],"p":8080,"h":[171,205]})");
}

TEST(PayloadJson, ElementsOfArraysHaveTheFieldsFormat) {
  EXPECT_EQ(Show("x\0\xC3\x03"s
                 "n\0\x03"s,
                 "\2\0\1\0\x10\0\x10\0"s),
            R"({"x":["0x1","0x10"],"n":16})");
  EXPECT_EQ(Show("t\0\xA4\x06\2\0"s, "\0\0\0\0\1\0\0\0"s),
            R"({"t":["1970-01-01T00:00:00Z","1970-01-01T00:00:01Z"]})");
  EXPECT_EQ(Show("c\0\xC2\x0A"s, "\2\0a\xE9"s), "{\"c\":\"a\xC3\xA9\"}");
}

TEST(PayloadJson, ArraysOfBytesAreArraysOfValues) {
  const std::string fields =
      "i\0\xC4\x11"s
      "h\0\x4D"s
      "n\0\x03"s;
  const std::string payload = "\2\0\x7F\0\0\1\x0A\0\0\2"s + "\2\0\1\0\xAB\0\0"s + "\5\0"s;
  EXPECT_EQ(Show(fields, payload), R"({"i":["127.0.0.1","10.0.0.2"],"h":["ab",""],"n":5})");
  EXPECT_EQ(Show(fields, payload, PayloadStyle::kRaw),
            R"({"i":[{"Value":[127,0,0,1]},{"Value":[10,0,0,2]}],)"
            R"("h":[{"Value":[171]},{"Value":[]}],"n":5})");
}

TEST(PayloadJson, MembersOfStructsHaveTheirFormats) {
  const std::string fields =
      "s\0\x81\3"s
      "a\0\x82\x03"s
      "t\0\x81\1"s
      "b\0\x83\x10"s
      "c\0\x82\x03"s
      "n\0\x02"s;
  EXPECT_EQ(Show(fields, "\1\x1F\x90\2\3"s), R"({"s":{"a":"0x1","t":{"b":8080},"c":"0x2"},"n":3})");
}

TEST(PayloadJson, ArraysOfStructsWithoutElementsCountToo) {
  const std::string fields =
      "s\0\xC1\2"s
      "a\0\x82\x03"s
      "Value\0\x8D\x11"s
      "x\0\x82\x03"s;
  EXPECT_EQ(Show(fields, "\0\0\x1F"s), R"({"s":[],"x":"0x1f"})");
  EXPECT_EQ(Show(fields, "\2\0\1\4\0\x7F\0\0\1\2\0\0\x1F"s),
            R"({"s":[{"a":"0x1","Value":"127.0.0.1"},{"a":"0x2","Value":null}],"x":"0x1f"})");
}

TEST(PayloadJson, StructWithOneMemberNamedValueIsNotAWrapper) {
  EXPECT_EQ(Show("s\0\xC1\1"s
                 "Value\0\x0D"s
                 "x\0\x82\x03"s,
                 "\1\0\1\0\xAB\x1F"s),
            R"({"s":[{"Value":"ab"}],"x":"0x1f"})");
}

TEST(PayloadJson, TagsAndAttributesChangeNoFormat) {
  EXPECT_EQ(Show("f;k=v\0\x84\x88\x34\x12"s
                 "u;k=v\0\x02"s
                 "s;k=v\0\x0A"s
                 "t\0\x85\x82\1\0"s,
                 "\0\0\xC0\x3F\7\1\0z\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s),
            R"({"f":1.5,"u":7,"s":"z","t":-1})");
}

// The result must not depend on `seen`, the set of values for which the metadata row was made.
TEST(PayloadJson, NullableFieldsAreTheirValuesOrNull) {
  const auto show = [](const std::string& field, const std::string& payload, int seen) {
    return Show(field, payload, PayloadStyle::kForPrograms,
                std::string(1, static_cast<char>(seen)));
  };
  using namespace collector;  // NOLINT(google-build-using-namespace)
  const std::string value = "\4\0\xFB\xFF\xFF\xFF"s;
  const std::string null = "\0\0"s;
  const std::string field = "n\0\x8D\x02"s;
  for (const int seen : {0, kSeen4Bytes + 0, kSeen4Bytes | kSeenNull, kSeen4Bytes | kSeenMisfit}) {
    EXPECT_EQ(show(field, value, seen), R"({"n":-5})") << seen;
  }
  for (const int seen : {0, kSeenNull + 0, kSeen4Bytes | kSeenNull, kSeenNull | kSeenMisfit}) {
    EXPECT_EQ(show(field, null, seen), R"({"n":null})") << seen;
  }
  const std::string array = "n\0\xCD\x02"s;
  for (const int seen : {0, kSeen4Bytes | kSeenNull, kSeen2Bytes | kSeen4Bytes | kSeenNull}) {
    EXPECT_EQ(show(array, absl::StrCat("\2\0"s, value, null), seen), R"({"n":[-5,null]})") << seen;
  }
  EXPECT_EQ(show(array, "\2\0"s + value + value, kSeen4Bytes), R"({"n":[-5,-5]})");
  EXPECT_EQ(show(array, "\2\0"s + null + null, kSeenNull), R"({"n":[null,null]})");
  for (const int seen : {0, kSeenNull | kSeen8Bytes}) {
    EXPECT_EQ(show("f\0\xCA\x08"s, "\2\0\x08\0\0\0\0\0\0\0\xF8\x3F\0\0"s, seen),
              R"({"f":[1.5,null]})");
    EXPECT_EQ(show("x\0\xCA\x03"s, "\2\0\x08\0\x1F\0\0\0\0\0\0\0\0\0"s, seen),
              R"({"x":["0x1f",null]})");
  }
  EXPECT_EQ(show("s\0\x8A\x02"s, "\3\0abc"s, kSeenMisfit), R"({"s":"abc"})");
  EXPECT_EQ(show("s\0\x8A\x02"s, "\3\0abc"s, 0), R"({"s":"abc"})");
  EXPECT_EQ(show("s\0\x8D\x02"s, "\3\0abc"s, kSeenMisfit), R"({"s":"616263"})");
}

TEST(PayloadJson, EveryFormatInArraysToo) {
  const struct {
    std::string type;  // Bytes of encoding and format.
    std::string value;
    const char* shown;
  } kCases[] = {
      {"\x84\x0B", "\x00\xF6\x01\x00"s, "\"\xF0\x9F\x98\x80\""},  // value32 string_utf
      {"\x83\x0B", "\xAC\x20"s, "\"\xE2\x82\xAC\""},              // value16 string_utf
      {"\x83\x07", "\1\0"s, "true"},                              // value16 boolean
      {"\x84\x07", "\0\0\0\0"s, "false"},                         // value32 boolean
      {"\x84\x07", "\2\0\0\0"s, "true"},                          // a Boolean32 in the file
      {"\x83\x07", "\2\0"s, "2"},                                 // a UInt16 in the file
      {"\x85\x03", "\1\2\3\4\5\6\7\x88"s, R"("0x8807060504030201")"},
      {"\x85\x01", "\1\2\3\4\5\6\7\x88"s, R"("9801809732607083009")"},
      {"\x84\x06", "\0\0\0\0"s, R"("1970-01-01T00:00:00Z")"},
      {"\x85\x08", "\0\0\0\0\0\0\xF8\x3F"s, "1.5"},
      {"\x83\x10", "\0\x50"s, "80"},
      {"\x86\x0F", "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"s,
       R"("00112233-4455-6677-8899-aabbccddeeff")"},
      {"\x86\x09", std::string(16, '\xAB'), R"("abababababababababababababababab")"},
      {"\x86\x11", "\xFE\x80"s + std::string(13, '\0') + "\1", R"("fe80::1")"},
      {"\x8D\x09", "\2\0\x01\xFF"s, R"("01ff")"},
      {"\x8D\x0F", "\0\0"s, "null"},
      {"\x8D\x11", "\4\0\x7F\0\0\1"s, R"("127.0.0.1")"},
  };
  for (const auto& [type, value, shown] : kCases) {
    SCOPED_TRACE(shown);
    EXPECT_EQ(Show("f\0"s + type, value), R"({"f":)"s + shown + "}");
    const std::string array{static_cast<char>(type[0] | 0x40), type[1]};
    const std::string elements = absl::StrCat("\2\0"s, value, value);
    if (type == "\x84\x0B" || type == "\x83\x0B") {
      // An array of characters is shown as one string.
      const std::string text = std::string(shown).substr(1, std::strlen(shown) - 2);
      EXPECT_EQ(Show("f\0"s + array, elements), absl::StrCat(R"({"f":")", text, text, R"("})"));
      continue;
    }
    EXPECT_EQ(Show("f\0"s + array, elements), R"({"f":[)"s + shown + "," + shown + "]}");
  }
}

TEST(PayloadJson, NamesOfErrnosAreSymbols) {
  using nettrace::Type;
  using nettrace::TypeCode;
  const Type number = Type::Simple(TypeCode::kInt32);
  nettrace::EventMetadata metadata;
  metadata.fields = {{"e", number},
                     {"a", Type::Array(number)},
                     {"s", Type::Object({{"e", number}})},
                     {"none", number},
                     {"l", Type::Simple(TypeCode::kInt64)}};
  metadata.key_values = {{"EventHeader.Field.0", "value32 errno"},
                         {"EventHeader.Field.1", "value32 errno"},
                         {"EventHeader.Field.3", "value32 errno"},
                         {"EventHeader.Field.4", "value32 errno"},
                         {"EventHeader.Field.5", "value64 errno"}};
  const std::vector<std::byte> payload = tests::ToBytes(
      "\2\0\0\0"
      "\2\0\1\0\0\0\0\0\0\0"
      "\x16\0\0\0"
      "\0\0\0\0"
      "\2\0\0\0\0\0\0\0"s);
  nettrace::Event event;
  event.metadata = &metadata;
  event.payload = payload;
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  PayloadJson payloads(PayloadStyle::kForPrograms);
  json.StartObject();
  json.Key("payload");
  ASSERT_TRUE(payloads.Put(event, &json).ok());
  payloads.PutSymbols("symbols", &json);
  json.EndObject();
  EXPECT_EQ(buffer.GetString(), R"({"payload":{"e":2,"a":[1,0],"s":{"e":22},"none":0,"l":2},)"
                                R"("symbols":{"e":"ENOENT","a":["EPERM",null],"s.e":"EINVAL"}})"s);
}

// Returns the extras of an event with the field definitions, as a sequence of `name=json;`.
std::string Extras(const nettrace::EventMetadata& metadata) {
  PayloadJson payloads(PayloadStyle::kForPrograms);
  std::string text;
  for (const auto& [name, json] : payloads.NotesOf(metadata).extras)
    absl::StrAppend(&text, name, "=", json, ";");
  return text;
}

TEST(PayloadJson, TagsAttributesAndGroupsAreExtras) {
  nettrace::EventMetadata metadata;
  metadata.event_id = 77;
  using nettrace::Type;
  using nettrace::TypeCode;
  const Type number = Type::Simple(TypeCode::kInt32);
  metadata.fields = {
      {"a", number},
      {"s", Type::Array(Type::Object({{"b", number}, {"t", Type::Object({{"c", number}})}}))},
      {"d", number}};
  EXPECT_EQ(Extras(metadata), "");
  metadata.key_values = {{"EventHeader.Tracepoint", "P_L4K1Gmygroup"},
                         {"EventHeader.Id", "12"},
                         {"EventHeader.Tag", "0x12"},
                         {"EventHeader.Group", "mygroup"},
                         {"EventHeader.Attributes", "k=my;;value;l=\""},
                         {"EventHeader.Field.0", "value32 hex_int tag=0x1"},
                         {"EventHeader.Field.1", "struct attr=x=1"},
                         {"EventHeader.Field.2", "value32 signed_int tag=0x2 attr=y=2;z=3"},
                         {"EventHeader.Field.4", "value32 errno tag=0xffff"},
                         {"EventHeader.Field.5", "value32 errno"}};
  EXPECT_EQ(Extras(metadata), R"(tag="0x12";group="mygroup";attributes={"k":"my;value","l":"\""};)"
                              R"(fieldTags={"a":"0x1","s.b":"0x2","s.t.c":"0xffff"};)"
                              R"(fieldAttributes={"s":{"x":"1"},"s.b":{"y":"2","z":"3"}};)");
  PayloadJson payloads(PayloadStyle::kRaw);
  EXPECT_EQ(payloads.NotesOf(metadata).id, 12u);
}

TEST(PayloadJson, ExtrasHaveEachKeyOnce) {
  nettrace::EventMetadata metadata;
  metadata.key_values = {{"EventHeader.Tag", "0x1"},
                         {"EventHeader.Tag", "0x2"},
                         {"EventHeader.Attributes", "k=a;k=b;l=c"}};
  EXPECT_EQ(Extras(metadata), R"(tag="0x1";attributes={"k":["a","b"],"l":"c"};)");
}

TEST(PayloadJson, CutPayloadIsACompleteObjectWithTheReason) {
  nettrace::EventMetadata metadata;
  using nettrace::Type;
  using nettrace::TypeCode;
  metadata.fields = {{"i", Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 4)}};
  metadata.key_values = {{"EventHeader.Field.0", "value32 ip_address"}};
  const std::string shown = Show(metadata, tests::ToBytes("\1\2"), PayloadStyle::kForPrograms);
  EXPECT_EQ(shown.rfind(R"({"i":)", 0), 0u) << shown;
  EXPECT_NE(shown.find("} ("), std::string::npos) << shown;
}

TEST(PayloadJson, UnreadableValuesAreNullOrNamed) {
  nettrace::EventMetadata metadata;
  using nettrace::Type;
  using nettrace::TypeCode;
  metadata.fields = {{"e", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))},
                     {"s", Type::RelLoc(Type::Simple(TypeCode::kUtf8CodeUnit))},
                     {"n", Type::Simple(TypeCode::kInt16)},
                     {"m", Type::Simple(TypeCode::kInt16)}};
  const std::vector<std::byte> payload = tests::ToBytes("\0\0\x40\0\1\0\7\0\1"s);
  EXPECT_EQ(Show(metadata, payload, PayloadStyle::kForPrograms),
            R"({"e":"","s":null,"n":7,"m":null} )"
            "(the location of a field is outside the payload)");
  EXPECT_EQ(Show(metadata, payload, PayloadStyle::kForPeople),
            R"({"e":"","s":unreadable,"n":7,"m":unreadable} )"
            "(the location of a field is outside the payload)");
}

TEST(PayloadJson, RawTextThatIsMalformedIsItsUnits) {
  nettrace::EventMetadata metadata;
  using nettrace::Type;
  using nettrace::TypeCode;
  metadata.fields = {{"a", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))},
                     {"b", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))},
                     {"c", Type::Simple(TypeCode::kNullTerminatedUtf16String)}};
  const std::vector<std::byte> payload =
      tests::ToBytes("\2\0\xC3\xA9\2\0a\xFF"s + "b\0\0\xD8\0\0"s);
  EXPECT_EQ(Show(metadata, payload, PayloadStyle::kRaw),
            "{\"a\":\"\xC3\xA9\",\"b\":[97,255],\"c\":[98,55296]}");
  EXPECT_EQ(Show(metadata, payload, PayloadStyle::kForPrograms),
            "{\"a\":\"\xC3\xA9\",\"b\":\"a\xEF\xBF\xBD\","
            "\"c\":\"b\xEF\xBF\xBD\"}");
}

TEST(PayloadJson, SingleCharactersAreText) {
  const std::string fields =
      "a\0\x82\x0A"s
      "b\0\x82\x0B"s
      "c\0\x83\x0B"s
      "d\0\xA2\x0A\2\0"s;
  EXPECT_EQ(Show(fields,
                 "\xE9"
                 "bc\0xy"s),
            "{\"a\":\"\xC3\xA9\",\"b\":\"b\",\"c\":\"c\",\"d\":\"xy\"}");
}

// Any process may have written the keys EventHeader.Field.N, so they may contradict the types.
TEST(PayloadJson, IgnoresNotesThatContradictTheType) {
  using nettrace::Type;
  using nettrace::TypeCode;
  const Type number = Type::Simple(TypeCode::kInt32);
  const struct {
    Type type;
    const char* note;
    std::string payload;
    const char* shown;
  } kCases[] = {
      {number, "value32 ip_address", "\1\0\0\0"s, "1"},
      {Type::FixedLengthArray(number, 1), "value32 ip_address", "\1\0\0\0"s, "[1]"},
      {Type::Array(Type::Object({})), "value32 ip_address", "\1\0"s, "[{}]"},
      {Type::Object({{"m", number}}), "value32 hex_int", "\1\0\0\0"s, R"({"m":1})"},
      {number, "struct tag=0x1", "\1\0\0\0"s, "1"},
      {number, "value128 uuid", "\1\0\0\0"s, "1"},
      {number, "value8 boolean", "\0\1\0\0"s, "256"},
      {number, "value16 pid", "\0\0\1\0"s, "65536"},
      {number, "value64 unsigned_int", "\xff\xff\xff\xff"s, "-1"},
      {number, "value32 float", "\0\0\x80\x3f"s, "1065353216"},
      {Type::Array(number), "value8 hex_int", "\1\0\0\1\0\0"s, "[256]"},
      {Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 2), "value32 ip_address", "\1\2"s,
       R"("0102")"},
      {Type::Array(Type::Simple(TypeCode::kByte)), "value128 ip_address", "\3\0\1\2\3"s,
       R"("010203")"},
      {Type::Array(Type::Simple(TypeCode::kByte)), "value32 ip_address", "\0\0"s, R"("")"},
      {number, "binary_length16_char8 string_utf", "\1\0\0\0"s, "1"},
      {Type::Array(number), "binary_length16_char8 signed_int", "\2\0\7\0\0\0\6\0\0\0"s, "7"},
      {Type::Array(number), "binary_length16_char8 signed_int", "\0\0"s, "null"},
      {Type::Array(Type::Object({{"Value", Type::Array(number)}, {"x", number}})),
       "binary_length16_char8 signed_int", "\0\0"s, "[]"},
      {Type::Array(Type::Object({{"Value", Type::Array(Type::Simple(TypeCode::kVarInt))}})),
       "binary_length16_char8 signed_int", "\2\0\1\0\2\0\0"s, "[1,null]"},
      {Type::Array(Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))),
       "binary_length16_char8 uuid", "\2\0\1\0a\0\0"s, R"(["a",null])"},
      // The form in older recordings.
      {Type::Array(Type::Simple(TypeCode::kUInt16)), "string_length16_char16 hex_bytes", "\1\0ab"s,
       R"("6162")"},
      {Type::Simple(TypeCode::kUInt32), "value32 string_utf", "a\0\0\0"s, R"("a")"},
      {number, "no note", "\1\0\0\0"s, "1"},
  };
  for (const auto& test : kCases) {
    nettrace::EventMetadata metadata;
    metadata.fields = {{"f", test.type}};
    metadata.key_values = {{"EventHeader.Field.0", test.note},
                           {"EventHeader.Field.7", "value8 pid"}};
    EXPECT_EQ(Show(metadata, tests::ToBytes(test.payload), PayloadStyle::kForPrograms),
              R"({"f":)"s + test.shown + "}")
        << test.note;
  }
}

// Returns a kernel tracepoint's event, as JSON with its symbols. `bytes`: size of its payload,
// which is cut if the size is less than 29.
std::string ShowTracepoint(const nettrace::KeyValues& keys, PayloadStyle style,
                           std::size_t bytes = 29) {
  using nettrace::Type;
  using nettrace::TypeCode;
  nettrace::EventMetadata metadata;
  metadata.fields = {{"vec", Type::Simple(TypeCode::kInt32)},
                     {"flags", Type::Simple(TypeCode::kInt32)},
                     {"saddr", Type::FixedLengthArray(Type::Simple(TypeCode::kByte), 4)},
                     {"ip", Type::Simple(TypeCode::kUInt64)},
                     {"comm", Type::Array(Type::Simple(TypeCode::kUtf8CodeUnit))},
                     {"on", Type::Simple(TypeCode::kBoolean8)}};
  metadata.key_values = keys;
  nettrace::Labels labels;
  labels.strings = {{"Symbol.ip", "do_work+0x4"}};
  const std::vector<std::byte> payload =
      tests::ToBytes("\3\0\0\0"s + "\xFF\xFF\xFF\xFF" + "\x7F\0\0\1"s + "\1\0\0\0\0\0\0\x80"s +
                     "\6\0w\xC3\xB6rk\"\1"s);
  nettrace::Event event;
  event.metadata = &metadata;
  event.labels = &labels;
  event.payload = std::span(payload).first(std::min(bytes, payload.size()));
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  json.Key("payload");
  PayloadJson payloads(style);
  const absl::Status status = payloads.Put(event, &json);
  payloads.PutSymbols("symbols", &json);
  json.EndObject();
  EXPECT_TRUE(json.IsComplete()) << buffer.GetString();
  if (status.ok() && (style == PayloadStyle::kForPrograms || style == PayloadStyle::kRaw)) {
    const std::string members = "{\"payload\":" + ShowMembers(event, style);
    EXPECT_EQ(std::string(buffer.GetString()).substr(0, members.size()), members);
  }
  return buffer.GetString() + (status.ok() ? "" : " (" + std::string(status.message()) + ")");
}

const nettrace::KeyValues kNotes = {{"Tracepoint.Field.vec", R"(symbol(vec,3="NET_RX"))"},
                                    {"Tracepoint.Field.flags", R"(hex flags(flags,"|",1="A"))"},
                                    {"Tracepoint.Field.saddr", "ipv4(saddr)"},
                                    {"Tracepoint.Field.ip", "hex kernel(ip)"},
                                    {"Tracepoint.Field.absent", "hex"},
                                    {"Tracepoint.Field.on", "no note("}};

// Symbols of earlier values are kept, and must not be shown for other values.
TEST(TracepointJson, SymbolsAreThoseOfEachEvent) {
  using nettrace::Type;
  using nettrace::TypeCode;
  nettrace::EventMetadata metadata;
  metadata.fields = {{"a", Type::Simple(TypeCode::kByte)}, {"b", Type::Simple(TypeCode::kByte)}};
  metadata.key_values = {
      {"Tracepoint.Field.a", R"(symbol((a+b),3="three",4="four",5=" ",6="a text of more than )" +
                                 std::string(64, 'x') + R"("))"},
      {"Tracepoint.Field.b", "kernel(b)"}};
  PayloadJson payloads(PayloadStyle::kForPeople);
  for (int round = 0; round < 3; ++round) {
    for (int a = 0; a < 16; ++a) {
      for (int b = 0; b < 3; ++b) {
        const std::byte payload[] = {static_cast<std::byte>(a), static_cast<std::byte>(b)};
        nettrace::Labels labels;
        labels.strings = {{"Symbol.b", absl::StrCat("b", round)}};
        nettrace::Event event;
        event.metadata = &metadata;
        event.labels = &labels;
        event.payload = payload;
        PayloadJson once(PayloadStyle::kForPeople);
        rapidjson::StringBuffer expected;
        base::JsonWriter expected_json(expected);
        ASSERT_TRUE(once.Put(event, &expected_json).ok());
        ASSERT_TRUE(payloads.Put(event, payloads.StartJson()).ok());
        EXPECT_EQ(payloads.json(), expected.GetString());
        if (a + b == 4) {
          EXPECT_EQ(payloads.json(),
                    absl::StrFormat(R"x({"a":"%d (four)","b":"%d (b%d)"})x", a, b, round));
        }
      }
    }
  }
}

TEST(PayloadJson, TextOfRowsIsShownAlsoIfItIsNotKept) {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  PayloadJson payloads(PayloadStyle::kForPrograms);
  std::vector<nettrace::EventMetadata> rows(PayloadJson::kMaxKeptText / kSize);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].provider = std::string(kSize, static_cast<char>('a' + i));
    rows[i].name = absl::StrCat("E", i);
    rows[i].event_id = static_cast<std::uint32_t>(i);
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::string& provider = rows[i].provider;
      EXPECT_TRUE(payloads.TextOf(rows[i]) == absl::StrCat(provider, " E", i)) << i;
      EXPECT_TRUE(payloads.JsonOf(rows[i]) ==
                  absl::StrFormat(R"("provider":"%s","name":"E%d","id":%d)", provider, i, i))
          << i;
    }
    payloads.ForgetRows();
  }
}

TEST(TracepointJson, SymbolsStandBesideThePayload) {
  EXPECT_EQ(ShowTracepoint(kNotes, PayloadStyle::kForPrograms),
            "{\"payload\":{\"vec\":3,\"flags\":\"0xffffffff\",\"saddr\":[127,0,0,1],"
            "\"ip\":\"0x8000000000000001\",\"comm\":\"w\xC3\xB6rk\\\"\",\"on\":true},"
            "\"symbols\":{\"vec\":\"NET_RX\",\"flags\":\"A|0xfffffffe\","
            "\"saddr\":\"127.0.0.1\",\"ip\":\"do_work+0x4\"}}");
}

TEST(TracepointJson, PeopleSeeThemInThePayload) {
  const std::string shown = ShowTracepoint(kNotes, PayloadStyle::kForPeople);
  EXPECT_NE(shown.find(R"~("vec":"3 (NET_RX)")~"), std::string::npos) << shown;
  EXPECT_NE(shown.find(R"("saddr":"127.0.0.1")"), std::string::npos) << shown;
  EXPECT_NE(shown.find(R"~("ip":"0x8000000000000001 (do_work+0x4)")~"), std::string::npos) << shown;
}

TEST(TracepointJson, RawValuesFollowTheirTypes) {
  EXPECT_EQ(ShowTracepoint(kNotes, PayloadStyle::kRaw), ShowTracepoint({}, PayloadStyle::kRaw));
}

TEST(TracepointJson, ShowsTheIntactPartOfACutPayload) {
  const std::string shown = ShowTracepoint(kNotes, PayloadStyle::kForPrograms, 9);
  EXPECT_NE(shown.find(R"("vec":3)"), std::string::npos) << shown;
  EXPECT_EQ(shown.find("127.0.0.1"), std::string::npos) << shown;
  EXPECT_NE(ShowTracepoint(kNotes, PayloadStyle::kForPrograms, 6).find(R"("flags":null})"),
            std::string::npos);
  EXPECT_NE(ShowTracepoint(kNotes, PayloadStyle::kForPeople, 6).find(R"("flags":unreadable})"),
            std::string::npos);
}

}  // namespace
}  // namespace trace
