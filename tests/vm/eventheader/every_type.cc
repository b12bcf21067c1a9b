#include "every_type.h"

#include <arpa/inet.h>

#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <span>

#include "eventheader/eventheader_c.h"

namespace {

struct Point {
  std::int16_t x;
  std::uint8_t y;
};
struct Line {
  std::string name;
  std::array<Point, 2> ends;
};

}  // namespace

template <>
struct eh::StructOf<Point> {
  using Members = eh::Members<eh::Member<"x", &Point::x>, eh::Member<"y", &Point::y>>;
};
template <>
struct eh::StructOf<Line> {
  using Members = eh::Members<eh::Member<"name", &Line::name>, eh::Member<"ends", &Line::ends>>;
};

namespace eh::testing {

constinit Provider every_type_provider("Vm_EveryType");

namespace {

using namespace std::string_literals;
using namespace std::string_view_literals;

enum class Signed : std::int8_t { kMinus = -1 };
enum class Unsigned : std::uint64_t { kMaximum = ~0ull };
using Milliseconds = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

constexpr std::array kBytes = {std::byte{0x01}, std::byte{0xFF}, std::byte{0x00}};
constexpr std::array<std::uint16_t, 3> kNumbers = {1, 65535, 2};
constexpr in_addr kLoopback = {.s_addr = __builtin_bswap32(0x7F000001)};
constexpr Uuid kUuid = std::array<std::uint8_t, 16>{0,    0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
                                                    0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF};

// `kName` is the name of the type T. Value() is a function object that returns the value to write.
template <FixedString kName, typename T, typename Value>
TypedEvent Row(std::string json, Value) {
  static constexpr Event<every_type_provider, kName, Traits{.keyword = 1}, Field<"f", T>> event;
  return {std::string(kName.view()), std::move(json), [] {
            const T value(Value{}());
            return event.Write(value);
          }};
}

#define ROW(json, value, ...) Row<#__VA_ARGS__, __VA_ARGS__>(json, [] { return value; })

void AddNumbers(std::vector<TypedEvent>* rows) {
  rows->insert(
      rows->end(),
      {ROW("true", true, bool), ROW("-128", -128, std::int8_t), ROW("255", 255, std::uint8_t),
       ROW("-32768", -32768, std::int16_t), ROW("65535", 65535, std::uint16_t),
       ROW("-2147483648", -2147483647 - 1, std::int32_t),
       ROW("4294967295", 4294967295u, std::uint32_t),
       ROW("-9223372036854775808", INT64_MIN, std::int64_t),
       ROW("18446744073709551615", UINT64_MAX, std::uint64_t), ROW("-5", -5, long long),
       ROW("5", 5, unsigned long long), ROW("-1", Signed::kMinus, Signed),
       ROW("18446744073709551615", Unsigned::kMaximum, Unsigned),
       ROW("\"0xab\"", std::byte{0xAB}, std::byte), ROW("0.5", 0.5f, float),
       ROW("-2.25", -2.25, double), ROW("\"0x102\"", reinterpret_cast<void*>(0x102), void*),
       ROW("\"0x0\"", nullptr, std::nullptr_t),
       ROW("\"1970-01-01T00:00:02Z\"", Milliseconds(std::chrono::milliseconds(2999)),
           Milliseconds)});
}

void AddText(std::vector<TypedEvent>* rows) {
  rows->insert(rows->end(), {ROW("\"a\"", 'a', char),
                             ROW("\"b\"", u8'b', char8_t),
                             ROW("\"\u20ac\"", u'\u20ac', char16_t),
                             ROW("\"\U0001F600\"", U'\U0001F600', char32_t),
                             ROW("\"\u20ac\"", L'\u20ac', wchar_t),
                             ROW("\"gr\u00f6\u00dfer\"", "gr\u00f6\u00dfer"s, std::string),
                             ROW("\"a view\"", "a view"sv, std::string_view),
                             ROW("\"to its NUL\"", "to its NUL", NulTerminated<>),
                             ROW("\"C\"", "C", const char*),
                             ROW("\"\"", nullptr, const char*),
                             ROW("\"\u20ac\"", u8"\u20ac"sv, std::u8string_view),
                             ROW("\"u8\"", u8"u8"s, std::u8string),
                             ROW("\"u8\"", u8"u8", const char8_t*),
                             ROW("\"\U0001F600!\"", u"\U0001F600!"sv, std::u16string_view),
                             ROW("\"u16\"", u"u16"s, std::u16string),
                             ROW("\"u16\"", u"u16", const char16_t*),
                             ROW("\"\U0001F600!\"", U"\U0001F600!"sv, std::u32string_view),
                             ROW("\"u32\"", U"u32"s, std::u32string),
                             ROW("\"u32\"", U"u32", const char32_t*),
                             ROW("\"w\u20ac\"", L"w\u20ac"s, std::wstring),
                             ROW("\"w\"", L"w"sv, std::wstring_view),
                             ROW("\"z\"", u"z", NulTerminated<char16_t>),
                             ROW("\"Z\"", L"Z", NulTerminated<wchar_t>),
                             ROW("\"w\"", L"w", const wchar_t*),
                             ROW("\"01ff00\"", std::span(kBytes), std::span<const std::byte>),
                             ROW("\"01ff00\"", kBytes, std::array<std::byte, 3>),
                             ROW("\"01\"", std::vector(1, std::byte{1}), std::vector<std::byte>)});
}

void AddArrays(std::vector<TypedEvent>* rows) {
  rows->insert(
      rows->end(),
      {ROW("[1,65535,2]", kNumbers, std::array<std::uint16_t, 3>),
       ROW("[1,65535,2]", std::span(kNumbers), std::span<const std::uint16_t, 3>),
       ROW("[1,65535,2]", std::span(kNumbers), std::span<const std::uint16_t>),
       ROW("[-1,2]", (std::vector<std::int64_t>{-1, 2}), std::vector<std::int64_t>),
       ROW("[]", std::vector<double>(), std::vector<double>),
       ROW("[true,false]", (std::vector<bool>{true, false}), std::vector<bool>),
       ROW("[\"a\",\"\"]", (std::array<std::string, 2>{"a", ""}), std::array<std::string, 2>),
       ROW("[\"a\",\"bc\"]", (std::vector<std::string_view>{"a", "bc"}),
           std::vector<std::string_view>),
       ROW("[\"\u20ac\"]", (std::vector<std::u16string>{u"\u20ac"}), std::vector<std::u16string>),
       ROW("7", 7u, std::optional<std::uint32_t>),
       ROW("null", std::nullopt, std::optional<std::uint32_t>),
       ROW("null", std::nullopt, std::optional<double>), ROW("false", false, std::optional<bool>),
       ROW("[\"\"]", "", std::optional<std::string>),
       ROW("[]", std::nullopt, std::optional<std::string>),
       ROW(R"({"x":-1,"y":2})", (Point{-1, 2}), Point),
       ROW(R"({"name":"ab","ends":[{"x":1,"y":2},{"x":3,"y":4}]})",
           (Line{"ab", {Point{1, 2}, Point{3, 4}}}), Line),
       ROW(R"([{"x":1,"y":2}])", (std::vector<Point>{{1, 2}}), std::vector<Point>),
       ROW("[]", std::nullopt, std::optional<Point>)});
}

void AddFormats(std::vector<TypedEvent>* rows) {
  rows->insert(
      rows->end(),
      {ROW("\"127.0.0.1\"", kLoopback, in_addr), ROW("\"::1\"", in6addr_loopback, in6_addr),
       ROW("\"192.0.2.1\"", (std::array<std::uint8_t, 4>{192, 0, 2, 1}), Ip4),
       ROW("\"::1\"", std::to_array(in6addr_loopback.s6_addr), Ip6), ROW("8080", htons(8080), Port),
       ROW("\"00112233-4455-6677-8899-aabbccddeeff\"", kUuid, Uuid),
       ROW("\"0x10\"", 0x10, Hex<int>), ROW("\"ENOENT\"", ENOENT, Errno), ROW("4711", 4711, Pid),
       ROW("\"2026-11-21T10:22:00Z\"", 1795256520, Time), ROW("\"{}\"", "{}", Json<>),
       ROW("\"<a/>\"", "<a/>", Xml<>), ROW("\"\u00e4\"", "\xE4", Latin1<>),
       ROW("\"\u20ac\"", "\u20ac", Utf<std::string>),
       ROW("\"bom\"", u"\uFEFFbom", UtfBom<std::u16string_view>)});
}

// Writes a field of a type that only the dynamic builder can write.
WriteResult WriteDynamic(Encoding encoding, Arity arity, std::uint16_t count, Format format,
                         std::string_view data) {
  static const EventSet set(every_type_provider, Level::kInformation, 1);
  DynamicEvent event;
  event.Reset("dynamic");
  event.AddRaw("f", encoding, arity, count, format, 0,
               std::as_bytes(std::span(data.data(), data.size())));
  return event.Write(set);
}

void AddDynamic(std::vector<TypedEvent>* rows) {
  using enum Encoding;
  const auto add = [&](std::string json, WriteResult (*write)()) {
    rows->push_back({"dynamic", std::move(json), write});
  };
  add("\"z\"",
      [] { return WriteDynamic(kZStringChar8, Arity::kScalar, 0, Format::kDefault, "z\0"sv); });
  add("[\"\u20ac\"]", [] {
    return WriteDynamic(kZStringChar16, Arity::kConstantArray, 1, Format::kDefault,
                        "\xAC\x20\0\0"sv);
  });
  add("\"a\"", [] {
    return WriteDynamic(kZStringChar32, Arity::kScalar, 0, Format::kDefault, "a\0\0\0\0\0\0\0"sv);
  });
  add("\"000102030405060708090a0b0c0d0e0f\"", [] {
    return WriteDynamic(kValue128, Arity::kScalar, 0, Format::kHexBytes,
                        "\x0\x1\x2\x3\x4\x5\x6\x7\x8\x9\xA\xB\xC\xD\xE\xF"sv);
  });
  add("[\"ff\",\"\"]", [] {
    return WriteDynamic(kBinaryLength16Char8, Arity::kVariableArray, 0, Format::kDefault,
                        "\x02\0\x01\0\xFF\0\0"sv);
  });
}

}  // namespace

const std::vector<TypedEvent>& EveryType() {
  static const std::vector<TypedEvent> rows = [] {
    std::vector<TypedEvent> all;
    AddNumbers(&all);
    AddText(&all);
    AddArrays(&all);
    AddFormats(&all);
    AddDynamic(&all);
    return all;
  }();
  return rows;
}

}  // namespace eh::testing
