#include <gtest/gtest.h>

#include <string>

#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"
#include "tests/support/eventheader/event_bytes.h"
#include "tests/support/eventheader/json_check.h"

namespace eh {
namespace {

using testing::AsBytes;
using testing::EventBytes;
using testing::FromHex;
using testing::IsValidJson;
using testing::Name;

std::string Json(const std::string& bytes, std::string_view provider = "") {
  EventView event;
  EXPECT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  std::string text;
  AppendEventJson(event, provider, &text);
  EXPECT_TRUE(IsValidJson(text)) << text;
  return text;
}

// Formats an event with these fields as JSON, and returns the members of its object "fields".
std::string Fields(const std::string& fields, const std::string& payload) {
  const std::string text = Json(EventBytes(Name("E") + fields, payload));
  const std::string head = R"({"name":"E","level":4,"fields":{)";
  EXPECT_TRUE(text.starts_with(head)) << text;
  EXPECT_TRUE(text.ends_with("}}")) << text;
  return text.substr(head.size(), text.size() - head.size() - 2);
}

// Returns the JSON of a scalar of `type`, which is its encoding and format in hex.
std::string Value(std::string_view type, std::string_view payload) {
  const std::string text = Fields(Name("v") + FromHex(type), FromHex(payload));
  EXPECT_TRUE(text.starts_with("\"v\":")) << text;
  return text.substr(4);
}

// Returns the JSON of a zstring_char8 of `format`.
std::string Text8(std::string_view format, const std::string& text) {
  return Fields(Name("v") + FromHex("87") + FromHex(format), Name(text)).substr(4);
}

TEST(EventJson, HeaderExtensionsAndFields) {
  const std::string metadata =
      Name("Request;k=v") + Name("path") + FromHex("0a") + Name("n") + FromHex("02");
  const std::string bytes =
      FromHex("07 02 0100 0300 01 04") + FromHex("2000 0280") +
      FromHex("00112233445566778899aabbccddeeff") + FromHex("0f0e0d0c0b0a09080706050403020100") +
      static_cast<char>(metadata.size()) + FromHex("00 0100") + metadata + FromHex("0100 2f 07");
  EXPECT_EQ(Json(bytes, "MyProvider"),
            R"({"provider":"MyProvider","name":"Request","level":4,"opcode":1,"id":1,)"
            R"("version":2,"tag":3,"activityId":"00112233-4455-6677-8899-aabbccddeeff",)"
            R"("relatedActivityId":"0f0e0d0c-0b0a-0908-0706-050403020100",)"
            R"("fields":{"path":"/","n":7}})");
}

TEST(EventJson, EventWithoutMetadataShowsItsBytes) {
  EXPECT_EQ(Json(FromHex("03 00 0000 0000 00 04 00ff")), R"({"level":4,"data":"00ff"})");
  EXPECT_EQ(Json(FromHex("03 00 0000 0000 00 04")), R"({"level":4})");
}

TEST(EventJson, StructsAndArrays) {
  EXPECT_EQ(Fields(Name("s") + FromHex("c1 02") + Name("a") + FromHex("02") + Name("b") +
                       FromHex("42") + Name("t") + FromHex("81 01") + Name("c") + FromHex("02"),
                   FromHex("0200 01 0000 02 0200 0304 05")),
            R"("s":[{"a":1,"b":[]},{"a":2,"b":[3,4]}],"t":{"c":5})");
}

TEST(EventJson, TruncatedPayloadClosesOpenBrackets) {
  EXPECT_EQ(Json(EventBytes(Name("E") + Name("s") + FromHex("c1 01") + Name("b") + FromHex("42"),
                            FromHex("0200 0300 01"))),
            R"({"name":"E","level":4,"fields":{"s":[{"b":[1]}]},)"
            R"("error":"the payload ends within a field"})");
}

TEST(EventJson, ErrorInTheDefinitionsIsNamed) {
  EXPECT_EQ(Json(EventBytes(Name("E") + Name("a") + FromHex("00"), "")),
            R"({"name":"E","level":4,"fields":{},"error":"a field encoding is not valid"})");
}

TEST(EventJson, ErrorBehindAKeyLeavesNoKeyWithoutValue) {
  EXPECT_EQ(
      Json(EventBytes(Name("E") + Name("a") + FromHex("02") + Name("b") + FromHex("04"), "x")),
      R"({"name":"E","level":4,"fields":{"a":120},)"
      R"("error":"the payload ends within a field"})");
}

TEST(EventJson, NamesAreEscapedAndMadeUtf8) {
  EXPECT_EQ(Fields(Name("a\"\\\n\x01\xff") + FromHex("02"), FromHex("01")),
            "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\":1");
}

TEST(EventJson, DeepestNestingWithAnErrorAtTheBottom) {
  std::string fields;
  std::string expected = R"({"name":"E","level":4,"fields":{)";
  std::string close;
  for (int i = 0; i < kMaxStructNesting; ++i) {
    fields += Name("s") + FromHex("a1 01 0100");
    expected += R"("s":[{)";
    close += "}]";
  }
  EXPECT_EQ(Json(EventBytes(Name("E") + fields + Name("a") + FromHex("22 0200"), "x")),
            expected + R"("a":[120])" + close + R"(},"error":"the payload ends within a field"})");
}

TEST(EventJson, BufferTooSmallGetsTheBeginningAndTheSizeNeeded) {
  const std::string bytes = EventBytes(Name("E") + Name("a") + FromHex("02"), "x");
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  const std::string whole = Json(bytes);
  for (std::size_t room = 0; room <= whole.size(); ++room) {
    std::string buffer(whole.size() + 1, '#');
    EXPECT_EQ(FormatEventJson(event, "", {buffer.data(), room}), whole.size());
    EXPECT_EQ(buffer.substr(0, room), whole.substr(0, room));
    EXPECT_EQ(buffer.find_first_not_of('#', room), std::string::npos) << room;
  }
}

TEST(EventJson, AppendKeepsExistingTextAndGrowsForLongEvents) {
  const std::string bytes =
      EventBytes(Name("E") + Name("a") + FromHex("07"), Name(std::string(5000, 'x')));
  EventView event;
  ASSERT_EQ(ParseEvent(AsBytes(bytes), &event), ParseError::kNone);
  std::string text = "before ";
  AppendEventJson(event, "", &text);
  EXPECT_EQ(text,
            R"(before {"name":"E","level":4,"fields":{"a":")" + std::string(5000, 'x') + "\"}}");
}

TEST(ValueJson, UnsignedIntegers) {
  EXPECT_EQ(Value("02", "ff"), "255");
  EXPECT_EQ(Value("03", "ffff"), "65535");
  EXPECT_EQ(Value("04", "ffffffff"), "4294967295");
  EXPECT_EQ(Value("05", "ffffffffffffffff"), "18446744073709551615");
}

TEST(ValueJson, SignedIntegers) {
  EXPECT_EQ(Value("82 02", "80"), "-128");
  EXPECT_EQ(Value("83 02", "0080"), "-32768");
  EXPECT_EQ(Value("84 02", "00000080"), "-2147483648");
  EXPECT_EQ(Value("85 02", "0000000000000080"), "-9223372036854775808");
}

TEST(ValueJson, HexIntegers) {
  EXPECT_EQ(Value("82 03", "00"), R"("0x0")");
  EXPECT_EQ(Value("83 03", "2a00"), R"("0x2a")");
  EXPECT_EQ(Value("85 03", "efcdab8967452301"), R"("0x123456789abcdef")");
  EXPECT_EQ(Value("85 03", "ffffffffffffffff"), R"("0xffffffffffffffff")");
}

TEST(ValueJson, Errno) {
  EXPECT_EQ(Value("84 04", "02000000"), R"("ENOENT")");
  EXPECT_EQ(Value("84 04", "00000000"), "0");
  EXPECT_EQ(Value("84 04", "ffffffff"), "-1");
  EXPECT_EQ(Value("84 04", "00000080"), "-2147483648");
}

TEST(ValueJson, Pid) { EXPECT_EQ(Value("84 05", "39300000"), "12345"); }

TEST(ValueJson, TimeIsIso8601) {
  EXPECT_EQ(Value("84 06", "00000000"), R"("1970-01-01T00:00:00Z")");
  EXPECT_EQ(Value("84 06", "ffffffff"), R"("1969-12-31T23:59:59Z")");
  EXPECT_EQ(Value("84 06", "ffffff7f"), R"("2038-01-19T03:14:07Z")");
  // 2000-02-29T12:34:56Z = 951827696
  EXPECT_EQ(Value("85 06", "f0bcbb3800000000"), R"("2000-02-29T12:34:56Z")");
}

TEST(ValueJson, TimeOutsideFourDigitYearsIsSeconds) {
  EXPECT_EQ(Value("85 06", "7f41f4ff3a000000"), R"("9999-12-31T23:59:59Z")");
  EXPECT_EQ(Value("85 06", "8041f4ff3a000000"), "253402300800");
  EXPECT_EQ(Value("85 06", "00848b86f1ffffff"), R"("0000-01-01T00:00:00Z")");
  EXPECT_EQ(Value("85 06", "ff838b86f1ffffff"), "-62167219201");
  EXPECT_EQ(Value("85 06", "0000000000000080"), "-9223372036854775808");
}

TEST(ValueJson, Boolean) {
  EXPECT_EQ(Value("82 07", "00"), "false");
  EXPECT_EQ(Value("82 07", "01"), "true");
  EXPECT_EQ(Value("82 07", "02"), "2");
  EXPECT_EQ(Value("83 07", "0100"), "true");
  EXPECT_EQ(Value("84 07", "01000000"), "true");
}

TEST(ValueJson, Floats) {
  EXPECT_EQ(Value("84 08", "0000c03f"), "1.5");
  EXPECT_EQ(Value("84 08", "cdcccc3d"), "0.1");
  EXPECT_EQ(Value("85 08", "9a9999999999b93f"), "0.1");
  EXPECT_EQ(Value("85 08", "0000000000000080"), "-0");
  EXPECT_EQ(Value("85 08", "ffffffffffffef7f"), "1.7976931348623157e+308");
  EXPECT_EQ(Value("85 08", "0100000000000000"), "5e-324");
}

TEST(ValueJson, NonFiniteFloatsAreStrings) {
  EXPECT_EQ(Value("84 08", "0000807f"), R"("Infinity")");
  EXPECT_EQ(Value("84 08", "000080ff"), R"("-Infinity")");
  EXPECT_EQ(Value("84 08", "0000c07f"), R"("NaN")");
  EXPECT_EQ(Value("85 08", "000000000000f07f"), R"("Infinity")");
  EXPECT_EQ(Value("85 08", "000000000000f0ff"), R"("-Infinity")");
  EXPECT_EQ(Value("85 08", "000000000000f8ff"), R"("NaN")");
}

TEST(ValueJson, HexBytes) {
  EXPECT_EQ(Value("0d", "0300 00ff10"), R"("00ff10")");
  EXPECT_EQ(Value("0d", "0000"), R"("")");
  EXPECT_EQ(Value("84 09", "01020304"), R"("01020304")");
  EXPECT_EQ(Value("06", "000102030405060708090a0b0c0d0e0f"),
            R"("000102030405060708090a0b0c0d0e0f")");
  EXPECT_EQ(Value("8b 09", "0100 4100"), R"("4100")");
}

TEST(ValueJson, Uuid) {
  EXPECT_EQ(Value("86 0f", "00112233445566778899aabbccddeeff"),
            R"("00112233-4455-6677-8899-aabbccddeeff")");
}

TEST(ValueJson, PortIsInNetworkOrder) { EXPECT_EQ(Value("83 10", "1f90"), "8080"); }

TEST(ValueJson, IpAddresses) {
  EXPECT_EQ(Value("84 11", "c0000201"), R"("192.0.2.1")");
  EXPECT_EQ(Value("86 11", "20010db8000000000000000000000001"), R"("2001:db8::1")");
  EXPECT_EQ(Value("86 11", "00000000000000000000ffffc0000201"), R"("::ffff:192.0.2.1")");
  EXPECT_EQ(Value("84 12", "7f000001"), R"("127.0.0.1")");
  EXPECT_EQ(Value("8d 11", "0400 7f000001"), R"("127.0.0.1")");
}

TEST(ValueJson, NullableValues) {
  EXPECT_EQ(Value("8d 02", "0000"), "null");
  EXPECT_EQ(Value("8d 02", "0400 ffffffff"), "-1");
  EXPECT_EQ(Value("8d 02", "0300 ffffff"), R"("ffffff")");
  EXPECT_EQ(Value("8a 07", "0000"), "null");
  EXPECT_EQ(Value("8a 07", "0100 01"), "true");
  EXPECT_EQ(Value("8a 02", "0300 616263"), R"("abc")");
  EXPECT_EQ(Value("8d 0f", "0000"), "null");
  EXPECT_EQ(Value("8d 08", "0800 000000000000f83f"), "1.5");
}

TEST(ValueJson, Characters) {
  EXPECT_EQ(Value("82 0a", "e4"), "\"\xc3\xa4\"");
  EXPECT_EQ(Value("82 0b", "41"), R"("A")");
  EXPECT_EQ(Value("83 0b", "ac20"), "\"\xe2\x82\xac\"");
  EXPECT_EQ(Value("84 0b", "00f60100"), "\"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Value("83 0b", "00d8"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(Value("83 0b", "0000"), R"("\u0000")");
}

TEST(ValueJson, ArraysOfCharactersAreText) {
  EXPECT_EQ(Value("c2 0a", "0300 61 e4 00"), "\"a\xc3\xa4\\u0000\"");
  EXPECT_EQ(Value("c2 0b", "0300 61 c3 a4"), "\"a\xc3\xa4\"");
  EXPECT_EQ(Value("c3 0b", "0200 3dd8 00de"), "\"\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Value("c4 0b", "0000"), R"("")");
  // A text in a constant array ends at the first NUL, because the array has the size of the longest
  // text.
  EXPECT_EQ(Value("a2 0a 0400", "61 62 00 63"), R"("ab")");
  EXPECT_EQ(Value("a4 0b 0200", "00f60100 00000000"), "\"\xf0\x9f\x98\x80\"");
}

TEST(EventJson, ArrayOfCharactersThatIsCutIsTheTextBefore) {
  EXPECT_EQ(
      Json(EventBytes(Name("E") + Name("a") + FromHex("c2 0a") + Name("b") + FromHex("02"),
                      FromHex("0300 61 62"))),
      R"({"name":"E","level":4,"fields":{"a":"ab"},"error":"the payload ends within a field"})");
}

TEST(ValueJson, Latin1) {
  EXPECT_EQ(Text8("0a", "a\x80\xe4\xff"), "\"a\xc2\x80\xc3\xa4\xc3\xbf\"");
}

TEST(ValueJson, Utf8IsKept) {
  EXPECT_EQ(Text8("0b", "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\"a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

TEST(ValueJson, BrokenUtf8IsReplacedOncePerMaximalPart) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(Text8("0b", "\xff|\x80|\xc0\x80|\xe2\x82|\xf0\x9f\x98|"),
            "\"" + r + "|" + r + "|" + r + r + "|" + r + "|" + r + "|\"");
  // Overlong forms, surrogates and values beyond U+10FFFF: no character begins with their first two
  // bytes, so each byte is replaced separately.
  EXPECT_EQ(Text8("0b", "\xe0\x80\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xf5"),
            "\"" + r + r + r + "|" + r + r + r + "|" + r + r + r + r + "|" + r + "\"");
  EXPECT_EQ(Text8("0b", "\xe2\x82"), "\"" + r + "\"");
}

TEST(ValueJson, ControlCharactersAreEscaped) {
  EXPECT_EQ(Value("0a", "0700 00 01 1f 22 5c 0a 7f"), "\"\\u0000\\u0001\\u001f\\\"\\\\\\n\x7f\"");
  EXPECT_EQ(Text8("0b", "\t\r\b\f"), R"("\t\r\u0008\u000c")");
}

TEST(ValueJson, Utf16) {
  EXPECT_EQ(Value("08", "4100 ac20 3dd8 00de 0000"), "\"A\xe2\x82\xac\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Value("0b", "0200 3dd8 00de"), "\"\xf0\x9f\x98\x80\"");
}

TEST(ValueJson, LoneSurrogatesAreReplaced) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(Value("0b", "0100 3dd8"), "\"" + r + "\"");
  EXPECT_EQ(Value("0b", "0200 3dd8 4100"), "\"" + r + "A\"");
  EXPECT_EQ(Value("0b", "0200 00de 4100"), "\"" + r + "A\"");
  EXPECT_EQ(Value("0b", "0300 3dd8 3dd8 00de"), "\"" + r + "\xf0\x9f\x98\x80\"");
}

TEST(ValueJson, Utf32) {
  const std::string r = "\xef\xbf\xbd";
  EXPECT_EQ(Value("09", "41000000 00f60100 00000000"), "\"A\xf0\x9f\x98\x80\"");
  EXPECT_EQ(Value("0c", "0300 00d80000 00001100 ffffffff"), "\"" + r + r + r + "\"");
}

TEST(ValueJson, ByteOrderMarksOfUtf8Strings) {
  EXPECT_EQ(Text8("0c",
                  "\xef\xbb\xbf"
                  "A"),
            R"("A")");
  EXPECT_EQ(Value("8a 0c", "0400 fffe 4100"), R"("A")");
  EXPECT_EQ(Value("8a 0c", "0400 feff 0041"), R"("A")");
  EXPECT_EQ(Value("8a 0c", "0800 fffe0000 41000000"), R"("A")");
  EXPECT_EQ(Value("8a 0c", "0800 0000feff 00000041"), R"("A")");
  EXPECT_EQ(Value("8a 0c", "0100 41"), R"("A")");
}

TEST(ValueJson, HalfACodeUnitBehindAByteOrderMarkIsReplaced) {
  EXPECT_EQ(Value("8a 0c", "0500 fffe 4100 42"), "\"A\xef\xbf\xbd\"");
}

TEST(ValueJson, ByteOrderMarksOfWideStringsAreOfTheirUnit) {
  EXPECT_EQ(Value("8b 0c", "0200 fffe 4100"), R"("A")");
  EXPECT_EQ(Value("8b 0c", "0200 feff 0041"), R"("A")");
  EXPECT_EQ(Value("8c 0c", "0200 0000feff 00000041"), R"("A")");
  // UTF-16 that begins with its byte order mark and a NUL. The same bytes are the byte order mark
  // of UTF-32.
  EXPECT_EQ(Value("8b 0c", "0200 fffe 0000"), R"("\u0000")");
}

TEST(ValueJson, PlainUtfKeepsItsByteOrderMark) {
  EXPECT_EQ(Text8("0b",
                  "\xef\xbb\xbf"
                  "A"),
            "\"\xef\xbb\xbf"
            "A\"");
}

TEST(ValueJson, XmlAndJsonAreStrings) {
  EXPECT_EQ(Text8("0d", "\xef\xbb\xbf<a b=\"c\"/>"), R"("<a b=\"c\"/>")");
  EXPECT_EQ(Text8("0e", R"({"a":1})"), R"("{\"a\":1}")");
}

TEST(ValueJson, BigEndianEvent) {
  const std::string metadata = Name("E") + Name("a") + FromHex("84 02") + Name("b") +
                               FromHex("85 08") + Name("c") + FromHex("0b") + Name("d") +
                               FromHex("83 10") + Name("e") + FromHex("09");
  const std::string bytes =
      FromHex("04 00 0001 0002 00 04 00") + static_cast<char>(metadata.size()) + FromHex("0001") +
      metadata + FromHex("fffffffe 3ff8000000000000 0002 d83dde00 1f90 00000041 00000000");
  EXPECT_EQ(Json(bytes), R"({"name":"E","level":4,"id":1,"tag":2,"fields":{"a":-2,"b":1.5,"c":")"
                         "\xf0\x9f\x98\x80"
                         R"(","d":8080,"e":"A"}})");
}

// Any pair of encoding and format, known or unknown, must give valid JSON.
TEST(ValueJson, EveryEncodingWithEveryFormatIsValid) {
  for (int encoding = 2; encoding <= 13; ++encoding) {
    for (int format = 0; format < 128; ++format) {
      for (const char* payload : {"0400 41ff00d8 0000 00000000 00000000 00000000",
                                  "0000 0000 0000 00000000 00000000 00000000"}) {
        const std::string type{static_cast<char>(encoding | 0x80), static_cast<char>(format)};
        EXPECT_FALSE(Fields(Name("v") + type, FromHex(payload)).empty());
      }
    }
  }
}

TEST(JsonCheck, RefusesInvalidJson) {
  for (const char* text : {"",
                           "{",
                           "{}}",
                           "[1,]",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "01",
                           "1.",
                           "-",
                           "+1",
                           ".5",
                           "1e",
                           "nan",
                           "\"\\x\"",
                           "\"\n\"",
                           "\"a",
                           "[1 2]",
                           "\"\xff\"",
                           "\"\xed\xa0\x80\"",
                           "\"\xc0\x80\""}) {
    EXPECT_FALSE(IsValidJson(text)) << text;
  }
}

}  // namespace
}  // namespace eh
