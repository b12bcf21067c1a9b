#include "tools/output/partial_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace output {

bool IsFileAt(int fd, int directory, const char* file) {
  struct stat opened = {};
  struct stat named = {};
  return fstat(fd, &opened) == 0 && fstatat(directory, file, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(named.st_mode) && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

absl::Status PartialFile::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  while (*taken < bytes.size()) {
    const ssize_t written = pwrite(file_.get(), bytes.data() + *taken, bytes.size() - *taken,
                                   static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      return base::ErrnoStatus(error, absl::StrCat("cannot write ", path_));
    }
    *taken += static_cast<std::size_t>(written);
    size_ += static_cast<std::uint64_t>(written);
  }
  return absl::OkStatus();
}

ssize_t PartialFile::Read(std::span<std::byte> bytes, std::uint64_t offset) const {
  ssize_t got = 0;
  do {
    got = pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  return got;
}

absl::Status PartialFile::Sync() {
  while (fdatasync(file_.get()) != 0) {
    if (errno == EINTR) continue;
    // The file system does not support syncing this file.
    if (errno == EINVAL || errno == EROFS) break;
    return base::ErrnoStatus(errno, absl::StrCat("cannot sync ", path_));
  }
  return absl::OkStatus();
}

void PartialFile::SetMode(mode_t mode) { fchmod(file_.get(), mode); }

void PartialFile::RemoveFrom(int directory) {
  if (IsIn(directory)) unlinkat(directory, FileName(), 0);
  Close();
}

}  // namespace output
