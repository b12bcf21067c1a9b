// Formats the sessions' states and counts as OpenMetrics text, version 1.0.0, for Prometheus.
#ifndef TOOLS_CONTROL_METRICS_H_
#define TOOLS_CONTROL_METRICS_H_

#include <cstddef>
#include <span>
#include <string>

#include "tools/control/service.h"

namespace control {

// Number of the largest losses by CPU and tracepoint that are shown for each session. All other
// losses are one series with the labels "other", so that the number of series does not grow with
// the number of CPUs.
inline constexpr std::size_t kMaxLossSeries = 20;

// Returns the text, which ends with the line "# EOF". The names of `sessions` must differ.
std::string FormatMetrics(std::span<const SessionStatus> sessions);

}  // namespace control

#endif  // TOOLS_CONTROL_METRICS_H_
