// Whose events a session records.
#ifndef TOOLS_COLLECTOR_PERF_PERF_TARGET_H_
#define TOOLS_COLLECTOR_PERF_PERF_TARGET_H_

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "tools/collector/base/unique_fd.h"

namespace collector {

// The kernel writes samples of nobody else. Births, names and ends of threads are recorded of the
// whole machine in any case.
struct PerfTarget {
  enum class Kind {
    kMachine,
    kProcesses,  // all threads that they have, and those that they create later
    kThreads,    // these threads, and none that they create
    kCgroups,    // all that is in them or in a cgroup below them, at any time
  };
  Kind kind = Kind::kMachine;
  std::vector<pid_t> ids;         // pids of kProcesses, tids of kThreads; none twice
  std::vector<UniqueFd> cgroups;  // directories of cgroup v2; none is below another
};

struct PerfOptions {
  // Bytes of each CPU's ring; a power of two, at least a page.
  std::size_t ring_size = 1 << 20;
  PerfTarget target;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_TARGET_H_
