#include "tests/conformance/type_cases.h"

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace conformance {
namespace {

using nettrace::Field;
using nettrace::Type;
using nettrace::TypeCode;
using P = Payload;

constexpr TypeCode kUtf16 = TypeCode::kUtf16CodeUnit;
constexpr TypeCode kUtf8 = TypeCode::kUtf8CodeUnit;
constexpr TypeCode kZUtf16 = TypeCode::kNullTerminatedUtf16String;
constexpr TypeCode kI32 = TypeCode::kInt32;

// The bytes of 00112233-4455-6677-8899-aabbccddeeff in a file.
constexpr std::array<std::uint8_t, 16> kGuid = {0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
                                                0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};
constexpr char kGuidJson[] = "\"00112233-4455-6677-8899-aabbccddeeff\"";
constexpr std::array<std::uint8_t, 16> kBytes = {0, 1, 2,  3,  4,  5,  6,  7,
                                                 8, 9, 10, 11, 12, 13, 14, 255};
constexpr char kBytesJson[] = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,255]";

Type S(TypeCode code) { return Type::Simple(code); }
Type A(Type element) { return Type::Array(std::move(element)); }
Type A(TypeCode element) { return A(S(element)); }
Type F(Type element, std::uint16_t count) {
  return Type::FixedLengthArray(std::move(element), count);
}
Type F(TypeCode element, std::uint16_t count) { return F(S(element), count); }
Type O(std::vector<Field> fields) { return Type::Object(std::move(fields)); }

constexpr std::int32_t kSentinel = 0x12345678;

// Returns a case with a field `a` of this type. The field after it shows whether its size was
// decoded correctly.
TypeCase One(std::string name, Type type, P payload, const std::string& json) {
  return {std::move(name),
          {{"a", std::move(type)}, {"z", S(kI32)}},
          std::move(payload.Put(kSentinel)),
          "{\"a\":" + json + ",\"z\":" + std::to_string(kSentinel) + "}"};
}

// Returns a case whose fields come after a field of variable size, so that their place varies.
TypeCase Behind(std::string name, Type type, const P& payload, const std::string& json) {
  P all;
  all.ZeroTerminated(u"front");
  for (const std::byte byte : payload.bytes()) all.Put(byte);
  return {std::move(name),
          {{"f", S(kZUtf16)}, {"a", std::move(type)}, {"z", S(kI32)}},
          std::move(all.Put(kSentinel)),
          "{\"f\":\"front\",\"a\":" + json + ",\"z\":" + std::to_string(kSentinel) + "}"};
}

template <typename T>
using Limits = std::numeric_limits<T>;

// Adds cases of a type of a fixed size, alone and in both kinds of arrays.
template <typename T>
void AddFixed(const std::string& name, TypeCode code, T one, const std::string& one_json, T two,
              const std::string& two_json, std::vector<TypeCase>* cases) {
  const std::string both = "[" + one_json + "," + two_json + "]";
  cases->push_back(One(name, S(code), P().Put(one), one_json));
  cases->push_back(One(name + "Other", S(code), P().Put(two), two_json));
  cases->push_back(One("ArrayOf" + name, A(code), P().Count(2).Put(one).Put(two), both));
  cases->push_back(One("EmptyArrayOf" + name, A(code), P().Count(0), "[]"));
  cases->push_back(One("FixedLengthArrayOf" + name, F(code, 2), P().Put(one).Put(two), both));
}

template <typename T>
void AddInteger(const std::string& name, TypeCode code, std::vector<TypeCase>* cases) {
  AddFixed(name, code, Limits<T>::min(), std::to_string(Limits<T>::min()), Limits<T>::max(),
           std::to_string(Limits<T>::max()), cases);
}

void AddScalars(std::vector<TypeCase>* cases) {
  AddInteger<std::int8_t>("SByte", TypeCode::kSByte, cases);
  AddInteger<std::uint8_t>("Byte", TypeCode::kByte, cases);
  AddInteger<std::int16_t>("Int16", TypeCode::kInt16, cases);
  AddInteger<std::uint16_t>("UInt16", TypeCode::kUInt16, cases);
  AddInteger<std::int32_t>("Int32", TypeCode::kInt32, cases);
  AddInteger<std::uint32_t>("UInt32", TypeCode::kUInt32, cases);
  AddInteger<std::int64_t>("Int64", TypeCode::kInt64, cases);
  AddInteger<std::uint64_t>("UInt64", TypeCode::kUInt64, cases);
  AddFixed("Boolean8", TypeCode::kBoolean8, std::uint8_t{1}, "true", std::uint8_t{0}, "false",
           cases);
  AddFixed("Boolean32", TypeCode::kBoolean32, std::uint32_t{1}, "true", std::uint32_t{0}, "false",
           cases);
  AddFixed("Single", TypeCode::kSingle, 1.5F, "1.5", 0.1F, "0.1", cases);
  AddFixed("Double", TypeCode::kDouble, -2.25, "-2.25", 0.1, "0.1", cases);
  AddFixed("Guid", TypeCode::kGuid, kGuid, kGuidJson, kGuid, kGuidJson, cases);
  cases->push_back(One("VarInt", S(TypeCode::kVarInt), P().VarInt(-300), "-300"));
  cases->push_back(One("VarIntLeast", S(TypeCode::kVarInt), P().VarInt(Limits<std::int64_t>::min()),
                       std::to_string(Limits<std::int64_t>::min())));
  cases->push_back(One("VarUInt", S(TypeCode::kVarUInt), P().VarUint(300), "300"));
  cases->push_back(One("VarUIntGreatest", S(TypeCode::kVarUInt),
                       P().VarUint(Limits<std::uint64_t>::max()),
                       std::to_string(Limits<std::uint64_t>::max())));
  cases->push_back(One("ArrayOfVarInt", A(TypeCode::kVarInt),
                       P().Count(3).VarInt(-300).VarInt(0).VarInt(5000), "[-300,0,5000]"));
  cases->push_back(One("ArrayOfVarUInt", A(TypeCode::kVarUInt),
                       P().Count(3).VarUint(300).VarUint(0).VarUint(5000), "[300,0,5000]"));
}

void AddText(std::vector<TypeCase>* cases) {
  using std::string_view_literals::operator""sv;
  const std::string text = "\"hé漢😀\"";
  cases->push_back(One("Utf16CodeUnit", S(kUtf16), P().Put(u'é'), "\"é\""));
  cases->push_back(One("Utf8CodeUnit", S(kUtf8), P().Put('x'), "\"x\""));
  cases->push_back(One("ZeroTerminated", S(kZUtf16), P().ZeroTerminated(u"hé漢😀"), text));
  cases->push_back(One("EmptyZeroTerminated", S(kZUtf16), P().ZeroTerminated(u""), "\"\""));
  cases->push_back(One("Utf16Text", A(kUtf16), P().Text(u"hé漢😀"), text));
  cases->push_back(One("EmptyUtf16Text", A(kUtf16), P().Text(u""), "\"\""));
  cases->push_back(One("AsciiText", A(kUtf8), P().Text("hello"), "\"hello\""));
  cases->push_back(One("EmptyUtf8Text", A(kUtf8), P().Text(""), "\"\""));
  cases->push_back(One("FixedUtf16Text", F(kUtf16, 3), P().Units(u"aéc"), "\"aéc\""));
  cases->push_back(One("FixedAsciiText", F(kUtf8, 3), P().Units("abc"), "\"abc\""));
  cases->push_back(
      One("ArrayOfZeroTerminated", A(kZUtf16),
          P().Count(3).ZeroTerminated(u"one").ZeroTerminated(u"").ZeroTerminated(u"dreißig"),
          "[\"one\",\"\",\"dreißig\"]"));
  cases->push_back(One("EmptyArrayOfZeroTerminated", A(kZUtf16), P().Count(0), "[]"));
  cases->push_back(One("FixedLengthArrayOfZeroTerminated", F(kZUtf16, 2),
                       P().ZeroTerminated(u"one").ZeroTerminated(u"two"), "[\"one\",\"two\"]"));
  cases->push_back(One("ArrayOfUtf16Text", A(A(kUtf16)), P().Count(2).Text(u"one").Text(u"zwölf"),
                       "[\"one\",\"zwölf\"]"));
  cases->push_back(One("ArrayOfAsciiText", A(A(kUtf8)), P().Count(2).Text("one").Text("two"),
                       "[\"one\",\"two\"]"));
  // Text of a fixed size ends where its padding begins.
  cases->push_back(One("PaddedText", F(kUtf8, 4), P().Units("ab\0\0"sv), "\"ab\""));
  cases->push_back(
      One("LoneSurrogate", A(kUtf16), P().Count(2).Put(char16_t{0xD83D}).Put(u'x'), "\"\ufffdx\""));
}

void AddObjects(std::vector<TypeCase>* cases) {
  const Type pair = O({{"x", S(kI32)}, {"y", S(TypeCode::kSByte)}});
  const auto put_pair = [](P& p, std::int32_t x, std::int8_t y) { p.Put(x).Put(y); };
  P one_pair;
  put_pair(one_pair, 1, -1);
  P two_pairs;
  put_pair(two_pairs, 1, -1);
  put_pair(two_pairs, 2, -2);
  const std::string pairs_json = R"([{"x":1,"y":-1},{"x":2,"y":-2}])";
  P counted_pairs;
  counted_pairs.Count(2);
  put_pair(counted_pairs, 1, -1);
  put_pair(counted_pairs, 2, -2);

  cases->push_back(One("Object", pair, one_pair, R"({"x":1,"y":-1})"));
  cases->push_back(Behind("ObjectBehind", pair, one_pair, R"({"x":1,"y":-1})"));
  cases->push_back(One("EmptyObject", O({}), P(), "{}"));
  cases->push_back(One("ArrayOfObject", A(pair), counted_pairs, pairs_json));
  cases->push_back(One("EmptyArrayOfObject", A(pair), P().Count(0), "[]"));
  cases->push_back(One("FixedLengthArrayOfObject", F(pair, 2), two_pairs, pairs_json));
  cases->push_back(Behind("FixedLengthArrayOfObjectBehind", F(pair, 2), two_pairs, pairs_json));

  const Type holder = O({{"n", A(kI32)}, {"t", A(kUtf16)}, {"b", S(TypeCode::kBoolean8)}});
  const auto put_holder = [](P& p) {
    p.Count(2).Put(std::int32_t{1}).Put(std::int32_t{2}).Text(u"tö").Put(std::uint8_t{1});
  };
  const std::string holder_json = R"({"n":[1,2],"t":"tö","b":true})";
  P held;
  put_holder(held);
  cases->push_back(One("ObjectHoldingArrays", holder, held, holder_json));
  cases->push_back(Behind("ObjectHoldingArraysBehind", holder, held, holder_json));
  P two_held;
  two_held.Count(2);
  put_holder(two_held);
  put_holder(two_held);
  cases->push_back(One("ArrayOfObjectHoldingArrays", A(holder), two_held,
                       "[" + holder_json + "," + holder_json + "]"));
  cases->push_back(One("ObjectHoldingFixedLengthArray", O({{"v", F(kI32, 2)}}),
                       P().Put(std::int32_t{1}).Put(std::int32_t{2}), R"({"v":[1,2]})"));
  cases->push_back(
      One("ArrayOfBytesInObject", A(O({{"Value", F(TypeCode::kByte, 16)}})),
          P().Count(2).Put(kBytes).Put(kBytes),
          std::string("[{\"Value\":") + kBytesJson + "},{\"Value\":" + kBytesJson + "}]"));
  cases->push_back(One("ArrayOfBinaryInObject", A(O({{"Value", A(TypeCode::kByte)}})),
                       P().Count(2).Text("\x01\x02").Text(""),
                       R"([{"Value":[1,2]},{"Value":[]}])"));
  cases->push_back(One("ArrayInArrayOfObject", A(O({{"x", A(O({{"y", A(kUtf16)}}))}})),
                       P().Count(2).Count(2).Text(u"p").Text(u"qq").Count(1).Text(u"r"),
                       R"([{"x":[{"y":"p"},{"y":"qq"}]},{"x":[{"y":"r"}]}])"));

  Type nested = O({{"t", A(kUtf16)}, {"n", S(kI32)}});
  std::string nested_json = R"({"t":"deep","n":3})";
  for (int depth = 2; depth <= 8; ++depth) {
    nested = O({{"o", std::move(nested)}});
    nested_json.insert(0, "{\"o\":").append("}");
  }
  cases->push_back(
      One("ObjectsEightDeep", nested, P().Text(u"deep").Put(std::int32_t{3}), nested_json));
}

// The value of `a` is somewhere after the fields. Its position counts from the payload's start in a
// DataLoc, and from the end of `a` in a RelLoc.
void AddLocations(std::vector<TypeCase>* cases) {
  const auto located = [cases](std::string name, Type type, P payload, std::string_view units,
                               const std::string& json) {
    TypeCase located_case = One(std::move(name), std::move(type), std::move(payload), json);
    located_case.payload.Units(units);
    cases->push_back(std::move(located_case));
  };
  located("DataLocOfText", Type::DataLoc(S(kUtf8)), P().Location(5, 8), "hello", "\"hello\"");
  located("DataLocOfNoText", Type::DataLoc(S(kUtf8)), P().Location(0, 8), "", "\"\"");
  located("DataLocOfBytes", Type::DataLoc(S(TypeCode::kByte)), P().Location(3, 8), "\x01\x02\x03",
          "[1,2,3]");
  located("DataLocOfUInt16", Type::DataLoc(S(TypeCode::kUInt16)), P().Location(4, 8),
          std::string_view("\x01\x00\x02\x00", 4), "[1,2]");
  located("DataLocOfObject",
          Type::DataLoc(O({{"x", S(TypeCode::kByte)}, {"y", S(TypeCode::kByte)}})),
          P().Location(4, 8), "\x01\x02\x03\x04", R"([{"x":1,"y":2},{"x":3,"y":4}])");
  located("RelLocOfText", Type::RelLoc(S(kUtf8)), P().Location(5, 4), "hello", "\"hello\"");
  located("RelLocOfBytes", Type::RelLoc(S(TypeCode::kByte)), P().Location(3, 4), "\x01\x02\x03",
          "[1,2,3]");
  located("RelLocOfUInt16", Type::RelLoc(S(TypeCode::kUInt16)), P().Location(4, 4),
          std::string_view("\x01\x00\x02\x00", 4), "[1,2]");
  located("DataLocOfZeroTerminated", Type::DataLoc(S(kUtf8)), P().Location(3, 8),
          std::string_view("ab\0", 3), "\"ab\"");
  cases->push_back({"TwoDataLocs",
                    {{"a", Type::DataLoc(S(kUtf8))}, {"b", Type::DataLoc(S(kUtf8))}},
                    P().Location(3, 8).Location(4, 11).Units("onefour"),
                    R"({"a":"one","b":"four"})"});
}

void AddWholePayloads(std::vector<TypeCase>* cases) {
  cases->push_back({"NoFields", {}, P(), "{}"});
  cases->push_back({"NoFieldsButBytes", {}, P().Units("abc"), "{}"});
  cases->push_back({"BytesBehindTheLastField",
                    {{"a", S(kI32)}},
                    P().Put(kSentinel).Units("padding"),
                    "{\"a\":" + std::to_string(kSentinel) + "}"});
  cases->push_back({"FieldNames",
                    {{"größe", S(kI32)}, {"with space", S(kI32)}, {"\"quoted\"", S(kI32)}},
                    P().Put(std::int32_t{1}).Put(std::int32_t{2}).Put(std::int32_t{3}),
                    R"({"größe":1,"with space":2,"\"quoted\"":3})"});
  TypeCase many{"TwoHundredFields", {}, P(), "{"};
  for (int i = 0; i < 200; ++i) {
    many.fields.push_back({"f" + std::to_string(i), S(kI32)});
    many.payload.Put(std::int32_t{i});
    many.json += (i == 0 ? "\"f" : ",\"f") + std::to_string(i) + "\":" + std::to_string(i);
  }
  many.json += "}";
  cases->push_back(std::move(many));
}

}  // namespace

std::vector<TypeCase> TypeCases() {
  std::vector<TypeCase> cases;
  AddScalars(&cases);
  AddText(&cases);
  AddObjects(&cases);
  AddLocations(&cases);
  AddWholePayloads(&cases);
  return cases;
}

std::vector<TypeCase> QuirkCases() {
  using std::string_view_literals::operator""sv;
  std::vector<TypeCase> cases;
  cases.push_back(One("Utf8Text", A(kUtf8), P().Text("hé漢😀"), "\"hé漢😀\""));
  cases.push_back(One("FixedUtf8Text", F(kUtf8, 4), P().Units("aéc"), "\"aéc\""));
  cases.push_back(One("ZeroInUtf8Text", A(kUtf8), P().Text("ab\0cd"sv), "\"ab\\u0000cd\""));
  cases.push_back(One("ZeroInUtf16Text", A(kUtf16), P().Text(u"ab\0cd"sv), "\"ab\\u0000cd\""));
  return cases;
}

}  // namespace conformance
