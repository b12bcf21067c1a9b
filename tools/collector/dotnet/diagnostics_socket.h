// Finds and opens the diagnostics socket of a .NET process.
//
// The runtime listens at dotnet-diagnostic-PID-START-socket in /tmp of the process, which may be in
// a container. Any user may create files there, so the functions check that the file and the
// listener belong to the process, and follow no symbolic link.
#ifndef TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_SOCKET_H_
#define TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_SOCKET_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/base/unique_fd.h"

namespace collector {

// Facts of a process that its socket must match.
struct ProcessFacts {
  pid_t pid = 0;
  std::uint64_t start = 0;    // start time, in clock ticks since the machine started
  std::uint64_t own_pid = 0;  // pid in the process's own pid namespace
  uid_t user = 0;             // effective user
  std::string name;

  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

// Reads the facts of a process. Returns no value if it has ended or is a zombie.
std::optional<ProcessFacts> ReadProcessFacts(pid_t pid);
// Parses the texts of /proc/PID/stat and /proc/PID/status.
std::optional<ProcessFacts> ParseProcessFacts(pid_t pid, std::string_view stat,
                                              std::string_view status);

// The parts of the name of a diagnostics socket. Any user may create a file with such a name.
struct SocketName {
  pid_t pid = 0;
  std::uint64_t start = 0;  // as in ProcessFacts
};
// Parses the name of a file. Returns no value if it is not the name of a diagnostics socket.
std::optional<SocketName> ParseSocketName(std::string_view name);

// Returns the pids in the names of the diagnostics sockets in `folder`, at most `max`. The
// processes may have ended.
std::vector<pid_t> ListDiagnosticsSockets(const std::string& folder, std::size_t max);
// Returns the pids of processes that may have another `folder` than this process, because their
// mounts differ; at most `max`. They are usually in containers. Processes whose mounts this process
// may not read are left out.
std::vector<pid_t> ListProcessesWithOtherFolder(const std::string& folder, std::size_t max);
// Returns the folder of temporary files that the environment of a process names; "" if it names
// none.
std::string ReadTemporaryFolder(pid_t pid);

// Connects to the socket of a process, without waiting. `folder` is the folder of the socket in the
// process's root directory. Fails with NotFound if there is no socket or no listener yet, with
// Unavailable if too many connections wait, and with FailedPrecondition if the socket or the
// listener does not belong to the process.
absl::StatusOr<base::UniqueFd> ConnectDiagnostics(const ProcessFacts& process,
                                                  const std::string& folder);

// Sends one byte with the descriptor `passed`. Returns 0 or an errno.
int SendDescriptor(int socket, int passed);

}  // namespace collector

#endif  // TOOLS_COLLECTOR_DOTNET_DIAGNOSTICS_SOCKET_H_
