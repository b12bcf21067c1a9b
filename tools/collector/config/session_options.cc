#include "tools/collector/config/session_options.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tools/collector/session/attach_plan.h"

namespace collector {

TargetSelection TargetOf(const TargetSettings& target) {
  TargetSelection selection;
  selection.pids = target.pids;
  if (!target.cgroup.empty()) selection.cgroups.push_back(target.cgroup);
  if (!target.unit.empty()) selection.cgroups.push_back(target.unit);
  selection.follow = true;
  return selection;
}

absl::StatusOr<std::string> CommandFilter(std::string_view command) {
  constexpr std::size_t kMaxCommand = 15;
  if (command.empty()) return "";
  if (command.size() > kMaxCommand) {
    return absl::InvalidArgumentError("command: names of threads have at most 15 bytes");
  }
  // In quotes all is text, up to the next quote of that kind. What COMM is compared with by == is
  // no pattern. In small letters it would be a field where the event has one of that name.
  const char quote = command.find('"') == std::string_view::npos ? '"' : '\'';
  if (command.find(quote) != std::string_view::npos ||
      command.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        "command: the kernel's filters have no form for a name with both kinds of quotes, or NUL");
  }
  const std::string quoted = quote + std::string(command) + quote;
  return absl::StrCat("COMM == ", quoted);
}

absl::StatusOr<std::vector<Selector>> SelectorsOf(const SessionSettings& settings) {
  const absl::StatusOr<std::string> command = CommandFilter(settings.target.command);
  if (!command.ok()) return command.status();
  std::vector<Selector> selectors = settings.select;
  for (Selector& selector : selectors) selector.filter = BothFilters(selector.filter, *command);
  return selectors;
}

}  // namespace collector
