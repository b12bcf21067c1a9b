#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "eventheader/activity.h"
#include "eventheader/bridges/log_sets.h"
#include "tests/unit/eventheader/bridges/written_lines.h"

namespace eh {
namespace {

using Lines = std::vector<std::string>;

class LogSetsTest : public ::testing::Test {
 protected:
  LogSets sets_{"Test_Log"};
  testing::WrittenLines written_{sets_};
};

TEST_F(LogSetsTest, WritesTheFieldsThatALineHas) {
  EXPECT_EQ(sets_.Write({.level = Level::kError,
                         .message = "größer",
                         .logger = "disk",
                         .file = "disk.cc",
                         .function = "Read",
                         .line = 17,
                         .thread_id = 4711}),
            WriteResult::kWritten);
  EXPECT_EQ(sets_.Write({.message = ""}), WriteResult::kWritten);
  EXPECT_EQ(
      written_.Take(),
      (Lines{R"(Test_Log_L2K1 {"name":"disk","level":2,"fields":{"message":"größer",)"
             R"("logger":"disk","file":"disk.cc","line":17,"function":"Read","thread_id":4711}})",
             R"(Test_Log_L4K1 {"name":"Log","level":4,"fields":{"message":""}})"}));
}

TEST_F(LogSetsTest, WritesTheCurrentActivity) {
  SetCurrentActivity(ActivityId{std::byte{0x2a}});
  sets_.Write({.message = "m"});
  SetCurrentActivity(std::nullopt);
  EXPECT_EQ(written_.Take(), (Lines{R"(Test_Log_L4K1 {"name":"Log","level":4,)"
                                    R"("activityId":"2a000000-0000-0000-0000-000000000000",)"
                                    R"("fields":{"message":"m"}})"}));
}

TEST_F(LogSetsTest, AddsFieldsOnlyOfEnabledLines) {
  int calls = 0;
  const auto add = [&](DynamicEvent& event) {
    event.AddField("n", ++calls);
    return calls == 1;
  };
  EXPECT_EQ(sets_.Write({.message = "m"}, add), WriteResult::kWritten);
  EXPECT_EQ(sets_.Write({.message = "m"}, add), WriteResult::kInvalid);
  written_.transport().SetEnabled(false, "Test_Log_L4K1");
  EXPECT_EQ(sets_.Write({.message = "m"}, add), WriteResult::kDisabled);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(written_.Take(),
            (Lines{R"(Test_Log_L4K1 {"name":"Log","level":4,"fields":{"message":"m","n":1}})"}));
  EXPECT_EQ(sets_.provider().counters().invalid, 1u);
}

TEST_F(LogSetsTest, CutsLongTextsAtACharacter) {
  const std::string place(1000, 'p');
  // The limit is between the two bytes of the ü.
  const std::string message = std::string(kMaxMessage - 1, 'm') + "ü";
  EXPECT_EQ(sets_.Write({.message = message, .logger = place, .file = place, .function = place}),
            WriteResult::kWritten);
  const std::string name(kMaxLogName, 'p');
  const std::string cut(kMaxLogPlace, 'p');
  EXPECT_EQ(written_.Take(),
            (Lines{"Test_Log_L4K1 {\"name\":\"" + name + R"(","level":4,"fields":{"message":")" +
                   std::string(kMaxMessage - 1, 'm') + R"(","logger":")" + name + R"(","file":")" +
                   cut + R"(","function":")" + cut + R"(","message_bytes":4097}})"}));
  sets_.Write({.message = std::string_view(message).substr(0, kMaxMessage - 1)});
  EXPECT_EQ(written_.Take()[0].find("message_bytes"), std::string::npos);
}

TEST_F(LogSetsTest, ReplacesWhatNamesMustNotContain) {
  using namespace std::string_view_literals;
  EXPECT_EQ(sets_.Write({.message = "m", .logger = "a;b\0c"sv}), WriteResult::kWritten);
  EXPECT_EQ(written_.Take(), (Lines{R"(Test_Log_L4K1 {"name":"a_b_c","level":4,)"
                                    R"("fields":{"message":"m","logger":"a;b\u0000c"}})"}));
}

TEST_F(LogSetsTest, WantsTheMostVerboseEnabledLevel) {
  EXPECT_EQ(sets_.WantedLevel(), 5);
  written_.transport().SetEnabled(false);
  EXPECT_EQ(sets_.WantedLevel(), 0);
  written_.transport().SetEnabled(true, "Test_Log_L1K1");
  EXPECT_EQ(sets_.WantedLevel(), 1);
  written_.transport().SetEnabled(true, "Test_Log_L3K1");
  EXPECT_EQ(sets_.WantedLevel(), 3);
  EXPECT_TRUE(sets_.enabled(Level::kWarning));
  EXPECT_FALSE(sets_.enabled(Level::kInformation));
  EXPECT_FALSE(sets_.enabled(Level::kInvalid));
  EXPECT_FALSE(sets_.enabled(static_cast<Level>(6)));
}

TEST(LogSets, HasTheKeywordAndNameOfItsOptions) {
  LogSets sets("Test_Log", {.keyword = 0x20, .name_events_by_logger = false});
  testing::WrittenLines written(sets);
  sets.Write({.message = "m", .logger = "disk"});
  EXPECT_EQ(written.Take(), (Lines{R"(Test_Log_L4K20 {"name":"Log","level":4,)"
                                   R"("fields":{"message":"m","logger":"disk"}})"}));
}

TEST(LogSets, InvalidNameIsAStatus) {
  for (const std::string& name : {std::string("not a name"), std::string(), std::string(255, 'n'),
                                  std::string(256, 'n'), std::string(5000, 'n')}) {
    LogSets sets(name);
    EXPECT_EQ(sets.provider().status(), EINVAL) << name.size();
    EXPECT_EQ(sets.Write({.message = "m"}), WriteResult::kDisabled);
    EXPECT_EQ(sets.WantedLevel(), 0);
  }
}

}  // namespace
}  // namespace eh
