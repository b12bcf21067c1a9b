#include "tools/nettraced/config/session_options.h"

#include <algorithm>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/session/attach_plan.h"

namespace nettraced {

collector::TargetSelection ToTargetSelection(const TargetSettings& target) {
  collector::TargetSelection selection;
  selection.pids = target.pids;
  if (!target.cgroup.empty()) selection.cgroups.push_back(target.cgroup);
  if (!target.unit.empty()) selection.cgroups.push_back(target.unit);
  selection.follow = true;
  return selection;
}

CaptureNeeds MakeCaptureNeeds(const SessionSettings& settings) {
  return {settings.target, NeedsStacks(settings),
          !settings.select.empty() || !settings.dotnet.empty()};
}

bool NeedsStacks(const SessionSettings& settings) {
  return settings.has_samples() || std::any_of(settings.select.begin(), settings.select.end(),
                                               [](const collector::Selector& selector) {
                                                 return selector.stacks.has_value();
                                               });
}

bool NeedsSeparateCapture(const SessionSettings& settings) {
  return settings.target != TargetSettings() || NeedsStacks(settings) ||
         std::any_of(settings.select.begin(), settings.select.end(),
                     [](const collector::Selector& selector) { return !selector.filter.empty(); });
}

absl::Status CheckKernelLimits(const SessionSettings& settings) {
  const auto named = [](const char* key, const absl::Status& status) {
    return absl::InvalidArgumentError(absl::StrCat(key, ": ", status.message()));
  };
  if (settings.cpu_rate != 0) {
    const auto rate = collector::ParseSampleRate(absl::StrCat(settings.cpu_rate),
                                                 collector::KernelMaxSampleRate());
    if (!rate.ok()) return named("cpu", rate.status());
  }
  for (const collector::Selector& selector : settings.select) {
    if (!selector.stacks) continue;
    const auto stacks = collector::ParseStacks(collector::StacksText(*selector.stacks),
                                               collector::KernelMaxFrames());
    if (!stacks.ok()) return named("stacks", stacks.status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> CommandFilter(std::string_view command) {
  constexpr std::size_t kMaxCommand = 15;
  if (command.empty()) return "";
  if (command.size() > kMaxCommand) {
    return absl::InvalidArgumentError(absl::StrCat("command: the name has ", command.size(),
                                                   " bytes; thread names have at most 15 bytes"));
  }
  // In the kernel's filter language, a text in quotes ends at the next quote of the same kind, and
  // has no escapes. The operator == does not treat the text as a pattern. COMM is the name of the
  // thread. `comm` means the same as COMM only for events that have no field `comm`.
  const char quote = command.find('"') == std::string_view::npos ? '"' : '\'';
  if (command.find(quote) != std::string_view::npos ||
      command.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        "command: a name that contains a NUL, or both single and double quotes, cannot be written "
        "in a filter of the kernel; select by pids, cgroup or unit");
  }
  const std::string quoted = quote + std::string(command) + quote;
  return absl::StrCat("COMM == ", quoted);
}

absl::StatusOr<std::vector<collector::DotnetProvider>> MakeDotnetProviders(
    const SessionSettings& settings) {
  if (settings.dotnet.empty()) return std::vector<collector::DotnetProvider>();
  return collector::ParseDotnetProviders(absl::StrJoin(settings.dotnet, ","));
}

absl::StatusOr<std::vector<collector::Selector>> MakeSelectors(const SessionSettings& settings) {
  ASSIGN_OR_RETURN(const std::string command, CommandFilter(settings.target.command));
  std::vector<collector::Selector> selectors = settings.select;
  for (collector::Selector& selector : selectors)
    selector.filter = collector::BothFilters(selector.filter, command);
  return selectors;
}

}  // namespace nettraced
