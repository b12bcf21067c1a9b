// Writes the text of OpenMetrics, version 1.0.0, for Prometheus.
#ifndef TOOLS_BASE_OPEN_METRICS_H_
#define TOOLS_BASE_OPEN_METRICS_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace base {

inline constexpr char kCounter[] = "counter";
inline constexpr char kGauge[] = "gauge";
inline constexpr char kMetricsEnd[] = "# EOF\n";

// Writes the lines before the samples of a family of metrics. If the family has a unit, the name of
// the family must end with the unit.
inline void PutMetricFamily(std::string* text, const std::string& name, const char* type,
                            const char* unit, const char* help) {
  absl::StrAppend(text, "# TYPE ", name, " ", type, "\n");
  if (*unit != '\0') absl::StrAppend(text, "# UNIT ", name, " ", unit, "\n");
  absl::StrAppend(text, "# HELP ", name, " ", help, "\n");
}

}  // namespace base

#endif  // TOOLS_BASE_OPEN_METRICS_H_
