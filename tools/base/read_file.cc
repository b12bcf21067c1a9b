#include "tools/base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tools/base/status_macros.h"
#include "tools/base/unique_fd.h"

namespace base {

absl::StatusOr<std::string> ReadFile(const std::string& path, std::size_t max) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus(errno, path);
  return ReadOpenFile(fd.get(), max, path);
}

absl::StatusOr<std::string> ReadOpenFile(int fd, std::size_t max, const std::string& what) {
  constexpr std::size_t kFirst = 16384;
  std::string text;
  std::size_t size = 0;
  while (size < max) {
    if (size == text.size()) text.resize(std::min(max, std::max(kFirst, 2 * size)));
    const ssize_t got = read(fd, text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, what);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  text.resize(size);
  return text;
}

}  // namespace base
