#include "nettrace/source.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"

namespace nettrace {

FdSource::FdSource(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

FdSource::~FdSource() { close(fd_); }

absl::StatusOr<std::unique_ptr<FdSource>> FdSource::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return absl::ErrnoToStatus(errno, path);
  return std::make_unique<FdSource>(fd, path);
}

absl::StatusOr<std::size_t> FdSource::Read(std::span<std::byte> buffer) {
  for (;;) {
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return absl::ErrnoToStatus(errno, name_);
  }
}

absl::StatusOr<std::size_t> MemorySource::Read(std::span<std::byte> buffer) {
  const std::size_t size = std::min(buffer.size(), rest_.size());
  if (size != 0) std::memcpy(buffer.data(), rest_.data(), size);
  rest_ = rest_.subspan(size);
  return size;
}

}  // namespace nettrace
