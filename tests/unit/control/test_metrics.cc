// Tests the text of the metrics. tests/programs/nettrace/ctl_metrics_test.py reads it with an
// independent parser.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/control/metrics.h"

namespace control {
namespace {

TEST(Metrics, AreFamiliesWithASampleForEachSession) {
  SessionStatus web;
  web.name = "web";
  web.state = SessionStatus::State::kFailed;
  web.started = absl::FromUnixMillis(1'500'000'000'250);
  web.events = 18'446'744'073'709'551'615U;
  SessionStatus box;
  box.name = "b\"\\\n\x1b\xff";
  box.bytes = 7;
  const std::vector sessions = {web, box};
  const std::string text = FormatMetrics(sessions, {});
  EXPECT_NE(text.find("# TYPE nettraced_session_written_bytes counter\n"
                      "# UNIT nettraced_session_written_bytes bytes\n"
                      "# HELP nettraced_session_written_bytes Bytes written, after compression.\n"
                      "nettraced_session_written_bytes_total{session=\"web\"} 0\n"
                      "nettraced_session_written_bytes_total{session=\"b\\\"\\\\\\\\u000a\\\\u001b"
                      "\xef\xbf\xbd\"} 7\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("nettraced_session_events_total{session=\"web\"} 18446744073709551615\n"),
            std::string::npos);
  EXPECT_NE(text.find("nettraced_session_start_time_seconds{session=\"web\"} 1500000000.250\n# "),
            std::string::npos);
  EXPECT_NE(text.find("{session=\"web\",state=\"failed\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("{session=\"web\",state=\"running\"} 0\n"), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 7), "\n# EOF\n");
}

TEST(Metrics, HaveTheLargestLossesAndTheSumOfTheOthers) {
  SessionStatus web;
  web.name = "web";
  for (std::uint32_t cpu = 0; cpu < 1000; ++cpu) {
    web.losses[{cpu, "sched:sched_switch"}] = cpu;
    web.lost += cpu;
  }
  const std::string text = FormatMetrics(std::vector{web}, {});
  std::size_t series = 0;
  std::uint64_t sum = 0;
  const std::string name = "\nnettraced_session_largest_losses{";
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    ++series;
    sum += std::stoull(text.substr(text.find("} ", at) + 2));
  }
  EXPECT_EQ(series, kMaxLossSeries + 1);
  EXPECT_EQ(sum, web.lost);
  EXPECT_NE(text.find("{session=\"web\",cpu=\"999\",tracepoint=\"sched:sched_switch\"} 999\n"),
            std::string::npos);
  EXPECT_NE(text.find("{session=\"web\",cpu=\"other\",tracepoint=\"other\"} 479710\n"),
            std::string::npos)
      << text;
}

TEST(Metrics, HaveTheCountsOfServices) {
  ServicesStatus services;
  services.socket = "/run/nettraced/events";
  services.services.resize(3);
  services.totals.ring_bytes = 3 << 20;
  services.totals.events = 1000;
  services.totals.lost = {{"ringFull", 7}, {"signalHandler", 0}};
  services.totals.refused = {{"badRegion", 2}};
  services.totals.corrupt = 4;
  const std::string text = FormatMetrics({}, services);
  for (const char* line :
       {"# UNIT nettraced_services_ring_bytes bytes\n", "\nnettraced_services_connected 3\n",
        "\nnettraced_services_ring_bytes 3145728\n", "\nnettraced_services_events_total 1000\n",
        "\nnettraced_services_lost_events_total{reason=\"ringFull\"} 7\n",
        "\nnettraced_services_lost_events_total{reason=\"signalHandler\"} 0\n",
        "\nnettraced_services_corrupt_records_total 4\n",
        "\nnettraced_services_refused_connections_total{reason=\"badRegion\"} 2\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Metrics, AreCompleteWithoutSessions) {
  const std::string text = FormatMetrics({}, {});
  EXPECT_NE(text.find("# TYPE nettraced_session_events counter\n"), std::string::npos);
  EXPECT_EQ(text.find('{'), std::string::npos);
}

}  // namespace

}  // namespace control
