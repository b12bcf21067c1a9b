// The sessions' states and counts as OpenMetrics text, version 1.0.0, which Prometheus scrapes.
#ifndef TOOLS_COLLECTOR_CONTROL_METRICS_H_
#define TOOLS_COLLECTOR_CONTROL_METRICS_H_

#include <cstddef>
#include <span>
#include <string>

#include "tools/collector/control/service.h"

namespace collector {

// Losses of a CPU and tracepoint are shown of each session's so many largest; the rest is one
// series, in which both are "other": the number of series does not grow with that of CPUs.
inline constexpr std::size_t kMaxLossSeries = 20;

// `sessions` have names that differ. The text ends with its last line, "# EOF".
std::string FormatMetrics(std::span<const SessionStatus> sessions);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_METRICS_H_
