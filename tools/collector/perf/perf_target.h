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
  std::vector<pid_t> ids;  // pids of kProcesses, tids of kThreads; none twice
  // For each of them a descriptor of the task (pidfd_open), by which one that has ended is told
  // from another one with its number. Invalid where the kernel has none: of threads before
  // Linux 6.9.
  std::vector<UniqueFd> descriptors;
  // Directories of cgroup v2; none is below another. None: it is not there, see SetCgroup.
  std::vector<UniqueFd> cgroups;
};

struct PerfOptions {
  // Bytes of each CPU's ring; a power of two, at least a page.
  std::size_t ring_size = 1 << 20;
  PerfTarget target;
  // Each sample names the cgroup of its thread, which takes 8 bytes of it, and cgroups that are
  // made are recorded, as births of threads are. Where the kernel cannot (before 5.7, or without
  // CONFIG_CGROUP_PERF) it is as if this were false: PerfSession::has_cgroups.
  bool cgroups = false;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_TARGET_H_
