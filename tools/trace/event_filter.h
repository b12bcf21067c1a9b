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
  std::vector<std::string> events;  // names
  std::vector<std::uint64_t> pids;
  std::vector<std::uint64_t> tids;
  std::optional<unsigned> level;  // this level and more severe ones, including 0
  std::uint64_t keywords = 0;  // passes events with one of these bits, and events without keywords
  std::optional<absl::Time> from;
  std::optional<absl::Time> to;  // exclusive
  // Treatment of events that the recorder added to the requested ones, unless `providers` contains
  // their provider.
  enum class Added {
    kFiltered,  // filtered like other events
    kHidden,    // none passes
    kKept,      // kept if they describe the time between `from` and `to`
  };
  // Events that describe processes. With kKept, all events before `to` pass, also those before
  // `from`, because they may name processes that exist between `from` and `to`.
  Added processes = Added::kFiltered;
  // Events of the recording's account (tools/trace/account.h).
  Added account = Added::kFiltered;
  // Whether events pass regardless of the other criteria if readers need them to name .NET code or
  // its process. Exceptions: processes that `pids` excludes, and code that is first reported at
  // `to` or later. The runtime reports a method when it compiles it, and all methods when the
  // recording ends, so these events are mostly outside of `from` and `to`.
  bool keeps_code = false;

  bool Passes(const nettrace::Reader& reader, const nettrace::Event& event) const;
  // Returns whether the time is between `from` and `to`.
  bool PassesTime(absl::Time time) const { return (!from || time >= *from) && (!to || time < *to); }

 private:
  // Returns whether the event describes the time between `from` and `to`.
  bool KeepsProcess(const nettrace::Reader& reader, const nettrace::Event& event) const;
  bool KeepsAccount(const nettrace::Reader& reader, const nettrace::Event& event) const;
  bool KeepsCode(const nettrace::Reader& reader, const nettrace::Event& event) const;
};

// Returns whether the event describes a process (provider Universal.System). Readers take the names
// of processes from these events; users do not request them.
bool DescribesProcess(const nettrace::Event& event);

}  // namespace trace

#endif  // TOOLS_TRACE_EVENT_FILTER_H_
