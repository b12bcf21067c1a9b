// Formats the sessions' states and counts as OpenMetrics text, version 1.0.0, for Prometheus.
#ifndef TOOLS_COLLECTOR_CONTROL_METRICS_H_
#define TOOLS_COLLECTOR_CONTROL_METRICS_H_

#include <cstddef>
#include <span>
#include <string>

#include "tools/collector/control/service.h"

namespace collector {

// Number of the largest losses by CPU and tracepoint that are shown for each session. All others
// are one series with the labels "other", so that the number of series does not grow with that of
// CPUs.
inline constexpr std::size_t kMaxLossSeries = 20;

// Returns the text, which ends with the line "# EOF". The names of `sessions` must differ.
std::string FormatMetrics(std::span<const SessionStatus> sessions);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONTROL_METRICS_H_
