#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "eventheader/tracepoint_name.h"

namespace eh {
namespace {

bool IsName(std::string_view name) { return ParseTracepointName(name).has_value(); }

std::string Formatted(const TracepointName& name) {
  char buffer[kMaxTracepointName + 1];
  const std::size_t size = FormatTracepointName(name, buffer);
  if (size != 0) {
    EXPECT_EQ(std::strlen(buffer), size);
  }
  return std::string(buffer, size);
}

TEST(ParseTracepointName, SplitsTheSpecificationsExamples) {
  const auto first = ParseTracepointName("MyProvider_L3K2a");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->provider, "MyProvider");
  EXPECT_EQ(first->level, 3);
  EXPECT_EQ(first->keyword, 0x2au);
  EXPECT_EQ(first->options, "");

  const auto second = ParseTracepointName("OtherProvider_L5K0Gperf");
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->provider, "OtherProvider");
  EXPECT_EQ(second->level, 5);
  EXPECT_EQ(second->keyword, 0u);
  EXPECT_EQ(second->options, "Gperf");
}

TEST(ParseTracepointName, ProviderMayContainTextLikeAttributes) {
  const auto name = ParseTracepointName("A_L1K1_LffKffffffffffffffff");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->provider, "A_L1K1");
  EXPECT_EQ(name->level, 255);
  EXPECT_EQ(name->keyword, std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseTracepointName, ProviderMayEndInUnderscore) {
  const auto name = ParseTracepointName("__L1K1");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->provider, "_");
}

TEST(ParseTracepointName, MissingPartsAreRefused) {
  for (const char* name : {"", "_", "A", "A_", "A_L", "A_L1", "A_L1K", "A_LK1", "A_K1L1", "AL1K1",
                           "_L1K1", "A_1K1", "A_L1 K1", "A_L1K1 "}) {
    EXPECT_FALSE(IsName(name)) << name;
  }
}

TEST(ParseTracepointName, LevelIs1To255) {
  EXPECT_FALSE(IsName("A_L0K1"));
  EXPECT_TRUE(IsName("A_L1K1"));
  EXPECT_TRUE(IsName("A_LffK1"));
  EXPECT_FALSE(IsName("A_L100K1"));
  EXPECT_FALSE(IsName("A_L10000000000000001K1"));
}

TEST(ParseTracepointName, KeywordIs64Bits) {
  EXPECT_TRUE(IsName("A_L1Kffffffffffffffff"));
  EXPECT_FALSE(IsName("A_L1K10000000000000000"));
}

TEST(ParseTracepointName, LeadingZerosAreRefused) {
  EXPECT_FALSE(IsName("A_L01K1"));
  EXPECT_FALSE(IsName("A_L1K01"));
  EXPECT_FALSE(IsName("A_L1K00"));
  EXPECT_TRUE(IsName("A_L1K0"));
}

TEST(ParseTracepointName, UpperCaseHexIsRefused) {
  EXPECT_FALSE(IsName("A_LAK1"));
  // The A is an option, not a digit.
  const auto name = ParseTracepointName("A_L1K2A");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->keyword, 2u);
  EXPECT_EQ(name->options, "A");
}

TEST(ParseTracepointName, SignsAndPrefixesAreRefused) {
  for (const char* name : {"A_L+1K1", "A_L-1K1", "A_L0x1K1", "A_L1K0x1", "A_L1K-1"}) {
    EXPECT_FALSE(IsName(name)) << name;
  }
}

TEST(ParseTracepointName, ProviderIsAnIdentifier) {
  for (const char* name : {"1A_L1K1", "A-B_L1K1", "A B_L1K1", "A:B_L1K1", "\xc3\xa4_L1K1"}) {
    EXPECT_FALSE(IsName(name)) << name;
  }
}

TEST(ParseTracepointName, OptionsAreSortedLettersWithLowerCaseValues) {
  EXPECT_TRUE(IsName("A_L1K1Aoption1B2Gx"));
  EXPECT_TRUE(IsName("A_L1K1ABC"));
  EXPECT_FALSE(IsName("A_L1K1BA"));
  EXPECT_FALSE(IsName("A_L1K1GxGy"));
  EXPECT_FALSE(IsName("A_L1K1G-"));
  EXPECT_FALSE(IsName("A_L1K1x"));
}

TEST(ParseTracepointName, MaximumLengthIs255) {
  const std::string tail = "_L1K1";
  const std::string longest = std::string(kMaxTracepointName - tail.size(), 'a') + tail;
  ASSERT_EQ(longest.size(), 255u);
  EXPECT_TRUE(IsName(longest));
  EXPECT_FALSE(IsName("a" + longest));
}

TEST(ParseTracepointName, NulWithinTheNameIsRefused) {
  EXPECT_FALSE(IsName(std::string_view("A_L1K1\0", 7)));
  EXPECT_FALSE(IsName(std::string_view("A\0_L1K1", 7)));
}

TEST(FormatTracepointName, WritesTheSpecificationsExamples) {
  EXPECT_EQ(Formatted({"MyProvider", 3, 0x2a, ""}), "MyProvider_L3K2a");
  EXPECT_EQ(Formatted({"OtherProvider", 5, 0, "Gperf"}), "OtherProvider_L5K0Gperf");
  EXPECT_EQ(Formatted({"A", 255, 0xfedcba9876543210, ""}), "A_LffKfedcba9876543210");
}

TEST(FormatTracepointName, RefusesInvalidParts) {
  EXPECT_EQ(Formatted({"", 1, 1, ""}), "");
  EXPECT_EQ(Formatted({"a:b", 1, 1, ""}), "");
  EXPECT_EQ(Formatted({"A", 0, 1, ""}), "");
  EXPECT_EQ(Formatted({"A", 1, 1, "g"}), "");
  EXPECT_EQ(Formatted({"A", 1, 1, "BA"}), "");
}

TEST(FormatTracepointName, RefusesMoreThan255Bytes) {
  const std::string longest(kMaxTracepointName - 5, 'a');
  EXPECT_EQ(Formatted({longest, 1, 1, ""}).size(), 255u);
  char buffer[400];
  EXPECT_EQ(FormatTracepointName({longest + "a", 1, 1, ""}, buffer), 0u);
  EXPECT_EQ(FormatTracepointName({longest, 1, 1, "G"}, buffer), 0u);
}

TEST(FormatTracepointName, BufferMustHoldTheTerminator) {
  char buffer[8] = "#######";
  EXPECT_EQ(FormatTracepointName({"A", 1, 1, ""}, std::span(buffer, 6)), 0u);
  EXPECT_STREQ(buffer, "#######");
  EXPECT_EQ(FormatTracepointName({"A", 1, 1, ""}, std::span(buffer, 7)), 6u);
  EXPECT_STREQ(buffer, "A_L1K1");
  EXPECT_EQ(FormatTracepointName({"A", 1, 1, ""}, {}), 0u);
}

TEST(FormatTracepointName, EveryLevelParsesBack) {
  for (int level = 1; level <= 255; ++level) {
    const std::string text = Formatted({"P", static_cast<std::uint8_t>(level), 1, "Gx"});
    const auto name = ParseTracepointName(text);
    ASSERT_TRUE(name.has_value()) << text;
    EXPECT_EQ(name->level, level);
  }
}

TEST(FormatTracepointName, EveryKeywordBitParsesBack) {
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t keyword = std::uint64_t{1} << bit;
    const std::string text = Formatted({"P", 1, keyword, ""});
    const auto name = ParseTracepointName(text);
    ASSERT_TRUE(name.has_value()) << text;
    EXPECT_EQ(name->keyword, keyword);
  }
}

TEST(FindOption, FindsValuesByLetter) {
  EXPECT_EQ(FindOption("Aoption1BGmygroup", 'A'), "option1");
  EXPECT_EQ(FindOption("Aoption1BGmygroup", 'B'), "");
  EXPECT_EQ(FindOption("Aoption1BGmygroup", 'G'), "mygroup");
}

TEST(FindOption, FindsOnlyLetters) {
  EXPECT_EQ(FindOption("Gmygroup", 'A'), std::nullopt);
  EXPECT_EQ(FindOption("", 'G'), std::nullopt);
  EXPECT_EQ(FindOption("Gmygroup", 'm'), std::nullopt);
}

}  // namespace
}  // namespace eh
