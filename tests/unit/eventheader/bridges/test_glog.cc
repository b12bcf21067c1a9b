#include <glog/logging.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <vector>

#include "eventheader/bridges/glog.h"
#include "tests/unit/eventheader/bridges/written_lines.h"

namespace eh {
namespace {

using Lines = std::vector<std::string>;

// The lines that PrintLinesAndExit prints. glog calls that function without arguments, so this
// variable is global.
testing::WrittenLines* written_in_child = nullptr;

// glog declares the type of the function by this attribute.
__attribute__((noreturn)) void PrintLinesAndExit() {
  for (const std::string& line : written_in_child->Take()) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  _exit(3);
}

class GlogSinkTest : public ::testing::Test {
 protected:
  GlogSinkTest() {
    if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("test_glog");
    // Keeps glog from writing files, and to standard error.
    for (int severity = 0; severity < google::NUM_SEVERITIES; ++severity) {
      google::SetLogDestination(severity, "");
    }
    FLAGS_stderrthreshold = google::NUM_SEVERITIES;
  }
  ~GlogSinkTest() override { FLAGS_minloglevel = google::GLOG_INFO; }

  static void LogEachSeverity(int n) {
    google::LogMessage("a.cc", 100 + n, google::GLOG_INFO).stream() << "line " << n;
    google::LogMessage("a.cc", 101 + n, google::GLOG_WARNING).stream() << "line " << n + 1;
    google::LogMessage("a.cc", 102 + n, google::GLOG_ERROR).stream() << "line " << n + 2;
  }
  // Returns the event of line `n` of LogEachSeverity.
  static std::string Line(int level, int n) {
    return "Test_Glog_L" + std::to_string(level) + R"(K1 {"name":"Log","level":)" +
           std::to_string(level) + R"(,"fields":{"message":"line )" + std::to_string(n) +
           R"(","file":"a.cc","line":)" + std::to_string(100 + n) + "}}";
  }

  GlogSink sink_{"Test_Glog"};
  testing::WrittenLines written_{sink_.sets()};
};

TEST_F(GlogSinkTest, WritesTheFieldsOfEachSeverity) {
  LogEachSeverity(0);
  EXPECT_EQ(written_.Take(), (Lines{Line(4, 0), Line(3, 1), Line(2, 2)}));
}

TEST_F(GlogSinkTest, WritesOnlyEnabledLevels) {
  written_.transport().SetEnabled(false, "Test_Glog_L3K1");
  LogEachSeverity(10);
  EXPECT_EQ(written_.Take(), (Lines{Line(4, 10), Line(2, 12)}));
}

TEST_F(GlogSinkTest, WritesAFatalLineBeforeTheProcessEnds) {
  const auto log_fatal = [this] {
    written_in_child = &written_;
    google::InstallFailureFunction(&PrintLinesAndExit);
    google::LogMessage("a.cc", 100, google::GLOG_FATAL).stream() << "line " << 0;
  };
  EXPECT_EXIT(log_fatal(), ::testing::ExitedWithCode(3),
              "Test_Glog_L1K1 .\"name\":\"Log\",\"level\":1,\"fields\":."
              "\"message\":\"line 0\",\"file\":\"a.cc\",\"line\":100");
}

TEST_F(GlogSinkTest, KeepsErrno) {
  errno = ENOSPC;
  PLOG(ERROR) << "a";
  EXPECT_EQ(errno, ENOSPC);
  ASSERT_EQ(written_.Take().size(), 1u);
}

TEST_F(GlogSinkTest, UpdatesTheMinimumSeverity) {
  EXPECT_EQ(sink_.WantedSeverity(), google::GLOG_INFO);
  written_.transport().SetEnabled(false);
  sink_.UpdateMinLogLevel();
  EXPECT_EQ(FLAGS_minloglevel, google::NUM_SEVERITIES);
  sink_.UpdateMinLogLevel(google::GLOG_ERROR);
  EXPECT_EQ(FLAGS_minloglevel, google::GLOG_ERROR);
  written_.transport().SetEnabled(true, "Test_Glog_L3K1");
  sink_.UpdateMinLogLevel(google::GLOG_ERROR);
  EXPECT_EQ(FLAGS_minloglevel, google::GLOG_WARNING);
  LogEachSeverity(20);
  EXPECT_EQ(written_.Take(), (Lines{Line(3, 21)}));
}

TEST(GlogSink, ReceivesNothingAfterItsEnd) {
  { const GlogSink sink("Test_GlogShort"); }
  google::LogMessage("a.cc", 1, google::GLOG_INFO).stream() << "line";
}

}  // namespace
}  // namespace eh
