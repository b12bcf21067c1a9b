// Tests visiting payloads that do not match their fields, and the limits for their values.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/payload.h"
#include "tests/support/bytes.h"
#include "tests/support/nettrace/random_values.h"

namespace nettrace {
namespace {

using namespace std::string_literals;

// Shows unreadable values as a question mark.
class Text : public testing::JsonText {
 public:
  void OnUnreadable() override { OnUtf8(std::as_bytes(std::span("?", 1))); }
};

std::string Show(const std::vector<Field>& fields, const std::string& payload) {
  Text text;
  const absl::Status status = VisitPayload(fields, tests::ToBytes(payload), &text);
  return text.Finish() + (status.ok() ? "" : " " + std::string(status.message()));
}

const Type kInt8 = Type::Simple(TypeCode::kSByte);
const Type kInt16 = Type::Simple(TypeCode::kInt16);
const Type kText8 = Type::Simple(TypeCode::kUtf8CodeUnit);

// A metadata row of a few bytes can describe more values than fit on a disk.
TEST(Payload, ValuesWithoutBytesAreBoundedByTheBytes) {
  const Type object = Type::Object({});
  const Type many = Type::FixedLengthArray(object, 65535);
  const Type cases[] = {
      many,
      Type::FixedLengthArray(many, 65535),
      Type::FixedLengthArray(Type::Object({{"", object}}), 65535),
      Type::FixedLengthArray(Type::FixedLengthArray(kText8, 0), 65535),
      Type::FixedLengthArray(Type::FixedLengthArray(kInt8, 0), 65535),
  };
  for (const Type& type : cases) {
    Text text;
    const absl::Status status = VisitPayload({{"a", type}}, {}, &text);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_LT(text.Finish().size(), 500u);
  }
  Text text;
  const std::vector<std::byte> counts = tests::ToBytes("\xFF\xFF"s);
  EXPECT_TRUE(absl::IsResourceExhausted(VisitPayload({{"a", Type::Array(object)}}, counts, &text)));
  EXPECT_LT(text.Finish().size(), 500u);
}

TEST(Payload, SomeValuesWithoutBytesAreRead) {
  EXPECT_EQ(Show({{"a", Type::Array(Type::Object({}))}, {"b", kInt8}}, "\3\0\5"s),
            R"({"a":[{},{},{}],"b":5})");
  std::vector<Field> fields(100, Field{"o", Type::Object({{"i", kInt8}, {"e", Type::Object({})}})});
  Text text;
  const std::vector<std::byte> payload(fields.size());
  EXPECT_TRUE(VisitPayload(fields, payload, &text).ok());
}

// Returns a payload of `locations` DataLocs that all refer to the `size` bytes after them.
std::string Shared(std::size_t locations, std::size_t size) {
  std::string payload;
  for (std::size_t i = 0; i < locations; ++i) {
    for (const std::size_t number : {4 * locations, size}) {
      payload += static_cast<char>(number & 0xFF);
      payload += static_cast<char>(number >> 8);
    }
  }
  return payload + std::string(size, '\1');
}

// A small payload must not yield as many values as there are pairs of a location and a byte, here
// 1000 * 5000.
TEST(Payload, BytesThatLocationsShareAreBoundedByTheBytes) {
  for (const Type& type : {Type::DataLoc(kInt8), Type::DataLoc(kText8)}) {
    const std::string payload = Shared(1000, 5000);
    Text text;
    const absl::Status status =
        VisitPayload(std::vector<Field>(1000, {"a", type}), tests::ToBytes(payload), &text);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_LT(text.Finish().size(), 30 * payload.size());
  }
}

TEST(Payload, LocationsMayShareBytes) {
  for (const auto& [locations, size] : {std::pair(4, 10'000), std::pair(20, 100)}) {
    Text text;
    const std::vector<Field> fields(static_cast<std::size_t>(locations),
                                    {"a", Type::DataLoc(kInt8)});
    EXPECT_TRUE(VisitPayload(fields,
                             tests::ToBytes(Shared(static_cast<std::size_t>(locations),
                                                   static_cast<std::size_t>(size))),
                             &text)
                    .ok());
  }
}

TEST(Payload, MissingValueIsUnreadable) {
  EXPECT_EQ(Show({{"a", kInt8}, {"b", kInt16}, {"c", kInt8}}, "\1\2"s),
            R"({"a":1,"b":"?"} the payload ends within a field)");
}

TEST(Payload, TextWithoutItsEndIsShown) {
  const Type text = Type::Simple(TypeCode::kNullTerminatedUtf16String);
  EXPECT_EQ(Show({{"a", kInt8}, {"b", text}, {"c", kInt8}}, "\1h\0i\0!"s),
            R"({"a":1,"b":"\u0068\u0069"} a string is not terminated)");
  EXPECT_EQ(Show({{"b", text}}, ""), R"({"b":"?"} a string is not terminated)");
  EXPECT_EQ(Show({{"b", Type::Array(kText8)}}, "\5\0abc"s),
            R"({"b":"abc"} the payload ends within a field)");
}

TEST(Payload, FieldsAfterAWrongLocationAreShown) {
  const std::vector<Field> fields = {{"a", Type::RelLoc(kText8)}, {"b", kInt16}};
  EXPECT_EQ(Show(fields, "\2\0\1\0\7\0x"s), R"({"a":"x","b":7})");
  EXPECT_EQ(Show(fields, "\2\0\x10\0\7\0x"s),
            R"({"a":"?","b":7} the location of a field is outside the payload)");
  EXPECT_EQ(Show({{"a", Type::DataLoc(kInt16)}, {"b", kInt8}}, "\4\0\3\0\1\0\2"s),
            R"({"a":[1,"?"],"b":1} the payload ends within a field)");
}

}  // namespace
}  // namespace nettrace
