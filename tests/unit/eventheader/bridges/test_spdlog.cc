#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>
#include <vector>

#include "eventheader/bridges/spdlog.h"
#include "tests/unit/eventheader/bridges/written_lines.h"

namespace eh {
namespace {

using Lines = std::vector<std::string>;

class SpdlogSinkTest : public ::testing::Test {
 protected:
  SpdlogSinkTest() {
    logger_.set_level(spdlog::level::trace);
    logger_.set_error_handler([](const std::string& error) { ADD_FAILURE() << error; });
  }

  void LogEachLevel(int n) {
    for (int level = spdlog::level::trace; level < spdlog::level::off; ++level, ++n) {
      logger_.log({"a.cc", 100 + n, "Run"}, static_cast<spdlog::level::level_enum>(level),
                  "line {}", n);
    }
  }
  // Returns the event of line `n` of LogEachLevel.
  static std::string Line(int level, int n) {
    const std::string number = std::to_string(n);
    return "Test_Spdlog_L" + std::to_string(level) + R"(K1 {"name":"app","level":)" +
           std::to_string(level) + R"(,"fields":{"message":"line )" + number +
           R"(","logger":"app","file":"a.cc","line":)" + std::to_string(100 + n) +
           R"(,"function":"Run"}})";
  }

  std::shared_ptr<SpdlogSink> sink_ = std::make_shared<SpdlogSink>("Test_Spdlog");
  testing::WrittenLines written_{sink_->sets()};
  spdlog::logger logger_{"app", sink_};
};

TEST_F(SpdlogSinkTest, WritesTheFieldsOfEachLevel) {
  LogEachLevel(0);
  EXPECT_EQ(written_.Take(),
            (Lines{Line(5, 0), Line(5, 1), Line(4, 2), Line(3, 3), Line(2, 4), Line(1, 5)}));
}

TEST_F(SpdlogSinkTest, WritesOnlyEnabledLevels) {
  written_.transport().SetEnabled(false, "Test_Spdlog_L3K1");
  written_.transport().SetEnabled(false, "Test_Spdlog_L5K1");
  LogEachLevel(10);
  EXPECT_EQ(written_.Take(), (Lines{Line(4, 12), Line(2, 14), Line(1, 15)}));
}

TEST_F(SpdlogSinkTest, LeavesOutAnUnknownPlace) {
  logger_.info("größer");
  EXPECT_EQ(written_.Take(), (Lines{R"(Test_Spdlog_L4K1 {"name":"app","level":4,)"
                                    R"("fields":{"message":"größer","logger":"app"}})"}));
}

TEST_F(SpdlogSinkTest, NamesTheThreadThatLogged) {
  spdlog::details::log_msg line("app", spdlog::level::info, "m");
  ++line.thread_id;
  sink_->log(line);
  EXPECT_EQ(written_.Take(), (Lines{R"(Test_Spdlog_L4K1 {"name":"app","level":4,"fields":)"
                                    R"({"message":"m","logger":"app","thread_id":)" +
                                    std::to_string(line.thread_id) + "}}"}));
}

TEST_F(SpdlogSinkTest, UpdatesTheLevelOfALogger) {
  EXPECT_EQ(sink_->WantedLevel(), spdlog::level::trace);
  written_.transport().SetEnabled(false);
  sink_->UpdateLevel(logger_);
  EXPECT_EQ(logger_.level(), spdlog::level::off);
  sink_->UpdateLevel(logger_, spdlog::level::warn);
  EXPECT_EQ(logger_.level(), spdlog::level::warn);
  written_.transport().SetEnabled(true, "Test_Spdlog_L2K1");
  EXPECT_EQ(sink_->WantedLevel(), spdlog::level::err);
  sink_->UpdateLevel(logger_, spdlog::level::warn);
  EXPECT_EQ(logger_.level(), spdlog::level::warn);
  written_.transport().SetEnabled(true, "Test_Spdlog_L4K1");
  sink_->UpdateLevel(logger_, spdlog::level::warn);
  EXPECT_EQ(logger_.level(), spdlog::level::info);
}

TEST_F(SpdlogSinkTest, IgnoresPatterns) {
  logger_.set_pattern("[%l] %v");
  logger_.info("m");
  logger_.flush();
  EXPECT_EQ(written_.Take(), (Lines{R"(Test_Spdlog_L4K1 {"name":"app","level":4,)"
                                    R"("fields":{"message":"m","logger":"app"}})"}));
}

}  // namespace
}  // namespace eh
