// Formats the counts of `nettrace ship` as OpenMetrics text, and writes them to a file.
#ifndef TOOLS_NETTRACE_SHIP_METRICS_H_
#define TOOLS_NETTRACE_SHIP_METRICS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/position.h"

namespace tools::ship {

struct ShipMetrics {
  ShipTotals totals;                // since the state file was created
  DeliveryCounts sent;              // counts of this run
  std::uint64_t waiting_files = 0;  // files that were not sent completely
  absl::Duration behind;            // age of the oldest one; 0 if there is none
  bool is_failing = false;          // whether the last request needs a retry
};

// Returns the text, which ends with the line "# EOF".
std::string FormatMetrics(const ShipMetrics& metrics);

// Replaces the file at `path` by one that every user may read. Errors name the path.
absl::Status WriteMetrics(const ShipMetrics& metrics, const std::string& path);

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_METRICS_H_
