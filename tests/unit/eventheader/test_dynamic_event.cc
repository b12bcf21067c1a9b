// Compares events built at run time, in C++ and in C, with the bytes of static events and of the
// specification.
#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "c_api_user.h"
#include "eventheader/dynamic_event.h"
#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh {
namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

inline constinit Provider dynamic_provider("Test_Dynamic");
constexpr Event<dynamic_provider, "E",
                Traits{.opcode = Opcode::kActivityStart, .id = 0x1234, .version = 5, .tag = 0x6789},
                Field<"n", std::int32_t>, Field<"s", std::string_view>>
    static_event;

class DynamicEventTest : public ::testing::Test {
 protected:
  DynamicEventTest() { dynamic_provider.SetTransport(&transport_); }
  ~DynamicEventTest() override { dynamic_provider.SetTransport(nullptr); }

  std::string TakeOne() {
    const auto records = transport_.Take();
    EXPECT_EQ(records.size(), 1u);
    if (records.size() != 1) return "";
    return testing::TextOfWritten(records[0].event);
  }
  // Writes the event. Returns the bytes after header and extension header.
  std::string WriteAndTake(const DynamicEvent& event) {
    EXPECT_EQ(event.Write(set_), WriteResult::kWritten);
    const std::string all = TakeOne();
    return all.size() < 12 ? "" : all.substr(12);
  }

  RecordingTransport transport_;
  EventSet set_{dynamic_provider, Level::kInformation, 0};
  DynamicEvent event_;
};

TEST_F(DynamicEventTest, IsTheStaticEventByteForByte) {
  const ActivityId id = {std::byte{1}};
  const ActivityId related = {std::byte{2}};
  const Activity activity = {id, &related};
  static_event.Write(activity, 0x11, "ab");
  const std::string expected = TakeOne();
  event_.Reset("E");
  event_.SetId(0x1234, 5);
  event_.SetTag(0x6789);
  event_.SetOpcode(Opcode::kActivityStart);
  event_.AddField("n", std::int32_t{0x11});
  event_.AddField("s", std::string_view("ab"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(event_.Write(set_, &activity), WriteResult::kWritten);
    EXPECT_EQ(TakeOne(), expected);
  }
}

TEST_F(DynamicEventTest, FormatsTagsAndArrays) {
  event_.Reset("E", ";k=v");
  event_.AddField("h", std::uint16_t{1}, Format::kHexInt, 0x0102);
  event_.AddField("v", std::vector<std::string>{"a", ""});
  event_.AddField("c", std::array<std::uint8_t, 2>{1, 2});
  event_.AddField("o", std::optional<bool>());
  EXPECT_EQ(WriteAndTake(event_),
            "E;k=v\0h\0\x83\x83\x02\x01v\0\x4A"
            "c\0\x22\x02\0o\0\x8D\x07"
            "\x01\0\x02\0\x01\0a\0\0\x01\x02\0\0"s);
}

TEST_F(DynamicEventTest, StructFieldCountIsSetLate) {
  event_.Reset("E");
  const std::size_t outer = event_.StartStruct("o");
  event_.AddField("a", true);
  const std::size_t inner = event_.StartStruct("i", Arity::kScalar, 0, 0x0102);
  event_.AddField("b", std::uint8_t{2});
  event_.SetStructFields(inner, 1);
  event_.SetStructFields(outer, 2);
  EXPECT_EQ(WriteAndTake(event_),
            "E\0o\0\x81\x02"
            "a\0\x82\x07i\0\x81\x81\x02\x01"
            "b\0\x02\x01\x02"s);
}

TEST_F(DynamicEventTest, RefusesAndCountsMalformedEvents) {
  const auto refused = [&] { return event_.Write(set_) == WriteResult::kInvalid; };
  const auto before = dynamic_provider.counters().invalid;
  event_.Reset("a;b");
  EXPECT_TRUE(refused());
  event_.Reset("E");
  event_.AddField("", 1);
  EXPECT_TRUE(refused());
  event_.Reset("E");
  event_.AddRaw("f", Encoding::kInvalid, Arity::kScalar, 0, Format::kDefault, 0, {});
  EXPECT_TRUE(refused());
  event_.Reset("E");
  event_.AddRaw("f", Encoding::kValue8, Arity::kConstantArray, 0, Format::kDefault, 0, {});
  EXPECT_TRUE(refused());
  event_.Reset("E");
  const std::size_t where = event_.StartStruct("s");
  EXPECT_TRUE(refused()) << "a struct whose fields were never counted";
  event_.SetStructFields(where, 128);
  EXPECT_TRUE(refused());
  EXPECT_EQ(dynamic_provider.counters().invalid, before + 6);
  event_.Reset("E");
  EXPECT_EQ(event_.Write(set_), WriteResult::kWritten) << "Reset begins anew";
}

TEST_F(DynamicEventTest, NamesAreNotEmptyAndHaveNeitherSemicolonNorNul) {
  for (const std::string_view name : {""sv, "a;b"sv, ";"sv, "a\0b"sv, "\0"sv}) {
    event_.Reset(name);
    EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid) << name;
    event_.Reset("E");
    event_.AddField(name, 1);
    EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid) << name;
    event_.Reset("E");
    event_.SetStructFields(event_.StartStruct(name), 1);
    EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid) << name;
  }
}

TEST_F(DynamicEventTest, AttributesAreNamesWithValues) {
  for (const std::string_view attributes :
       {";a=b"sv, ";a="sv, ";a=b;;c"sv, ";a=;;"sv, ";a=b;c=d"sv, ";a=b=c"sv}) {
    event_.Reset("E", attributes);
    EXPECT_EQ(WriteAndTake(event_), "E"s + std::string(attributes) + "\0"s);
  }
  for (const std::string_view attributes : {"a=b"sv, ";"sv, ";a"sv, ";=b"sv, ";a;b=c"sv, ";a=b;"sv,
                                            ";a=b;c"sv, ";a=\0"sv, ";a\0=b"sv}) {
    event_.Reset("E", attributes);
    EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid) << attributes;
  }
}

TEST_F(DynamicEventTest, OneFieldMoreThanDecodersReadIsRefused) {
  event_.Reset("E");
  for (int i = 0; i < kMaxFields; ++i) event_.AddField("f", true);
  EXPECT_EQ(event_.Write(set_), WriteResult::kWritten);
  event_.AddField("f", true);
  EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid);
}

TEST_F(DynamicEventTest, StructsHaveOneTo127MembersAndAllOfThem) {
  const auto write = [&](unsigned said, unsigned added) {
    event_.Reset("E");
    const std::size_t where = event_.StartStruct("s");
    for (unsigned i = 0; i < added; ++i) event_.AddField("f", true);
    event_.SetStructFields(where, said);
    return event_.Write(set_);
  };
  EXPECT_EQ(write(1, 1), WriteResult::kWritten);
  EXPECT_EQ(write(127, 127), WriteResult::kWritten);
  EXPECT_EQ(write(1, 2), WriteResult::kWritten) << "the second is not its member";
  EXPECT_EQ(write(0, 1), WriteResult::kInvalid);
  EXPECT_EQ(write(128, 128), WriteResult::kInvalid);
  EXPECT_EQ(write(255, 255), WriteResult::kInvalid);
  EXPECT_EQ(write(2, 1), WriteResult::kInvalid) << "one is missing";
}

TEST_F(DynamicEventTest, StructsNestedDeeperThanDecodersReadAreRefused) {
  const auto write = [&](int depth) {
    event_.Reset("E");
    for (int i = 0; i < depth; ++i) event_.SetStructFields(event_.StartStruct("s"), 1);
    event_.AddField("f", true);
    return event_.Write(set_);
  };
  EXPECT_EQ(write(kMaxStructNesting), WriteResult::kWritten);
  EXPECT_EQ(write(kMaxStructNesting + 1), WriteResult::kInvalid);
}

TEST_F(DynamicEventTest, RefusesRawPayloadThatDiffersFromItsDefinition) {
  struct {
    Encoding encoding;
    Arity arity;
    std::uint16_t count;
    std::string_view data;
  } const kWhole[] = {
      {Encoding::kValue16, Arity::kScalar, 0, "ab"sv},
      {Encoding::kValue16, Arity::kConstantArray, 2, "abcd"sv},
      {Encoding::kValue16, Arity::kVariableArray, 0, "\x01\0ab"sv},
      {Encoding::kValue16, Arity::kVariableArray, 0, "\0\0"sv},
      {Encoding::kZStringChar8, Arity::kScalar, 0, "ab\0"sv},
      {Encoding::kZStringChar16, Arity::kConstantArray, 2, "a\0\0\0\0\0"sv},
      {Encoding::kStringLength16Char16, Arity::kScalar, 0, "\x01\0ab"sv},
      {Encoding::kBinaryLength16Char8, Arity::kVariableArray, 0, "\x01\0\x01\0a"sv},
  };
  const auto write = [&](const auto& row, std::string_view data) {
    event_.Reset("E");
    event_.AddRaw("f", row.encoding, row.arity, row.count, Format::kDefault, 0,
                  std::as_bytes(std::span(data.data(), data.size())));
    return event_.Write(set_);
  };
  for (const auto& row : kWhole) {
    EXPECT_EQ(write(row, row.data), WriteResult::kWritten);
    for (std::size_t size = 0; size < row.data.size(); ++size) {
      EXPECT_EQ(write(row, row.data.substr(0, size)), WriteResult::kInvalid) << size;
    }
    EXPECT_EQ(write(row, std::string(row.data) + '\0'), WriteResult::kInvalid);
  }
}

TEST_F(DynamicEventTest, RefusesDataThatDiffersFromTheDefinitions) {
  const auto write = [&](std::string_view data) {
    event_.Reset("E");
    const std::size_t where = event_.StartStruct("s", Arity::kVariableArray);
    event_.AddRaw("a", Encoding::kValue8, Arity::kScalar, 0, Format::kDefault, 0, {});
    event_.AddRaw("b", Encoding::kStringLength16Char8, Arity::kScalar, 0, Format::kDefault, 0, {});
    event_.SetStructFields(where, 2);
    if (!data.empty()) event_.AddData(std::as_bytes(std::span(data.data(), data.size())));
    event_.AddField("c", true);
    return event_.Write(set_);
  };
  EXPECT_EQ(write("\x02\0a\x01\0bc\0\0"sv), WriteResult::kWritten);
  EXPECT_EQ(write("\0\0"sv), WriteResult::kWritten);
  EXPECT_EQ(write("\x02\0a\x01\0b"sv), WriteResult::kInvalid) << "one element is missing";
  EXPECT_EQ(write("\x01\0a\x01\0bc"sv), WriteResult::kInvalid) << "something follows";
  EXPECT_EQ(write(""sv), WriteResult::kInvalid);
}

TEST_F(DynamicEventTest, ObsoleteFormatIsNeverWritten) {
  event_.Reset("E");
  event_.AddRaw("f", Encoding::kValue32, Arity::kScalar, 0, Format::kIpAddressObsolete, 0,
                std::as_bytes(std::span("abcd", 4)));
  EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid);
  event_.Reset("E");
  event_.AddField("f", 1, Format::kIpAddressObsolete);
  EXPECT_EQ(event_.Write(set_), WriteResult::kInvalid);
}

TEST_F(DynamicEventTest, LargestEventIsWrittenAndOneByteMoreIsRefused) {
  event_.Reset("E");
  const std::size_t overhead = 8 + 4 + 2 + 3 + 2;
  event_.AddField("s", std::string(kMaxEventSize - overhead, 'x'));
  EXPECT_EQ(event_.Write(set_), WriteResult::kWritten);
  EXPECT_EQ(TakeOne().size(), kMaxEventSize);
  event_.Reset("E");
  event_.AddField("s", std::string(kMaxEventSize - overhead + 1, 'x'));
  EXPECT_EQ(event_.Write(set_), WriteResult::kTooBig);
  event_.AddField("s", std::string(kMaxEventSize, 'x'));
  EXPECT_EQ(event_.Write(set_), WriteResult::kTooBig);
}

TEST_F(DynamicEventTest, CApiWritesTheSameBytes) {
  static_assert(sizeof(ActivityId) == 16);
  const ActivityId related = {std::byte{2}};
  static_event.Write(Activity{{std::byte{1}}, &related}, 0x11, "ab");
  const std::string expected = TakeOne();
  // An eh_event_set is an EventSet.
  const auto* set = reinterpret_cast<const eh_event_set*>(&set_);
  EXPECT_EQ(WritePrepared(set), 0);
  EXPECT_EQ(TakeOne(), expected);
  eh_builder* const builder = eh_builder_create();
  ASSERT_NE(builder, nullptr);
  EXPECT_EQ(WriteBuilt(builder, set), 0);
  EXPECT_EQ(TakeOne(), expected);
  EXPECT_EQ(WriteTooMuch(set), E2BIG);
  transport_.SetEnabled(false);
  EXPECT_EQ(WriteBuilt(builder, set), EBADF);
  eh_builder_destroy(builder);
}

TEST_F(DynamicEventTest, CApiAddsSizedTextArraysAndFormattedValues) {
  const auto* set = reinterpret_cast<const eh_event_set*>(&set_);
  eh_builder* const builder = eh_builder_create();
  constexpr std::uint16_t kWide[] = {0x4161, 0x0062};
  constexpr std::int64_t kNumbers[] = {-1, 2};
  constexpr double kDoubles[] = {1.0};
  constexpr const char* kTexts[] = {"a", ""};
  constexpr std::uint8_t kBytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  eh_builder_reset(builder, "E");
  eh_builder_add_string_n(builder, "s", "a\0bc", 3);
  eh_builder_add_string_n(builder, "t", nullptr, 0);
  eh_builder_add_string_utf16(builder, "w", kWide, 2);
  eh_builder_add_int64_array(builder, "n", kNumbers, 2);
  eh_builder_add_int64_array(builder, "o", nullptr, 0);
  eh_builder_add_double_array(builder, "d", kDoubles, 1);
  eh_builder_add_string_array(builder, "l", kTexts, 2);
  eh_builder_add_uuid(builder, "u", kBytes);
  eh_builder_add_ip4(builder, "4", kBytes);
  eh_builder_add_ip6(builder, "6", kBytes);
  eh_builder_add_time(builder, "z", -2);
  EXPECT_EQ(eh_builder_write(builder, set, nullptr), 0);
  const std::string bytes(reinterpret_cast<const char*>(kBytes), sizeof(kBytes));
  EXPECT_EQ(TakeOne().substr(12),
            "E\0"
            "s\0\x0A"
            "t\0\x0A"
            "w\0\x0B"
            "n\0\xC5\x02"
            "o\0\xC5\x02"
            "d\0\xC5\x08"
            "l\0\x4A"
            "u\0\x86\x0F"
            "4\0\x84\x11"
            "6\0\x86\x11"
            "z\0\x85\x06"s +
                "\x03\0a\0b"
                "\0\0"
                "\x02\0aAb\0"
                "\x02\0\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\0\0\0"
                "\0\0"
                "\x01\0\0\0\0\0\0\0\xf0\x3f"
                "\x02\0\x01\0a\0\0"s +
                bytes + bytes.substr(0, 4) + bytes + "\xfe\xff\xff\xff\xff\xff\xff\xff"s);
  const std::vector<std::int64_t> many(65536);
  eh_builder_reset(builder, "E");
  eh_builder_add_int64_array(builder, "n", many.data(), many.size());
  EXPECT_EQ(eh_builder_write(builder, set, nullptr), E2BIG);
  eh_builder_destroy(builder);
}

TEST_F(DynamicEventTest, CApiReportsErrorsOfBuildingBeforeTheWrite) {
  eh_builder* const builder = eh_builder_create();
  eh_builder_reset(builder, "E");
  EXPECT_EQ(eh_builder_error(builder), 0);
  eh_builder_add_int32(builder, "n;", 1);
  EXPECT_EQ(eh_builder_error(builder), EINVAL);
  eh_builder_add_string(builder, "s", std::string(9000, 'x').c_str());
  EXPECT_EQ(eh_builder_error(builder), EINVAL);  // the first error remains

  eh_builder_reset(builder, "E");
  eh_builder_add_string(builder, "s", std::string(9000, 'x').c_str());
  EXPECT_EQ(eh_builder_error(builder), E2BIG);

  eh_builder_reset(builder, "E");
  const std::size_t where = eh_builder_start_struct(builder, "members");
  EXPECT_EQ(eh_builder_error(builder), EINVAL);  // no number of members yet
  eh_builder_set_struct_fields(builder, where, 1);
  EXPECT_EQ(eh_builder_error(builder), EINVAL);  // no member yet
  eh_builder_add_raw(builder, "n", EH_ENCODING_VALUE32, EH_SCALAR, 0, 0, 0, nullptr, 0);
  EXPECT_EQ(eh_builder_error(builder), EINVAL);  // no payload yet
  eh_builder_add_data(builder, "abcd", 4);
  EXPECT_EQ(eh_builder_error(builder), 0);
  eh_builder_destroy(builder);
}

// The largest event that Check accepts is also the largest that Write accepts.
TEST_F(DynamicEventTest, CheckAndWriteAgreeOnTheLargestEvent) {
  for (std::size_t size = kMaxEventSize - 40; size <= kMaxEventSize; ++size) {
    DynamicEvent event;
    event.Reset("E");
    event.AddField("s", std::string_view(std::string(size, 'x')));
    EXPECT_EQ(event.Check(), event.Write(set_)) << size;
  }
}

TEST_F(DynamicEventTest, ProviderWithoutSetsIsNotRegistered) {
  eh_provider* const provider = eh_provider_create("Test_Without", nullptr);
  EXPECT_EQ(ProviderOf(provider).SetTransport(&transport_), 0);
  EXPECT_EQ(eh_provider_status(provider), ENOTCONN);
  EXPECT_EQ(eh_provider_retry(provider), ENOTCONN);
  eh_event_set* const set = eh_event_set_create(provider, 4, 1);
  EXPECT_EQ(eh_provider_status(provider), 0);
  EXPECT_EQ(eh_provider_retry(provider), 0);
  eh_event_set_destroy(set);
  EXPECT_EQ(eh_provider_status(provider), ENOTCONN);
  EXPECT_EQ(RetryAll(), 0);
  eh_provider_destroy(provider);
}

TEST_F(DynamicEventTest, CApiEnableWordFollowsTheSet) {
  eh_provider* const provider = eh_provider_create("Test_Word", nullptr);
  ProviderOf(provider).SetTransport(&transport_);
  eh_event_set* const other = eh_event_set_create(provider, 4, 1);
  eh_event_set* const set = eh_event_set_create(provider, 4, 2);
  std::uint64_t mask = 0;
  const volatile std::uint64_t* const word = eh_event_set_enable_word(set, &mask);
  EXPECT_EQ(std::popcount(mask), 1);
  EXPECT_NE(*word & mask, 0u);
  transport_.SetEnabled(false, "Test_Word_L4K2");
  EXPECT_EQ(*word & mask, 0u);
  EXPECT_NE(*word, 0u);
  eh_event_set* const bad = eh_event_set_create(provider, 0, 1);
  EXPECT_EQ(eh_event_set_enable_word(bad, &mask), word);
  EXPECT_EQ(mask, 0u);
  for (eh_event_set* each : {bad, set, other}) eh_event_set_destroy(each);
  eh_provider_destroy(provider);
}

TEST(CApiActivity, CurrentActivityIsThatOfCxx) {
  std::uint8_t id[16] = {1, 2};
  EXPECT_FALSE(eh_current_activity(id));
  EXPECT_EQ(id[1], 2);
  SetCurrentActivity(ActivityId{std::byte{7}});
  EXPECT_TRUE(eh_current_activity(id));
  EXPECT_EQ(id[0], 7);
  EXPECT_EQ(id[1], 0);
  id[1] = 9;
  eh_set_current_activity(id);
  EXPECT_EQ(CurrentActivity(), (ActivityId{std::byte{7}, std::byte{9}}));
  eh_set_current_activity(nullptr);
  EXPECT_EQ(CurrentActivity(), std::nullopt);
}

TEST_F(DynamicEventTest, CApiRefusesMissingNames) {
  const auto* set = reinterpret_cast<const eh_event_set*>(&set_);
  const auto before = dynamic_provider.counters().invalid;
  EXPECT_EQ(WriteNameless(set), EINVAL);
  eh_builder* const builder = eh_builder_create();
  for (const char* name : {static_cast<const char*>(nullptr), "", "a;b"}) {
    eh_builder_reset(builder, name);
    EXPECT_EQ(eh_builder_write(builder, set, nullptr), EINVAL);
    eh_builder_reset(builder, "E");
    eh_builder_add_string(builder, name, "value");
    EXPECT_EQ(eh_builder_write(builder, set, nullptr), EINVAL);
  }
  eh_builder_destroy(builder);
  EXPECT_EQ(dynamic_provider.counters().invalid, before + 7);
  EXPECT_TRUE(transport_.Take().empty());
}

TEST_F(DynamicEventTest, CApiTreatsAnActivityWithoutIdAsNone) {
  const eh_activity none = {};
  eh_builder* const builder = eh_builder_create();
  eh_builder_reset(builder, "E");
  EXPECT_EQ(eh_builder_write(builder, reinterpret_cast<const eh_event_set*>(&set_), &none), 0);
  EXPECT_EQ(TakeOne(), "\x07\0\0\0\0\0\0\x04\x02\0\x01\0E\0"s);
  eh_builder_destroy(builder);
}

TEST(CApi, ProviderWithoutNameReportsAnError) {
  eh_provider* const bad = eh_provider_create(nullptr, nullptr);
  eh_event_set* const set = eh_event_set_create(bad, 4, 1);
  EXPECT_EQ(eh_event_set_status(set), EINVAL);
  eh_event_set_destroy(set);
  eh_provider_destroy(bad);
}

TEST(CApi, ProviderWithAnInvalidNameReportsAnError) {
  eh_provider* const bad = eh_provider_create("not a name", "");
  eh_event_set* const set = eh_event_set_create(bad, 4, 1);
  EXPECT_EQ(eh_event_set_status(set), EINVAL);
  EXPECT_EQ(eh_provider_status(bad), EINVAL);
  EXPECT_FALSE(eh_event_set_enabled(set));
  EXPECT_EQ(WriteTooMuch(set), EBADF);
  eh_event_set_destroy(set);
  eh_provider_destroy(bad);
}

}  // namespace
}  // namespace eh
