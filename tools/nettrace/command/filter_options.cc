#include "tools/nettrace/command/filter_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "tools/base/text.h"
#include "tools/cli/value_options.h"

namespace tools {
namespace {

constexpr char kChoosingEvents[] = "Choosing events";  // the heading in --help

// Adds an option that may be given several times, with one value each. By default, CLI11 would also
// take the words after the value, such as the file to read.
template <typename T>
CLI::Option* AddRepeated(CLI::App* command, const char* name, std::vector<T>* values,
                         const char* help) {
  return command->add_option(name, *values, help)->allow_extra_args(false);
}

// Returns an error message if `text` is not a valid id, and "" otherwise. CLI11 does not reject
// negative numbers and numbers of more than 64 bits, but wraps them around.
std::string IsId(const std::string& text) {
  std::uint64_t id = 0;
  return absl::SimpleAtoi(text, &id) ? "" : "invalid id \"" + text + "\"; use a number, e.g. 1234";
}

// Adds an option that sets a time. Also accepts `older_name`, unless it is null; --help does not
// show this name.
void AddTime(CLI::App* command, const char* name, const char* older_name,
             std::optional<absl::Time>* to, const char* help) {
  const auto store = [to](absl::Time time) { *to = time; };
  cli::AddParsedOption<absl::Time>(command, name, base::ParseTime, store, help)
      ->group(kChoosingEvents);
  if (older_name == nullptr) return;
  cli::AddParsedOption<absl::Time>(command, older_name, base::ParseTime, store, help)->group("");
}

}  // namespace

void AddFilterOptions(CLI::App* command, trace::EventFilter* filter, bool has_to) {
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
  cli::AddParsedOption<std::uint8_t>(
      command, "--level",
      [](std::string_view text) -> absl::StatusOr<std::uint8_t> {
        // ParseLevel does not accept level 0, but events that other programs record may have it.
        if (text == "0") return 0;
        return base::ParseLevel(text);
      },
      [filter](std::uint8_t level) { filter->level = level; },
      "Only events of this level or a more severe one: 1 to 5, or e.g. warning")
      ->group(kChoosingEvents);
  command
      ->add_option_function<std::string>(
          "--keyword",
          [filter](const std::string& text) {
            const std::optional<std::uint64_t> mask = base::ParseUint64(text);
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

void AddAddedEventOptions(CLI::App* command, trace::EventFilter* filter, const std::string& verb,
                          const std::string& account_help) {
  using Added = trace::EventFilter::Added;
  const auto add = [&](const char* name, Added* added, const std::string& events) {
    *added = Added::kHidden;
    command->add_flag_callback(
        name, [added] { *added = Added::kFiltered; }, "Also " + verb + " the events " + events);
  };
  add("--processes", &filter->processes, "that describe processes (provider Universal.System)");
  add("--account", &filter->account,
      "about the recording itself (provider NetTrace.Collector)" + account_help);
}

}  // namespace tools
