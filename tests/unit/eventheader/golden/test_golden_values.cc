// Golden bytes of the encodings of fixed size.
#include <bit>
#include <cstdint>

#include "golden.h"

namespace eh::testing {
namespace {

using enum Format;

// The IPv6 address ::1, in the byte order of the event.
constexpr std::array<std::uint8_t, 16> kLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
using Default128 = Formatted<std::array<std::uint8_t, 16>, kDefault>;
using Bytes128 = Formatted<std::array<std::uint8_t, 16>, kHexBytes>;

TEST_F(GoldenBytes, Value8) {
  using U = std::uint8_t;
  Row<kDefault>(U{254}, U{1}, {"02 | fe", "22 0200 | fe 01", "42 | 0200 fe 01", "254", "1"});
  Row<kUnsignedInt>(U{254}, U{1},
                    {"82 01 | fe", "a2 01 0200 | fe 01", "c2 01 | 0200 fe 01", "254", "1"});
  Row<kSignedInt>(std::int8_t{-2}, std::int8_t{1},
                  {"82 02 | fe", "a2 02 0200 | fe 01", "c2 02 | 0200 fe 01", "-2", "1"});
  Row<kHexInt>(Hex<U>(254), Hex<U>(1),
               {"82 03 | fe", "a2 03 0200 | fe 01", "c2 03 | 0200 fe 01", R"("0xfe")", R"("0x1")"});
  Row<kBoolean>(true, false,
                {"82 07 | 01", "a2 07 0200 | 01 00", "c2 07 | 0200 01 00", "true", "false"});
  Row<kHexBytes>(U{254}, U{1},
                 {"82 09 | fe", "a2 09 0200 | fe 01", "c2 09 | 0200 fe 01", R"("fe")", R"("01")"});
  Row<kString8>(char{'a'}, '\xe4',
                {"82 0a | 61", "a2 0a 0200 | 61 e4", "c2 0a | 0200 61 e4", R"("a")", R"("ä")"});
  ExpectWholeMatrixOf(Encoding::kValue8);
}

TEST_F(GoldenBytes, Value16) {
  using U = std::uint16_t;
  using I = std::int16_t;
  const Port http{U{0x5000}};   // 80, in network order
  const Port other{U{0x901f}};  // 8080, in network order
  Row<kDefault>(U{0xfffe}, U{0x0102},
                {"03 | feff", "23 0200 | feff 0201", "43 | 0200 feff 0201", "65534", "258"});
  Row<kUnsignedInt>(
      U{0xfffe}, U{0x0102},
      {"83 01 | feff", "a3 01 0200 | feff 0201", "c3 01 | 0200 feff 0201", "65534", "258"});
  Row<kSignedInt>(
      I{-2}, I{0x0102},
      {"83 02 | feff", "a3 02 0200 | feff 0201", "c3 02 | 0200 feff 0201", "-2", "258"});
  Row<kHexInt>(Hex<U>(0xfffe), Hex<U>(258),
               {"83 03 | feff", "a3 03 0200 | feff 0201", "c3 03 | 0200 feff 0201", R"("0xfffe")",
                R"("0x102")"});
  Row<kBoolean>(
      U{1}, U{0},
      {"83 07 | 0100", "a3 07 0200 | 0100 0000", "c3 07 | 0200 0100 0000", "true", "false"});
  Row<kHexBytes>(U{0xfffe}, U{0x0102},
                 {"83 09 | feff", "a3 09 0200 | feff 0201", "c3 09 | 0200 feff 0201", R"("feff")",
                  R"("0201")"});
  Row<kStringUtf>(
      u'\u20ac', u'a',
      {"83 0b | ac20", "a3 0b 0200 | ac20 6100", "c3 0b | 0200 ac20 6100", R"("€")", R"("a")"});
  Row<kPort>(http, other,
             {"83 10 | 0050", "a3 10 0200 | 0050 1f90", "c3 10 | 0200 0050 1f90", "80", "8080"});
  ExpectWholeMatrixOf(Encoding::kValue16);
}

TEST_F(GoldenBytes, Value32) {
  using U = std::uint32_t;
  using I = std::int32_t;
  const Ip4 local{std::array<std::uint8_t, 4>{127, 0, 0, 1}};
  const Ip4 documentation{std::array<std::uint8_t, 4>{192, 0, 2, 7}};
  Row<kDefault>(U{0xfffffffe}, U{0x01020304},
                {"04 | feffffff", "24 0200 | feffffff 04030201", "44 | 0200 feffffff 04030201",
                 "4294967294", "16909060"});
  Row<kUnsignedInt>(U{0xfffffffe}, U{0x01020304},
                    {"84 01 | feffffff", "a4 01 0200 | feffffff 04030201",
                     "c4 01 | 0200 feffffff 04030201", "4294967294", "16909060"});
  Row<kSignedInt>(I{-2}, I{0x01020304},
                  {"84 02 | feffffff", "a4 02 0200 | feffffff 04030201",
                   "c4 02 | 0200 feffffff 04030201", "-2", "16909060"});
  Row<kHexInt>(Hex<U>(0xfffffffe), Hex<U>(U{1}),
               {"84 03 | feffffff", "a4 03 0200 | feffffff 01000000",
                "c4 03 | 0200 feffffff 01000000", R"("0xfffffffe")", R"("0x1")"});
  Row<kErrno>(Errno(2), Errno(13),
              {"84 04 | 02000000", "a4 04 0200 | 02000000 0d000000",
               "c4 04 | 0200 02000000 0d000000", R"("ENOENT")", R"("EACCES")"});
  Row<kPid>(Pid(1), Pid(4711),
            {"84 05 | 01000000", "a4 05 0200 | 01000000 67120000", "c4 05 | 0200 01000000 67120000",
             "1", "4711"});
  Row<kTime>(
      I{0}, I{-1},
      {"84 06 | 00000000", "a4 06 0200 | 00000000 ffffffff", "c4 06 | 0200 00000000 ffffffff",
       R"("1970-01-01T00:00:00Z")", R"("1969-12-31T23:59:59Z")"});
  Row<kBoolean>(U{1}, U{0},
                {"84 07 | 01000000", "a4 07 0200 | 01000000 00000000",
                 "c4 07 | 0200 01000000 00000000", "true", "false"});
  Row<kFloat>(1.0F, -2.5F,
              {"84 08 | 0000803f", "a4 08 0200 | 0000803f 000020c0",
               "c4 08 | 0200 0000803f 000020c0", "1", "-2.5"});
  Row<kHexBytes>(U{0xfffffffe}, U{0x01020304},
                 {"84 09 | feffffff", "a4 09 0200 | feffffff 04030201",
                  "c4 09 | 0200 feffffff 04030201", R"("feffffff")", R"("04030201")"});
  Row<kStringUtf>(U'\U0001F600', U'a',
                  {"84 0b | 00f60100", "a4 0b 0200 | 00f60100 61000000",
                   "c4 0b | 0200 00f60100 61000000", R"("😀")", R"("a")"});
  Row<kIpAddress>(local, documentation,
                  {"84 11 | 7f000001", "a4 11 0200 | 7f000001 c0000207",
                   "c4 11 | 0200 7f000001 c0000207", R"("127.0.0.1")", R"("192.0.2.7")"});
  ExpectWholeMatrixOf(Encoding::kValue32);
}

TEST_F(GoldenBytes, Value64) {
  using U = std::uint64_t;
  using I = std::int64_t;
  const U large = 0x0102030405060708;
  Row<kDefault>(
      large, ~U{0},
      {"05 | 0807060504030201", "25 0200 | 0807060504030201 ffffffffffffffff",
       "45 | 0200 0807060504030201 ffffffffffffffff", "72623859790382856", "18446744073709551615"});
  Row<kUnsignedInt>(large, ~U{0},
                    {"85 01 | 0807060504030201", "a5 01 0200 | 0807060504030201 ffffffffffffffff",
                     "c5 01 | 0200 0807060504030201 ffffffffffffffff", "72623859790382856",
                     "18446744073709551615"});
  Row<kSignedInt>(I{-2}, I{1},
                  {"85 02 | feffffffffffffff", "a5 02 0200 | feffffffffffffff 0100000000000000",
                   "c5 02 | 0200 feffffffffffffff 0100000000000000", "-2", "1"});
  Row<kHexInt>(Hex<U>(large), Hex<U>(~U{0}),
               {"85 03 | 0807060504030201", "a5 03 0200 | 0807060504030201 ffffffffffffffff",
                "c5 03 | 0200 0807060504030201 ffffffffffffffff", R"("0x102030405060708")",
                R"("0xffffffffffffffff")"});
  Row<kTime>(Time(0), Time(1700000000),
             {"85 06 | 0000000000000000", "a5 06 0200 | 0000000000000000 00f1536500000000",
              "c5 06 | 0200 0000000000000000 00f1536500000000", R"("1970-01-01T00:00:00Z")",
              R"("2023-11-14T22:13:20Z")"});
  Row<kFloat>(1.0, -2.5,
              {"85 08 | 000000000000f03f", "a5 08 0200 | 000000000000f03f 00000000000004c0",
               "c5 08 | 0200 000000000000f03f 00000000000004c0", "1", "-2.5"});
  Row<kHexBytes>(large, ~U{0},
                 {"85 09 | 0807060504030201", "a5 09 0200 | 0807060504030201 ffffffffffffffff",
                  "c5 09 | 0200 0807060504030201 ffffffffffffffff", R"("0807060504030201")",
                  R"("ffffffffffffffff")"});
  ExpectWholeMatrixOf(Encoding::kValue64);
}

TEST_F(GoldenBytes, Value128) {
  Row<kDefault>(Default128(kZeroTo15), Default128(kLoopback),
                {"06 | 000102030405060708090a0b0c0d0e0f",
                 "26 0200 | 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
                 "46 | 0200 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
                 R"("000102030405060708090a0b0c0d0e0f")", R"("00000000000000000000000000000001")"});
  Row<kHexBytes>(
      Bytes128(kZeroTo15), Bytes128(kLoopback),
      {"86 09 | 000102030405060708090a0b0c0d0e0f",
       "a6 09 0200 | 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
       "c6 09 | 0200 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
       R"("000102030405060708090a0b0c0d0e0f")", R"("00000000000000000000000000000001")"});
  Row<kUuid>(
      Uuid(kZeroTo15), Uuid(kLoopback),
      {"86 0f | 000102030405060708090a0b0c0d0e0f",
       "a6 0f 0200 | 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
       "c6 0f | 0200 000102030405060708090a0b0c0d0e0f 00000000000000000000000000000001",
       R"("00010203-0405-0607-0809-0a0b0c0d0e0f")", R"("00000000-0000-0000-0000-000000000001")"});
  Row<kIpAddress>(Ip6(kLoopback), Ip6(kZeroTo15),
                  {"86 11 | 00000000000000000000000000000001",
                   "a6 11 0200 | 00000000000000000000000000000001 000102030405060708090a0b0c0d0e0f",
                   "c6 11 | 0200 00000000000000000000000000000001 000102030405060708090a0b0c0d0e0f",
                   R"("::1")", R"("1:203:405:607:809:a0b:c0d:e0f")"});
  ExpectWholeMatrixOf(Encoding::kValue128);
}

}  // namespace
}  // namespace eh::testing
