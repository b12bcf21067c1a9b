// What a capture and its session are told of a session's settings: whose events, and which.
#ifndef TOOLS_COLLECTOR_CONFIG_SESSION_OPTIONS_H_
#define TOOLS_COLLECTOR_CONFIG_SESSION_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/target.h"

namespace collector {

// The processes and cgroups. A cgroup that is not there is waited for, and followed.
TargetSelection TargetOf(const TargetSettings& target);

// The selectors, with filters that let through nothing but the events of threads with the name that
// the settings demand. The kernel compares it when the event happens, of user_events, too.
// InvalidArgument if the filter language has no form for the name.
absl::StatusOr<std::vector<Selector>> SelectorsOf(const SessionSettings& settings);

// The filter for events of threads with this name; "" for an empty one.
absl::StatusOr<std::string> CommandFilter(std::string_view command);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_SESSION_OPTIONS_H_
