// Tests the filters for events of rings: their language, and the results of random filters,
// compared with a second evaluator.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/collector/session/ring_filter.h"

namespace collector {
namespace {

constexpr std::uint32_t kTid = 1234;

constexpr std::string_view kComm = "worker \"1";

struct Event {
  std::uint8_t flags = 7;
  std::uint8_t version = 1;
  std::uint16_t id = 500;
  std::uint16_t tag = 0x1020;
  std::uint8_t opcode = 2;
  std::uint8_t level = 4;
};
static_assert(sizeof(Event) == 8);

bool Accepts(const std::string& text, const Event& event = {}) {
  const auto filter = RingFilter::Parse(text);
  EXPECT_TRUE(filter.ok()) << text << ": " << filter.status();
  return filter.ok() && filter->Accepts(std::as_bytes(std::span(&event, 1)), kTid, kComm);
}

std::string ErrorOf(const std::string& text) {
  return std::string(RingFilter::Parse(text).status().message());
}

TEST(RingFilterTest, ComparesEachField) {
  for (const char* text :
       {"eventheader_flags==7", "version == 1", "id == 500", "tag == 0x1020", "opcode == 2",
        "level == 4", "common_pid == 1234", "id == 0764", "id != 501", "id < 501", "id <= 500",
        "id > 499", "id >= 500", "id & 4", "common_pid > -1", " ( level<5 ) "}) {
    EXPECT_TRUE(Accepts(text)) << text;
  }
  for (const char* text : {"id != 500", "id < 500", "id <= 499", "id > 500", "id >= 501", "id & 8",
                           "common_pid < -1", "level == 5"}) {
    EXPECT_FALSE(Accepts(text)) << text;
  }
}

TEST(RingFilterTest, CutsValuesToTheWidthOfTheField) {
  EXPECT_TRUE(Accepts("level == 0x104"));
  EXPECT_TRUE(Accepts("id == 66036"));
  EXPECT_TRUE(Accepts("common_pid == 4294968530"));
}

TEST(RingFilterTest, BindsAndStrongerThanOr) {
  EXPECT_TRUE(Accepts("id == 500 || id == 1 && level == 0"));
  EXPECT_FALSE(Accepts("(id == 500 || id == 1) && level == 0"));
  EXPECT_TRUE(Accepts("!id == 1"));
  EXPECT_TRUE(Accepts("!!(id == 500)"));
  EXPECT_FALSE(Accepts("!(id == 500 || level == 0)"));
  EXPECT_FALSE(Accepts("!id == 500 || level == 0"));
}

TEST(RingFilterTest, ComparesTheNameOfTheThread) {
  EXPECT_TRUE(Accepts("COMM == 'worker \"1'"));
  EXPECT_TRUE(Accepts("(id == 500) && (COMM=='worker \"1')"));
  EXPECT_TRUE(Accepts("COMM != \"worker\""));
  EXPECT_FALSE(Accepts("COMM == \"worker*\""));
  EXPECT_FALSE(Accepts("COMM == '' || COMM == 'other'"));
  EXPECT_TRUE(RingFilter::Parse("id == 1 || COMM == 'a'")->uses_comm());
  EXPECT_FALSE(RingFilter::Parse("id == 1")->uses_comm());
  EXPECT_NE(ErrorOf("COMM == worker").find("use a name in quotes"), std::string::npos);
  EXPECT_NE(ErrorOf("COMM == ").find("use a name in quotes"), std::string::npos);
  EXPECT_NE(ErrorOf("COMM == 'a\"").find("the quote at the end"), std::string::npos);
  EXPECT_NE(ErrorOf("COMM < 'a'").find("== != for COMM"), std::string::npos);
}

TEST(RingFilterTest, RefusesOtherTexts) {
  EXPECT_NE(ErrorOf("comm ~ \"a*\"").find("use a field of the tracepoint"), std::string::npos);
  EXPECT_NE(ErrorOf("id ~ 3").find("use one of the operators"), std::string::npos);
  EXPECT_NE(ErrorOf("id == 1 level == 2")
                .find("at character 9: expected '&&', '||' or the end of the filter"),
            std::string::npos);
  EXPECT_NE(ErrorOf("(id == 1").find("')' is missing"), std::string::npos);
  for (const char* text : {"",
                           " ",
                           "id",
                           "id ==",
                           "id == x",
                           "id == -1",
                           "id == 08",
                           "id == 0x",
                           "id == 1g",
                           "id == 18446744073709551616",
                           "common_pid == - ",
                           "common_pid == 9223372036854775808",
                           "id && 1",
                           "id == 1 &&",
                           "|| id == 1",
                           "()",
                           "!",
                           "id = 1",
                           "id == 1)",
                           "field == 1"}) {
    EXPECT_NE(ErrorOf(text), "") << text;
  }
}

TEST(RingFilterTest, LimitsLengthAndDepth) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '(') + "id==1 || id==500" + std::string(depth, ')');
  };
  EXPECT_TRUE(Accepts(nested(30)));
  EXPECT_NE(ErrorOf(nested(31)).find("too many parentheses"), std::string::npos);
  // At each of the 30 permitted levels, the left operands of an || and of an && wait until the
  // parentheses within are evaluated. So this filter needs the most memory.
  std::string deep;
  for (int i = 0; i < 30; ++i) deep += "id==1||id==500&&(";
  EXPECT_TRUE(Accepts(deep + "id==1||id==500&&id==500" + std::string(30, ')')));
  EXPECT_TRUE(Accepts("id == 500" + std::string(4086, ' ')));
  EXPECT_NE(ErrorOf("id == 500" + std::string(4087, ' ')).find("too long"), std::string::npos);
  EXPECT_TRUE(Accepts(std::string(4000, '!') + "id == 500"));
}

TEST(RingFilterTest, AcceptsEventsThatAreTooShort) {
  const auto filter = RingFilter::Parse("id == 1");
  ASSERT_TRUE(filter.ok());
  const std::array<std::byte, 7> bytes = {};
  EXPECT_TRUE(filter->Accepts(bytes, kTid, kComm));
}

// Returns the text of a random filter, and whether it accepts `event`.
std::pair<std::string, bool> Random(std::mt19937* random, const Event& event, int depth) {
  const std::uint64_t kind = (*random)() % (depth == 0 ? 1 : 5);
  const bool inverts = (*random)() % 4 == 0;
  std::string text;
  bool value = false;
  if (kind < 2) {
    const std::array<std::pair<const char*, std::int64_t>, 4> fields = {
        {{"id", event.id}, {"opcode", event.opcode}, {"level", event.level}, {"common_pid", kTid}}};
    const auto& [name, field] = fields[(*random)() % fields.size()];
    const auto number = static_cast<std::int64_t>((*random)() % 4);
    const std::array<std::pair<const char*, bool>, 7> comparisons = {
        {{"==", field == number},
         {"!=", field != number},
         {"<", field < number},
         {"<=", field <= number},
         {">", field > number},
         {">=", field >= number},
         {"&", (field & number) != 0}}};
    const auto& [token, result] = comparisons[(*random)() % comparisons.size()];
    text = absl::StrCat(name, token, number);
    value = result;
  } else {
    const auto [left, left_value] = Random(random, event, depth - 1);
    const auto [right, right_value] = Random(random, event, depth - 1);
    const bool is_and = kind % 2 == 0;
    text = absl::StrCat("(", left, ")", is_and ? " && " : "||", "(", right, ")");
    value = is_and ? left_value && right_value : left_value || right_value;
  }
  return {inverts ? absl::StrCat("!(", text, ")") : text, value != inverts};
}

TEST(RingFilterTest, RandomFiltersGiveTheirValue) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Event event;
    event.id = static_cast<std::uint16_t>(random() % 4);
    event.opcode = static_cast<std::uint8_t>(random() % 4);
    event.level = static_cast<std::uint8_t>(random() % 4);
    const auto [text, value] = Random(&random, event, 5);
    ASSERT_EQ(Accepts(text, event), value) << text;
    accepted += value ? 1 : 0;
  }
  EXPECT_GT(accepted, 5'000);
  EXPECT_LT(accepted, 15'000);
}

TEST(RingFilterTest, RandomTextsAreRefusedOrEvaluated) {
  std::mt19937 random(2);
  constexpr std::array<const char*, 16> kTokens = {
      "id==2", "level", "==", "<", "&", "&&", "||", "!", "(", ")", "1", "-", " ", "x", "0x", "~"};
  int valid = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (std::uint64_t length = random() % 12; length > 0; --length) {
      text += kTokens[random() % kTokens.size()];
    }
    const auto filter = RingFilter::Parse(text);
    if (!filter.ok()) continue;
    ++valid;
    const Event event;
    static_cast<void>(filter->Accepts(std::as_bytes(std::span(&event, 1)), kTid, kComm));
  }
  EXPECT_GT(valid, 50);
}

}  // namespace
}  // namespace collector
