#include "tools/nettrace/event_filter.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/common/account.h"
#include "tools/common/text.h"

namespace tools {
namespace {

template <typename T, typename Value>
bool IsOneOf(const std::vector<T>& values, const Value& value) {
  return values.empty() || std::find(values.begin(), values.end(), value) != values.end();
}

// Takes one value at a time: the next word is the file to read.
template <typename T>
CLI::Option* AddRepeated(CLI::App* command, const char* name, std::vector<T>* values,
                         const char* help) {
  return command->add_option(name, *values, help)->allow_extra_args(false);
}

// CLI11 wraps numbers beyond 64 bits, and below 0.
std::string IsId(const std::string& text) {
  std::uint64_t id = 0;
  return absl::SimpleAtoi(text, &id) ? "" : text + " is no id";
}

CLI::Option* AddTime(CLI::App* command, const char* name, std::optional<absl::Time>* to,
                     const char* help) {
  return command->add_option_function<std::string>(
      name,
      [to, name](const std::string& text) {
        absl::Time time;
        std::string error;
        if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
          throw CLI::ValidationError(name, text + " is no time like 2026-11-21T10:00:00.5Z");
        }
        *to = time;
      },
      help);
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

bool EventFilter::Passes(const nettrace::Reader& reader, const nettrace::Event& event) const {
  const bool is_account = account != Added::kFiltered && IsAccount(event);
  const bool is_process = processes != Added::kFiltered && DescribesProcess(event);
  if ((is_account || is_process) &&
      (providers.empty() || !IsOneOf(providers, event.metadata->provider))) {
    if ((is_account ? account : processes) == Added::kHidden) return false;
    return is_account ? KeepsAccount(reader, event) : KeepsProcess(reader, event);
  }
  if (!IsOneOf(providers, event.metadata->provider) || !IsOneOf(events, event.metadata->name)) {
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

void AddFilterOptions(CLI::App* command, EventFilter* filter, const char* to) {
  const std::string group = "Choosing events";
  AddRepeated(command, "--provider", &filter->providers, "Of this provider; may be repeated")
      ->group(group);
  AddRepeated(command, "--event", &filter->events, "Of this name; may be repeated")->group(group);
  AddRepeated(command, "--pid", &filter->pids, "Of this process; may be repeated")
      ->check(IsId)
      ->group(group);
  AddRepeated(command, "--tid", &filter->tids, "Of this thread; may be repeated")
      ->check(IsId)
      ->group(group);
  command->add_option("--level", filter->level, "Of this level and the more severe ones")
      ->check(CLI::Range(0, 255))
      ->group(group);
  command
      ->add_option_function<std::string>(
          "--keyword",
          [filter](const std::string& text) {
            const std::optional<std::uint64_t> mask = ParseUint64(text);
            if (!mask) throw CLI::ValidationError("--keyword", text + " is no number");
            filter->keywords = *mask;
          },
          "With a bit of this mask, such as 0x3, or with no keyword")
      ->group(group);
  AddTime(command, "--from", &filter->from, "At or after this time, 2026-11-21T10:00:00.5Z")
      ->group(group);
  AddTime(command, to, &filter->to, "Before this time")->group(group);
}

}  // namespace tools
