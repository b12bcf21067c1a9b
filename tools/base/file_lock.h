// A lock on a file that excludes other writers. Processes that may only read the file cannot take
// it, and cannot keep a writer from claiming the file.
#ifndef TOOLS_BASE_FILE_LOCK_H_
#define TOOLS_BASE_FILE_LOCK_H_

#include <fcntl.h>

#include <cerrno>

namespace base {

// Locks the whole file against other writers until all copies of this descriptor are closed.
// Returns false if another descriptor has the lock. flock would also let readers lock the file, but
// a write lock of an open file description needs a descriptor that can write.
//
// A reader's read lock does prevent the write lock. No writer has the file then, because its lock
// would have prevented the reader's, so this returns true without a lock. The same holds for file
// systems without locks, and for a descriptor that can only read.
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
    // The other lock was released between the two calls.
  }
  return false;
}

}  // namespace base

#endif  // TOOLS_BASE_FILE_LOCK_H_
