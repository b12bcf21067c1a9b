#include "tools/nettrace/top/recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"

namespace tools::top {

using base::UniqueFd;

absl::StatusOr<UniqueFd> Recorder::Start(const std::vector<std::string>& arguments,
                                         bool keeps_errors) {
  if (keeps_errors) {
    errors_ = UniqueFd(memfd_create("nettrace-top", MFD_CLOEXEC));
    if (errors_.get() < 0)
      return base::DescriptorStatus(errno, "starting the recording: memfd_create");
  }
  std::array<int, 2> pipe = {-1, -1};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0)
    return base::DescriptorStatus(errno, "starting the recording: pipe2");
  UniqueFd output(pipe[0]);
  const UniqueFd input(pipe[1]);
  std::vector<std::string> command = {"/proc/self/exe"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const int errors = keeps_errors ? errors_.get() : STDERR_FILENO;
  ASSIGN_OR_RETURN(child_, cli::ChildProcess::StartWithOutput(command, input.get(), errors));
  return output;
}

int Recorder::Wait() {
  while (true) {
    cli::ClearWake();
    if (const std::optional<int> code = child_->Reap()) {
      child_.reset();
      return *code;
    }
    std::array<pollfd, 2> fds = {pollfd{cli::WakeDescriptor(), POLLIN, 0},
                                 pollfd{cli::HurryDescriptor(), POLLIN, 0}};
    poll(fds.data(), fds.size(), -1);
    if (fds[1].revents != 0) return cli::kExitFailed;
  }
}

void Recorder::PrintErrors() {
  if (errors_.get() < 0) return;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = pread(errors_.get(), buffer, sizeof buffer, printed_)) > 0) {
    std::fwrite(buffer, 1, static_cast<std::size_t>(got), stderr);
    printed_ += got;
  }
}

}  // namespace tools::top
