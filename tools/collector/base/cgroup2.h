// The hierarchy of cgroups of version 2 as the file system shows it: where it is, what is in it,
// and the ids that the kernel has for cgroups.
#ifndef TOOLS_COLLECTOR_BASE_CGROUP2_H_
#define TOOLS_COLLECTOR_BASE_CGROUP2_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"

namespace collector {

// Where it is mounted; "" if it is not.
std::string Cgroup2Mount();
// Whether perf's cgroups are those of version 2: not where the controller perf_event is in a
// hierarchy of version 1.
bool PerfUsesCgroup2();

// Calls `visit` with the path of each folder below `top`, those that are nearer to it first, until
// it returns false. A folder that goes meanwhile is no error.
enum class Below { kVisit, kSkip, kEnd };
void ForEachCgroup(const std::string& top, absl::FunctionRef<Below(const std::string& path)> visit);

// The id of the cgroup whose folder this is. No other cgroup ever has it until the machine is
// started anew. No value if there is no such folder.
std::optional<std::uint64_t> CgroupId(const std::string& path);
// The path below `mount` of the cgroup with this id, which begins with '/'. No value if it is not
// there any more, or this process may not ask (CAP_DAC_READ_SEARCH).
std::optional<std::string> CgroupPath(const std::string& mount, std::uint64_t id);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_BASE_CGROUP2_H_
