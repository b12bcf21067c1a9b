// Locks a file, so that only one process writes it. A process that may only read the file cannot
// keep others from writing: writers ignore its lock.
#ifndef TOOLS_BASE_FILE_LOCK_H_
#define TOOLS_BASE_FILE_LOCK_H_

#include <fcntl.h>

#include <cerrno>

namespace base {

// Locks the whole file against other writers until all copies of this descriptor are closed.
// Returns false if another open file description has the lock. Also returns false if, in each of
// 100 attempts, another process took the lock and released it again. Uses F_OFD_SETLK, whose write
// lock needs a descriptor that can write. With flock, a process that may only read the file could
// lock it.
//
// Returns true without a lock in three cases:
//  - Another process has a read lock, for which permission to read the file is sufficient. No
//    writer can have a lock at the same time.
//  - The file system has no locks.
//  - `fd` can only read, and no writer has the lock.
inline bool ClaimFile(int fd) {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
    if (errno == EINTR) continue;
    const bool is_readable_only = errno == EBADF;
    if (errno != EAGAIN && errno != EACCES && !is_readable_only) return true;
    lock = {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    if (fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_RDLCK) return true;
    if (lock.l_type == F_WRLCK) return false;
    if (is_readable_only) return true;
    // Tries again: another process had the lock at F_OFD_SETLK, and no process at F_OFD_GETLK.
  }
  return false;
}

}  // namespace base

#endif  // TOOLS_BASE_FILE_LOCK_H_
