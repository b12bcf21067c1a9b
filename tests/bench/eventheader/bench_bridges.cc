// Counts the instructions of a line that a logger passes to a bridge. The floor is the same line
// with a sink that does nothing. For spdlog with UpdateLevel, and for Boost.Log while nothing is
// recorded, the floor is the same line with logging disabled. Events go to a transport that drops
// them, so the numbers do not contain the kernel or a collector.
//
// The SDK of OpenTelemetry is not in Debian. Its bridge is measured with stand-ins for the part of
// the SDK that the bridge uses, and its rows have no floor.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "eventheader/bridges/opentelemetry.h"
#include "eventheader/testing/transport.h"
#include "tests/bench/measure.h"
#include "tests/bench/step_counter.h"
#ifdef BENCH_SPDLOG
#include <spdlog/logger.h>
#include <spdlog/sinks/null_sink.h>

#include "eventheader/bridges/spdlog.h"
#endif
#ifdef BENCH_GLOG
#include "eventheader/bridges/glog.h"
#endif
#ifdef BENCH_BOOST
#include <boost/log/core/core.hpp>
#include <boost/log/sources/record_ostream.hpp>
#include <boost/log/sources/severity_logger.hpp>

#include "eventheader/bridges/boost_log.h"
#endif

namespace {

constexpr int kLines = 4;

// Drops events. Enables all tracepoints or none.
class DroppingTransport final : public eh::Transport {
 public:
  explicit DroppingTransport(bool is_enabled) : is_enabled_(is_enabled) {}
  ~DroppingTransport() { Detach(); }
  int Register(const char*, std::uint64_t* word, unsigned bit,
               std::uint64_t* handle) noexcept override {
    *handle = 0;
    if (is_enabled_) __atomic_fetch_or(word, std::uint64_t{1} << bit, __ATOMIC_RELAXED);
    return 0;
  }
  void Unregister(std::uint64_t* word, unsigned bit) noexcept override {
    __atomic_fetch_and(word, ~(std::uint64_t{1} << bit), __ATOMIC_RELAXED);
  }
  bool IsCurrent(std::uint64_t) noexcept override { return true; }
  int Write(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }

 private:
  const bool is_enabled_;
};

// Returns the instructions of one call of `line`.
double Count(const std::function<void(int)>& line) {
  // The first call also fills caches and allocates memory, so it is not counted.
  line(0);
  const double count = bench::CountInstructions([&line] {
    for (int i = 1; i <= kLines; ++i) line(i);
  });
  if (count < 0)
    bench::Fail("cannot count instructions: no permission to trace this process (ptrace)");
  return count / kLines;
}

#ifdef BENCH_SPDLOG
void MeasureSpdlog(const bench::Reporter& reporter) {
  const auto log = [](spdlog::logger& logger) {
    return [&logger](int i) { logger.info("request {} took {} ms", i, 3); };
  };
  spdlog::logger none("app", std::make_shared<spdlog::sinks::null_sink_st>());
  const double floor = Count(log(none));
  none.set_level(spdlog::level::off);
  const double off = Count(log(none));
  for (const bool is_enabled : {false, true}) {
    const auto sink = std::make_shared<eh::SpdlogSink>("Bench_Spdlog");
    DroppingTransport transport(is_enabled);
    sink->sets().provider().SetTransport(&transport);
    spdlog::logger logger("app", sink);
    reporter.Report(is_enabled ? "spdlog, recorded" : "spdlog, not recorded", "instructions",
                    Count(log(logger)), floor);
    if (is_enabled) continue;
    sink->UpdateLevel(logger, spdlog::level::off);
    reporter.Report("spdlog, not recorded, with UpdateLevel", "instructions", Count(log(logger)),
                    off);
  }
}
#endif

#ifdef BENCH_GLOG
struct NoSink : google::LogSink {
  void send(google::LogSeverity, const char*, const char*, int, const google::LogMessageTime&,
            const char*, std::size_t) override {}
};

void MeasureGlog(const bench::Reporter& reporter) {
  const auto log = [](google::LogSink& sink) {
    return [&sink](int i) {
      LOG_TO_SINK_BUT_NOT_TO_LOGFILE(&sink, INFO) << "request " << i << " took " << 3 << " ms";
    };
  };
  NoSink none;
  const double floor = Count(log(none));
  for (const bool is_enabled : {false, true}) {
    eh::GlogSink sink("Bench_Glog");
    DroppingTransport transport(is_enabled);
    sink.sets().provider().SetTransport(&transport);
    reporter.Report(is_enabled ? "glog, recorded" : "glog, not recorded", "instructions",
                    Count(log(sink)), floor);
  }
}
#endif

#ifdef BENCH_BOOST
void MeasureBoost(const bench::Reporter& reporter) {
  namespace logging = boost::log;
  logging::sources::severity_logger<logging::trivial::severity_level> logger;
  const auto line = [&logger](int i) {
    BOOST_LOG_SEV(logger, logging::trivial::info) << "request " << i << " took " << 3 << " ms";
  };
  const auto core = logging::core::get();
  core->set_logging_enabled(false);
  const double off = Count(line);
  core->set_logging_enabled(true);
  for (const bool is_enabled : {false, true}) {
    const auto sink = eh::MakeBoostLogSink("Bench_Boost");
    DroppingTransport transport(is_enabled);
    sink->locked_backend()->sets().provider().SetTransport(&transport);
    core->add_sink(sink);
    reporter.Report(is_enabled ? "Boost.Log, recorded" : "Boost.Log, not recorded", "instructions",
                    Count(line), is_enabled ? 0 : off);
    core->remove_sink(sink);
  }
}
#endif

void MeasureOpenTelemetry(const bench::Reporter& reporter) {
  namespace otel = opentelemetry;
  const auto scope = otel::sdk::instrumentationscope::InstrumentationScope::Create("Bench_Otel");
  const auto resource = otel::sdk::resource::Resource::Create({});
  const otel::context::Context context;
  constexpr auto kInfo = static_cast<otel::logs::Severity>(9);
  const auto record_of = [&](int i) {
    auto record = std::make_unique<otel::sdk::logs::ReadWriteLogRecord>();
    record->SetSeverity(kInfo);
    record->SetBody("request done");
    record->SetAttribute("number", i);
    record->SetAttribute("milliseconds", 3);
    record->SetResource(resource);
    record->SetInstrumentationScope(*scope);
    return record;
  };
  for (const bool is_enabled : {false, true}) {
    eh::OpenTelemetryLogs logs;
    DroppingTransport transport(is_enabled);
    logs.FindProvider("Bench_Otel").SetTransport(&transport);
    if (!is_enabled) {
      reporter.Report("OpenTelemetry, Enabled, not recorded", "instructions",
                      Count([&](int) { static_cast<void>(logs.Enabled(context, *scope, kInfo)); }),
                      0);
    }
    std::vector<std::unique_ptr<otel::sdk::logs::Recordable>> records;
    for (int i = 0; i <= kLines; ++i) records.push_back(record_of(i));
    reporter.Report(
        is_enabled ? "OpenTelemetry, OnEmit, recorded" : "OpenTelemetry, OnEmit, not recorded",
        "instructions",
        Count([&](int i) { logs.OnEmit(std::move(records[static_cast<std::size_t>(i)])); }), 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Options options = bench::ParseOptions(argc, argv);
  const bench::Reporter reporter("bridges", options.json);
#ifdef BENCH_SPDLOG
  MeasureSpdlog(reporter);
#endif
#ifdef BENCH_GLOG
  FLAGS_stderrthreshold = google::FATAL;
  MeasureGlog(reporter);
#endif
#ifdef BENCH_BOOST
  MeasureBoost(reporter);
#endif
  MeasureOpenTelemetry(reporter);
}
