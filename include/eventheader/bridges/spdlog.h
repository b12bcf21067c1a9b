// A sink of spdlog that writes each line as an event:
//
//     auto events = std::make_shared<eh::SpdlogSink>("MyCompany_MyService");
//     spdlog::default_logger()->sinks().push_back(events);
//
// nettrace record -e MyCompany_MyService_L2K1 then records the errors. Trace and debug become
// verbose events, info becomes information, err becomes error, and critical becomes critical error.
// log_sets.h describes the events. SPDLOG_INFO and the other macros pass file, line and function;
// functions such as spdlog::info do not.
//
// Needs spdlog 1.x; tested with 1.10. The library itself does not depend on spdlog.
#ifndef EVENTHEADER_BRIDGES_SPDLOG_H_
#define EVENTHEADER_BRIDGES_SPDLOG_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#if __has_include(<spdlog/sinks/sink.h>)

#include <spdlog/details/os.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/sink.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "eventheader/bridges/log_sets.h"

namespace eh {

// A sink that is thread-safe without a mutex. One object can be a sink of any number of loggers,
// and threads do not wait for each other. The functions of the sink do not throw.
//
// An asynchronous logger calls the sink in a thread of its pool. The events then have the time and
// the activity of that thread, and a field `thread_id` with the thread that logged the line.
class SpdlogSink final : public spdlog::sinks::sink {
 public:
  // Registers the event sets of provider `provider`, which is copied; see LogSets.
  explicit SpdlogSink(std::string_view provider, const LogBridgeOptions& options = {}) noexcept
      : sets_(provider, options) {}

  // Returns the event sets. Their provider() has the counts of events, the status and Retry().
  LogSets& sets() noexcept { return sets_; }

  // Returns the lowest level of spdlog that a collector records; `off` if there is none.
  spdlog::level::level_enum WantedLevel() const noexcept {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::off,  spdlog::level::critical,
                                                     spdlog::level::err,  spdlog::level::warn,
                                                     spdlog::level::info, spdlog::level::trace};
    return kLevels[sets_.WantedLevel()];
  }

  // Sets the level of `logger` to the lower of WantedLevel() and `others`, the lowest level that
  // the logger's other sinks need. The default of `others` means that no other sink needs a line. A
  // line below the level of its logger is not formatted. Set the level of each of the other sinks
  // too (spdlog::sinks::sink::set_level), because a sink receives all lines that the logger passes.
  // Call this once a second, for example from a timer. When a collector enables a lower level, it
  // receives lines of that level only after the next call. Thread-safe.
  void UpdateLevel(spdlog::logger& logger,
                   spdlog::level::level_enum others = spdlog::level::off) const noexcept {
    logger.set_level(std::min(others, WantedLevel()));
  }

  void log(const spdlog::details::log_msg& line) noexcept override {
    const Level level = ToLevel(line.level);
    if (!sets_.enabled(level)) return;
    LogLine event{.level = level,
                  .message = {line.payload.data(), line.payload.size()},
                  .logger = {line.logger_name.data(), line.logger_name.size()}};
    if (!line.source.empty()) {
      event.file = Text(line.source.filename);
      event.function = Text(line.source.funcname);
      event.line = static_cast<std::uint32_t>(line.source.line);
    }
    if (line.thread_id != spdlog::details::os::thread_id()) event.thread_id = line.thread_id;
    sets_.Write(event);
  }
  // Does nothing: log() has written the event when it returns.
  void flush() noexcept override {}
  // Do nothing: events have fields in place of a pattern.
  void set_pattern(const std::string& /*pattern*/) noexcept override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) noexcept override {}

 private:
  static std::string_view Text(const char* text) noexcept { return text != nullptr ? text : ""; }

  static Level ToLevel(spdlog::level::level_enum level) noexcept {
    switch (level) {
      case spdlog::level::critical:
        return Level::kCriticalError;
      case spdlog::level::err:
        return Level::kError;
      case spdlog::level::warn:
        return Level::kWarning;
      case spdlog::level::info:
        return Level::kInformation;
      default:
        return Level::kVerbose;
    }
  }

  LogSets sets_;
};

}  // namespace eh

#else
#error "eventheader/bridges/spdlog.h needs the headers of spdlog (Debian: libspdlog-dev)"
#endif

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_SPDLOG_H_
