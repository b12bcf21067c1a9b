#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/eventheader/registrations.h"

namespace tools {
namespace {

// Returns the names, or the first error.
std::vector<std::string> NamesOf(const Registrations& registrations) {
  if (registrations.error_count() != 0) return {registrations.errors().front()};
  std::vector<std::string> names;
  for (const auto& definition : registrations.definitions()) names.push_back(definition.name);
  return names;
}

std::vector<std::string> NamesOfText(const std::string& text) {
  Registrations registrations;
  registrations.AddText(text, "f");
  return NamesOf(registrations);
}

using Names = std::vector<std::string>;

TEST(Registrations, ProviderIsExpanded) {
  Registrations registrations;
  registrations.AddWord("P", {"1-2,255", "0x1,16", ""});
  EXPECT_EQ(NamesOf(registrations),
            (Names{"P_L1K1", "P_L1K10", "P_L2K1", "P_L2K10", "P_LffK1", "P_LffK10"}));
}

TEST(Registrations, OptionsOfAProviderKeepOtherWordsUnchanged) {
  Registrations registrations;
  registrations.AddWord("Q_L4K1", {"1", "1", ""});
  registrations.AddWord("Plain u32 a", {"1", "1", ""});
  registrations.AddWord("P", {"1", "0xffffffffffffffff", "g1"});
  EXPECT_EQ(NamesOf(registrations), (Names{"Q_L4K1", "Plain", "P_L1KffffffffffffffffGg1"}));
}

TEST(Registrations, LinesCommentsAndBlanks) {
  EXPECT_EQ(
      NamesOfText("# all of it\n\n  A_L1K1  # after it\r\nB --levels 2 --keywords 0 --group g\n"
                  "\tC u32 a; u8 b # fields\nA_L1K1"),
      (Names{"A_L1K1", "B_L2K0Gg", "C"}));
  EXPECT_EQ(NamesOfText(""), Names{});
  EXPECT_EQ(NamesOfText("A_L1K1#no comment").size(), 1U);
  EXPECT_TRUE(NamesOfText("A_L1K1#no comment")[0].starts_with("f:1: "));
}

TEST(Registrations, EveryErrorIsNamedWithItsLine) {
  Registrations registrations;
  registrations.AddText("A_L1K1\nBad\n\nP --level 1\nP --levels\nP --levels 1\nX u32 a\nX u8 a",
                        "f");
  ASSERT_EQ(registrations.error_count(), 5U);
  const std::vector<std::string> parts = {
      "f:2: 'Bad'", "f:4: unknown option '--level'", "f:5: --levels: missing value",
      "f:6: P: a provider needs", "f:8: X is defined as 'u32 a' in f:7, here as 'u8 a'"};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_TRUE(registrations.errors()[i].starts_with(parts[i])) << registrations.errors()[i];
  }
}

TEST(Registrations, NumbersOutOfTheirRangeAreErrors) {
  for (const char* levels : {"0", "256", "4-1", "1-", "-1", "", "1,,2", "0x100", "a", "1-2-3"}) {
    Registrations registrations;
    registrations.AddWord("P", {levels, "1", ""});
    EXPECT_EQ(registrations.error_count(), 1U) << levels;
  }
  for (const char* keywords : {"0-256", "0x10000000000000000", "0x", "1;2"}) {
    Registrations registrations;
    registrations.AddWord("P", {"1", keywords, ""});
    EXPECT_EQ(registrations.error_count(), 1U) << keywords;
  }
}

TEST(Registrations, TheLastNumberOfAKeywordEndsItsRange) {
  Registrations registrations;
  registrations.AddWord("P", {"1", "0xfffffffffffffffe-0xffffffffffffffff", ""});
  EXPECT_EQ(registrations.definitions().size(), 2U);
}

TEST(Registrations, AreBounded) {
  Registrations many;
  many.AddWord("P", {"1-255", "0-255", ""});
  EXPECT_EQ(many.error_count(), 1U);
  EXPECT_TRUE(many.definitions().empty());
  std::string text;
  for (std::size_t i = 0; i < Registrations::kMaxTracepoints + 5; ++i) {
    text += "P_L1K" + std::to_string(i + 1) + "\n";
  }
  Registrations lines;
  lines.AddText(text, "f");
  EXPECT_EQ(lines.definitions().size(), Registrations::kMaxTracepoints);
  EXPECT_EQ(lines.error_count(), 1U);
  Registrations large;
  large.AddText(std::string(Registrations::kMaxText + 1, '\n'), "f");
  EXPECT_EQ(large.error_count(), 1U);
  Registrations wrong;
  text.clear();
  for (std::size_t i = 0; i < 2 * Registrations::kMaxErrors; ++i) text += "x\n";
  wrong.AddText(text, "f");
  EXPECT_EQ(wrong.errors().size(), Registrations::kMaxErrors);
  EXPECT_EQ(wrong.error_count(), 2 * Registrations::kMaxErrors);
}

}  // namespace
}  // namespace tools
