#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libnettrace-writer/core/little_endian.h"
#include "libnettrace-writer/core/utf.h"

namespace nettrace::internal {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Returns the UTF-16LE code units in the host's byte order.
std::u16string HostUnits(std::span<const std::byte> bytes) {
  std::u16string units;
  for (; bytes.size() >= 2; bytes = bytes.subspan(2)) {
    units += static_cast<char16_t>(LoadLittleEndian<std::uint16_t>(bytes.data()));
  }
  return units;
}

std::vector<std::byte> FileUnits(std::u16string_view units) {
  std::vector<std::byte> bytes(2 * units.size());
  for (std::size_t i = 0; i < units.size(); ++i) {
    StoreLittleEndian(static_cast<std::uint16_t>(units[i]), &bytes[2 * i]);
  }
  return bytes;
}

std::u16string FromUtf8(std::string_view text) {
  std::vector<std::byte> out;
  AppendUtf8AsUtf16(Bytes(text), &out);
  return HostUnits(out);
}

TEST(Text, Classify) {
  EXPECT_EQ(ClassifyUtf8(Bytes("")), TextKind::kAscii);
  EXPECT_EQ(ClassifyUtf8(Bytes("plain text, longer than a word")), TextKind::kAscii);
  EXPECT_EQ(ClassifyUtf8(Bytes("longer than a word, \xC3\xA9")), TextKind::kUtf8);
  EXPECT_EQ(ClassifyUtf8(Bytes("\xF0\x9F\x98\x80")), TextKind::kUtf8);
  for (const char* bad : {"\x80", "\xC3", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xFF", "12345678\xFF", "\xF0\x9F\x98"}) {
    EXPECT_EQ(ClassifyUtf8(Bytes(bad)), TextKind::kInvalid) << bad;
  }
}

TEST(Text, Utf8ToUtf16) {
  EXPECT_EQ(FromUtf8("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"), u"a\u00E9\u20AC\U0001F600");
  EXPECT_EQ(FromUtf8("\xFF"
                     "a\xC3"),
            u"\uFFFDa\uFFFD");
}

TEST(Text, Latin1ToUtf16) {
  std::vector<std::byte> out;
  AppendLatin1AsUtf16(Bytes("\xE9"), &out);
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{0xE9}, std::byte{0}}));
}

TEST(Text, Utf32ToUtf16) {
  std::vector<std::byte> out;
  AppendUtf32AsUtf16(Bytes({"\x00\xF6\x01\x00\x00\xD8\x00\x00", 8}), true, &out);
  AppendUtf32AsUtf16(Bytes({"\x00\x00\x00\x41", 4}), false, &out);
  EXPECT_EQ(HostUnits(out), u"\U0001F600\uFFFDA");
}

TEST(Text, Utf8IsMadeValid) {
  std::string out;
  AppendUtf8AsValid(Bytes("a\xC3\xA9\xFF"), &out);
  EXPECT_EQ(out, "a\xC3\xA9\xEF\xBF\xBD");
}

TEST(Text, Utf16ToUtf8) {
  std::string out;
  AppendUtf16AsUtf8(FileUnits(u"a\u00E9\u20AC\U0001F600"), &out);
  EXPECT_EQ(out, "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(Text, LoneSurrogatesAreReplaced) {
  const char16_t text[] = {0xD83D, u'a', 0xDE00, 0xD83D};
  std::string out;
  AppendUtf16AsUtf8(FileUnits({text, 4}), &out);
  EXPECT_EQ(out,
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Text, AnOddLastByteIsReplaced) {
  std::string out;
  AppendUtf16AsUtf8(Bytes({"a\0b", 3}), &out);
  EXPECT_EQ(out, "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace nettrace::internal
