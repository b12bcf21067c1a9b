// Formats the states and counts of sessions and the counts of services as OpenMetrics text,
// version 1.0.0, for Prometheus.
#ifndef TOOLS_CONTROL_METRICS_H_
#define TOOLS_CONTROL_METRICS_H_

#include <cstddef>
#include <span>
#include <string>

#include "tools/control/service.h"

namespace control {

// Maximum number of counts of lost events of one session that have their own time series. A session
// has a count for each pair of a CPU and a tracepoint. The largest counts have their own series.
// All smaller counts are added up in one more series with the labels "other". This limit keeps the
// number of series independent of the number of CPUs.
inline constexpr std::size_t kMaxLossSeries = 20;

// Returns the text, which ends with the line "# EOF". The names of `sessions` must differ. If the
// daemon has no socket for services, the text has no samples of `services`.
std::string FormatMetrics(std::span<const SessionStatus> sessions, const ServicesStatus& services);

}  // namespace control

#endif  // TOOLS_CONTROL_METRICS_H_
