// Finds cgroups of version 2 in the file system: the mount of their hierarchy, the cgroups in it,
// and the ids that the kernel has for them.
#ifndef TOOLS_COLLECTOR_SYSTEM_CGROUP2_H_
#define TOOLS_COLLECTOR_SYSTEM_CGROUP2_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"

namespace collector {

// Returns where the hierarchy of cgroups of version 2 is mounted, or "" if it is not mounted.
std::string Cgroup2Mount();
// Returns whether perf uses cgroups of version 2. It uses version 1 if the controller perf_event is
// in a hierarchy of version 1.
bool PerfUsesCgroup2();

// The next step of ForEachCgroup: visit the folders below the path, skip them, or end the walk.
enum class Below { kVisit, kSkip, kEnd };
// Calls `visit` with the path of each folder below `top`, those nearer to `top` first, until
// `visit` returns kEnd. If `visit` returns kSkip, the folders below that path are not visited. A
// folder that is removed during the walk is no error.
void ForEachCgroup(const std::string& top, absl::FunctionRef<Below(const std::string& path)> visit);

// Returns the id of the cgroup with the folder `path`, or no value if there is no such folder or it
// is not a cgroup. No other cgroup has this id until the next boot.
std::optional<std::uint64_t> CgroupId(const std::string& path);
// Returns the path below `mount`, beginning with '/', of the cgroup with this id. Returns no value
// if the cgroup no longer exists or this process lacks permission (CAP_DAC_READ_SEARCH).
std::optional<std::string> CgroupPath(const std::string& mount, std::uint64_t id);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SYSTEM_CGROUP2_H_
