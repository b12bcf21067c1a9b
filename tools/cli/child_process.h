// A command that a program starts and waits for.
#ifndef TOOLS_CLI_CHILD_PROCESS_H_
#define TOOLS_CLI_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cli {

class ChildProcess {
 public:
  // Starts `command`, a name and arguments, with no signal blocked and the default actions of
  // SIGPIPE and SIGXFSZ. With `output_to_stderr`, its standard output is this process's standard
  // error; otherwise it inherits this process's standard output. Fails with the error of
  // posix_spawnp(3), such as NotFound.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& command,
                                            bool output_to_stderr);
  // Starts `command` like Start, with `output` as its standard output and `error_output` as its
  // standard error.
  static absl::StatusOr<ChildProcess> StartWithOutput(const std::vector<std::string>& command,
                                                      int output, int error_output);

  // Returns the exit code, as in a shell's $?, or nullopt while the command runs. Does not wait.
  // Must not be called again after it has returned a value.
  std::optional<int> Reap();
  pid_t pid() const { return pid_; }
  // Sends SIGTERM. Must not be called after Reap has returned a value, because another process may
  // have the pid then.
  void Terminate();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace cli

#endif  // TOOLS_CLI_CHILD_PROCESS_H_
