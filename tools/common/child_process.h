// A command that a program starts and whose end it waits for.
#ifndef TOOLS_COMMON_CHILD_PROCESS_H_
#define TOOLS_COMMON_CHILD_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tools {

class ChildProcess {
 public:
  // Starts `command`, its name and arguments, with no signal blocked, and SIGPIPE's and SIGXFSZ's
  // own effects. With `output_to_stderr`, its standard output is this process's standard error.
  static absl::StatusOr<ChildProcess> Start(const std::vector<std::string>& command,
                                            bool output_to_stderr);
  // Likewise, with these descriptors as its standard output and standard error.
  static absl::StatusOr<ChildProcess> StartWithOutput(const std::vector<std::string>& command,
                                                      int output, int error_output);

  // The exit code, in the form of a shell's $?, once it has ended; does not wait. To be called
  // until it has a value, and not after that.
  std::optional<int> Reap();
  pid_t pid() const { return pid_; }
  // Sends SIGTERM. Only while Reap has not returned a value: later the pid may be another's.
  void Terminate();

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_;
};

}  // namespace tools

#endif  // TOOLS_COMMON_CHILD_PROCESS_H_
