#include "tools/nettrace/event_filter.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/common/account.h"
#include "tools/common/event_name.h"
#include "tools/common/text.h"
#include "tools/common/value_options.h"

namespace tools {
namespace {

constexpr char kChoosingEvents[] = "Choosing events";  // the heading in --help

template <typename T, typename Value>
bool IsOneOf(const std::vector<T>& values, const Value& value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

// Adds an option that takes one value at a time, because the next word may be the file to read.
template <typename T>
CLI::Option* AddRepeated(CLI::App* command, const char* name, std::vector<T>* values,
                         const char* help) {
  return command->add_option(name, *values, help)->allow_extra_args(false);
}

// CLI11 wraps numbers of more than 64 bits and negative numbers around.
std::string IsId(const std::string& text) {
  std::uint64_t id = 0;
  return absl::SimpleAtoi(text, &id) ? "" : "invalid id \"" + text + "\"; use a number";
}

// Adds an option that sets a time, and its older name, which --help does not show.
void AddTime(CLI::App* command, const char* name, const char* older_name,
             std::optional<absl::Time>* to, const char* help) {
  const auto store = [to](absl::Time time) { *to = time; };
  AddParsedOption<absl::Time>(command, name, ParseTime, store, help)->group(kChoosingEvents);
  if (older_name == nullptr) return;
  AddParsedOption<absl::Time>(command, older_name, ParseTime, store, help)->group("");
}

// Providers of the .NET runtime. Readers identify their events by id.
constexpr std::string_view kRuntime = "Microsoft-Windows-DotNETRuntime";
constexpr std::string_view kRundown = "Microsoft-Windows-DotNETRuntimeRundown";
constexpr std::string_view kEventPipe = "Microsoft-DotNETCore-EventPipe";

// Returns whether the event names code of a .NET process from its time on.
bool NamesCodeFromNow(const nettrace::Event& event) {
  const std::uint32_t id = event.metadata->event_id;
  if (event.metadata->provider == kEventPipe) return id == 1;  // ProcessInfo
  if (event.metadata->provider != kRuntime) return false;
  // 135 to 144: methods, with older forms of rundown. 149 to 157: modules, assemblies and domains.
  // 187: the version of the runtime. 190: the lines of a method.
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
  const std::optional<AccountEvent> told = ParseAccount(event);
  const auto or_its_own = [time](std::uint64_t unix_time) {
    return unix_time == 0 ? time : absl::FromUnixNanos(static_cast<std::int64_t>(unix_time));
  };
  const absl::Time since = told ? or_its_own(told->since) : time;
  const absl::Time until = told ? or_its_own(told->until) : time;
  return (!from || until >= *from) && (!to || since < *to);
}

bool EventFilter::KeepsCode(const nettrace::Reader& reader, const nettrace::Event& event) const {
  // Rundown events describe everything that exists when they are written, often at the very end.
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
  // A thread without an id does not have any of the ids.
  if (!IsOneOf(pids, event.thread->process_id) || !IsOneOf(tids, event.thread->thread_id)) {
    return false;
  }
  if (level && event.level() > *level) return false;
  if (keywords != 0 && event.keywords() != 0 && (event.keywords() & keywords) == 0) return false;
  if (!from && !to) return true;
  const absl::Time time = reader.TimeOf(event.timestamp);
  return (!from || time >= *from) && (!to || time < *to);
}

void AddFilterOptions(CLI::App* command, EventFilter* filter, bool has_to) {
  AddRepeated(command, "--provider", &filter->providers,
              "Only events of this provider; may be repeated")
      ->group(kChoosingEvents);
  AddRepeated(command, "--event", &filter->events, "Only events with this name; may be repeated")
      ->group(kChoosingEvents);
  AddRepeated(command, "--pid", &filter->pids, "Only events of this process; may be repeated")
      ->check(IsId)
      ->group(kChoosingEvents);
  AddRepeated(command, "--tid", &filter->tids, "Only events of this thread; may be repeated")
      ->check(IsId)
      ->group(kChoosingEvents);
  AddParsedOption<std::uint8_t>(
      command, "--level",
      [](std::string_view text) -> absl::StatusOr<std::uint8_t> {
        // Events of other recorders may have level 0.
        if (text == "0") return 0;
        return ParseLevel(text);
      },
      [filter](std::uint8_t level) { filter->level = level; },
      "Only events of this level or a more severe one: 1 to 5, or e.g. warning")
      ->group(kChoosingEvents);
  command
      ->add_option_function<std::string>(
          "--keyword",
          [filter](const std::string& text) {
            const std::optional<std::uint64_t> mask = ParseUint64(text);
            if (!mask)
              throw CLI::ValidationError("--keyword",
                                         "invalid mask \"" + text + "\"; example: 0x3");
            filter->keywords = *mask;
          },
          "Only events with a keyword of this mask, e.g. 0x3, or with no keyword")
      ->group(kChoosingEvents);
  AddTime(command, "--since", "--from", &filter->from,
          "Only events at or after this time, e.g. 2026-11-21T10:00:00.5Z");
  AddTime(command, "--until", has_to ? "--to" : nullptr, &filter->to,
          "Only events before this time");
}

}  // namespace tools
