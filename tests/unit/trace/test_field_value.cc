// Tests how values are shown in each format of EventHeader, for people and for programs.
#include <gtest/gtest.h>

#include <string>

#include "tools/trace/field_value.h"
#include "tools/trace/value_output.h"

namespace trace {
namespace {

using namespace std::string_literals;
using eh::Encoding;
using eh::Format;

template <typename Put>
std::string PutToText(const Put& put) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  put(&json);
  return buffer.GetString();
}

constexpr Encoding k8 = Encoding::kValue8;
constexpr Encoding k16 = Encoding::kValue16;
constexpr Encoding k32 = Encoding::kValue32;
constexpr Encoding k64 = Encoding::kValue64;
constexpr Encoding k128 = Encoding::kValue128;
constexpr Encoding kBinary = Encoding::kBinaryLength16Char8;
constexpr Encoding kString = Encoding::kStringLength16Char8;

TEST(FieldNumber, EveryFormat) {
  const struct {
    Encoding encoding;
    Format format;
    std::uint64_t value;
    const char* people;
    const char* programs = people;
  } kCases[] = {
      {k8, Format::kUnsignedInt, 255, "255"},
      {k64, Format::kUnsignedInt, ~0ULL, "18446744073709551615", R"("18446744073709551615")"},
      {k64, Format::kUnsignedInt, 1ULL << 53, "9007199254740992"},
      {k64, Format::kUnsignedInt, (1ULL << 53) + 1, "9007199254740993", R"("9007199254740993")"},
      {k64, Format::kSignedInt, ~(1ULL << 53) + 1, "-9007199254740992"},
      {k64, Format::kSignedInt, ~(1ULL << 53), "-9007199254740993", R"("-9007199254740993")"},
      {k64, Format::kTime, 1ULL << 62, "4611686018427387904", R"("4611686018427387904")"},
      {k8, Format::kDefault, 7, "7"},
      {k8, Format::kSignedInt, 0xFF, "-1"},
      {k16, Format::kSignedInt, 0x8000, "-32768"},
      {k64, Format::kSignedInt, ~0ULL, "-1"},
      {k8, Format::kHexInt, 0, R"("0x0")"},
      {k32, Format::kHexInt, 0xDEAD, R"("0xdead")"},
      {k64, Format::kHexInt, 0x7FFF'0000'1234, R"("0x7fff00001234")"},
      // The value is sign-extended to 64 bits. The text has only the bits of the encoding.
      {k32, Format::kHexInt, ~0ULL, R"("0xffffffff")"},
      {k32, Format::kErrno, 2, R"~("2 (ENOENT)")~", "2"},
      {k32, Format::kErrno, 0, "0"},
      {k32, Format::kErrno, 9999, "9999"},
      {k32, Format::kErrno, ~0ULL, "-1"},
      {k64, Format::kErrno, 2, "2"},
      {k32, Format::kPid, 4242, "4242"},
      {k32, Format::kPid, 0xFFFFFFFF, "-1"},
      {k32, Format::kTime, 0, R"("1970-01-01T00:00:00Z")"},
      {k32, Format::kTime, 0xFFFFFFFF, R"("1969-12-31T23:59:59Z")"},
      {k64, Format::kTime, 1'795'256'520, R"("2026-11-21T10:22:00Z")"},
      {k64, Format::kTime, 253'402'300'799, R"("9999-12-31T23:59:59Z")"},
      {k64, Format::kTime, 253'402'300'800, "253402300800"},
      {k8, Format::kBoolean, 1, "true"},
      {k16, Format::kBoolean, 0, "false"},
      {k32, Format::kBoolean, 1, "true"},
      {k16, Format::kBoolean, 2, "2"},
      {k64, Format::kBoolean, 1, "1"},
      {k32, Format::kFloat, 0x3FC00000, "1.5"},
      {k64, Format::kFloat, 0x4000000000000000, "2.0"},
      {k64, Format::kFloat, 0x7FF0000000000000, R"("Infinity")"},
      {k16, Format::kFloat, 5, "5"},
      {k16, Format::kPort, 8080, "8080"},
      {k32, Format::kPort, 8080, "8080"},
      {k8, Format::kString8, 0xE9, "\"\xC3\xA9\""},
      {k32, Format::kStringUtf, 0x1F600, "\"\xF0\x9F\x98\x80\""},
      {k32, Format::kStringUtf, 0xD800, "\"\xEF\xBF\xBD\""},
      {k32, static_cast<Format>(77), 7, "7"},
  };
  for (const auto& test : kCases) {
    const auto show = [&test](ValueStyle style) {
      return PutToText([&](base::JsonWriter* json) {
        JsonValueOutput out(style, json);
        PutFieldNumber(test.encoding, test.format, test.value, &out);
      });
    };
    SCOPED_TRACE(testing::Message() << "encoding " << int(test.encoding) << " format "
                                    << int(test.format) << " value " << test.value);
    EXPECT_EQ(show(ValueStyle::kForPeople), test.people);
    EXPECT_EQ(show(ValueStyle::kForPrograms), test.programs);
  }
}

TEST(FieldBytes, EveryFormat) {
  const std::string uuid = "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF"s;
  const struct {
    Encoding encoding;
    Format format;
    std::string bytes;
    const char* people;
    const char* programs = people;
  } kCases[] = {
      {k32, Format::kIpAddress, "\x7F\0\0\1"s, R"("127.0.0.1")"},
      {k32, Format::kIpAddressObsolete, "\x7F\0\0\1"s, R"("127.0.0.1")"},
      {k128, Format::kIpAddress, "\xFE\x80"s + std::string(13, '\0') + "\1", R"("fe80::1")"},
      {kBinary, Format::kIpAddress, "\x0A\0\0\1"s, R"("10.0.0.1")"},
      {kBinary, Format::kIpAddress, "\x0A\0\0"s, R"("0a0000")"},
      {k64, Format::kIpAddress, "12345678", "4050765991979987505", R"("4050765991979987505")"},
      {k16, Format::kHexBytes, "\0\xFF"s, R"("00ff")"},
      {k128, Format::kHexBytes, uuid, R"("00112233445566778899aabbccddeeff")"},
      {k128, Format::kUnsignedInt, uuid, R"("00112233445566778899aabbccddeeff")"},
      {kBinary, Format::kHexBytes, "", R"("")"},
      {kBinary, Format::kHexBytes, "\x17"s, R"("17")"},
      {kBinary, Format::kUuid, uuid, R"("00112233-4455-6677-8899-aabbccddeeff")"},
      {kBinary, Format::kUuid, "", "null"},
      {kBinary, Format::kSignedInt, "\xFE\xFF"s, "-2"},
      {kBinary, Format::kUnsignedInt, "", "null"},
      {kBinary, Format::kUnsignedInt, "\1\2\3"s, R"("010203")"},
      {kBinary, Format::kHexInt, "\x34\x12"s, R"("0x1234")"},
      {kBinary, Format::kErrno, "\2\0\0\0"s, R"~("2 (ENOENT)")~", "2"},
      {kBinary, Format::kPid, "\x92\x10\0\0"s, "4242"},
      {kBinary, Format::kTime, "\0\0\0\0"s, R"("1970-01-01T00:00:00Z")"},
      {kBinary, Format::kBoolean, "\1"s, "true"},
      {kBinary, Format::kFloat, "\0\0\xC0\x3F"s, "1.5"},
      {kBinary, Format::kPort, "\x1F\x90"s, "8080"},
      {kString, Format::kSignedInt, "abc", R"("abc")"},
      {kString, Format::kErrno, "\xFF", "\"\xEF\xBF\xBD\""},
      {kString, Format::kErrno, "", "null"},
      {Encoding::kStringLength16Char16, Format::kHexBytes, "a\0"s, R"("6100")"},
  };
  for (const auto& test : kCases) {
    const auto show = [&test](ValueStyle style) {
      return PutToText([&](base::JsonWriter* json) {
        JsonValueOutput out(style, json);
        PutFieldBytes(test.encoding, test.format, std::as_bytes(std::span(test.bytes)), &out);
      });
    };
    SCOPED_TRACE(testing::Message() << "encoding " << int(test.encoding) << " format "
                                    << int(test.format) << " size " << test.bytes.size());
    EXPECT_EQ(show(ValueStyle::kForPeople), test.people);
    EXPECT_EQ(show(ValueStyle::kForPrograms), test.programs);
  }
}

}  // namespace
}  // namespace trace
