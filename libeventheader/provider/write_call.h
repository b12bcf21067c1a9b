// Makes the system call write without the function write() of the C library, because this function
// is a cancellation point of threads and sets errno.
#ifndef LIBEVENTHEADER_PROVIDER_WRITE_CALL_H_
#define LIBEVENTHEADER_PROVIDER_WRITE_CALL_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace eh::internal {

// Calls write. Returns the bytes written or a negative errno.
inline long WriteCall(int fd, const void* data, std::size_t size) noexcept {
#if defined(__x86_64__)
  long result = SYS_write;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(static_cast<long>(fd)), "S"(data), "d"(size)
               : "rcx", "r11", "memory");
  return result;
#else
  const int saved = errno;
  long result = syscall(SYS_write, fd, data, size);
  if (result < 0) result = -errno;
  errno = saved;
  return result;
#endif
}

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_WRITE_CALL_H_
