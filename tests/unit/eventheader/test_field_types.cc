// Compares every field type with bytes written by hand from the specification.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "eventheader/decoder.h"
#include "eventheader/eh.h"
#include "eventheader/testing/recording_transport.h"
#include "tests/support/eventheader/event_bytes.h"

struct Point {
  std::int16_t x;
  std::uint8_t y;
};
struct Line {
  std::string name;
  std::array<Point, 2> ends;
};

template <>
struct eh::StructOf<Point> {
  using Members = eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>;
};
template <>
struct eh::StructOf<Line> {
  using Members = eh::Members<eh::Member<"name", &Line::name>, eh::Member<"ends", &Line::ends>>;
};

// Structs with the same names as types of namespace eh, and a class that is written as the value
// that its EventheaderValue returns.
struct Header {
  std::uint8_t x;
};
struct Level {
  std::uint8_t x;
};
struct Field {
  std::uint8_t x;
};
constexpr auto EventheaderMembers(const Header*) {
  return eh::Members<eh::Member<"x", &Header::x>>();
}
constexpr auto EventheaderMembers(const Level*) {
  return eh::Members<eh::Member<"x", &Level::x>>();
}
template <>
struct eh::StructOf<Field> {
  using Members = eh::Members<eh::Member<"x", &::Field::x>>;
};

namespace shop {
class Color {
 public:
  explicit Color(std::string name) : name_(std::move(name)) {}

 private:
  friend std::string_view EventheaderValue(const Color& color) { return color.name_; }
  std::string name_;
};
enum class Size { kSmall };
const char* EventheaderValue(Size) { return "small"; }
}  // namespace shop

namespace eh {
namespace {

using namespace std::string_literals;

inline constinit Provider types_provider("Test_Types");

// Returns the definition and payload of the only field of an event.
template <typename T, typename... Options>
std::string Bytes(const T& value) {
  static constexpr Event<types_provider, "E", Traits{}, eh::Field<"f", T, Options...>> event;
  RecordingTransport transport;
  event.enabled();  // Registers the set.
  types_provider.SetTransport(&transport);
  EXPECT_EQ(event.Write(value), WriteResult::kWritten);
  types_provider.SetTransport(nullptr);
  const auto records = transport.Take();
  if (records.size() != 1) return "not written";
  const std::string all = testing::TextOfWritten(records[0].event);
  const std::string metadata_size = {all[8], all[9]};
  EXPECT_EQ(all.substr(0, 8), "\x07\0\0\0\0\0\0\x04"s);
  EXPECT_EQ(all.substr(10, 6), "\x01\0E\0f\0"s);
  auto fields = all.substr(16);
  // "E", "f" and their terminators take 4 bytes of the metadata.
  EXPECT_LE(static_cast<unsigned char>(metadata_size[0]) - 4u, fields.size());
  return fields;
}

enum class Signed : std::int8_t { kMinus = -1 };
enum class Unsigned : std::uint16_t { kValue = 0x1234 };
enum class Answer : bool { kYes = true };
enum class Letter : char { kA = 'a' };

TEST(FieldTypes, Integers) {
  EXPECT_EQ(Bytes(true), "\x82\x07\x01"s);
  EXPECT_EQ(Bytes<std::int8_t>(-2), "\x82\x02\xFE"s);
  EXPECT_EQ(Bytes<std::uint8_t>(254), "\x02\xFE"s);
  EXPECT_EQ(Bytes<std::int16_t>(-2), "\x83\x02\xFE\xFF"s);
  EXPECT_EQ(Bytes<std::uint16_t>(0x0102), "\x03\x02\x01"s);
  EXPECT_EQ(Bytes<std::int32_t>(-2), "\x84\x02\xFE\xFF\xFF\xFF"s);
  EXPECT_EQ(Bytes<std::uint32_t>(0x01020304), "\x04\x04\x03\x02\x01"s);
  EXPECT_EQ(Bytes<long long>(-2), "\x85\x02\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(Bytes<unsigned long long>(1), "\x05\x01\0\0\0\0\0\0\0"s);
}

TEST(FieldTypes, EnumsAsTheirUnderlyingType) {
  EXPECT_EQ(Bytes(Signed::kMinus), "\x82\x02\xFF"s);
  EXPECT_EQ(Bytes(Unsigned::kValue), "\x03\x34\x12"s);
  EXPECT_EQ(Bytes(Answer::kYes), Bytes(true));
  EXPECT_EQ(Bytes(Letter::kA), Bytes('a'));
  EXPECT_EQ(Bytes(std::byte{0xAB}), "\x82\x03\xAB"s);
}

TEST(FieldTypes, Characters) {
  EXPECT_EQ(Bytes('a'),
            "\x82\x0A"
            "a"s);
  EXPECT_EQ(Bytes(u8'a'),
            "\x82\x0A"
            "a"s);
  EXPECT_EQ(Bytes(u'\x20AC'), "\x83\x0B\xAC\x20"s);
  EXPECT_EQ(Bytes(U'\x20AC'), "\x84\x0B\xAC\x20\0\0"s);
  EXPECT_EQ(Bytes(L'\x20AC'), "\x84\x0B\xAC\x20\0\0"s);
}

TEST(FieldTypes, FloatingPoint) {
  EXPECT_EQ(Bytes(1.0f), "\x84\x08\0\0\x80\x3F"s);
  EXPECT_EQ(Bytes(-2.0), "\x85\x08\0\0\0\0\0\0\0\xC0"s);
}

TEST(FieldTypes, TimePointsAreSecondsRoundedDown) {
  using std::chrono::milliseconds;
  const std::chrono::time_point<std::chrono::system_clock, milliseconds> later(milliseconds(2999));
  const std::chrono::time_point<std::chrono::system_clock, milliseconds> before(milliseconds(-1));
  EXPECT_EQ(Bytes(later), "\x85\x06\x02\0\0\0\0\0\0\0"s);
  EXPECT_EQ(Bytes(before), "\x85\x06\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
}

TEST(FieldTypes, DurationsAreNanosecondsWithinTheirRange) {
  using std::chrono::duration;
  EXPECT_EQ(Bytes(std::chrono::microseconds(1)), "\x85\x02\xE8\x03\0\0\0\0\0\0"s);
  EXPECT_EQ(Bytes(std::chrono::nanoseconds(-1)), "\x85\x02\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s);
  EXPECT_EQ(Bytes(duration<double>(1e-6)), Bytes(std::chrono::microseconds(1)));
  EXPECT_EQ(Bytes(duration<int, std::ratio<1, 3>>(3)), Bytes(std::chrono::seconds(1)));
  EXPECT_EQ(Bytes(duration<std::int64_t, std::ratio<1, 3>>(12'000'000'000)),
            Bytes(std::chrono::seconds(4'000'000'000)));
  EXPECT_EQ(Bytes(duration<int, std::pico>(-2999)), Bytes(std::chrono::nanoseconds(-2)));
  EXPECT_EQ(Bytes(std::chrono::hours::max()), Bytes(std::chrono::nanoseconds::max()));
  EXPECT_EQ(Bytes(std::chrono::hours::min()), Bytes(std::chrono::nanoseconds::min()));
  EXPECT_EQ(Bytes(duration<double>(1e30)), Bytes(std::chrono::nanoseconds::max()));
  EXPECT_EQ(Bytes(duration<double>(std::numeric_limits<double>::quiet_NaN())),
            Bytes(std::chrono::nanoseconds(0)));
  const std::chrono::sys_time<std::chrono::nanoseconds> time(std::chrono::nanoseconds(3));
  EXPECT_EQ(Bytes(time.time_since_epoch()), "\x85\x02\x03\0\0\0\0\0\0\0"s);
}

TEST(FieldTypes, ErrorCodesAreTheirCategoryAndNumber) {
  EXPECT_EQ(Bytes(std::make_error_code(std::errc::no_such_file_or_directory)),
            "\x81\x02"
            "category\0\x0Avalue\0\x84\x02"
            "\x07\0generic\x02\0\0\0"s);
}

TEST(FieldTypes, PathsAtomicsAndTheTypesOfUsers) {
  EXPECT_EQ(Bytes(std::filesystem::path("/a")), "\x0A\x02\0/a"s);
  const std::atomic<std::uint16_t> atomic = 7;
  EXPECT_EQ(Bytes(atomic), Bytes<std::uint16_t>(7));
  EXPECT_EQ(Bytes(shop::Color("red")), "\x0A\x03\0red"s);
  EXPECT_EQ(Bytes(shop::Size::kSmall), "\x0A\x05\0small"s);
  EXPECT_EQ(Bytes(std::vector{shop::Color("red")}), "\x4A\x01\0\x03\0red"s);
}

TEST(FieldTypes, TruncatedTextEndsBeforeACharacterThatDoesNotFit) {
  const auto limited = [](auto text) { return std::string(text.Limited()); };
  EXPECT_EQ(limited(Truncate<3>("abcd")), "abc");
  EXPECT_EQ(limited(Truncate<3>("abc")), "abc");
  EXPECT_EQ(limited(Truncate<4>("ab\u20AC")), "ab");
  EXPECT_EQ(limited(Truncate<5>("ab\u20AC!")), "ab\u20AC");
  EXPECT_EQ(limited(Truncate<2>("\u20AC")), "");
  EXPECT_EQ(limited(Truncate<6>("\x80\x80\x80\x80\x80\x80\x80")), "\x80\x80\x80\x80\x80\x80");
  EXPECT_EQ(limited(Truncate<2>(static_cast<const char*>(nullptr))), "");
  EXPECT_EQ(Bytes<Truncate<2>>("abc"), "\x0A\x02\0ab"s);
  EXPECT_EQ(Bytes<std::string_view>(Truncate<2>("abc")), "\x0A\x02\0ab"s);
}

TEST(FieldTypes, StructsMayHaveNamesOfTheLibrary) {
  EXPECT_EQ(Bytes(::Header{1}), "\x81\x01x\0\x02\x01"s);
  EXPECT_EQ(Bytes(::Level{1}), Bytes(::Header{1}));
  EXPECT_EQ(Bytes(::Field{1}), Bytes(::Header{1}));
}

TEST(FieldTypes, Pointers) {
  const std::string encoding = sizeof(void*) == 8 ? "\x85" : "\x84";
  EXPECT_EQ(Bytes(reinterpret_cast<void*>(0x0102)),
            encoding + "\x03\x02\x01" + std::string(sizeof(void*) - 2, '\0'));
  EXPECT_EQ(Bytes(nullptr), encoding + "\x03" + std::string(sizeof(void*), '\0'));
}

TEST(FieldTypes, Strings) {
  EXPECT_EQ(Bytes(std::string_view("ab")), "\x0A\x02\0ab"s);
  EXPECT_EQ(Bytes("ab"s), "\x0A\x02\0ab"s);
  EXPECT_EQ(Bytes<const char*>("ab"), "\x0A\x02\0ab"s);
  EXPECT_EQ(Bytes<const char*>(nullptr), "\x0A\0\0"s);
  EXPECT_EQ(Bytes(std::u8string_view(u8"\u20AC")), "\x0A\x03\0\xE2\x82\xAC"s);
  EXPECT_EQ(Bytes(std::u16string_view(u"ab")), "\x0B\x02\0a\0b\0"s);
  EXPECT_EQ(Bytes(std::u32string_view(U"a")), "\x0C\x01\0a\0\0\0"s);
  EXPECT_EQ(Bytes(std::wstring(L"a")), "\x0C\x01\0a\0\0\0"s);
}

TEST(FieldTypes, NulTerminatedStringsEndAtTheirFirstNul) {
  EXPECT_EQ(Bytes<NulTerminated<>>("ab"),
            "\x07"
            "ab\0"s);
  EXPECT_EQ(Bytes<NulTerminated<>>("a\0b"s),
            "\x07"
            "a\0"s);
  EXPECT_EQ(Bytes<NulTerminated<>>(static_cast<const char*>(nullptr)), "\x07\0"s);
  EXPECT_EQ(Bytes<NulTerminated<>>(nullptr), "\x07\0"s);
  // The array is full and has no NUL. The bytes after it are not read.
  const char full[] = {'a', 'b'};
  EXPECT_EQ(Bytes<NulTerminated<>>(full),
            "\x07"
            "ab\0"s);
  EXPECT_EQ(Bytes<NulTerminated<char16_t>>(u"a"),
            "\x08"
            "a\0\0\0"s);
  EXPECT_EQ(Bytes<NulTerminated<wchar_t>>(L"a"),
            "\x09"
            "a\0\0\0\0\0\0\0"s);
  EXPECT_EQ(Bytes<Json<NulTerminated<>>>("{}"), "\x87\x0E{}\0"s);
  EXPECT_EQ(Bytes(std::optional<NulTerminated<>>("a")),
            "\x47\x01\0"
            "a\0"s);
  EXPECT_EQ(Bytes(std::vector<NulTerminated<>>{"a", "b"}),
            "\x47\x02\0"
            "a\0b\0"s);
}

TEST(FieldTypes, Binary) {
  const std::array bytes = {std::byte{1}, std::byte{0xFF}};
  EXPECT_EQ(Bytes(std::span<const std::byte>(bytes)), "\x0D\x02\0\x01\xFF"s);
  EXPECT_EQ(Bytes(bytes), "\x0D\x02\0\x01\xFF"s);
  EXPECT_EQ(Bytes(std::vector(bytes.begin(), bytes.end())), "\x0D\x02\0\x01\xFF"s);
  const std::byte array[] = {std::byte{1}, std::byte{0xFF}};
  EXPECT_EQ(Bytes(array), "\x0D\x02\0\x01\xFF"s);
}

TEST(FieldTypes, ConstantArrays) {
  EXPECT_EQ((Bytes(std::array<std::uint16_t, 2>{1, 2})), "\x23\x02\0\x01\0\x02\0"s);
  EXPECT_EQ((Bytes(std::array<std::int8_t, 1>{-1})), "\xA2\x02\x01\0\xFF"s);
  EXPECT_EQ((Bytes(std::array<std::string, 2>{"a", ""})), "\x2A\x02\0\x01\0a\0\0"s);
  const std::array<bool, 2> bools = {true, false};
  EXPECT_EQ((Bytes(std::span<const bool, 2>(bools))), "\xA2\x07\x02\0\x01\0"s);
}

TEST(FieldTypes, VariableArrays) {
  EXPECT_EQ(Bytes(std::vector<std::uint16_t>{1, 2}), "\x43\x02\0\x01\0\x02\0"s);
  EXPECT_EQ(Bytes(std::vector<std::uint16_t>{}), "\x43\0\0"s);
  EXPECT_EQ(Bytes(std::vector<bool>{true, false}), "\xC2\x07\x02\0\x01\0"s);
  EXPECT_EQ(Bytes(std::vector<std::string_view>{"a", "bc"}), "\x4A\x02\0\x01\0a\x02\0bc"s);
  const std::vector<double> doubles = {1.0};
  EXPECT_EQ(Bytes(std::span<const double>(doubles)), "\xC5\x08\x01\0\0\0\0\0\0\0\xF0\x3F"s);
}

TEST(FieldTypes, OptionalsAreNullable) {
  EXPECT_EQ(Bytes(std::optional<std::uint32_t>(7)), "\x8D\x01\x04\0\x07\0\0\0"s);
  EXPECT_EQ(Bytes(std::optional<std::uint32_t>()), "\x8D\x01\0\0"s);
  EXPECT_EQ(Bytes(std::optional<bool>(true)), "\x8D\x07\x01\0\x01"s);
  // A nullable text is an array: with one element for "", and with none for a missing text.
  EXPECT_EQ(Bytes(std::optional<std::string>("")), "\x4A\x01\0\0\0"s);
  EXPECT_EQ(Bytes(std::optional<std::string>()), "\x4A\0\0"s);
  // A nullable character is encoded as an array of characters, not as text.
  EXPECT_EQ(Bytes(std::optional<char>('a')),
            "\xC2\x0A\x01\0"
            "a"s);
  EXPECT_EQ(Bytes(std::optional<char16_t>(u'\x20AC')), "\xC3\x0B\x01\0\xAC\x20"s);
  EXPECT_EQ(Bytes(std::optional<char16_t>()), "\xC3\x0B\0\0"s);
}

TEST(FieldTypes, AddressesPortsAndUuids) {
  in_addr ip4;
  inet_pton(AF_INET, "127.0.0.1", &ip4);
  EXPECT_EQ(Bytes(ip4), "\x84\x11\x7F\0\0\x01"s);
  EXPECT_EQ(Bytes(in6addr_loopback), "\x86\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"s);
  EXPECT_EQ(Bytes(Port(htons(80))), "\x83\x10\0\x50"s);
  Uuid uuid;
  for (std::uint8_t i = 0; i < 16; ++i) uuid.value[i] = i;
  EXPECT_EQ(Bytes(uuid), "\x86\x0F\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F"s);
}

TEST(FieldTypes, WrappersSetTheFormat) {
  EXPECT_EQ(Bytes(Hex<std::uint16_t>(0x10)), "\x83\x03\x10\0"s);
  EXPECT_EQ(Bytes(Errno(2)), "\x84\x04\x02\0\0\0"s);
  EXPECT_EQ(Bytes(Pid(1)), "\x84\x05\x01\0\0\0"s);
  EXPECT_EQ(Bytes(Time(1)), "\x85\x06\x01\0\0\0\0\0\0\0"s);
  EXPECT_EQ(Bytes(Json<>("{}")), "\x8A\x0E\x02\0{}"s);
  EXPECT_EQ(Bytes(Xml<>("<a/>")), "\x8A\x0D\x04\0<a/>"s);
  EXPECT_EQ(Bytes(Latin1<>("\xE4")), "\x8A\x0A\x01\0\xE4"s);
  EXPECT_EQ(Bytes(UtfBom<std::u16string_view>(u"a")), "\x8B\x0C\x01\0a\0"s);
}

TEST(FieldTypes, Structs) {
  EXPECT_EQ(Bytes(Point{-1, 2}), "\x81\x02x\0\x83\x02y\0\x02\xFF\xFF\x02"s);
  EXPECT_EQ(Bytes(Line{"ab", {Point{1, 2}, Point{3, 4}}}),
            "\x81\x02name\0\x0A"
            "ends\0\xA1\x02\x02\0x\0\x83\x02y\0\x02"
            "\x02\0ab\x01\0\x02\x03\0\x04"s);
  EXPECT_EQ(Bytes(std::vector<Point>{{1, 2}}), "\xC1\x02x\0\x83\x02y\0\x02\x01\0\x01\0\x02"s);
}

TEST(FieldTypes, ConstChangesNothing) {
  EXPECT_EQ(Bytes<const bool>(true), Bytes(true));
  EXPECT_EQ(Bytes<const char>('a'), Bytes('a'));
  EXPECT_EQ(Bytes<const float>(1.0f), Bytes(1.0f));
  EXPECT_EQ(Bytes<const char[3]>("ab"), "\x0A\x02\0ab"s);
  EXPECT_EQ(Bytes<const std::string>("ab"), "\x0A\x02\0ab"s);
  EXPECT_EQ((Bytes<std::array<const bool, 1>>({true})), "\xA2\x07\x01\0\x01"s);
  EXPECT_EQ(Bytes(std::optional<const bool>(true)), Bytes(std::optional<bool>(true)));
}

TEST(FieldTypes, FormatTagAndAttributesOfAField) {
  EXPECT_EQ((Bytes<int, As<Format::kHexInt>>(1)), "\x84\x03\x01\0\0\0"s);
  EXPECT_EQ((Bytes<unsigned, Tag<0x1234>>(1)), "\x84\x80\x34\x12\x01\0\0\0"s);
}

TEST(FieldTypes, AttributesFollowTheNameWithSemicolonsDoubled) {
  static constexpr Event<types_provider, "Named", Traits{}, Attribute<"unit", "a;b">,
                         Field<"f", bool, Attribute<"k", "v">>>
      event;
  RecordingTransport transport;
  event.enabled();
  types_provider.SetTransport(&transport);
  event.Write(true);
  types_provider.SetTransport(nullptr);
  const auto records = transport.Take();
  ASSERT_EQ(records.size(), 1u);
  const std::string all(reinterpret_cast<const char*>(records[0].event.data()),
                        records[0].event.size());
  EXPECT_EQ(all.substr(12), "Named;unit=a;;b\0f;k=v\0\x82\x07\x01"s);
}

TEST(FieldTypes, ArraysOverTheirCountOrTheEventAreRefused) {
  static constexpr Event<types_provider, "E", Traits{}, Field<"f", std::vector<std::uint8_t>>>
      event;
  RecordingTransport transport;
  event.enabled();
  types_provider.SetTransport(&transport);
  EXPECT_EQ(event.Write(std::vector<std::uint8_t>(65536)), WriteResult::kTooBig);
  EXPECT_EQ(event.Write(std::vector<std::uint8_t>(8184)), WriteResult::kTooBig);
  EXPECT_EQ(event.Write(std::vector<std::uint8_t>(8165)), WriteResult::kWritten);
  EXPECT_EQ(event.Write(std::vector<std::uint8_t>(8166)), WriteResult::kTooBig);
  types_provider.SetTransport(nullptr);
  const auto records = transport.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].event.size(), kMaxEventSize);
}

TEST(LazyForm, ArgumentsAreEvaluatedOnlyWhenEnabled) {
  static constexpr Event<types_provider, "E", Traits{}, Field<"f", int>> event;
  RecordingTransport transport;
  event.enabled();
  types_provider.SetTransport(&transport);
  int evaluated = 0;
  transport.SetEnabled(false);
  EVENTHEADER_WRITE(event, ++evaluated);
  EXPECT_EQ(evaluated, 0);
  transport.SetEnabled(true);
  EVENTHEADER_WRITE(event, ++evaluated);
  EXPECT_EQ(evaluated, 1);
  types_provider.SetTransport(nullptr);
  EXPECT_EQ(transport.Take().size(), 1u);
}

}  // namespace
}  // namespace eh
