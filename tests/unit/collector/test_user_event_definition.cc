#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "eventheader/wire.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace collector {
namespace {

// Returns the definition as it is registered, or the error.
std::string Parsed(const std::string& text) {
  const auto definition = ParseUserEventDefinition(text);
  return definition.ok() ? definition->Text() : std::string(definition.status().message());
}

TEST(UserEventDefinition, AnEventHeaderNameHasItsFields) {
  EXPECT_EQ(Parsed(" A_L4K1 "), absl::StrCat("A_L4K1 ", eh::kTracepointFields));
  EXPECT_EQ(Parsed(absl::StrCat("A_L4K1  ", eh::kTracepointFields, ";")),
            absl::StrCat("A_L4K1 ", eh::kTracepointFields));
  EXPECT_FALSE(ParseUserEventDefinition("A_L4K1 u8 a").ok());
  EXPECT_FALSE(ParseUserEventDefinition("A_L4k1").ok());
  EXPECT_TRUE(ParseUserEventDefinition("A_L4K1")->IsEventHeader());
}

TEST(UserEventDefinition, FieldsAreAsTheKernelShowsThem) {
  EXPECT_EQ(Parsed("X u32   a;char[8] b ;\tunsigned int c"), "X u32 a; char[8] b; unsigned int c");
  EXPECT_EQ(Parsed("X struct point p 16;__rel_loc char[] text; __data_loc unsigned char[] d"),
            "X struct point p 16; __rel_loc char[] text; __data_loc unsigned char[] d");
  EXPECT_EQ(Parsed("X;"), "X");
}

TEST(UserEventDefinition, AcceptsArraysInTheFormOfC) {
  EXPECT_EQ(Parsed("X char b[8]; unsigned char c[2]"), "X char[8] b; unsigned char[2] c");
}

TEST(UserEventDefinition, RefusesWhatTheKernelRefuses) {
  for (const char* text : {"",
                           ";",
                           "u32",
                           "X u33 a",
                           "X u32",
                           "X u32 a b",
                           "X u32[4] a",
                           "X u32 a[4]",
                           "X char[] a",
                           "X char[0] a",
                           "X char[8] a[8]",
                           "X char[x] a",
                           "X __rel_loc char a",
                           "X __rel_loc char[3] a",
                           "X struct a b",
                           "X struct a b 0",
                           "X struct a b c",
                           "X u8 a; u16 a",
                           "X u8 a:1",
                           "X:flag u8 a",
                           "X/../y u8 a",
                           "9X u8 a",
                           "X unsigned a",
                           "X char[99999999999] a",
                           "X char 9"}) {
    EXPECT_FALSE(ParseUserEventDefinition(text).ok()) << text;
  }
}

TEST(UserEventDefinition, IsNoLongerThanTheKernelTakes) {
  std::string text = "X ";
  while (text.size() < 400) absl::StrAppend(&text, "u8 a", text.size(), ";");
  EXPECT_TRUE(ParseUserEventDefinition(text).ok());
  EXPECT_FALSE(ParseUserEventDefinition(text + std::string(120, ' ') + "u8 b").ok());
  // The text is short as written, and long in the kernel's form.
  std::string tight = "X u8 a0";
  while (tight.size() < 505) absl::StrAppend(&tight, ";u8 a", tight.size());
  EXPECT_FALSE(ParseUserEventDefinition(tight).ok());
  EXPECT_FALSE(ParseUserEventDefinition(std::string(256, 'x') + " u8 a").ok());
}

std::string Line(const std::string& field, int size) {
  return absl::StrCat("\tfield:", field, ";\toffset:8;\tsize:", size, ";\tsigned:0;\n");
}

TEST(UserEventDefinition, FieldsOfAFormat) {
  const std::string common =
      absl::StrCat("name: X\nID: 1\nformat:\n", Line("unsigned short common_type", 2),
                   Line("int common_pid", 4), "\n");
  EXPECT_EQ(FieldsOfFormat(common + "\nprint fmt: \"\"\n"), "");
  // The form in which Linux 6.12 shows "u32 a; char[8] b; struct foo x 20; __rel_loc char[] t".
  EXPECT_EQ(
      FieldsOfFormat(common + Line("u32 a", 4) + Line("char b[]", 8) + Line("struct foo x", 20) +
                     Line("__rel_loc char t[]", 4) + "\nprint fmt: \"a\"\n"),
      "u32 a; char[8] b; struct foo x 20; __rel_loc char[] t");
  EXPECT_EQ(FieldsOfFormat(Line("char b[11766016]", 8) + Line("__rel_loc char t[-5]", 4)),
            "char[8] b; __rel_loc char[] t");
  EXPECT_EQ(FieldsOfFormat("\tfield:"), "");
  EXPECT_EQ(FieldsOfFormat("\tfield:u8 a;\toffset:8;\tsize:"), "u8 a");
  EXPECT_EQ(FieldsOfFormat("\tfield:a;\toffset:8;\tsize:1;"), "a ");
}

}  // namespace
}  // namespace collector
