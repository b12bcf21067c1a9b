// Converts a session's settings to the options of a capture and its session.
#ifndef TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_
#define TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/target.h"
#include "tools/nettraced/config/settings.h"

namespace nettraced {

// Returns the selected processes and cgroups. If a cgroup does not exist, the session waits for it
// and follows it.
collector::TargetSelection ToTargetSelection(const TargetSettings& target);

// Returns the selectors. If the settings name a command, filters pass only events of threads with
// that name. The kernel compares the name when the event occurs, for user_events, too. Fails like
// CommandFilter.
absl::StatusOr<std::vector<collector::Selector>> MakeSelectors(const SessionSettings& settings);

// Returns the filter for events of threads with the name `command`; "" if it is empty. Fails with
// InvalidArgument if the name is longer than 15 bytes, or if the filter language cannot express it.
absl::StatusOr<std::string> CommandFilter(std::string_view command);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_
