#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nettrace/sink.h"

namespace nettrace {
namespace {

// Keeps a broken pipe from ending the process. While this object exists, a write of this thread to
// a broken pipe or socket fails with EPIPE and without SIGPIPE. The destructor removes the SIGPIPE
// that the write has made pending. Does nothing if `needed` is false.
class SigPipeGuard {
 public:
  explicit SigPipeGuard(bool needed) : needed_(needed) {
    if (!needed_) return;
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  SigPipeGuard(const SigPipeGuard&) = delete;
  SigPipeGuard& operator=(const SigPipeGuard&) = delete;
  ~SigPipeGuard() {
    if (!needed_) return;
    const int saved_errno = errno;
    if (!was_pending_) {
      const timespec now = {};
      while (sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = saved_errno;
  }

 private:
  const bool needed_;
  bool was_pending_ = false;
  sigset_t pipe_;
  sigset_t before_;
};

// Blocks until `fd` takes bytes again or is broken. If it is broken, the next write returns the
// error.
void WaitUntilWritable(int fd) {
  pollfd waiting = {.fd = fd, .events = POLLOUT, .revents = 0};
  while (poll(&waiting, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

FdSink::FdSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  struct stat status = {};
  regular_ = fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
}

FdSink::~FdSink() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<FdSink>> FdSink::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot create ", path));
  return std::make_unique<FdSink>(fd, path);
}

bool FdSink::IsRetried(int error) {
  if (!retry_) return false;
  retrying_ = true;
  return retry_(error);
}

absl::Status FdSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  const SigPipeGuard guard(!regular_);
  while (*taken < bytes.size()) {
    const ssize_t written = write(fd_, bytes.data() + *taken, bytes.size() - *taken);
    if (written > 0) {
      *taken += static_cast<std::size_t>(written);
    } else if (written == 0) {
      return absl::DataLossError(absl::StrCat("cannot write ", name_, ": no bytes were written"));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_) {
        WaitUntilWritable(fd_);
      } else if (!wait_(fd_)) {
        return absl::UnavailableError(
            absl::StrCat("cannot write ", name_, ": its reader has stopped reading"));
      }
    } else if (const int error = errno; error != EINTR && !IsRetried(error)) {
      return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", name_));
    }
  }
  if (std::exchange(retrying_, false)) retry_(0);
  return absl::OkStatus();
}

absl::Status FdSink::Sync() {
  if (!regular_) return absl::OkStatus();
  // The kernel reports a failed write-back only once, but the bytes stay lost. Every later call
  // therefore returns the first error.
  if (!sync_failure_.ok()) return sync_failure_;
  while (fdatasync(fd_) < 0) {
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == EROFS) return absl::OkStatus();  // the file cannot be synced
    sync_failure_ = absl::ErrnoToStatus(errno, absl::StrCat("cannot sync ", name_));
    return sync_failure_;
  }
  return absl::OkStatus();
}

}  // namespace nettrace
