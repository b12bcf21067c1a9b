// Makes the queues of sockets as small as the kernel can, as it does if the sysctl
// net.core.wmem_max is low: a queue has 4608 bytes. Programs load this library first.
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

// Replaces the function of the C library.
int setsockopt(int fd, int level, int name, const void* value, socklen_t size) {
  static const int kLeast = 1;
  const int is_queue = level == SOL_SOCKET && name == SO_SNDBUF;
  return (int)syscall(SYS_setsockopt, fd, level, name, is_queue ? &kLeast : value, size);
}
