#include <gtest/gtest.h>

#include <boost/log/attributes/constant.hpp>
#include <boost/log/core/core.hpp>
#include <boost/log/sources/logger.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_channel_logger.hpp>
#include <boost/log/trivial.hpp>
#include <boost/log/utility/manipulators/add_value.hpp>
#include <complex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "eventheader/bridges/boost_log.h"
#include "tests/unit/eventheader/bridges/written_lines.h"

namespace eh {
namespace {

namespace logging = boost::log;
using Lines = std::vector<std::string>;
using Severity = logging::trivial::severity_level;
using Logger = logging::sources::severity_channel_logger<Severity, std::string>;

class BoostLogSinkTest : public ::testing::Test {
 protected:
  ~BoostLogSinkTest() override { logging::core::get()->remove_sink(sink_); }

  void LogEachSeverity(int n) {
    for (int severity = logging::trivial::trace; severity <= logging::trivial::fatal; ++severity) {
      BOOST_LOG_SEV(logger_, static_cast<Severity>(severity))
          << logging::add_value("File", std::string("a.cc")) << logging::add_value("Line", 100 + n)
          << logging::add_value("Function", "Run") << "line " << n;
      ++n;
    }
  }
  // Returns the event of line `n` of LogEachSeverity.
  static std::string Line(int level, int n) {
    return "Test_Boost_L" + std::to_string(level) + R"(K1 {"name":"app","level":)" +
           std::to_string(level) + R"(,"fields":{"message":"line )" + std::to_string(n) +
           R"(","logger":"app","file":"a.cc","line":)" + std::to_string(100 + n) +
           R"(,"function":"Run"}})";
  }
  // Writes a line with an attribute. Returns the fields after the message and the logger.
  template <typename T>
  std::string Attribute(const T& value) {
    BOOST_LOG_SEV(logger_, logging::trivial::info) << logging::add_value("a;b", value) << "m";
    const Lines lines = written_.Take();
    const std::string start =
        R"(Test_Boost_L4K1 {"name":"app","level":4,"fields":{"message":"m","logger":"app")";
    if (lines.size() != 1 || !lines[0].starts_with(start)) return "another event";
    return lines[0].substr(start.size());
  }

  static boost::shared_ptr<BoostLogSink> Added(const BoostLogOptions& options) {
    auto sink = MakeBoostLogSink("Test_Boost", options);
    logging::core::get()->add_sink(sink);
    return sink;
  }

  boost::shared_ptr<BoostLogSink> sink_ = Added({});
  testing::WrittenLines written_{sink_->locked_backend()->sets()};
  Logger logger_{logging::keywords::channel = "app"};
};

TEST_F(BoostLogSinkTest, WritesTheFieldsOfEachSeverity) {
  LogEachSeverity(0);
  EXPECT_EQ(written_.Take(),
            (Lines{Line(5, 0), Line(5, 1), Line(4, 2), Line(3, 3), Line(2, 4), Line(1, 5)}));
}

TEST_F(BoostLogSinkTest, FormatsAndWritesOnlyEnabledLevels) {
  written_.transport().SetEnabled(false, "Test_Boost_L3K1");
  LogEachSeverity(10);
  EXPECT_EQ(written_.Take(),
            (Lines{Line(5, 10), Line(5, 11), Line(4, 12), Line(2, 14), Line(1, 15)}));
  const auto format = [] {
    ADD_FAILURE() << "a line of a disabled level was formatted";
    return "";
  };
  BOOST_LOG_SEV(logger_, logging::trivial::warning) << format();
}

TEST_F(BoostLogSinkTest, AttributesHaveTheirTypes) {
  EXPECT_EQ(Attribute(true), R"(,"a_b":true}})");
  EXPECT_EQ(Attribute('x'), R"(,"a_b":"x"}})");
  EXPECT_EQ(Attribute(-7), R"(,"a_b":-7}})");
  EXPECT_EQ(Attribute(~0ULL), R"(,"a_b":18446744073709551615}})");
  EXPECT_EQ(Attribute(static_cast<short>(-3)), R"(,"a_b":-3}})");
  EXPECT_EQ(Attribute(0.5), R"(,"a_b":0.5}})");
  EXPECT_EQ(Attribute(0.25F), R"(,"a_b":0.25}})");
  EXPECT_EQ(Attribute(std::string("text")), R"(,"a_b":"text"}})");
  EXPECT_EQ(Attribute("literal"), R"(,"a_b":"literal"}})");
  EXPECT_EQ(Attribute(std::wstring(L"größer")), R"(,"a_b":"größer"}})");
  EXPECT_EQ(Attribute(std::string(2000, 'x')), R"(,"a_b":")" + std::string(1024, 'x') + R"("}})");
}

TEST_F(BoostLogSinkTest, LeavesOutAttributesOfUnknownTypes) {
  EXPECT_EQ(Attribute(std::complex<double>(1, 2)), "}}");
}

TEST_F(BoostLogSinkTest, AttributesOfASourceAreFields) {
  logger_.add_attribute("Line", logging::attributes::constant<std::string>("four"));
  logger_.add_attribute("Port", logging::attributes::constant<unsigned short>(80));
  BOOST_LOG_SEV(logger_, logging::trivial::info) << "m";
  const std::string line = written_.Take().at(0);
  EXPECT_NE(line.find(R"("Line":"four")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("Port":80)"), std::string::npos) << line;
}

TEST_F(BoostLogSinkTest, ALineBeyond32BitsIsAField) {
  BOOST_LOG_SEV(logger_, logging::trivial::info) << logging::add_value("Line", -1) << "m";
  BOOST_LOG_SEV(logger_, logging::trivial::info) << logging::add_value("Line", 1LL << 32) << "m";
  const Lines lines = written_.Take();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_NE(lines[0].find(R"("Line":-1)"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find(R"("Line":4294967296)"), std::string::npos) << lines[1];
}

TEST_F(BoostLogSinkTest, RefusesAnEventThatIsTooBig) {
  EXPECT_EQ(Attribute(std::wstring(5000, L'x')), "another event");
  EXPECT_EQ(sink_->locked_backend()->sets().provider().counters().too_big, 1u);
}

TEST(BoostLogBackend, UsesTheFunctionsOfItsOptions) {
  BoostLogOptions options;
  options.level = [](const logging::attribute_value_set& values) {
    return static_cast<Level>(logging::extract_or_throw<int>("Severity", values));
  };
  options.add_attribute = [](DynamicEvent& event, std::string_view name,
                             const logging::attribute_value& value) {
    const auto number = value.extract<std::complex<double>>();
    if (!number) throw std::invalid_argument("unknown type");
    event.AddField(name, number->real());
  };
  const auto sink = MakeBoostLogSink("Test_Boost", options);
  testing::WrittenLines written(sink->locked_backend()->sets());
  logging::core::get()->add_sink(sink);
  logging::sources::severity_logger<int> logger;
  BOOST_LOG_SEV(logger, 2) << logging::add_value("c", std::complex<double>(1.5, 0)) << "m";
  BOOST_LOG_SEV(logger, 0) << "no level";
  BOOST_LOG_SEV(logger, 2) << logging::add_value("v", std::vector<int>()) << "refused";
  // A record without a severity is not written.
  logging::sources::logger plain;
  BOOST_LOG(plain) << "m";
  logging::core::get()->remove_sink(sink);
  const Lines lines = written.Take();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with(R"(Test_Boost_L2K1 {"name":"Log","level":2,)")) << lines[0];
  EXPECT_NE(lines[0].find(R"("c":1.5)"), std::string::npos) << lines[0];
  EXPECT_EQ(sink->locked_backend()->sets().provider().counters().invalid, 1u);
}

}  // namespace
}  // namespace eh
