#include "tools/output/pipe_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"
#include "tools/cli/output_sink.h"

namespace output {
namespace {

constexpr int kPatience = 1000;  // ms that Append waits until the reader takes a byte

// Waits until the descriptor is writable or broken. Returns false if this takes longer than
// kPatience, or if `cancelled` is readable.
bool WaitForReader(int fd, int cancelled) {
  pollfd fds[] = {{fd, POLLOUT, 0}, {cancelled, POLLIN, 0}};
  while (poll(fds, 2, kPatience) < 0 && errno == EINTR) {
  }
  return fds[0].revents != 0 && fds[1].revents == 0;
}

bool HasReaderGone(int fd) {
  pollfd poll_fd = {fd, 0, 0};
  return poll(&poll_fd, 1, 0) > 0 && (poll_fd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

absl::Status NotAPipe(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(
      path, " exists, but is not a pipe; remove it, and create a pipe with 'mkfifo ", path, "'"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Canceller>> Canceller::Create() {
  base::UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd.valid()) {
    return base::DescriptorStatus(errno,
                                  "opening a pipe, or the output of 'nettrace ctl tail': eventfd");
  }
  return std::shared_ptr<Canceller>(new Canceller(std::move(fd)));
}

void Canceller::Cancel() { eventfd_write(fd_.get(), 1); }

StreamSink::StreamSink(base::UniqueFd fd, std::string name, std::shared_ptr<Canceller> canceller)
    : fd_(fd.get()), name_(name), sink_(fd.release(), std::move(name)) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  sink_.set_wait([canceller = std::move(canceller)](int waiting) {
    return WaitForReader(waiting, canceller->fd());
  });
}

absl::Status StreamSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  absl::Status status = sink_.Append(bytes, taken);
  if (status.ok() || !HasReaderGone(fd_)) return status;
  return absl::AbortedError(absl::StrCat("the reader of ", name_, " has closed it"));
}

absl::Status StreamSink::Flush() {
  if (!HasReaderGone(fd_)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the reader of ", name_, " has closed it"));
}

absl::Status PipeSink::Connect() {
  if (stream_ == nullptr) {
    RETURN_IF_ERROR(cli::CheckNotPlanted(path_));
    struct stat facts = {};
    // Tests the kind of the file before it is opened, because opening a device may have side
    // effects.
    if (lstat(path_.c_str(), &facts) == 0 && !S_ISFIFO(facts.st_mode)) {
      return NotAPipe(path_);
    }
    base::UniqueFd fd(open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (!fd.valid() && errno == ENXIO) {
      return absl::UnavailableError(
          absl::StrCat("the pipe ", path_, " has no reader; start a program that reads it"));
    }
    if (!fd.valid()) {
      return base::ErrnoStatus(errno, absl::StrCat("cannot open the pipe ", path_),
                               errno == ENOENT ? "create it with mkfifo" : "");
    }
    if (fstat(fd.get(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) {
      return NotAPipe(path_);
    }
    stream_ = std::make_unique<StreamSink>(std::move(fd), path_, canceller_);
    prologue_given_ = 0;
    const std::lock_guard lock(state_->mutex_);
    state_->values_.has_reader = true;
    ++state_->values_.readers;
  }
  if (prologue_given_ == prologue_.size()) return absl::OkStatus();
  std::size_t taken = 0;
  absl::Status status = stream_->Append(std::span(prologue_).subspan(prologue_given_), &taken);
  prologue_given_ += taken;
  if (absl::IsAborted(status)) Disconnect();
  return status;
}

void PipeSink::Disconnect() {
  stream_.reset();
  skipping_ = section_begun_;
  const std::lock_guard lock(state_->mutex_);
  state_->values_.has_reader = false;
}

absl::Status PipeSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  if (!in_sections_) {
    prologue_.insert(prologue_.end(), bytes.begin(), bytes.end());
    *taken = bytes.size();
    return absl::OkStatus();
  }
  if (!skipping_) {
    RETURN_IF_ERROR(Connect());
    absl::Status status = stream_->Append(bytes, taken);
    section_begun_ = section_begun_ || *taken != 0;
    {
      const std::lock_guard lock(state_->mutex_);
      state_->values_.bytes += *taken;
    }
    if (absl::IsAborted(status)) Disconnect();
    if (!skipping_) return status;
  }
  const std::lock_guard lock(state_->mutex_);
  state_->values_.discarded += bytes.size() - *taken;
  *taken = bytes.size();
  return absl::OkStatus();
}

absl::Status PipeSink::Flush() {
  if (!in_sections_ || skipping_) return absl::OkStatus();
  if (stream_ != nullptr && !stream_->Flush().ok()) Disconnect();
  return skipping_ ? absl::OkStatus() : Connect();
}

absl::Status PipeSink::BeginSection() {
  in_sections_ = true;
  section_begun_ = false;
  skipping_ = false;
  return absl::OkStatus();
}

}  // namespace output
