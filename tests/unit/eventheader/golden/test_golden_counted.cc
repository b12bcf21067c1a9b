// Golden bytes of structs, and of the encodings that count bytes. With a format that needs a
// fixed size, such as float, these encodings hold a value or null; the second value is null then.
#include <optional>
#include <span>

#include "golden.h"

namespace {

struct Named {
  std::int16_t number;
  std::string name;
};

}  // namespace

template <>
struct eh::StructOf<Named> {
  using Members = eh::Members<eh::Member<"n", &Named::number>, eh::Member<"s", &Named::name>>;
};

namespace eh::testing {
namespace {

using enum Format;
using namespace std::string_view_literals;
using Binary = std::span<const std::byte>;

// Returns the bytes of a literal, without its NUL.
template <std::size_t kSize>
Binary Blob(const char (&literal)[kSize]) {
  return std::as_bytes(std::span(literal)).first(kSize - 1);
}

TEST_F(GoldenBytes, StringLength16Char8) {
  Row<kDefault>("aä"sv, ""sv,
                {"0a | 0300 61c3a4", "2a 0200 | 0300 61c3a4 0000", "4a | 0200 0300 61c3a4 0000",
                 R"("aä")", R"("")"});
  Row<kUnsignedInt>("\xfe\xff"sv, ""sv,
                    {"8a 01 | 0200 feff", "aa 01 0200 | 0200 feff 0000",
                     "ca 01 | 0200 0200 feff 0000", "65534", "null"});
  Row<kSignedInt>("\xfe\xff"sv, ""sv,
                  {"8a 02 | 0200 feff", "aa 02 0200 | 0200 feff 0000",
                   "ca 02 | 0200 0200 feff 0000", "-2", "null"});
  Row<kHexInt>("\xfe\xff"sv, ""sv,
               {"8a 03 | 0200 feff", "aa 03 0200 | 0200 feff 0000", "ca 03 | 0200 0200 feff 0000",
                R"("0xfffe")", "null"});
  Row<kErrno>("\2\0\0\0"sv, ""sv,
              {"8a 04 | 0400 02000000", "aa 04 0200 | 0400 02000000 0000",
               "ca 04 | 0200 0400 02000000 0000", R"("ENOENT")", "null"});
  Row<kPid>("\2\0\0\0"sv, ""sv,
            {"8a 05 | 0400 02000000", "aa 05 0200 | 0400 02000000 0000",
             "ca 05 | 0200 0400 02000000 0000", "2", "null"});
  Row<kTime>("\2\0\0\0"sv, ""sv,
             {"8a 06 | 0400 02000000", "aa 06 0200 | 0400 02000000 0000",
              "ca 06 | 0200 0400 02000000 0000", R"("1970-01-01T00:00:02Z")", "null"});
  Row<kBoolean>("\1"sv, ""sv,
                {"8a 07 | 0100 01", "aa 07 0200 | 0100 01 0000", "ca 07 | 0200 0100 01 0000",
                 "true", "null"});
  Row<kFloat>("\0\0\x80\x3f"sv, ""sv,
              {"8a 08 | 0400 0000803f", "aa 08 0200 | 0400 0000803f 0000",
               "ca 08 | 0200 0400 0000803f 0000", "1", "null"});
  Row<kHexBytes>("aä"sv, ""sv,
                 {"8a 09 | 0300 61c3a4", "aa 09 0200 | 0300 61c3a4 0000",
                  "ca 09 | 0200 0300 61c3a4 0000", R"("61c3a4")", R"("")"});
  Row<kString8>(Latin1<>("a\xe4"), Latin1<>(""),
                {"8a 0a | 0200 61e4", "aa 0a 0200 | 0200 61e4 0000", "ca 0a | 0200 0200 61e4 0000",
                 R"("aä")", R"("")"});
  Row<kStringUtf>(Utf<>("aä"), Utf<>(""),
                  {"8a 0b | 0300 61c3a4", "aa 0b 0200 | 0300 61c3a4 0000",
                   "ca 0b | 0200 0300 61c3a4 0000", R"("aä")", R"("")"});
  Row<kStringUtfBom>(UtfBom<>("\xef\xbb\xbf"
                              "a"),
                     UtfBom<>(""),
                     {"8a 0c | 0400 efbbbf61", "aa 0c 0200 | 0400 efbbbf61 0000",
                      "ca 0c | 0200 0400 efbbbf61 0000", R"("a")", R"("")"});
  Row<kStringXml>(Xml<>("<a/>"), Xml<>(""),
                  {"8a 0d | 0400 3c612f3e", "aa 0d 0200 | 0400 3c612f3e 0000",
                   "ca 0d | 0200 0400 3c612f3e 0000", R"("<a/>")", R"("")"});
  Row<kStringJson>(Json<>("[1]"), Json<>(""),
                   {"8a 0e | 0300 5b315d", "aa 0e 0200 | 0300 5b315d 0000",
                    "ca 0e | 0200 0300 5b315d 0000", R"("[1]")", R"("")"});
  Row<kUuid>("0123456789abcdef"sv, ""sv,
             {"8a 0f | 1000 30313233343536373839616263646566",
              "aa 0f 0200 | 1000 30313233343536373839616263646566 0000",
              "ca 0f | 0200 1000 30313233343536373839616263646566 0000",
              R"("30313233-3435-3637-3839-616263646566")", "null"});
  Row<kPort>("\0P"sv, ""sv,
             {"8a 10 | 0200 0050", "aa 10 0200 | 0200 0050 0000", "ca 10 | 0200 0200 0050 0000",
              "80", "null"});
  Row<kIpAddress>("\x7f\0\0\1"sv, ""sv,
                  {"8a 11 | 0400 7f000001", "aa 11 0200 | 0400 7f000001 0000",
                   "ca 11 | 0200 0400 7f000001 0000", R"("127.0.0.1")", "null"});
  ExpectWholeMatrixOf(Encoding::kStringLength16Char8);
}

// std::optional uses this encoding for values of fixed size.
TEST_F(GoldenBytes, BinaryLength16Char8) {
  using std::optional;
  Row<kDefault>(Blob("\1\xff"), Blob(""),
                {"0d | 0200 01ff", "2d 0200 | 0200 01ff 0000", "4d | 0200 0200 01ff 0000",
                 R"("01ff")", R"("")"});
  Row<kUnsignedInt>(optional<std::uint16_t>(65534), {},
                    {"8d 01 | 0200 feff", "ad 01 0200 | 0200 feff 0000",
                     "cd 01 | 0200 0200 feff 0000", "65534", "null"});
  Row<kSignedInt>(optional<std::int16_t>(-2), {},
                  {"8d 02 | 0200 feff", "ad 02 0200 | 0200 feff 0000",
                   "cd 02 | 0200 0200 feff 0000", "-2", "null"});
  Row<kHexInt>(optional(Hex<std::uint8_t>(16)), {},
               {"8d 03 | 0100 10", "ad 03 0200 | 0100 10 0000", "cd 03 | 0200 0100 10 0000",
                R"("0x10")", "null"});
  Row<kErrno>(optional(Errno(2)), {},
              {"8d 04 | 0400 02000000", "ad 04 0200 | 0400 02000000 0000",
               "cd 04 | 0200 0400 02000000 0000", R"("ENOENT")", "null"});
  Row<kPid>(optional(Pid(2)), {},
            {"8d 05 | 0400 02000000", "ad 05 0200 | 0400 02000000 0000",
             "cd 05 | 0200 0400 02000000 0000", "2", "null"});
  Row<kTime>(optional(Time(2)), {},
             {"8d 06 | 0800 0200000000000000", "ad 06 0200 | 0800 0200000000000000 0000",
              "cd 06 | 0200 0800 0200000000000000 0000", R"("1970-01-01T00:00:02Z")", "null"});
  Row<kBoolean>(optional(true), {},
                {"8d 07 | 0100 01", "ad 07 0200 | 0100 01 0000", "cd 07 | 0200 0100 01 0000",
                 "true", "null"});
  Row<kFloat>(optional(1.0F), {},
              {"8d 08 | 0400 0000803f", "ad 08 0200 | 0400 0000803f 0000",
               "cd 08 | 0200 0400 0000803f 0000", "1", "null"});
  Row<kHexBytes>(Blob("\1\xff"), Blob(""),
                 {"8d 09 | 0200 01ff", "ad 09 0200 | 0200 01ff 0000", "cd 09 | 0200 0200 01ff 0000",
                  R"("01ff")", R"("")"});
  Row<kString8>(Blob("a\xe4"), Blob(""),
                {"8d 0a | 0200 61e4", "ad 0a 0200 | 0200 61e4 0000", "cd 0a | 0200 0200 61e4 0000",
                 R"("aä")", R"("")"});
  Row<kStringUtf>(Blob("aä"), Blob(""),
                  {"8d 0b | 0300 61c3a4", "ad 0b 0200 | 0300 61c3a4 0000",
                   "cd 0b | 0200 0300 61c3a4 0000", R"("aä")", R"("")"});
  Row<kStringUtfBom>(Blob("\xef\xbb\xbf"
                          "a"),
                     Blob(""),
                     {"8d 0c | 0400 efbbbf61", "ad 0c 0200 | 0400 efbbbf61 0000",
                      "cd 0c | 0200 0400 efbbbf61 0000", R"("a")", R"("")"});
  Row<kStringXml>(Blob("<a/>"), Blob(""),
                  {"8d 0d | 0400 3c612f3e", "ad 0d 0200 | 0400 3c612f3e 0000",
                   "cd 0d | 0200 0400 3c612f3e 0000", R"("<a/>")", R"("")"});
  Row<kStringJson>(Blob("[1]"), Blob(""),
                   {"8d 0e | 0300 5b315d", "ad 0e 0200 | 0300 5b315d 0000",
                    "cd 0e | 0200 0300 5b315d 0000", R"("[1]")", R"("")"});
  Row<kUuid>(optional(Uuid(kZeroTo15)), {},
             {"8d 0f | 1000 000102030405060708090a0b0c0d0e0f",
              "ad 0f 0200 | 1000 000102030405060708090a0b0c0d0e0f 0000",
              "cd 0f | 0200 1000 000102030405060708090a0b0c0d0e0f 0000",
              R"("00010203-0405-0607-0809-0a0b0c0d0e0f")", "null"});
  Row<kPort>(optional(Port(std::uint16_t{0x5000})), {},
             {"8d 10 | 0200 0050", "ad 10 0200 | 0200 0050 0000", "cd 10 | 0200 0200 0050 0000",
              "80", "null"});
  Row<kIpAddress>(optional(in_addr{0x0100007f}), {},
                  {"8d 11 | 0400 7f000001", "ad 11 0200 | 0400 7f000001 0000",
                   "cd 11 | 0200 0400 7f000001 0000", R"("127.0.0.1")", "null"});
  ExpectWholeMatrixOf(Encoding::kBinaryLength16Char8);
}

// The definition of a struct is followed by those of its members. The payload of a struct is the
// payload of its members.
TEST_F(GoldenBytes, Struct) {
  const Golden golden = {
      "81 02  6e00 83 02  7300 0a | feff 0200 6162",
      "a1 02 0200  6e00 83 02  7300 0a | feff 0200 6162  0100 0000",
      "c1 02  6e00 83 02  7300 0a | 0200  feff 0200 6162  0100 0000",
      R"({"n":-2,"s":"ab"})",
      R"({"n":1,"s":""})",
  };
  const Named first = {-2, "ab"};
  const Named second = {1, ""};
  Typed<kDefault>(first, Bytes(golden.scalar));
  Typed<kDefault>(std::array{first, second}, Bytes(golden.constant));
  Typed<kDefault>(std::vector{first, second}, Bytes(golden.variable));
  UntypedStruct(Arity::kScalar, golden.scalar, R"({"n":-2,"s":"ab"})");
  const auto array = R"([{"n":-2,"s":"ab"},{"n":1,"s":""}])";
  UntypedStruct(Arity::kConstantArray, golden.constant, array);
  UntypedStruct(Arity::kVariableArray, golden.variable, array);
}

}  // namespace
}  // namespace eh::testing
