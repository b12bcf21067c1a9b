// What /proc says of threads and processes. A thread or process that is gone is no error: nothing
// comes back.
#ifndef TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_
#define TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace collector {

// The pids of all processes, and the tids of the threads of one.
std::vector<std::uint32_t> ProcPids();
std::vector<std::uint32_t> ProcTids(std::uint32_t pid);

struct ProcThread {
  std::string name;
  bool ended = false;  // only its exit status is still there
};
std::optional<ProcThread> ReadProcThread(std::uint32_t pid, std::uint32_t tid);
// Parses the text of /proc/PID/task/TID/stat.
std::optional<ProcThread> ParseProcStat(std::string_view text);

// The path of the executable of a process; "" if it has none, as the kernel's own threads, or may
// not be read.
std::string ReadProcExecutable(std::uint32_t pid);
// `path` without what the kernel appends to that of a file that has been removed since.
std::string_view WithoutDeleted(std::string_view path);

// The pid of a process in its own pid namespace; `pid` if that is not known.
std::uint32_t ReadProcNamespacePid(std::uint32_t pid);

// The user, in the initial namespace, that a process acts as.
std::optional<std::uint32_t> ReadProcUser(std::uint32_t pid);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_IDENTITY_PROC_FILES_H_
