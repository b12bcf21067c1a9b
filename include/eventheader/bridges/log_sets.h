// Writes the lines of a logger as events, for bridges from loggers. A bridge is a sink of a logger:
// spdlog.h, glog.h, absl_log.h and boost_log.h in this folder are bridges, and this header has what
// they share. A bridge for another logger makes a LogLine of each line and passes it to LogSets.
//
// Each level has an event set, so recordings select lines by level. Provider MyService with the
// default keyword 1 has the tracepoints MyService_L1K1 (critical errors) to MyService_L5K1
// (verbose). An event always has the field `message`. It has each of the other fields only if the
// line has a value for that field:
//
//   message        text, cut to kMaxMessage bytes
//   logger         name of the logger, cut to kMaxLogName bytes
//   file, line     place in the source, as the logger gives it
//   function       function in the source
//   thread_id      id of the thread that logged, if a different thread writes the event
//   message_bytes  size of the message in bytes, if it was cut
//
// A line belongs to the activity of the thread that writes the event (CurrentActivity). A bridge
// must not be used in a signal handler, and never logs anything itself.
#ifndef EVENTHEADER_BRIDGES_LOG_SETS_H_
#define EVENTHEADER_BRIDGES_LOG_SETS_H_

#include "eventheader/internal/need_cxx20.h"

#ifdef EVENTHEADER_INTERNAL_CXX20

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "eventheader/activity.h"
#include "eventheader/dynamic_event.h"
#include "eventheader/formatted.h"
#include "eventheader/provider.h"
#include "eventheader/tracepoint_name.h"
#include "eventheader/wire.h"

namespace eh {

struct LogBridgeOptions {
  // Keyword of the five event sets. Two bridges with the same provider name, in one process or in
  // several, may have different keywords, so that recordings can select one of them.
  std::uint64_t keyword = 1;
  // True: the name of an event is that of its logger, or "Log" if the logger has no name. False:
  // the name of each event is "Log".
  bool name_events_by_logger = true;
};

// A line of a logger. Only the level and the message are necessary. The texts need to be valid only
// during the call that they are passed to.
struct LogLine {
  Level level = Level::kInformation;
  std::string_view message = {};
  std::string_view logger = {};
  std::string_view file = {};
  std::string_view function = {};
  std::uint32_t line = 0;       // 0: unknown
  std::uint64_t thread_id = 0;  // 0: the thread that writes the event has logged the line
};

// Maximum bytes of texts in an event. Longer texts are cut after a complete UTF-8 character. An
// event has room for all texts of a LogLine, and for about 3,000 bytes of further fields.
inline constexpr std::size_t kMaxMessage = 4096;
inline constexpr std::size_t kMaxLogName = 128;
inline constexpr std::size_t kMaxLogPlace = 256;  // for `file`, and for `function`

// Holds a name of an event or field that is made from text of a logger. The text is cut to
// kMaxLogName bytes, and NUL and ';', which names must not contain, become '_'.
class LogName {
 public:
  explicit LogName(std::string_view text) noexcept {
    for (const char c : Truncate<kMaxLogName>(text).Limited()) {
      bytes_[size_++] = c == ';' || c == '\0' ? '_' : c;
    }
  }
  // The view is valid as long as this object.
  std::string_view view() const noexcept { return {bytes_, size_}; }

 private:
  char bytes_[kMaxLogName];
  std::size_t size_ = 0;
};

// A provider with an event set for each level. Write(), enabled() and WantedLevel() are
// thread-safe. No function throws or changes errno. The destructor must not run while a thread
// writes a line.
class LogSets {
 public:
  // Registers the five event sets. `provider` must match [A-Za-z_][A-Za-z0-9_]*, and is copied. If
  // it is invalid, or too long for the name of a tracepoint, status() of the provider is EINVAL,
  // and no line becomes an event.
  explicit LogSets(std::string_view provider, const LogBridgeOptions& options = {}) noexcept
      : provider_(Copy(provider, name_)),
        sets_{{provider_, Level::kCriticalError, options.keyword},
              {provider_, Level::kError, options.keyword},
              {provider_, Level::kWarning, options.keyword},
              {provider_, Level::kInformation, options.keyword},
              {provider_, Level::kVerbose, options.keyword}},
        name_events_by_logger_(options.name_events_by_logger) {}
  LogSets(const LogSets&) = delete;
  LogSets& operator=(const LogSets&) = delete;

  // Returns the provider, which has the counts of events, the status and Retry().
  ProviderBase& provider() noexcept { return provider_; }
  const ProviderBase& provider() const noexcept { return provider_; }

  // Returns whether a collector records lines of this level. While all levels are disabled, the
  // call is a load and a branch.
  bool enabled(Level level) const noexcept {
    return provider_.enabled() && IsLevel(level) && Set(level).EnabledIn(provider_);
  }

  // Returns the most verbose level, 1 to 5, that a collector records; 0 if there is none. Loggers
  // format a line before they call a sink. To avoid this cost for lines that no collector records,
  // a program can set the level of its logger to this level. The library does not notify the
  // program when the result changes: call this function, for example, once a second.
  int WantedLevel() const noexcept {
    for (int level = kLevels; provider_.enabled() && level > 0; --level) {
      if (sets_[level - 1].EnabledIn(provider_)) return level;
    }
    return 0;
  }

  // Writes the line if its level is enabled, else returns kDisabled.
  WriteResult Write(const LogLine& line) const noexcept {
    return Write(line, [](DynamicEvent&) { return true; });
  }
  // Writes the line with further fields. `add_fields` is called with the event if the level is
  // enabled, and adds the fields to it. If `add_fields` returns false, the event is refused and
  // counted as invalid. `add_fields` must not throw, and must not log by a logger that has a
  // bridge.
  template <typename AddFields>
  WriteResult Write(const LogLine& line, const AddFields& add_fields) const noexcept {
    if (!enabled(line.level)) return WriteResult::kDisabled;
    DynamicEvent& event = ThreadsEvent();
    Begin(line, event);
    const EventSet& set = Set(line.level);
    if (!add_fields(event)) return set.Refuse(WriteResult::kInvalid);
    const auto& current = CurrentActivity();
    if (!current.has_value()) return event.Write(set);
    const Activity activity{*current};
    return event.Write(set, &activity);
  }

 private:
  static constexpr int kLevels = 5;

  static std::string_view Copy(std::string_view from, char* to) noexcept {
    // Cuts a name that does not fit into `to`. The cut name of kMaxTracepointName bytes is still
    // refused as too long, because the name of its tracepoint also has a level.
    from = from.substr(0, kMaxTracepointName);
    std::copy(from.begin(), from.end(), to);
    return {to, from.size()};
  }
  static bool IsLevel(Level level) noexcept {
    return level >= Level::kCriticalError && level <= Level::kVerbose;
  }
  // Returns the thread's builder of events. It is thread-local, because it has 16 KiB, and the
  // stacks of some threads have less space left. The function is hidden, because its variable would
  // otherwise keep a shared object with a bridge loaded after dlclose().
  [[gnu::visibility("hidden")]] static DynamicEvent& ThreadsEvent() noexcept {
    thread_local DynamicEvent event;
    return event;
  }

  const EventSet& Set(Level level) const noexcept { return sets_[static_cast<int>(level) - 1]; }

  void Begin(const LogLine& line, DynamicEvent& event) const noexcept {
    const bool is_named = name_events_by_logger_ && !line.logger.empty();
    event.Reset(is_named ? LogName(line.logger).view() : std::string_view("Log"));
    event.AddField("message", Truncate<kMaxMessage>(line.message));
    if (!line.logger.empty()) event.AddField("logger", Truncate<kMaxLogName>(line.logger));
    if (!line.file.empty()) event.AddField("file", Truncate<kMaxLogPlace>(line.file));
    if (line.line != 0) event.AddField("line", line.line);
    if (!line.function.empty()) event.AddField("function", Truncate<kMaxLogPlace>(line.function));
    if (line.thread_id != 0) event.AddField("thread_id", line.thread_id);
    if (line.message.size() > kMaxMessage) {
      event.AddField("message_bytes", std::uint64_t{line.message.size()});
    }
  }

  // The order matters: the provider refers to its name, and the sets refer to the provider.
  char name_[kMaxTracepointName];
  DynamicProvider provider_;
  EventSet sets_[kLevels];
  bool name_events_by_logger_;
};

}  // namespace eh

#endif  // EVENTHEADER_INTERNAL_CXX20
#endif  // EVENTHEADER_BRIDGES_LOG_SETS_H_
