// A sink of glog that writes each line as an event:
//
//     eh::GlogSink events("MyCompany_MyService");
//
// Severity INFO becomes level information, WARNING warning, ERROR error, and FATAL critical error.
// glog passes lines of VLOG as INFO. log_sets.h describes the events. glog has no names of loggers
// and no names of functions, so events are named Log, and have the fields message, file and line.
//
// Needs glog 0.6 or newer; tested with 0.6. The library itself does not depend on glog.
#ifndef EVENTHEADER_BRIDGES_GLOG_H_
#define EVENTHEADER_BRIDGES_GLOG_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#if __has_include(<glog/logging.h>)

#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eventheader/bridges/log_sets.h"

namespace eh {

// Receives the lines of glog from construction to destruction. glog calls one sink at a time. It
// calls the sink before it ends the process after a FATAL line, so the event of that line is
// written.
class GlogSink final : public google::LogSink {
 public:
  // Registers the event sets of provider `provider`, which is copied (see LogSets), and then the
  // sink. Must not be called by another sink of glog.
  explicit GlogSink(std::string_view provider, const LogBridgeOptions& options = {})
      : sets_(provider, options) {
    google::AddLogSink(this);
  }
  // Removes the sink from glog, and waits until glog does not use it any more.
  ~GlogSink() override { google::RemoveLogSink(this); }
  GlogSink(const GlogSink&) = delete;
  GlogSink& operator=(const GlogSink&) = delete;

  // Returns the event sets. Their provider() has the counts of events, the status and Retry().
  LogSets& sets() noexcept { return sets_; }

  // Returns the lowest severity, such as GLOG_WARNING, that a collector records; NUM_SEVERITIES if
  // there is none.
  int WantedSeverity() const noexcept {
    constexpr int kSeverities[] = {google::NUM_SEVERITIES, google::GLOG_FATAL, google::GLOG_ERROR,
                                   google::GLOG_WARNING,   google::GLOG_INFO,  google::GLOG_INFO};
    return kSeverities[sets_.WantedLevel()];
  }

  // Sets FLAGS_minloglevel to the lower of WantedSeverity() and `others`, the lowest severity that
  // log files and other sinks need. The default of `others` means that they need no line. Log files
  // and other sinks also receive the lines that only a collector needs. glog passes no line below
  // the flag to a file or sink, but still formats the line. Call this once a second, for example
  // from a timer. glog reads the flag without synchronization.
  void UpdateMinLogLevel(int others = google::NUM_SEVERITIES) const noexcept {
    FLAGS_minloglevel = std::min(others, WantedSeverity());
  }

  // Keeps the other overloads of `send` visible. They are deprecated, and glog 0.6 does not call
  // them.
  using google::LogSink::send;
  void send(google::LogSeverity severity, const char* full_filename, const char* /*base_filename*/,
            int line, const google::LogMessageTime& /*time*/, const char* message,
            std::size_t message_len) noexcept override {
    sets_.Write({.level = ToLevel(severity),
                 .message = {message, message_len},
                 .file = full_filename != nullptr ? full_filename : "",
                 .line = line > 0 ? static_cast<std::uint32_t>(line) : 0});
  }

 private:
  static Level ToLevel(google::LogSeverity severity) noexcept {
    if (severity >= google::GLOG_FATAL) return Level::kCriticalError;
    if (severity == google::GLOG_ERROR) return Level::kError;
    return severity == google::GLOG_WARNING ? Level::kWarning : Level::kInformation;
  }

  LogSets sets_;
};

}  // namespace eh

#else
#error "eventheader/bridges/glog.h needs the headers of glog (Debian: libgoogle-glog-dev)"
#endif

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_GLOG_H_
