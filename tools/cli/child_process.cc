#include "tools/cli/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tools/base/status_macros.h"
#include "tools/cli/exit_codes.h"

namespace cli {

absl::StatusOr<ChildProcess> ChildProcess::Start(const std::vector<std::string>& command,
                                                 bool output_to_stderr) {
  return StartWithOutput(command, output_to_stderr ? STDERR_FILENO : STDOUT_FILENO, STDERR_FILENO);
}

absl::StatusOr<ChildProcess> ChildProcess::StartWithOutput(const std::vector<std::string>& command,
                                                           int output, int error_output) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGXFSZ);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  // Standard output is redirected first: `output` may be standard error, which the second action
  // replaces.
  if (output != STDOUT_FILENO) posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
  if (error_output != STDERR_FILENO) {
    posix_spawn_file_actions_adddup2(&files, error_output, STDERR_FILENO);
  }
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return base::ErrnoStatus(error, "cannot start " + command[0]);
  return ChildProcess(pid);
}

std::optional<int> ChildProcess::Reap() {
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitSignalled + WTERMSIG(status);
}

void ChildProcess::Terminate() { kill(pid_, SIGTERM); }

}  // namespace cli
