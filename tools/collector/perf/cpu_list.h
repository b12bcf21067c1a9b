// Lists of the machine's CPUs, from sysfs. The numbers may have gaps, and CPUs may be offline.
#ifndef TOOLS_COLLECTOR_PERF_CPU_LIST_H_
#define TOOLS_COLLECTOR_PERF_CPU_LIST_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace collector {

// Parses a list in the kernel's format, such as "0-3,8,10-11\n", into ascending CPU numbers. Fails
// with InvalidArgument if it is malformed or a number is above 65535.
absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text);

// Returns the CPUs that are online now (/sys/devices/system/cpu/online). Fails if the file cannot
// be read or parsed.
absl::StatusOr<std::vector<int>> OnlineCpus();
// Returns the CPUs that can come online while the system runs (/sys/devices/system/cpu/possible).
// Fails if the file cannot be read or parsed.
absl::StatusOr<std::vector<int>> PossibleCpus();

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_CPU_LIST_H_
