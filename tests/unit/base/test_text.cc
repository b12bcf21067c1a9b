#include <gtest/gtest.h>

#include <string>

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

TEST(TextTest, OneThingIsSingular) {
  EXPECT_EQ(Counted(0, "event"), "0 events");
  EXPECT_EQ(Counted(1, "event"), "1 event");
  EXPECT_EQ(Counted(2, "more tracepoint"), "2 more tracepoints");
}

}  // namespace
}  // namespace base
