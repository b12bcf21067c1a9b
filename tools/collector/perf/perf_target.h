// Selects the processes, threads or cgroups whose events a capture records.
#ifndef TOOLS_COLLECTOR_PERF_PERF_TARGET_H_
#define TOOLS_COLLECTOR_PERF_PERF_TARGET_H_

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "tools/base/unique_fd.h"

namespace collector {

// The target of a recording. The kernel writes samples of the target only. The creation, naming and
// end of threads are always recorded for the whole machine.
struct PerfTarget {
  enum class Kind {
    kMachine,
    kProcesses,  // all threads of the processes, including threads created later
    kThreads,    // these threads, but not the threads that they create
    kCgroups,    // threads while they are in these cgroups or in cgroups below
  };
  Kind kind = Kind::kMachine;
  std::vector<pid_t> ids;  // pids or tids, by `kind`; no duplicates
  // A descriptor (pidfd_open) for each of `ids`. It distinguishes a task that has ended from
  // another task that has got its id. Invalid if the kernel provides none: before Linux 5.3, and
  // for threads before Linux 6.9.
  std::vector<base::UniqueFd> descriptors;
  // Descriptors of folders of cgroup v2. None of these folders is below another one. Empty if the
  // followed cgroup does not exist; see PerfCapture::SetCgroup.
  std::vector<base::UniqueFd> cgroups;
};

struct PerfOptions {
  // Size of each CPU's ring, in bytes; a power of two, at least one page.
  std::size_t ring_size = 1 << 20;
  PerfTarget target;
  // Whether each sample contains the cgroup of its thread, which takes 8 bytes, and new cgroups are
  // recorded. Ignored if the kernel does not support it (before 5.7, or without
  // CONFIG_CGROUP_PERF); see PerfCapture::has_cgroups.
  bool cgroups = false;
  // Whether samples of tracepoints may contain stacks. If set, all mappings of code are recorded,
  // also those of memory without a file, with the build ids that the kernel reports.
  bool stacks = false;
  // Maximum of StackOptions::copied_bytes of all tracepoints.
  std::size_t copied_bytes = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_PERF_PERF_TARGET_H_
