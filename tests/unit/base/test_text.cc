#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "nettrace/schema.h"
#include "tools/base/short_text.h"
#include "tools/base/text.h"

namespace base {
namespace {

TEST(TextTest, PlainTextIsUnchanged) {
  for (const std::string text : {"", "plain ~", "wörk 日本 😀", "\\u001b"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(TextTest, ControlCharactersAreEscaped) {
  EXPECT_EQ(Printable("\x1b[2Ja\r\nb\t\x7f"), "\\u001b[2Ja\\u000d\\u000ab\\u0009\\u007f");
  EXPECT_EQ(Printable(std::string("a\0b", 3)), "a\\u0000b");
  // C1 control characters; U+009B means the same as ESC [.
  EXPECT_EQ(Printable("\u0080\u009b31m\u009f\u00a0"), "\\u0080\\u009b31m\\u009f\u00a0");
}

TEST(TextTest, BidirectionalControlsAreEscaped) {
  EXPECT_EQ(Printable("\u202eexe.txt\u202c"), "\\u202eexe.txt\\u202c");
  EXPECT_EQ(Printable("\u061c\u200e\u200f\u2028\u2029\u202a\u2066\u2069"),
            "\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a\\u2066\\u2069");
  EXPECT_EQ(Printable("\u200d\u202f\u206a"), "\u200d\u202f\u206a") << "others are not";
}

TEST(TextTest, InvalidUtf8IsReplaced) {
  EXPECT_EQ(Printable("\xff\x9b\x31"), "\uFFFD\uFFFD1") << "a lone 9B is a C1 control to some";
  EXPECT_EQ(Printable("\xe2\x80"), "\uFFFD");
  EXPECT_EQ(Printable("\xc0\x9b"), "\uFFFD\uFFFD");
}

TEST(TextTest, FormatterOfTimesFormatsEachTimeLikeFormatUtc) {
  const absl::Time start = absl::FromUnixSeconds(1'795'600'000);
  const absl::Time times[] = {start,
                              start + absl::Nanoseconds(1),
                              start + absl::Nanoseconds(999'999'999),
                              start + absl::Nanoseconds(20),
                              start + absl::Seconds(1),
                              start - absl::Nanoseconds(1),
                              start + absl::Nanoseconds(3) / 4,
                              absl::UnixEpoch() - absl::Nanoseconds(1),
                              absl::UnixEpoch() - absl::Milliseconds(1500),
                              absl::FromUnixSeconds(-100'000'000'000),
                              absl::FromUnixSeconds(-100'000'000'000) + absl::Nanoseconds(7),
                              absl::FromUnixSeconds(1'000'000'000'000),
                              absl::FromUnixSeconds(1'000'000'000'000) + absl::Nanoseconds(7),
                              absl::InfiniteFuture(),
                              absl::InfiniteFuture(),
                              absl::InfinitePast(),
                              absl::InfinitePast(),
                              start};
  UtcFormatter formatter;
  for (const absl::Time time : times) EXPECT_EQ(formatter.Format(time), FormatUtc(time));
}

TEST(TextTest, NumbersAndGuidsAreAppended) {
  std::string text = "x";
  AppendNumber(std::uint8_t{255}, &text);
  AppendNumber(INT64_MIN, &text);
  AppendNumber(UINT64_MAX, &text);
  AppendHexNumber(0, &text);
  AppendHexNumber(UINT64_MAX, &text);
  EXPECT_EQ(text, "x255-9223372036854775808184467440737095516150x00xffffffffffffffff");
  nettrace::Guid guid;
  for (std::size_t i = 0; i < guid.size(); ++i) guid[i] = static_cast<std::byte>(0xF0 + i);
  EXPECT_EQ(FormatGuid(guid), "f3f2f1f0-f5f4-f7f6-f8f9-fafbfcfdfeff");
}

TEST(TextTest, FindsEachCharacterThatIsNotPlain) {
  for (std::size_t size = 0; size <= 17; ++size) {
    const std::string plain(size, 'a');
    EXPECT_TRUE(IsPrintableAscii(plain));
    EXPECT_TRUE(IsPlainInJson(plain));
    for (std::size_t at = 0; at < size; ++at) {
      for (int c = 0; c < 256; ++c) {
        std::string text = plain;
        text[at] = static_cast<char>(c);
        EXPECT_EQ(IsPrintableAscii(text), c >= 0x20 && c < 0x7F) << c << " at " << at;
        EXPECT_EQ(IsPlainInJson(text), c >= 0x20 && c < 0x80 && c != '"' && c != '\\')
            << c << " at " << at;
      }
    }
  }
}

TEST(TextTest, OneThingIsSingular) {
  EXPECT_EQ(Counted(0, "event"), "0 events");
  EXPECT_EQ(Counted(1, "event"), "1 event");
  EXPECT_EQ(Counted(2, "more tracepoint"), "2 more tracepoints");
}

TEST(ShortText, HasItsPartsInOrder) {
  const nettrace::Guid guid = {std::byte{0x33}, std::byte{0x22}, std::byte{0x11}};
  ShortText<64> text;
  text.Add("a=");
  text.AddNumber(18'446'744'073'709'551'615u);
  text.Add(',');
  text.AddNumber(0x1f, 16);
  text.Add(" ");
  text.AddGuid(guid);
  EXPECT_EQ(text.text(), "a=18446744073709551615,1f " + FormatGuid(guid));
}

}  // namespace
}  // namespace base
