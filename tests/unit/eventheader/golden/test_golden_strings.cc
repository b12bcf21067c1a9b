// Golden bytes of strings that end with a NUL, and of counted strings of 16 and 32 bits. Their two
// values are "aä" (Latin-1: 61 e4, UTF-8: 61 c3 a4) or a document, and the empty string.
#include "golden.h"

namespace eh::testing {
namespace {

using enum Format;

TEST_F(GoldenBytes, ZStringChar8) {
  using Z = NulTerminated<char>;
  Row<kDefault>(
      Z("aä"), Z(""),
      {"07 | 61c3a4 00", "27 0200 | 61c3a4 00 00", "47 | 0200 61c3a4 00 00", R"("aä")", R"("")"});
  Row<kHexBytes>(Z("aä"), Z(""),
                 {"87 09 | 61c3a4 00", "a7 09 0200 | 61c3a4 00 00", "c7 09 | 0200 61c3a4 00 00",
                  R"("61c3a4")", R"("")"});
  Row<kString8>(Latin1<Z>("a\xe4"), Latin1<Z>(""),
                {"87 0a | 61e4 00", "a7 0a 0200 | 61e4 00 00", "c7 0a | 0200 61e4 00 00", R"("aä")",
                 R"("")"});
  Row<kStringUtf>(Utf<Z>("aä"), Utf<Z>(""),
                  {"87 0b | 61c3a4 00", "a7 0b 0200 | 61c3a4 00 00", "c7 0b | 0200 61c3a4 00 00",
                   R"("aä")", R"("")"});
  Row<kStringUtfBom>(UtfBom<Z>("\ufeffa"), UtfBom<Z>(""),
                     {"87 0c | efbbbf61 00", "a7 0c 0200 | efbbbf61 00 00",
                      "c7 0c | 0200 efbbbf61 00 00", R"("a")", R"("")"});
  Row<kStringXml>(Xml<Z>("<a/>"), Xml<Z>(""),
                  {"87 0d | 3c612f3e 00", "a7 0d 0200 | 3c612f3e 00 00",
                   "c7 0d | 0200 3c612f3e 00 00", R"("<a/>")", R"("")"});
  Row<kStringJson>(Json<Z>("[1]"), Json<Z>(""),
                   {"87 0e | 5b315d 00", "a7 0e 0200 | 5b315d 00 00", "c7 0e | 0200 5b315d 00 00",
                    R"("[1]")", R"("")"});
  ExpectWholeMatrixOf(Encoding::kZStringChar8);
}

TEST_F(GoldenBytes, ZStringChar16) {
  using Z = NulTerminated<char16_t>;
  Row<kDefault>(Z(u"aä"), Z(u""),
                {"08 | 6100e400 0000", "28 0200 | 6100e400 0000 0000",
                 "48 | 0200 6100e400 0000 0000", R"("aä")", R"("")"});
  Row<kHexBytes>(Z(u"aä"), Z(u""),
                 {"88 09 | 6100e400 0000", "a8 09 0200 | 6100e400 0000 0000",
                  "c8 09 | 0200 6100e400 0000 0000", R"("6100e400")", R"("")"});
  Row<kStringUtf>(Utf<Z>(u"aä"), Utf<Z>(u""),
                  {"88 0b | 6100e400 0000", "a8 0b 0200 | 6100e400 0000 0000",
                   "c8 0b | 0200 6100e400 0000 0000", R"("aä")", R"("")"});
  Row<kStringUtfBom>(UtfBom<Z>(u"\xfffe\x6100"), UtfBom<Z>(u""),
                     {"88 0c | feff0061 0000", "a8 0c 0200 | feff0061 0000 0000",
                      "c8 0c | 0200 feff0061 0000 0000", R"("a")", R"("")"});
  Row<kStringXml>(Xml<Z>(u"<a/>"), Xml<Z>(u""),
                  {"88 0d | 3c0061002f003e00 0000", "a8 0d 0200 | 3c0061002f003e00 0000 0000",
                   "c8 0d | 0200 3c0061002f003e00 0000 0000", R"("<a/>")", R"("")"});
  Row<kStringJson>(Json<Z>(u"[1]"), Json<Z>(u""),
                   {"88 0e | 5b0031005d00 0000", "a8 0e 0200 | 5b0031005d00 0000 0000",
                    "c8 0e | 0200 5b0031005d00 0000 0000", R"("[1]")", R"("")"});
  ExpectWholeMatrixOf(Encoding::kZStringChar16);
}

TEST_F(GoldenBytes, ZStringChar32) {
  using Z = NulTerminated<char32_t>;
  Row<kDefault>(Z(U"a"), Z(U""),
                {"09 | 61000000 00000000", "29 0200 | 61000000 00000000 00000000",
                 "49 | 0200 61000000 00000000 00000000", R"("a")", R"("")"});
  Row<kHexBytes>(Z(U"a"), Z(U""),
                 {"89 09 | 61000000 00000000", "a9 09 0200 | 61000000 00000000 00000000",
                  "c9 09 | 0200 61000000 00000000 00000000", R"("61000000")", R"("")"});
  Row<kStringUtf>(Utf<Z>(U"😀"), Utf<Z>(U""),
                  {"89 0b | 00f60100 00000000", "a9 0b 0200 | 00f60100 00000000 00000000",
                   "c9 0b | 0200 00f60100 00000000 00000000", R"("😀")", R"("")"});
  Row<kStringUtfBom>(
      UtfBom<Z>(U"\ufeffa"), UtfBom<Z>(U""),
      {"89 0c | fffe000061000000 00000000", "a9 0c 0200 | fffe000061000000 00000000 00000000",
       "c9 0c | 0200 fffe000061000000 00000000 00000000", R"("a")", R"("")"});
  Row<kStringXml>(
      Xml<Z>(U"<a"), Xml<Z>(U""),
      {"89 0d | 3c00000061000000 00000000", "a9 0d 0200 | 3c00000061000000 00000000 00000000",
       "c9 0d | 0200 3c00000061000000 00000000 00000000", R"("<a")", R"("")"});
  Row<kStringJson>(Json<Z>(U"1"), Json<Z>(U""),
                   {"89 0e | 31000000 00000000", "a9 0e 0200 | 31000000 00000000 00000000",
                    "c9 0e | 0200 31000000 00000000 00000000", R"("1")", R"("")"});
  ExpectWholeMatrixOf(Encoding::kZStringChar32);
}

TEST_F(GoldenBytes, StringLength16Char16) {
  using V = std::u16string_view;
  using namespace std::string_view_literals;
  Row<kDefault>(u"aä"sv, u""sv,
                {"0b | 0200 6100e400", "2b 0200 | 0200 6100e400 0000",
                 "4b | 0200 0200 6100e400 0000", R"("aä")", R"("")"});
  Row<kHexBytes>(u"aä"sv, u""sv,
                 {"8b 09 | 0200 6100e400", "ab 09 0200 | 0200 6100e400 0000",
                  "cb 09 | 0200 0200 6100e400 0000", R"("6100e400")", R"("")"});
  Row<kStringUtf>(Utf<V>(u"aä"), Utf<V>(u""),
                  {"8b 0b | 0200 6100e400", "ab 0b 0200 | 0200 6100e400 0000",
                   "cb 0b | 0200 0200 6100e400 0000", R"("aä")", R"("")"});
  Row<kStringUtfBom>(UtfBom<V>(u"\ufeffa"), UtfBom<V>(u""),
                     {"8b 0c | 0200 fffe6100", "ab 0c 0200 | 0200 fffe6100 0000",
                      "cb 0c | 0200 0200 fffe6100 0000", R"("a")", R"("")"});
  Row<kStringXml>(Xml<V>(u"<a/>"), Xml<V>(u""),
                  {"8b 0d | 0400 3c0061002f003e00", "ab 0d 0200 | 0400 3c0061002f003e00 0000",
                   "cb 0d | 0200 0400 3c0061002f003e00 0000", R"("<a/>")", R"("")"});
  Row<kStringJson>(Json<V>(u"[1]"), Json<V>(u""),
                   {"8b 0e | 0300 5b0031005d00", "ab 0e 0200 | 0300 5b0031005d00 0000",
                    "cb 0e | 0200 0300 5b0031005d00 0000", R"("[1]")", R"("")"});
  ExpectWholeMatrixOf(Encoding::kStringLength16Char16);
}

TEST_F(GoldenBytes, StringLength16Char32) {
  using V = std::u32string_view;
  using namespace std::string_view_literals;
  Row<kDefault>(U"😀"sv, U""sv,
                {"0c | 0100 00f60100", "2c 0200 | 0100 00f60100 0000",
                 "4c | 0200 0100 00f60100 0000", R"("😀")", R"("")"});
  Row<kHexBytes>(U"😀"sv, U""sv,
                 {"8c 09 | 0100 00f60100", "ac 09 0200 | 0100 00f60100 0000",
                  "cc 09 | 0200 0100 00f60100 0000", R"("00f60100")", R"("")"});
  Row<kStringUtf>(Utf<V>(U"😀"), Utf<V>(U""),
                  {"8c 0b | 0100 00f60100", "ac 0b 0200 | 0100 00f60100 0000",
                   "cc 0b | 0200 0100 00f60100 0000", R"("😀")", R"("")"});
  Row<kStringUtfBom>(UtfBom<V>(U"\ufeffa"), UtfBom<V>(U""),
                     {"8c 0c | 0200 fffe000061000000", "ac 0c 0200 | 0200 fffe000061000000 0000",
                      "cc 0c | 0200 0200 fffe000061000000 0000", R"("a")", R"("")"});
  Row<kStringXml>(Xml<V>(U"<"), Xml<V>(U""),
                  {"8c 0d | 0100 3c000000", "ac 0d 0200 | 0100 3c000000 0000",
                   "cc 0d | 0200 0100 3c000000 0000", R"("<")", R"("")"});
  Row<kStringJson>(Json<V>(U"1"), Json<V>(U""),
                   {"8c 0e | 0100 31000000", "ac 0e 0200 | 0100 31000000 0000",
                    "cc 0e | 0200 0100 31000000 0000", R"("1")", R"("")"});
  ExpectWholeMatrixOf(Encoding::kStringLength16Char32);
}

}  // namespace
}  // namespace eh::testing
