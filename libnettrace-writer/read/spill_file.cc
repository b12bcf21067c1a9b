#include "libnettrace-writer/read/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace nettrace::internal {
namespace {

constexpr std::size_t kBufferSize = 256 * 1024;

// Returns $TMPDIR, or else /var/tmp. /tmp is not used, because it is in memory on many machines.
std::string DefaultDirectory() {
  const char* const named = secure_getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/var/tmp";
}

// Creates a file without a name in `directory`. If the file system does not support that, creates a
// file with a name, and unlinks it at once.
int OpenUnnamed(const std::string& directory) {
  const int fd = open(directory.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return fd;
  std::string path = absl::StrCat(directory, "/nettrace-XXXXXX");
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

}  // namespace

SpillFile::SpillFile(std::string directory)
    : directory_(directory.empty() ? DefaultDirectory() : std::move(directory)) {}

SpillFile::~SpillFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status SpillFile::Error(int error, const char* what) const {
  return absl::ErrnoToStatus(error, absl::StrCat("a temporary file in ", directory_, what));
}

absl::Status SpillFile::Open() {
  if (fd_ >= 0) return absl::OkStatus();
  fd_ = OpenUnnamed(directory_);
  return fd_ >= 0 ? absl::OkStatus() : Error(errno, " cannot be created");
}

absl::Status SpillFile::Append(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBufferSize) {
    if (absl::Status status = Write(buffer_); !status.ok()) return status;
    buffer_.clear();
  }
  if (bytes.size() > kBufferSize) return Write(bytes);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status SpillFile::Flush() {
  if (absl::Status status = Write(buffer_); !status.ok()) return status;
  buffer_.clear();
  size_ = written_;
  return absl::OkStatus();
}

absl::Status SpillFile::Write(std::span<const std::byte> bytes) {
  absl::Status status = Open();
  while (status.ok() && !bytes.empty()) {
    const ssize_t wrote = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(written_));
    if (wrote > 0) {
      written_ += static_cast<std::uint64_t>(wrote);
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    } else if (wrote == 0 || errno != EINTR) {
      status = Error(wrote == 0 ? ENOSPC : errno, " cannot be written");
    }
  }
  if (!status.ok()) {
    buffer_.clear();
    written_ = size_;
  }
  return status;
}

absl::Status SpillFile::Read(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got > 0) {
      offset += static_cast<std::uint64_t>(got);
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EINTR) {
      return Error(got == 0 ? EIO : errno, " cannot be read");
    }
  }
  return absl::OkStatus();
}

void SpillFile::Clear() {
  buffer_.clear();
  size_ = written_ = 0;
  // An error is ignored: a file that cannot be truncated takes disk space, but later data
  // overwrites it from its start.
  if (fd_ >= 0 && ftruncate(fd_, 0) != 0) return;
}

}  // namespace nettrace::internal
