#include "tools/trace/event_filter.h"

#include <algorithm>

#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/trace/account.h"
#include "tools/trace/event_name.h"

namespace trace {
namespace {

template <typename T, typename Value>
bool IsOneOf(const std::vector<T>& values, const Value& value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

// Providers of the .NET runtime. Readers identify their events by id.
constexpr std::string_view kRuntime = "Microsoft-Windows-DotNETRuntime";
constexpr std::string_view kRundown = "Microsoft-Windows-DotNETRuntimeRundown";
constexpr std::string_view kEventPipe = "Microsoft-DotNETCore-EventPipe";

// Returns whether the event names a .NET process, or code that the process loads or compiles at the
// time of the event. Such a name is valid from that time on.
bool NamesCodeFromNow(const nettrace::Event& event) {
  const std::uint32_t id = event.metadata->event_id;
  if (event.metadata->provider == kEventPipe) return id == 1;  // ProcessInfo
  if (event.metadata->provider != kRuntime) return false;
  // Ids 135 to 144: methods, including older forms of rundown events. Ids 149 to 157: modules,
  // assemblies and domains. Id 187: the version of the runtime. Id 190: the lines of a method.
  return (id >= 135 && id <= 144) || (id >= 149 && id <= 157) || id == 187 || id == 190;
}

}  // namespace

bool DescribesProcess(const nettrace::Event& event) {
  return event.metadata->provider == nettrace::internal::traceevent::kUniversalSystem;
}

bool EventFilter::KeepsProcess(const nettrace::Reader& reader, const nettrace::Event& event) const {
  return !to || (reader.TimeOf(event.timestamp) < *to && (!from || *from < *to));
}

bool EventFilter::KeepsAccount(const nettrace::Reader& reader, const nettrace::Event& event) const {
  const absl::Time time = reader.TimeOf(event.timestamp);
  const std::optional<AccountEvent> account_event = ParseAccount(event);
  const auto or_its_own = [time](std::uint64_t unix_time) {
    return unix_time == 0 ? time : absl::FromUnixNanos(static_cast<std::int64_t>(unix_time));
  };
  const absl::Time since = account_event ? or_its_own(account_event->since) : time;
  const absl::Time until = account_event ? or_its_own(account_event->until) : time;
  return (!from || until >= *from) && (!to || since < *to);
}

bool EventFilter::KeepsCode(const nettrace::Reader& reader, const nettrace::Event& event) const {
  // Rundown events describe all code that exists when they are written, often at the end of the
  // recording. They therefore pass even if they are later than `to`.
  const bool is_rundown = event.metadata->provider == kRundown;
  if (!is_rundown && !NamesCodeFromNow(event)) return false;
  if (event.thread->process_id && !IsOneOf(pids, event.thread->process_id)) return false;
  if (is_rundown) return !from || !to || *from < *to;
  return KeepsProcess(reader, event);
}

bool EventFilter::Passes(const nettrace::Reader& reader, const nettrace::Event& event) const {
  if (keeps_code && KeepsCode(reader, event)) return true;
  const bool is_account = account != Added::kFiltered && IsAccount(event);
  const bool is_process = processes != Added::kFiltered && DescribesProcess(event);
  if ((is_account || is_process) &&
      (providers.empty() || !IsOneOf(providers, event.metadata->provider))) {
    if ((is_account ? account : processes) == Added::kHidden) return false;
    return is_account ? KeepsAccount(reader, event) : KeepsProcess(reader, event);
  }
  if (!IsOneOf(providers, event.metadata->provider) ||
      !IsOneOf(events, EventName(*event.metadata))) {
    return false;
  }
  // Events of a thread without a process id or thread id do not pass `pids` or `tids`.
  if (!IsOneOf(pids, event.thread->process_id) || !IsOneOf(tids, event.thread->thread_id)) {
    return false;
  }
  if (level && event.level() > *level) return false;
  if (keywords != 0 && event.keywords() != 0 && (event.keywords() & keywords) == 0) return false;
  return (!from && !to) || PassesTime(reader.TimeOf(event.timestamp));
}

}  // namespace trace
