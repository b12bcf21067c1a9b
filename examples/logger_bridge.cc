// A logger whose lines become events with fields that are not known at compile time.
//   nettrace record -o log.nettrace -e ExampleLogger_L2K1 -e ExampleLogger_L4K1
//       -- example-logger-bridge --lines 10
//   nettrace dump log.nettrace
#include <eventheader/eh.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace {

// ---- The logger ----

enum class LogLevel { kFatal, kError, kWarning, kInfo, kDebug };

using Value = std::variant<std::int64_t, double, bool, std::string_view>;

struct LogLine {
  LogLevel level;
  std::string_view category;
  std::string_view message;
  std::vector<std::pair<std::string_view, Value>> values;
};

void Print(const LogLine& line) {
  constexpr const char* kNames[] = {"FATAL", "ERROR", "WARNING", "INFO", "DEBUG"};
  std::printf("%s %.*s: %.*s (%zu values)\n", kNames[static_cast<int>(line.level)],
              static_cast<int>(line.category.size()), line.category.data(),
              static_cast<int>(line.message.size()), line.message.data(), line.values.size());
}

// ---- The bridge ----

constexpr std::uint64_t kLog = 0x1;

class EventBridge {
 public:
  // `name` is known only at run time, e.g. from the program's configuration.
  explicit EventBridge(std::string name) : name_(std::move(name)) {}

  void Write(const LogLine& line) {
    const eh::EventSet& set = sets_[static_cast<int>(line.level)];
    // If no collector records lines of this level, this check is the whole cost of a line.
    if (!set.enabled()) return;
    // One event per thread, reused for every line: a DynamicEvent has 16 KiB, and never allocates.
    thread_local eh::DynamicEvent event;
    event.Reset("Log");
    event.AddField("category", line.category);
    event.AddField("message", line.message);
    for (const auto& [key, value] : line.values) {
      std::visit([&, name = key](const auto& known) { event.AddField(name, known); }, value);
    }
    // The line belongs to the activity that the thread works for, see http/http_service.cc.
    const auto& current = eh::CurrentActivity();
    const eh::Activity activity{current.value_or(eh::ActivityId{})};
    // Write refuses and counts a line that cannot be an event, e.g. with a ';' in a key.
    event.Write(set, current ? &activity : nullptr);
  }

  const eh::ProviderBase& provider() const { return provider_; }

 private:
  // The order matters: the provider refers to its name, and the sets refer to the provider.
  std::string name_;
  eh::DynamicProvider provider_{name_};
  // One tracepoint per level, ExampleLogger_L1K1 to _L5K1, so that recordings can select by level.
  eh::EventSet sets_[5] = {{provider_, eh::Level::kCriticalError, kLog},
                           {provider_, eh::Level::kError, kLog},
                           {provider_, eh::Level::kWarning, kLog},
                           {provider_, eh::Level::kInformation, kLog},
                           {provider_, eh::Level::kVerbose, kLog}};
};

// ---- A program that logs ----

LogLine Line(std::int64_t request) {
  switch (request % 5) {
    case 0:
      return {LogLevel::kInfo, "http", "done", {{"request", request}, {"path", "/index.html"}}};
    case 1:
      return {LogLevel::kDebug, "cache", "asked", {{"request", request}, {"hit", request > 5}}};
    case 2:
      return {LogLevel::kWarning, "disk", "nearly full", {{"percent", 97.5}, {"disk", "sda"}}};
    case 3:
      return {LogLevel::kError, "database", "größer als erlaubt", {{"error", -27}}};
    default:
      return {LogLevel::kFatal, "main", "giving up", {}};
  }
}

int Usage(std::FILE* to, int exit_code) {
  std::fputs(
      "usage: example-logger-bridge [--lines N] [--provider NAME]\n\n"
      "Logs N lines (5) of five levels, and writes each as an event of provider NAME\n"
      "(ExampleLogger).\n\n"
      "example:\n  example-logger-bridge --lines 20\n\n"
      "exit status: 0 done, 2 wrong usage\n",
      to);
  return exit_code;
}

}  // namespace

// std::visit throws only for a variant without a value, which does not occur here.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  int lines = 5;
  std::string name = "ExampleLogger";
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--help") == 0) return Usage(stdout, 0);
    if (i + 1 == argc) return Usage(stderr, 2);
    if (std::strcmp(argv[i], "--lines") == 0) {
      lines = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--provider") == 0) {
      name = argv[++i];
    } else {
      return Usage(stderr, 2);
    }
  }
  EventBridge events(name);
  // A service would use an ActivityScope instead.
  eh::SetCurrentActivity(eh::NewActivityId());
  for (int i = 0; i < lines; ++i) {
    const LogLine line = Line(i);
    Print(line);
    events.Write(line);
  }
  const eh::ProviderBase::Counters counters = events.provider().counters();
  std::printf("%" PRIu64 " events written, %" PRIu64 " refused, %" PRIu64 " failed; %s\n",
              counters.written, counters.too_big + counters.invalid, counters.failed,
              eh::RegistrationErrorText(events.provider().status()));
  return 0;
}
