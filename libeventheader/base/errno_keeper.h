// Keeps the caller's errno: a service's error handling must not see the library's.
#ifndef LIBEVENTHEADER_BASE_ERRNO_KEEPER_H_
#define LIBEVENTHEADER_BASE_ERRNO_KEEPER_H_

#include <cerrno>

namespace eh::internal {

// errno is on destruction what it was on construction.
class ErrnoKeeper {
 public:
  ErrnoKeeper() noexcept : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_BASE_ERRNO_KEEPER_H_
