// Keeps the value of errno in functions that services call, so that the library does not disturb
// their error handling.
#ifndef LIBEVENTHEADER_BASE_ERRNO_KEEPER_H_
#define LIBEVENTHEADER_BASE_ERRNO_KEEPER_H_

#include <cerrno>

namespace eh::internal {

// Saves errno when it is constructed, and restores it when it is destroyed.
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
