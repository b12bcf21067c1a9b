#include "tools/common/output_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "tools/collector/base/status_util.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/common/signals.h"

namespace tools {
namespace {

// A pipe, a socket or a terminal: writing to it may wait without end, and would keep the process
// from seeing the signals that are to end it.
class PipeSink : public nettrace::Sink {
 public:
  // Owns `fd`. `stop` is readable once it is time to stop.
  PipeSink(int fd, const std::string& name, collector::UniqueFd stop)
      : fd_(fd), name_(name), sink_(fd, name), stop_(std::move(stop)) {}

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = 0;
    absl::Status status;
    while (status.ok() && *taken < bytes.size()) {
      if (!WaitForReader()) {
        return absl::UnavailableError("cannot write " + name_ + ": its reader takes nothing");
      }
      // A pipe that is writable takes this much without waiting.
      const std::size_t size = std::min<std::size_t>(PIPE_BUF, bytes.size() - *taken);
      std::size_t now = 0;
      status = sink_.Append(bytes.subspan(*taken, size), &now);
      *taken += now;
    }
    return status;
  }
  absl::Status Sync() override { return sink_.Sync(); }

 private:
  // False if it is time to stop and the reader has had its last chance.
  bool WaitForReader() {
    pollfd fds[] = {{fd_, POLLOUT, 0}, {stop_.get(), POLLIN, 0}};
    while (poll(fds, 2, given_up_ ? 0 : -1) < 0 && errno == EINTR) {
    }
    if (fds[0].revents != 0) return true;
    constexpr int kLastChance = 1000;  // ms, for a reader that is only slow
    given_up_ = given_up_ || poll(fds, 1, kLastChance) == 0;
    return !given_up_;
  }

  const int fd_;  // sink_ closes it
  const std::string name_;
  nettrace::FdSink sink_;
  const collector::UniqueFd stop_;
  bool given_up_ = false;
};

// Waits for the pipe's reader, with no signal blocked.
int OpenPipe(const std::string& path) {
  sigset_t none;
  sigset_t blocked;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, &blocked);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const int error = errno;
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
  errno = error;
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutputSink(const std::string& path) {
  const bool is_standard = path == kStandardOutput;
  struct stat facts = {};
  const int found = is_standard ? fstat(STDOUT_FILENO, &facts) : stat(path.c_str(), &facts);
  if (!is_standard && (found != 0 || !S_ISFIFO(facts.st_mode))) {
    return nettrace::FdSink::Create(path);
  }
  const std::string name = is_standard ? "standard output" : path;
  const int fd = is_standard ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : OpenPipe(path);
  if (fd < 0) return collector::ErrnoStatus(errno, name);
  collector::UniqueFd owner(fd);
  if (S_ISREG(facts.st_mode)) return std::make_unique<nettrace::FdSink>(owner.release(), name);
  absl::StatusOr<collector::UniqueFd> stop = OpenStopSignals();
  if (!stop.ok()) return stop.status();
  return std::make_unique<PipeSink>(owner.release(), name, *std::move(stop));
}

}  // namespace tools
