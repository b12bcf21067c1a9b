// Selects events by their properties, for programs that show or copy a part of a file.
#ifndef TOOLS_TRACE_EVENT_FILTER_H_
#define TOOLS_TRACE_EVENT_FILTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nettrace/reader.h"

namespace trace {

// Holds criteria for events. An event passes if it has one of the values of each criterion that is
// set.
struct EventFilter {
  std::vector<std::string> providers;
  std::vector<std::string> events;  // names of events (EventName)
  std::vector<std::uint64_t> pids;
  std::vector<std::uint64_t> tids;
  std::optional<unsigned> level;  // passes this level, more severe levels, and level 0
  // Passes events with at least one of these bits, and events without keywords. 0: the criterion is
  // not set.
  std::uint64_t keywords = 0;
  std::optional<absl::Time> from;
  std::optional<absl::Time> to;  // exclusive
  // Treatment of events that the collector has added to the events that the user selected. Does not
  // apply to events whose provider is in `providers`.
  enum class Added {
    kFiltered,  // filtered like other events
    kHidden,    // these events do not pass
    kKept,      // an event passes if it describes the time between `from` and `to`
  };
  // Events that describe processes. With kKept, all of them before `to` pass, even before `from`,
  // because they may name processes that exist between `from` and `to`.
  Added processes = Added::kFiltered;
  // Events of the recording's account (tools/trace/account.h).
  Added account = Added::kFiltered;
  // If true, the events that give .NET code and processes their names pass regardless of the other
  // criteria. Exceptions are events of processes that `pids` excludes, and events that report
  // the load or compilation of code at `to` or later. The runtime reports a method when the method
  // is compiled, and all methods when the recording ends. Most of these events are therefore not
  // between `from` and `to`.
  bool keeps_code = false;

  bool Passes(const nettrace::Reader& reader, const nettrace::Event& event) const;
  // Returns whether the time is between `from` and `to`.
  bool PassesTime(absl::Time time) const { return (!from || time >= *from) && (!to || time < *to); }

 private:
  // Return whether the event describes the time between `from` and `to`. KeepsProcess is for events
  // that describe processes, and KeepsAccount for events of the account.
  bool KeepsProcess(const nettrace::Reader& reader, const nettrace::Event& event) const;
  bool KeepsAccount(const nettrace::Reader& reader, const nettrace::Event& event) const;
  // Returns whether the event passes because of keeps_code.
  bool KeepsCode(const nettrace::Reader& reader, const nettrace::Event& event) const;
};

// Returns whether the event describes a process (provider Universal.System). Readers take the names
// of processes from these events; users do not request them.
bool DescribesProcess(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_EVENT_FILTER_H_
