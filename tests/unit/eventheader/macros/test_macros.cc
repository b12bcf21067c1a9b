// Compares the events of the C++17 macros with static events of the same fields.
#include <gtest/gtest.h>

#include <span>

#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "macro_user.h"

namespace eh {
namespace {

using namespace std::string_literals;

template <FixedString kName, typename... Parts>
using StaticEvent = Event<macro_provider, kName, Traits{.keyword = 1}, Parts...>;

class MacrosTest : public ::testing::Test {
 protected:
  MacrosTest() { macro_provider.SetTransport(&transport_); }
  ~MacrosTest() override { macro_provider.SetTransport(nullptr); }

  // The last two events: tracepoint and bytes.
  void ExpectTwoAlike() {
    const auto records = transport_.Take();
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[0].tracepoint, records[1].tracepoint);
    EXPECT_EQ(records[0].event, records[1].event);
  }

  RecordingTransport transport_;
};

TEST_F(MacrosTest, WithoutFields) {
  WriteNothing();
  const auto records = transport_.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].tracepoint, "Test_Macros_L2K2aGmygroup");
  const auto& bytes = records[0].event;
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
            "\x07\0\0\0\0\0\0\x02\x08\0\x01\0Nothing\0"s);
}

TEST_F(MacrosTest, Numbers) {
  static constexpr StaticEvent<"Numbers", Field<"b", bool>, Field<"i8", std::int8_t>,
                               Field<"u16", std::uint16_t>, Field<"i32", std::int32_t>,
                               Field<"u64", std::uint64_t>, Field<"f", float>, Field<"d", double>,
                               Field<"colour", MacroColour>, Field<"pointer", const void*>,
                               Field<"null", std::nullptr_t>, Field<"byte", std::byte>>
      event;
  WriteNumbers(true, -2, 0x1234, -5, ~std::uint64_t{0}, 1.5F, -2.5, MacroColour::kRed, this);
  event.Write(true, -2, 0x1234, -5, ~std::uint64_t{0}, 1.5F, -2.5, MacroColour::kRed, this, nullptr,
              std::byte{7});
  ExpectTwoAlike();
}

TEST_F(MacrosTest, Characters) {
  static constexpr StaticEvent<"Characters", Field<"c", char>, Field<"c16", char16_t>,
                               Field<"c32", char32_t>, Field<"wide", wchar_t>>
      event;
  WriteCharacters('a', u'\u20ac', U'\U0001F600', L'w');
  event.Write('a', u'\u20ac', U'\U0001F600', L'w');
  ExpectTwoAlike();
}

TEST_F(MacrosTest, Text) {
  static constexpr StaticEvent<"Text", Field<"text", std::string>, Field<"view", std::string_view>,
                               Field<"c", const char*>, Field<"text16", std::u16string>,
                               Field<"wide", const wchar_t*>, Field<"literal", const char*>,
                               Field<"full", std::string_view>>
      event;
  for (const char* c_string : {static_cast<const char*>(nullptr), "", "a C string"}) {
    WriteText("a string", "view", c_string, u"wide", L"wider");
    event.Write("a string", "view", c_string, u"wide", L"wider", "literal", "full");
    ExpectTwoAlike();
  }
}

TEST_F(MacrosTest, Formats) {
  static constexpr StaticEvent<"Formats", Field<"number", Hex<std::uint32_t>>,
                               Field<"json", Json<>>, Field<"error", Errno>>
      event;
  WriteFormats(0xabc, "{}", 2);
  event.Write(std::uint32_t{0xabc}, "{}", 2);
  ExpectTwoAlike();
}

TEST_F(MacrosTest, Arrays) {
  static constexpr StaticEvent<"Arrays", Field<"numbers", std::vector<std::uint16_t>>,
                               Field<"doubles", std::array<double, 2>>,
                               Field<"texts", std::vector<std::string>>,
                               Field<"ints", std::span<const int>>>
      event;
  const int ints[] = {1, 2, 3};
  WriteArrays({1, 2}, {0.5, -0.5}, {"a", ""}, ints, 3);
  event.Write({1, 2}, {0.5, -0.5}, {"a", ""}, ints);
  ExpectTwoAlike();
  WriteArrays({}, {0, 0}, {}, nullptr, 0);
  event.Write({}, {0, 0}, {}, {});
  ExpectTwoAlike();
}

TEST_F(MacrosTest, OtherTypesOfFields) {
  static constexpr StaticEvent<
      "Others", Field<"number", std::optional<int>>, Field<"bools", std::vector<bool>>,
      Field<"bytes", std::vector<std::byte>>, Field<"ints", int[2]>, Field<"port", Port>>
      event;
  const int ints[2] = {1, 2};
  for (const std::optional<int> number : {std::optional(17), std::optional<int>()}) {
    WriteOthers(number, {true, false}, {std::byte{1}}, ints, 80);
    event.Write(number, {true, false}, {std::byte{1}}, ints, 80);
    ExpectTwoAlike();
  }
}

TEST_F(MacrosTest, BinaryUpToTheMaximumSize) {
  static constexpr StaticEvent<"Binary", Field<"data", std::span<const std::byte>>> event;
  const std::vector<std::byte> data(kMaxEventSize, std::byte{1});
  const std::size_t overhead = 8 + 4 + sizeof("Binary") + sizeof("data") + 1 + 2;
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{510}, std::size_t{511},
                                 kMaxEventSize - overhead}) {
    WriteBinary(data.data(), size);
    event.Write(std::span(data).first(size));
    ExpectTwoAlike();
  }
  const auto before = macro_provider.counters().too_big;
  WriteBinary(data.data(), kMaxEventSize - overhead + 1);
  WriteBinary(data.data(), kMaxEventSize);
  WriteBinary(nullptr, 100'000);
  EXPECT_EQ(macro_provider.counters().too_big, before + 3);
  EXPECT_TRUE(transport_.Take().empty());
}

TEST_F(MacrosTest, ActivityOpcodeIdAndTag) {
  static constexpr StaticEvent<"Alone"> alone;
  static constexpr Event<macro_provider, "Started",
                         Traits{.level = Level::kVerbose,
                                .keyword = 1,
                                .opcode = Opcode::kActivityStart,
                                .id = 0x1234,
                                .version = 5,
                                .tag = 0x6789},
                         Field<"n", int>>
      started;
  const ActivityId id = {std::byte{1}, std::byte{2}};
  const ActivityId related = {std::byte{3}};
  WriteActivity(id, related);
  auto records = transport_.Take();
  alone.Write(Activity{id});
  started.Write(Activity{id, &related}, 17);
  const auto expected = transport_.Take();
  ASSERT_EQ(records.size(), 2u);
  ASSERT_EQ(expected.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(records[i].tracepoint, expected[i].tracepoint);
    EXPECT_EQ(records[i].event, expected[i].event);
  }
}

TEST_F(MacrosTest, ArgumentsAreEvaluatedOnceAndOnlyWhenEnabled) {
  int evaluated = 0;
  transport_.SetEnabled(false);
  WriteCosts(&evaluated);
  EXPECT_EQ(evaluated, 0);
  transport_.SetEnabled(true);
  WriteCosts(&evaluated);
  EXPECT_EQ(evaluated, 1);
  EXPECT_EQ(transport_.Take().size(), 1u);
}

TEST_F(MacrosTest, InTemplatesInlineFunctionsAndBranches) {
  WriteFromTemplates();
  WriteOneOf(true);
  WriteOneOf(false);
  const auto records = transport_.Take();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].tracepoint, "Test_Macros_L4K2Gmygroup");
  EXPECT_EQ(records[1].tracepoint, "Test_Macros_L4K4Gmygroup");
  EXPECT_EQ(records[2].tracepoint, "Test_Macros_L4K1Gmygroup");
  EXPECT_EQ(records[3].event.size(), 8u + 4 + sizeof("First"));
  EXPECT_EQ(records[4].event.size(), 8u + 4 + sizeof("Second"));
}

}  // namespace
}  // namespace eh
