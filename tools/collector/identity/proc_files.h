// Reads files of /proc about threads and processes. If the thread or process has ended, the
// functions return an empty result and no error; ReadProcNamespacePid returns its argument.
#ifndef TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_
#define TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace collector {

// ProcPids returns the pids of all processes. ProcTids returns the tids of the threads of a
// process.
std::vector<std::uint32_t> ProcPids();
std::vector<std::uint32_t> ProcTids(std::uint32_t pid);

struct ProcThread {
  std::string name;
  bool ended = false;  // a zombie: only its exit status remains
};
std::optional<ProcThread> ReadProcThread(std::uint32_t pid, std::uint32_t tid);
// Parses the text of /proc/PID/task/TID/stat.
std::optional<ProcThread> ParseProcStat(std::string_view text);

// Returns the path of the executable of a process. Returns "" if the process has no executable,
// such as a kernel thread, or if the path cannot be read.
std::string ReadProcExecutable(std::uint32_t pid);
// Returns `path` without the suffix " (deleted)", which the kernel appends if the file has been
// removed.
std::string_view WithoutDeleted(std::string_view path);

// Returns the pid that a process has in its own pid namespace, or the tid if `pid` is the tid of a
// thread. Returns `pid` if the id in that namespace is not known.
std::uint32_t ReadProcNamespacePid(std::uint32_t pid);

// Returns the path of the process's cgroup, relative to the mount of cgroup v2. The path begins
// with '/'. Returns "" if cgroup v2 is not in use or the process has ended.
std::string ReadProcCgroup(std::uint32_t pid);
// Parses the text of /proc/PID/cgroup.
std::string ParseProcCgroup(std::string_view text);
// Returns the time from the boot of the machine to the start of the process; no value if it is not
// known.
std::optional<absl::Duration> ReadProcStart(std::uint32_t pid);
// Parses the text of /proc/PID/stat, whose start time is in clock ticks. Returns no value if the
// text has another form.
std::optional<absl::Duration> ParseProcStart(std::string_view text, std::int64_t ticks_per_second);

// Returns the effective user id of a process, in the user namespace of the collector. Returns no
// value if the process has ended.
std::optional<std::uint32_t> ReadProcUser(std::uint32_t pid);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_
