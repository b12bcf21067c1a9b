// A file in memory that has a path.
#ifndef TESTS_SUPPORT_EVENTHEADER_MEMORY_FILE_H_
#define TESTS_SUPPORT_EVENTHEADER_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>

namespace tests {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> contents)
      : fd_(memfd_create("test", MFD_CLOEXEC)) {
    const auto size = static_cast<ssize_t>(contents.size());
    if (fd_ < 0 || write(fd_, contents.data(), contents.size()) != size) std::abort();
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

}  // namespace tests

#endif  // TESTS_SUPPORT_EVENTHEADER_MEMORY_FILE_H_
