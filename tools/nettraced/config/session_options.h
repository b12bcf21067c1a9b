// Converts a session's settings to the options of a capture and its session.
#ifndef TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_
#define TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/collector/dotnet/dotnet_provider.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/target.h"
#include "tools/nettraced/config/settings.h"

namespace nettraced {

// Returns the selected processes and cgroup. The session waits for the cgroup if it does not exist,
// and follows it when it is created again.
collector::TargetSelection ToTargetSelection(const TargetSettings& target);

// Returns the selectors. If the settings name a command, each selector has a filter that passes
// only events of threads with that name. The kernel compares the name when the event occurs. For
// events that services pass through rings in user space, the collector compares it when it reads
// them. Fails like CommandFilter (below).
absl::StatusOr<std::vector<collector::Selector>> MakeSelectors(const SessionSettings& settings);

// Parses SessionSettings::dotnet, and returns the .NET providers. The settings must be valid.
absl::StatusOr<std::vector<collector::DotnetProvider>> MakeDotnetProviders(
    const SessionSettings& settings);

// Holds what a capture must provide for a session. Sessions with equal needs can use one capture.
struct CaptureNeeds {
  TargetSettings target;
  bool stacks = false;      // collector::CaptureOptions::stacks
  bool tracepoints = true;  // collector::CaptureOptions::tracepoints

  friend bool operator==(const CaptureNeeds&, const CaptureNeeds&) = default;
};
// Returns what a separate capture for the session must provide.
CaptureNeeds MakeCaptureNeeds(const SessionSettings& settings);
// Returns whether the session has samples or selectors with stacks. Its capture then tracks the
// code that processes map, and stores more bytes for each event. Sessions without stacks therefore
// do not share this capture.
bool NeedsStacks(const SessionSettings& settings);
// Returns whether the session needs a separate capture, because of a target, a filter, stacks or
// samples. All other sessions share one capture.
bool NeedsSeparateCapture(const SessionSettings& settings);
// Fails with InvalidArgument, with a remedy, if the rate of samples or a maximum of frames is more
// than the kernel permits now.
absl::Status CheckKernelLimits(const SessionSettings& settings);

// Returns the filter for events of threads with the name `command`; "" if it is empty. Fails with
// InvalidArgument if the name is longer than 15 bytes, or if the filter language cannot express it.
absl::StatusOr<std::string> CommandFilter(std::string_view command);

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_SESSION_OPTIONS_H_
