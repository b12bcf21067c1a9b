// Checks that the two halves of the library agree: the decoder reads what providers write.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "eventheader/decoder.h"
#include "eventheader/eh.h"
#include "eventheader/json_formatter.h"
#include "eventheader/testing/recording_transport.h"

namespace eh {
namespace {

inline constinit Provider decoded_provider("Test_WriteAndDecode");

constexpr Event<decoded_provider, "AllTypes",
                Traits{.level = Level::kWarning,
                       .keyword = 0x10,
                       .opcode = Opcode::kActivityStart,
                       .id = 0x1234,
                       .version = 5,
                       .tag = 0x6789},
                Field<"b", bool>, Field<"i8", std::int8_t>, Field<"u8", std::uint8_t>,
                Field<"i16", std::int16_t>, Field<"u16", std::uint16_t>, Field<"i32", std::int32_t>,
                Field<"u32", std::uint32_t>, Field<"i64", std::int64_t>,
                Field<"u64", std::uint64_t>, Field<"f", float>, Field<"d", double>,
                Field<"s", std::string_view>>
    all_types;

class WriteAndDecode : public ::testing::Test {
 protected:
  WriteAndDecode() { decoded_provider.SetTransport(&transport_); }
  ~WriteAndDecode() override { decoded_provider.SetTransport(nullptr); }

  // Returns the only event that was written, as JSON.
  std::string TakeJson() {
    const auto records = transport_.Take();
    EXPECT_EQ(records.size(), 1u);
    if (records.size() != 1) return "";
    const auto name = ParseTracepointName(records[0].tracepoint);
    EXPECT_TRUE(name.has_value()) << records[0].tracepoint;
    EventView event;
    EXPECT_EQ(ParseEvent(records[0].event, &event), ParseError::kNone);
    if (!name.has_value()) return "";
    EXPECT_EQ(name->level, event.header.level);
    Decoder decoder(event);
    for (Item item; decoder.Next(&item);) {
    }
    EXPECT_EQ(decoder.error(), ParseError::kNone);
    EXPECT_TRUE(decoder.rest().empty());
    std::string json;
    AppendEventJson(event, name->provider, &json);
    return json;
  }

  RecordingTransport transport_;
};

TEST_F(WriteAndDecode, MaximumValues) {
  ASSERT_EQ(all_types.Write(true, 127, 255, 32767, 65535, 2147483647, 4294967295U,
                            std::numeric_limits<std::int64_t>::max(),
                            std::numeric_limits<std::uint64_t>::max(), 1.5F, 0.1, "a\xc3\xa4\"\n"),
            WriteResult::kWritten);
  EXPECT_EQ(TakeJson(),
            R"({"provider":"Test_WriteAndDecode","name":"AllTypes","level":3,"opcode":1,)"
            R"("id":4660,"version":5,"tag":26505,"fields":{"b":true,"i8":127,"u8":255,)"
            R"("i16":32767,"u16":65535,"i32":2147483647,"u32":4294967295,)"
            R"("i64":9223372036854775807,"u64":18446744073709551615,"f":1.5,"d":0.1,)"
            "\"s\":\"a\xc3\xa4\\\"\\n\"}}");
}

TEST_F(WriteAndDecode, LeastValuesWithActivity) {
  ActivityId id;
  ActivityId related;
  for (std::size_t i = 0; i < id.size(); ++i) {
    id[i] = static_cast<std::byte>(i * 0x11);
    related[i] = static_cast<std::byte>(0xFF - i * 0x11);
  }
  ASSERT_EQ(all_types.Write(Activity{id, &related}, false, -128, 0, -32768, 0,
                            std::numeric_limits<std::int32_t>::min(), 0U,
                            std::numeric_limits<std::int64_t>::min(), 0U,
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<double>::quiet_NaN(), ""),
            WriteResult::kWritten);
  EXPECT_EQ(TakeJson(),
            R"({"provider":"Test_WriteAndDecode","name":"AllTypes","level":3,"opcode":1,)"
            R"("id":4660,"version":5,"tag":26505,)"
            R"("activityId":"00112233-4455-6677-8899-aabbccddeeff",)"
            R"("relatedActivityId":"ffeeddcc-bbaa-9988-7766-554433221100",)"
            R"("fields":{"b":false,"i8":-128,"u8":0,"i16":-32768,"u16":0,"i32":-2147483648,)"
            R"("u32":0,"i64":-9223372036854775808,"u64":0,"f":"-Infinity","d":"NaN","s":""}})");
}

}  // namespace
}  // namespace eh
