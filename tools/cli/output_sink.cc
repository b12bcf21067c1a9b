#include "tools/cli/output_sink.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/file_lock.h"
#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"
#include "tools/cli/signals.h"

namespace cli {
namespace {

using base::UniqueFd;

// A sink for a pipe, a socket or a terminal. It waits until the descriptor is writable before each
// write, because a blocked write would keep the process from ending.
class PipeSink : public nettrace::Sink {
 public:
  // Takes ownership of `fd`.
  PipeSink(int fd, const std::string& name) : fd_(fd), name_(name), sink_(fd, name) {}

  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    *taken = 0;
    absl::Status status;
    while (status.ok() && *taken < bytes.size()) {
      if (!WaitForReader()) {
        return absl::UnavailableError("cannot write " + name_ +
                                      ": its reader has stopped reading; check that program");
      }
      // A pipe that is writable takes PIPE_BUF bytes without blocking.
      const std::size_t size = std::min<std::size_t>(PIPE_BUF, bytes.size() - *taken);
      std::size_t now = 0;
      status = sink_.Append(bytes.subspan(*taken, size), &now);
      *taken += now;
    }
    return status;
  }
  absl::Status Sync() override { return sink_.Sync(); }

 private:
  // Waits until the pipe is writable, `end` is readable, or the timeout expires. Returns whether
  // the pipe is writable or has an error, which the next write reports.
  bool WaitForReaderOr(int end, int timeout_ms) {
    pollfd fds[] = {{fd_, POLLOUT, 0}, {end, POLLIN, 0}};
    while (poll(fds, 2, timeout_ms) < 0 && errno == EINTR) {
    }
    return fds[0].revents != 0;
  }
  // Waits until the pipe is writable, and returns true. After a request to end, waits at most
  // kLastChance, and only until a second request. If the pipe is not writable then, returns false,
  // and later calls do not wait.
  bool WaitForReader() {
    if (given_up_) return WaitForReaderOr(StopDescriptor(), 0);
    if (WaitForReaderOr(StopDescriptor(), -1)) return true;
    constexpr int kLastChance = 1000;  // ms in which a slow reader may still read
    given_up_ = !WaitForReaderOr(HurryDescriptor(), kLastChance);
    return !given_up_;
  }

  const int fd_;  // sink_ closes it
  const std::string name_;
  nettrace::FdSink sink_;
  bool given_up_ = false;
};

absl::Status CannotCreate(const std::string& path) {
  return base::ErrnoStatus(
      errno, absl::StrCat("cannot create ", path),
      "choose another file, in a directory that exists and that you may write to");
}

// Locks the file against other recordings until the descriptor is closed. Fails with AlreadyExists
// if another recording has locked the file. Returns OK without a lock in the cases that ClaimFile
// lists.
absl::Status Claim(const UniqueFd& file, const std::string& path) {
  if (base::ClaimFile(file.get())) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(path, ": another recording is being written to it; choose another file"));
}

bool IsSameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns whether `file` is a regular file to which `path` still refers.
bool IsAt(const UniqueFd& file, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(file.get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         S_ISREG(opened.st_mode) && IsSameFile(opened, named);
}

// Removes the regular file at `path`. Fails with AlreadyExists if another process has locked it.
// Also returns OK if another process has removed or replaced the file in the meantime.
absl::Status RemoveOld(const std::string& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  UniqueFd old(open(path.c_str(), O_RDONLY | kFlags));
  if (!old.valid() && errno == EACCES) old = UniqueFd(open(path.c_str(), O_WRONLY | kFlags));
  if (!old.valid()) {
    return errno == ENOENT || errno == ELOOP ? absl::OkStatus() : CannotCreate(path);
  }
  RETURN_IF_ERROR(Claim(old, path));
  if (!IsAt(old, path)) return absl::OkStatus();
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return base::ErrnoStatus(errno, absl::StrCat("cannot replace ", path), "choose another file");
  }
  return absl::OkStatus();
}

// Opens the target of the symbolic link `path`, and creates the target if it does not exist.
// Empties the target if it is a regular file.
absl::StatusOr<UniqueFd> OpenThroughLink(const std::string& path, mode_t mode) {
  UniqueFd file(open(path.c_str(), O_WRONLY | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, mode));
  if (!file.valid()) return CannotCreate(path);
  struct stat facts = {};
  if (fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return file;
  RETURN_IF_ERROR(Claim(file, path));
  // A failed fchmod is an error if the file belongs to another user, because that user could read
  // the trace. On a file of the process's user, fchmod fails only if the file system has no modes.
  const bool has_mode = fchmod(file.get(), mode) == 0 || facts.st_uid == geteuid();
  if (!has_mode || ftruncate(file.get(), 0) != 0) return CannotCreate(path);
  return file;
}

// Creates the file at `path`, and replaces an existing regular file. Opens an existing file of
// another type, and the target of a symbolic link.
absl::StatusOr<UniqueFd> CreateFile(const std::string& path, mode_t mode) {
  constexpr int kAttempts = 100;  // other processes may create and remove the file at the same time
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    UniqueFd file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & 0600));
    if (file.valid()) {
      RETURN_IF_ERROR(Claim(file, path));
      // Between the creation and the lock, another recording may have treated this file as an old
      // file, and removed it.
      if (!IsAt(file, path)) continue;
      // Unlike open, fchmod ignores the umask. It fails only if the file system has no modes, which
      // is no error.
      fchmod(file.get(), mode);
      return file;
    }
    struct stat facts = {};
    if (errno != EEXIST) return CannotCreate(path);
    if (lstat(path.c_str(), &facts) != 0) continue;
    if (S_ISLNK(facts.st_mode)) return OpenThroughLink(path, mode);
    if (S_ISREG(facts.st_mode)) {
      RETURN_IF_ERROR(RemoveOld(path));
      continue;
    }
    file = UniqueFd(open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC));
    if (!file.valid()) return CannotCreate(path);
    return file;
  }
  return absl::UnavailableError(absl::StrCat(
      "cannot create ", path, ": other processes create it again and again; choose another file"));
}

// Opens the pipe and waits for its reader. Signals have their default action during the wait, so
// that they end the process. Returns Cancelled if the process was asked to end before the call.
absl::StatusOr<UniqueFd> OpenPipe(const std::string& path) {
  const DefaultSignals at_once;
  if (IsStopRequested()) {
    return absl::CancelledError(
        absl::StrCat(path, ": a signal ended the program before the pipe had a reader"));
  }
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return base::ErrnoStatus(errno, absl::StrCat("cannot open the pipe ", path));
  return fd;
}

// Returns true if all users may create files in the folder of `path`, or if the mode of the folder
// cannot be read.
bool IsInOpenFolder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat facts = {};
  return stat(folder.c_str(), &facts) != 0 || (facts.st_mode & S_IWOTH) != 0;
}

}  // namespace

absl::Status CheckNotPlanted(const std::string& path) {
  struct stat facts = {};
  if (lstat(path.c_str(), &facts) != 0 || facts.st_uid == geteuid() || facts.st_uid == 0) {
    return absl::OkStatus();
  }
  if (S_ISLNK(facts.st_mode)) {
    return absl::PermissionDeniedError(absl::StrCat(path,
                                                    " is a symbolic link of another user (uid ",
                                                    facts.st_uid, "); name the file itself"));
  }
  if (S_ISFIFO(facts.st_mode) && IsInOpenFolder(path)) {
    return absl::PermissionDeniedError(absl::StrCat(
        path, " is a pipe of another user (uid ", facts.st_uid,
        ") in a directory that all users may write to; use a pipe in a private directory"));
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<std::unique_ptr<nettrace::Sink>> SinkFor(UniqueFd fd, const std::string& name,
                                                        std::function<bool(int)> retry) {
  struct stat facts = {};
  const bool may_wait = fstat(fd.get(), &facts) != 0 || S_ISFIFO(facts.st_mode) ||
                        S_ISSOCK(facts.st_mode) || isatty(fd.get()) == 1;
  if (may_wait) return std::make_unique<PipeSink>(fd.release(), name);
  auto sink = std::make_unique<nettrace::FdSink>(fd.release(), name);
  sink->set_retry(std::move(retry));
  return sink;
}

}  // namespace

absl::StatusOr<std::unique_ptr<nettrace::Sink>> OpenOutputSink(const std::string& path, mode_t mode,
                                                               std::function<bool(int)> retry) {
  if (path == kStandardOutput) {
    UniqueFd fd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (!fd.valid()) return base::DescriptorStatus(errno, "using standard output: fcntl");
    return SinkFor(std::move(fd), "standard output", std::move(retry));
  }
  RETURN_IF_ERROR(CheckNotPlanted(path));
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0 && S_ISFIFO(facts.st_mode)) {
    ASSIGN_OR_RETURN(UniqueFd fd, OpenPipe(path));
    return SinkFor(std::move(fd), path, std::move(retry));
  }
  ASSIGN_OR_RETURN(UniqueFd file, CreateFile(path, mode));
  return SinkFor(std::move(file), path, std::move(retry));
}

}  // namespace cli
