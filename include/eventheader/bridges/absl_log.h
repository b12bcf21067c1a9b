// A sink of abseil's logging that writes each line as an event:
//
//     eh::AbslLogSink events("MyCompany_MyService");
//
// Severity INFO becomes level information, WARNING warning, ERROR error, and FATAL critical error.
// Lines of VLOG become verbose events. log_sets.h describes the events. abseil has no names of
// loggers, so events are named Log, and have the fields message, file and line.
//
// Needs abseil 20230125 or newer: the abseil of Debian 12 has no logging. The library itself does
// not depend on abseil.
#ifndef EVENTHEADER_BRIDGES_ABSL_LOG_H_
#define EVENTHEADER_BRIDGES_ABSL_LOG_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#if __has_include(<absl/log/log_sink_registry.h>)

#include <absl/base/log_severity.h>
#include <absl/log/globals.h>
#include <absl/log/log_entry.h>
#include <absl/log/log_sink.h>
#include <absl/log/log_sink_registry.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "eventheader/bridges/log_sets.h"

namespace eh {

// Receives the lines of abseil from construction to destruction. Thread-safe. abseil calls the sink
// before it ends the process after a FATAL line, so the event of that line is written.
class AbslLogSink final : public absl::LogSink {
 public:
  // Registers the event sets of provider `provider`, which is copied (see LogSets), and then the
  // sink. Must not be called by another sink of abseil.
  explicit AbslLogSink(std::string_view provider, const LogBridgeOptions& options = {})
      : sets_(provider, options) {
    absl::AddLogSink(this);
  }
  // Removes the sink from abseil, and waits until abseil does not use it any more.
  ~AbslLogSink() override { absl::RemoveLogSink(this); }
  AbslLogSink(const AbslLogSink&) = delete;
  AbslLogSink& operator=(const AbslLogSink&) = delete;

  // Returns the event sets. Their provider() has the counts of events, the status and Retry().
  LogSets& sets() noexcept { return sets_; }

  // Returns the lowest severity that a collector records; kInfinity if there is none. Whether VLOG
  // logs a line also depends on abseil's own settings of verbosity.
  absl::LogSeverityAtLeast WantedSeverity() const noexcept {
    using AtLeast = absl::LogSeverityAtLeast;
    constexpr AtLeast kSeverities[] = {AtLeast::kInfinity, AtLeast::kFatal, AtLeast::kError,
                                       AtLeast::kWarning,  AtLeast::kInfo,  AtLeast::kInfo};
    return kSeverities[sets_.WantedLevel()];
  }

  // Sets abseil's minimum severity to the lower of WantedSeverity() and `others`, the lowest
  // severity that other sinks need. The default of `others` means that no other sink needs a line.
  // The other sinks also receive the lines that only a collector needs. Call this once a second,
  // for example from a timer. Thread-safe.
  void UpdateMinLogLevel(
      absl::LogSeverityAtLeast others = absl::LogSeverityAtLeast::kInfinity) const noexcept {
    absl::SetMinLogLevel(std::min(others, WantedSeverity()));
  }

  void Send(const absl::LogEntry& entry) noexcept override {
    // abseil sends a FATAL line twice, the second time with its stack. Only the first becomes an
    // event.
    if (!entry.stacktrace().empty()) return;
    const auto message = entry.text_message();
    const auto file = entry.source_filename();
    const int line = entry.source_line();
    sets_.Write({.level = ToLevel(entry),
                 .message = {message.data(), message.size()},
                 .file = {file.data(), file.size()},
                 .line = line > 0 ? static_cast<std::uint32_t>(line) : 0});
  }

 private:
  static Level ToLevel(const absl::LogEntry& entry) noexcept {
    switch (entry.log_severity()) {
      case absl::LogSeverity::kFatal:
        return Level::kCriticalError;
      case absl::LogSeverity::kError:
        return Level::kError;
      case absl::LogSeverity::kWarning:
        return Level::kWarning;
      default:
        // The verbosity is negative for a line of LOG, and 0 or more for a line of VLOG.
        return entry.verbosity() >= 0 ? Level::kVerbose : Level::kInformation;
    }
  }

  LogSets sets_;
};

}  // namespace eh

#else
#error "eventheader/bridges/absl_log.h needs abseil 20230125 or newer, with absl/log"
#endif

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_ABSL_LOG_H_
