#include "libeventheader/provider/own_descriptor.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

// The ELF header at the start of the program or shared object that contains this code. The linker
// defines the symbol.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr)
    __ehdr_start;  // NOLINT(bugprone-reserved-identifier)

namespace eh::internal {
namespace {

// MoveAway() returns a number above the soft RLIMIT_NOFILE only if this limit is below
// kHighestDescriptor. The kernel's descriptor table has a place for every number up to the highest
// number in use, so a higher number would cost memory.
constexpr rlim_t kHighestDescriptor = 65536;
// If MoveAway() must stay below the limit of open files, it searches upwards for a free descriptor
// number. The search starts this many numbers below the limit.
constexpr rlim_t kLowestDescriptor = 100;

}  // namespace

std::uint64_t ObjectPlace() noexcept {
  return reinterpret_cast<std::uintptr_t>(&__ehdr_start) >> 12;
}

bool IsInSharedObject() noexcept {
  return getauxval(AT_PHDR) !=
         reinterpret_cast<std::uintptr_t>(&__ehdr_start) + __ehdr_start.e_phoff;
}

int MoveAway(int fd) noexcept {
  rlimit limit{};
  int moved = -1;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max &&
      limit.rlim_cur < kHighestDescriptor) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_cur + 64 < limit.rlim_max ? limit.rlim_cur + 64 : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
      const rlim_t lowest = limit.rlim_cur + static_cast<rlim_t>(ObjectPlace() / 64 % 32);
      moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(std::min(lowest, raised.rlim_cur - 1)));
      setrlimit(RLIMIT_NOFILE, &limit);
    }
  }
  if (moved < 0) {
    const rlim_t top = std::min(limit.rlim_cur, kHighestDescriptor);
    const rlim_t lowest = top > 2 * kLowestDescriptor ? top - kLowestDescriptor : top / 2;
    moved = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(lowest));
  }
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

bool OwnDescriptor::Adopt(int fd) noexcept {
  fd = MoveAway(fd);
  struct stat status;
  if (fstat(fd, &status) != 0) {
    close(fd);
    return false;
  }
  fd_ = fd;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  return true;
}

bool OwnDescriptor::IsOurs() const noexcept {
  struct stat now;
  return fd_ >= 0 && fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

void OwnDescriptor::Close() noexcept {
  if (IsOurs()) close(fd_);
  fd_ = -1;
}

}  // namespace eh::internal
