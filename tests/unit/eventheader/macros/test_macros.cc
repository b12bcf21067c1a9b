// Compares the events of the macros of C++17 and of C with static events of the same fields.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "eventheader/eh.h"
#include "eventheader/internal/field_rules.h"
#include "eventheader/testing/recording_transport.h"
#include "macro_user.h"
#include "tests/support/eventheader/event_bytes.h"

namespace eh {
namespace {

using namespace std::string_literals;

template <FixedString kName, typename... Parts>
using StaticEvent = Event<macro_provider, kName, Traits{.keyword = 1}, Parts...>;

class MacrosTest : public ::testing::Test {
 protected:
  MacrosTest() {
    macro_provider.SetTransport(&transport_);
    c_provider_.SetTransport(&transport_);
  }
  ~MacrosTest() override {
    macro_provider.SetTransport(nullptr);
    c_provider_.SetTransport(nullptr);
  }

  // Expects `number` events since the last call, all with the same tracepoint and bytes.
  void ExpectAlike(std::size_t number) {
    const auto records = transport_.Take();
    ASSERT_EQ(records.size(), number);
    for (const auto& record : records) {
      EXPECT_EQ(record.tracepoint, records[0].tracepoint);
      EXPECT_EQ(record.event, records[0].event);
    }
  }
  void ExpectTwoAlike() { ExpectAlike(2); }
  void ExpectThreeAlike() { ExpectAlike(3); }

  static CValues Values() {
    static const std::array<std::uint8_t, 16> bytes = {1, 2,  3,  4,  5,  6,  7, 8,
                                                       9, 10, 11, 12, 13, 14, 15};
    static const std::array<std::int32_t, 4> numbers = {-1, 2, -3, 4};
    static const std::array<std::uint16_t, 2> text16 = {u'\u20ac', u'x'};
    return {.b = true,
            .c = 'x',
            .i8 = -8,
            .u8 = 0xfe,
            .i16 = -16,
            .u16 = 0xfffe,
            .i32 = -32,
            .u32 = 0xfffffffe,
            .i64 = -64,
            .u64 = ~std::uint64_t{1},
            .longest = -6400,
            .f = 1.5F,
            .d = -2.5,
            .pointer = &bytes,
            .text = "a text of more than sixteen bytes",
            .text16 = text16.data(),
            .text16_size = text16.size(),
            .bytes16 = bytes.data(),
            .numbers = numbers.data(),
            .number_count = numbers.size()};
  }
  ProviderBase& c_provider_ = ProviderOf(CProvider());

  RecordingTransport transport_;
};

TEST_F(MacrosTest, WithoutFields) {
  WriteNothing();
  CWriteNothing();
  const auto records = transport_.Take();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].tracepoint, records[1].tracepoint);
  EXPECT_EQ(records[0].event, records[1].event);
  EXPECT_EQ(records[0].tracepoint, "Test_Macros_L2K2aGmygroup");
  EXPECT_EQ(testing::TextOfWritten(records[0].event), "\x07\0\0\0\0\0\0\x02\x08\0\x01\0Nothing\0"s);
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

TEST_F(MacrosTest, EveryTypeThatCHasToo) {
  static constexpr StaticEvent<
      "Values", Field<"b", bool>, Field<"c", char>, Field<"i8", std::int8_t>,
      Field<"u8", std::uint8_t>, Field<"i16", std::int16_t>, Field<"text", const char*>,
      Field<"u16", std::uint16_t>, Field<"i32", std::int32_t>, Field<"u32", std::uint32_t>,
      Field<"i64", std::int64_t>, Field<"u64", std::uint64_t>, Field<"longest", long long>,
      Field<"f", float>, Field<"d", double>, Field<"pointer", const void*>,
      Field<"literal", const char*>, Field<"last", int>>
      event;
  CValues v = Values();
  for (const char* text : {v.text, static_cast<const char*>(nullptr), "", "1", "12", "1234",
                           "seventeen bytes..", "exactly sixteen.", "12345678"}) {
    v.text = text;
    WriteValues(v);
    CWriteValues(&v);
    event.Write(v.b, v.c, v.i8, v.u8, v.i16, v.text, v.u16, v.i32, v.u32, v.i64, v.u64, v.longest,
                v.f, v.d, v.pointer, "literal", 17);
    ExpectThreeAlike();
  }
}

TEST_F(MacrosTest, EveryFormatThatCHasToo) {
  using U8 = std::uint8_t;
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  static constexpr StaticEvent<
      "Formats", Field<"8u", U8, As<Format::kUnsignedInt>>, Field<"8s", U8, As<Format::kSignedInt>>,
      Field<"8x", Hex<U8>>, Field<"8b", U8, As<Format::kBoolean>>,
      Field<"8h", U8, As<Format::kHexBytes>>, Field<"8c", U8, As<Format::kString8>>,
      Field<"16b", U16, As<Format::kBoolean>>, Field<"16c", U16, As<Format::kStringUtf>>,
      Field<"16p", Port>, Field<"32e", Errno>, Field<"32i", Pid>,
      Field<"32t", std::int32_t, As<Format::kTime>>,
      Field<"32b", std::int32_t, As<Format::kBoolean>>, Field<"32f", U32, As<Format::kFloat>>,
      Field<"32c", U32, As<Format::kStringUtf>>, Field<"32a", U32, As<Format::kIpAddress>>,
      Field<"64t", std::int64_t, As<Format::kTime>>, Field<"64f", U64, As<Format::kFloat>>,
      Field<"64x", Hex<U64>>, Field<"uuid", Uuid>, Field<"ip4", Ip4>, Field<"ip6", Ip6>,
      Field<"json", Json<>>, Field<"latin", Latin1<>>, Field<"tagged", std::int32_t, Tag<0x1234>>,
      Field<"both", Hex<std::int32_t>, Tag<7>>, Field<"plain", U32, Tag<8>>>
      event;
  const CValues v = Values();
  std::array<std::uint8_t, 16> uuid;
  std::copy_n(v.bytes16, 16, uuid.begin());
  const std::array<std::uint8_t, 4> ip4 = {uuid[0], uuid[1], uuid[2], uuid[3]};
  WriteFormatsOf(v);
  CWriteFormats(&v);
  event.Write(v.u8, v.u8, v.u8, v.u8, v.u8, v.u8, v.u16, v.u16, v.u16, v.i32, v.i32, v.i32, v.i32,
              v.u32, v.u32, v.u32, v.i64, v.u64, v.u64, uuid, ip4, uuid, v.text, v.text, v.i32,
              v.i32, v.u32);
  ExpectThreeAlike();
}

TEST_F(MacrosTest, RangesThatCHasToo) {
  static constexpr StaticEvent<
      "Ranges", Field<"string", std::string_view>, Field<"string16", std::u16string_view>,
      Field<"xml", Xml<>>, Field<"z", NulTerminated<>>, Field<"zj", Json<NulTerminated<>>>,
      Field<"between", std::uint8_t>, Field<"binary", std::span<const std::byte>>,
      Field<"uuid", std::span<const std::byte>, As<Format::kUuid>>,
      Field<"array", std::span<const std::int32_t>>,
      Field<"hex", std::span<const std::int32_t>, As<Format::kHexInt>>,
      Field<"constant", std::span<const std::int32_t, 3>>,
      Field<"pids", std::span<const std::int32_t, 2>, As<Format::kPid>>>
      event;
  const CValues v = Values();
  const std::span numbers(v.numbers, v.number_count);
  const auto bytes = std::as_bytes(std::span(v.bytes16, 16));
  const std::u16string text16(v.text16, v.text16 + v.text16_size);
  WriteRanges(v);
  CWriteRanges(&v);
  event.Write({v.text, 2}, text16, std::string_view(v.text, 3), v.text, v.text, v.u8,
              bytes.first(5), bytes, numbers, numbers, numbers.first<3>(), numbers.first<2>());
  ExpectThreeAlike();
}

TEST_F(MacrosTest, StructsOfTheFieldsThatFollow) {
  const CValues v = Values();
  WriteStructs(v);
  CWriteStructs(&v);
  DynamicEvent event;
  event.Reset("Structs");
  const std::size_t outer = event.StartStruct("outer");
  event.AddField("a", v.i32);
  const std::size_t inner = event.StartStruct("inner");
  event.AddField("b", v.text);
  event.SetStructFields(inner, 1);
  event.AddField("c", v.u16);
  event.SetStructFields(outer, 3);
  event.AddField("after", v.d);
  const EventSet set(macro_provider, Level::kInformation, 1);
  EXPECT_EQ(event.Write(set), WriteResult::kWritten);
  ExpectThreeAlike();
}

struct Point {
  std::int16_t x;
  std::uint32_t y;
};
struct Line {
  std::string name;
  std::array<Point, 2> ends;
};

}  // namespace

template <>
struct StructOf<Point> {
  using Members =
      eh::Members<Member<"x", &Point::x>, Member<"y", &Point::y, As<Format::kHexInt>, Tag<9>>>;
};
template <>
struct StructOf<Line> {
  using Members = eh::Members<Member<"name", &Line::name>, Member<"ends", &Line::ends>>;
};

namespace {

TEST_F(MacrosTest, DescribedStructs) {
  static constexpr StaticEvent<"Described", Field<"point", Point>,
                               Field<"lines", std::vector<Line>>>
      event;
  WriteDescribed({-1, 2}, {{"first", {MacroPoint{1, 2}, MacroPoint{3, 4}}}, {"", {}}});
  event.Write({-1, 2}, {{"first", {Point{1, 2}, Point{3, 4}}}, {"", {}}});
  ExpectTwoAlike();
}

TEST_F(MacrosTest, AddressesAndTimes) {
  static constexpr StaticEvent<"Addresses", Field<"ip4", in_addr>, Field<"ip4 again", in_addr>,
                               Field<"ip6", in6_addr>, Field<"uuid", Uuid>,
                               Field<"time", std::chrono::system_clock::time_point>>
      event;
  const in_addr ip4 = {0x0100007f};
  const ActivityId id = {std::byte{1}, std::byte{2}};
  std::array<std::uint8_t, 16> uuid{1, 2};
  for (const auto since_1970 : {std::chrono::milliseconds(-1), std::chrono::milliseconds(2999)}) {
    const std::chrono::system_clock::time_point time(since_1970);
    WriteAddresses(ip4, in6addr_loopback, id, time);
    event.Write(ip4, ip4, in6addr_loopback, uuid, time);
    ExpectTwoAlike();
  }
}

TEST_F(MacrosTest, TemporariesLiveUntilTheEventIsWritten) {
  static constexpr StaticEvent<"Temporaries", Field<"a", std::string_view>,
                               Field<"b", std::string_view>, Field<"c", int>>
      event;
  WriteTemporaries();
  event.Write(std::string(40, 'a'), std::string(40, 'b'), 17);
  ExpectTwoAlike();
}

TEST_F(MacrosTest, EnabledIsAskedByLevelAndKeyword) {
  EXPECT_TRUE(Enabled());
  EXPECT_TRUE(CEnabled());
  transport_.SetEnabled(false);
  EXPECT_FALSE(Enabled());
  EXPECT_FALSE(CEnabled());
  // Another tracepoint of the provider is enabled.
  transport_.SetEnabled(true, "Test_Macros_L2K2aGmygroup");
  EXPECT_TRUE(macro_provider.enabled());
  EXPECT_FALSE(Enabled());
  EXPECT_FALSE(CEnabled());
}

TEST_F(MacrosTest, ProviderOfCHasAStatusAndCounters) {
  EXPECT_EQ(eh_provider_status(CProvider()), 0);
  eh_counters before;
  eh_provider_counters(CProvider(), &before);
  CWriteNothing();
  eh_counters after;
  eh_provider_counters(CProvider(), &after);
  EXPECT_EQ(after.written, before.written + 1);
  EXPECT_EQ(ProviderOf(CProvider()).name(), "Test_Macros");
  EXPECT_EQ(ProviderOf(CProvider()).group(), "mygroup");
}

TEST_F(MacrosTest, FormatsGoWithTheSameEncodingsInC) {
  for (int format = 0; format <= static_cast<int>(Format::kIpAddressObsolete); ++format) {
    for (int encoding = 2; encoding <= static_cast<int>(Encoding::kBinaryLength16Char8);
         ++encoding) {
      EXPECT_EQ((CEncodingsOf(format) >> encoding & 1) != 0,
                internal::IsFormatOf(static_cast<Encoding>(encoding), static_cast<Format>(format)))
          << "format " << format << ", encoding " << encoding;
    }
  }
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
    CWriteBinary(data.data(), size);
    event.Write(std::span(data).first(size));
    ExpectThreeAlike();
  }
  const auto c_before = c_provider_.counters().too_big;
  CWriteBinary(data.data(), kMaxEventSize - overhead + 1);
  CWriteBinary(nullptr, SIZE_MAX / 2);
  CWriteBinary(data.data(), SIZE_MAX);  // The result -1 of a failed read(), passed as a size.
  EXPECT_EQ(c_provider_.counters().too_big, c_before + 3);
  const auto before = macro_provider.counters().too_big;
  WriteBinary(data.data(), kMaxEventSize - overhead + 1);
  WriteBinary(data.data(), kMaxEventSize);
  WriteBinary(nullptr, 100'000);
  WriteBinary(data.data(), SIZE_MAX);
  EXPECT_EQ(macro_provider.counters().too_big, before + 4);
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
  CWriteActivity(reinterpret_cast<const std::uint8_t*>(id.data()),
                 reinterpret_cast<const std::uint8_t*>(related.data()));
  const auto from_c = transport_.Take();
  ASSERT_EQ(records.size(), 2u);
  ASSERT_EQ(expected.size(), 2u);
  ASSERT_EQ(from_c.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(records[i].tracepoint, expected[i].tracepoint);
    EXPECT_EQ(records[i].event, expected[i].event);
    EXPECT_EQ(from_c[i].event, expected[i].event);
  }
}

TEST_F(MacrosTest, ArgumentsAreEvaluatedOnceAndOnlyWhenEnabled) {
  int evaluated = 0;
  transport_.SetEnabled(false);
  WriteCosts(&evaluated);
  CWriteCosts(&evaluated);
  EXPECT_EQ(evaluated, 0);
  transport_.SetEnabled(true);
  WriteCosts(&evaluated);
  EXPECT_EQ(evaluated, 1);
  CWriteCosts(&evaluated);
  EXPECT_EQ(evaluated, 2);
  EXPECT_EQ(transport_.Take().size(), 2u);
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
  CWriteOneOf(true);
  CWriteOneOf(false);
  const auto from_c = transport_.Take();
  ASSERT_EQ(from_c.size(), 2u);
  EXPECT_EQ(from_c[0].event, records[3].event);
  EXPECT_EQ(from_c[1].event, records[4].event);
}

}  // namespace
}  // namespace eh
