#include <absl/log/log.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "eventheader/bridges/absl_log.h"
#include "tests/unit/eventheader/bridges/written_lines.h"

namespace eh {
namespace {

using Lines = std::vector<std::string>;

class AbslLogSinkTest : public ::testing::Test {
 protected:
  AbslLogSinkTest() { absl::SetStderrThreshold(absl::LogSeverityAtLeast::kInfinity); }
  ~AbslLogSinkTest() override { absl::SetMinLogLevel(absl::LogSeverityAtLeast::kInfo); }

  static void LogEachSeverity(int n) {
    LOG(INFO).AtLocation("a.cc", 100 + n).WithVerbosity(1) << "line " << n;
    LOG(INFO).AtLocation("a.cc", 101 + n) << "line " << n + 1;
    LOG(WARNING).AtLocation("a.cc", 102 + n) << "line " << n + 2;
    LOG(ERROR).AtLocation("a.cc", 103 + n) << "line " << n + 3;
  }
  // Returns the event of line `n` of LogEachSeverity.
  static std::string Line(int level, int n) {
    return "Test_Absl_L" + std::to_string(level) + R"(K1 {"name":"Log","level":)" +
           std::to_string(level) + R"(,"fields":{"message":"line )" + std::to_string(n) +
           R"(","file":"a.cc","line":)" + std::to_string(100 + n) + "}}";
  }

  AbslLogSink sink_{"Test_Absl"};
  testing::WrittenLines written_{sink_.sets()};
};

TEST_F(AbslLogSinkTest, WritesTheFieldsOfEachSeverity) {
  LogEachSeverity(0);
  EXPECT_EQ(written_.Take(), (Lines{Line(5, 0), Line(4, 1), Line(3, 2), Line(2, 3)}));
}

TEST_F(AbslLogSinkTest, WritesOnlyEnabledLevels) {
  written_.transport().SetEnabled(false, "Test_Absl_L3K1");
  LogEachSeverity(10);
  EXPECT_EQ(written_.Take(), (Lines{Line(5, 10), Line(4, 11), Line(2, 13)}));
}

TEST_F(AbslLogSinkTest, UpdatesTheMinimumSeverity) {
  EXPECT_EQ(sink_.WantedSeverity(), absl::LogSeverityAtLeast::kInfo);
  written_.transport().SetEnabled(false);
  sink_.UpdateMinLogLevel(absl::LogSeverityAtLeast::kError);
  EXPECT_EQ(absl::MinLogLevel(), absl::LogSeverityAtLeast::kError);
  written_.transport().SetEnabled(true, "Test_Absl_L3K1");
  sink_.UpdateMinLogLevel(absl::LogSeverityAtLeast::kError);
  EXPECT_EQ(absl::MinLogLevel(), absl::LogSeverityAtLeast::kWarning);
}

}  // namespace
}  // namespace eh
