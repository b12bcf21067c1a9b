// The machine's CPUs, from sysfs: numbers may have holes, and CPUs may be offline.
#ifndef TOOLS_COLLECTOR_PERF_CPU_LIST_H_
#define TOOLS_COLLECTOR_PERF_CPU_LIST_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace collector {

// Parses the kernel's list form, e.g. "0-3,8,10-11\n", into ascending CPU numbers. InvalidArgument
// if it is not one; numbers are at most 65535.
absl::StatusOr<std::vector<int>> ParseCpuList(std::string_view text);

// The CPUs that are online now (/sys/devices/system/cpu/online).
absl::StatusOr<std::vector<int>> OnlineCpus();
// The CPUs that can ever be online while the system runs (/sys/devices/system/cpu/possible).
absl::StatusOr<std::vector<int>> PossibleCpus();

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_CPU_LIST_H_
