// A service that logs by spdlog, and whose lines are also events.
//   nettrace record -o log.nettrace -e ExampleSpdlog_L2K1 -- example-spdlog-service --lines 12
//   nettrace dump log.nettrace
#include <eventheader/bridges/spdlog.h>
#include <eventheader/eh.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace {

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-spdlog-service [--lines N]\n\n"
      "Logs N lines (6) of the six levels of spdlog, and writes each as an event of provider\n"
      "ExampleSpdlog. Prints those of level info and above.\n\n"
      "example:\n  example-spdlog-service --lines 20\n\n"
      "exit status: 0 done, 2 wrong usage\n",
      to);
  return exit_code;
}

}  // namespace

// The formats of the lines are correct, so spdlog does not throw.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  int lines = 6;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Usage(stdout, 0);
    if (i + 1 == argc || std::strcmp(argv[i], "--lines") != 0) return Usage(stderr, 2);
    lines = std::atoi(argv[++i]);
  }
  auto console = std::make_shared<spdlog::sinks::stdout_sink_mt>();
  console->set_pattern("%l %v");
  console->set_level(spdlog::level::info);
  auto events = std::make_shared<eh::SpdlogSink>("ExampleSpdlog");
  spdlog::logger logger("shop", {console, events});

  // The lines belong to this activity. A service would use an ActivityScope for each request.
  eh::SetCurrentActivity(eh::NewActivityId());
  for (int i = 0; i < lines; ++i) {
    // Makes the logger skip lines that neither the console nor a collector needs. A service would
    // call this once a second.
    events->UpdateLevel(logger, spdlog::level::info);
    const auto level = static_cast<spdlog::level::level_enum>(i % spdlog::level::off);
    SPDLOG_LOGGER_CALL(&logger, level, "line {} of {}", i, lines);
  }
  logger.flush();
  const eh::ProviderBase& provider = events->sets().provider();
  const eh::ProviderBase::Counters counters = provider.counters();
  std::printf("%" PRIu64 " events written, %" PRIu64 " refused, %" PRIu64 " failed; %s\n",
              counters.written, counters.too_big + counters.invalid, counters.failed,
              eh::RegistrationErrorText(provider.status()));
  return 0;
}
