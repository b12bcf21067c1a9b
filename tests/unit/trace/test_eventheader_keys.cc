// Tests the values of the keys EventHeader.Field.N: a written value must be read back unchanged.
#include <gtest/gtest.h>

#include "tools/trace/eventheader_keys.h"

namespace trace {
namespace {

using eh::Encoding;
using eh::Format;

TEST(FieldNote, ReadsBackUnchanged) {
  const struct {
    FieldNote note;
    const char* text;
  } kCases[] = {
      {{Encoding::kValue32, Format::kHexInt, {}, ""}, "value32 hex_int"},
      {{Encoding::kValue8, Format::kDefault, {}, ""}, "value8 default"},
      {{Encoding::kValue64, Format::kTime, 0x12, ""}, "value64 time tag=0x12"},
      {{Encoding::kStruct, Format::kDefault, 0xFFFF, ""}, "struct tag=0xffff"},
      {{Encoding::kBinaryLength16Char8, Format::kIpAddressObsolete, {}, "a=b c;d= e"},
       "binary_length16_char8 ip_address_obsolete attr=a=b c;d= e"},
      {{Encoding::kZStringChar16, Format::kStringJson, 1, "tag=0x2"},
       "zstring_char16 string_json tag=0x1 attr=tag=0x2"},
      {{Encoding::kValue16, static_cast<Format>(77), {}, ""}, "value16 format77"},
  };
  for (const auto& [note, text] : kCases) {
    EXPECT_EQ(FormatFieldNote(note), text);
    const std::optional<FieldNote> read = ParseFieldNote(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(read->encoding, note.encoding) << text;
    EXPECT_EQ(read->format, note.format) << text;
    EXPECT_EQ(read->tag, note.tag) << text;
    EXPECT_EQ(read->attributes, note.attributes) << text;
  }
}

TEST(FieldNote, OtherTextIsRefused) {
  for (const char* text : {"", "value32", "value33 hex_int", "invalid hex_int", "value32 hexint",
                           "value32 format", "value32 format128", "value32 format-1",
                           "value32 hex_int tag=", "value32 hex_int tag=0x10000",
                           "value32 hex_int more", "struct hex_int"}) {
    EXPECT_FALSE(ParseFieldNote(text).has_value()) << text;
  }
}

TEST(FieldKey, HasTheNumberOfTheField) {
  EXPECT_EQ(ParseFieldKey("EventHeader.Field.0"), 0u);
  EXPECT_EQ(ParseFieldKey("EventHeader.Field.123"), 123u);
  for (const char* key : {"EventHeader.Field.", "EventHeader.Field.x", "EventHeader.Field.-1",
                          "EventHeader.Tag", "Field.0", ""}) {
    EXPECT_EQ(ParseFieldKey(key), std::nullopt) << key;
  }
}

TEST(Attributes, AreReadWithoutTheirEscapes) {
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(ParseAttributes(""), Pairs());
  EXPECT_EQ(ParseAttributes("unit=ms"), (Pairs{{"unit", "ms"}}));
  EXPECT_EQ(ParseAttributes("a=1;b=;c=x=y"), (Pairs{{"a", "1"}, {"b", ""}, {"c", "x=y"}}));
  EXPECT_EQ(ParseAttributes("a=my;;value;b=;;;c=2"),
            (Pairs{{"a", "my;value"}, {"b", ";"}, {"c", "2"}}));
  EXPECT_EQ(ParseAttributes("a=;;"), (Pairs{{"a", ";"}}));
  // Malformed values are shown anyway.
  EXPECT_EQ(ParseAttributes("text;;=x;a=1;"),
            (Pairs{{"text", ""}, {"", ""}, {"", "x"}, {"a", "1"}}));
}

}  // namespace
}  // namespace trace
