// Size of the messages that the queue of a socket can take. Hosts may limit the queue
// (net.core.wmem_max) to much less than ring::kQueueBytes.
#ifndef LIBEVENTHEADER_BASE_RING_QUEUE_H_
#define LIBEVENTHEADER_BASE_RING_QUEUE_H_

#include <sys/socket.h>

#include <algorithm>
#include <cstdint>

#include "libeventheader/base/ring_layout.h"

namespace eh::internal::ring {

// Maximum number of bytes of Patches in a message if the queue of the socket is as small as the
// kernel permits. Each Patch except those of chunks is smaller.
inline constexpr std::uint32_t kLeastPayload = 4 * 1024;

// Returns the size of the queue of messages that were sent to this socket's peer, as the kernel
// counts it: twice the value that setsockopt(SO_SNDBUF) has set. Returns 2 * kQueueBytes if the
// size cannot be read.
inline std::uint32_t QueueSize(int socket) noexcept {
  int queue = 0;
  socklen_t size = sizeof(queue);
  if (getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &queue, &size) != 0) queue = 2 * kQueueBytes;
  return static_cast<std::uint32_t>(std::max(queue, 0));
}

// Returns the maximum number of bytes of Patches in a message to this socket. The kernel rejects a
// message that is longer than the queue less 32 bytes (EMSGSIZE), even if the queue is empty.
inline std::uint32_t MaxPayload(int socket) noexcept {
  constexpr std::uint32_t kOther = 32 + sizeof(Message);
  const std::uint32_t queue = std::max(QueueSize(socket), kOther);
  return std::clamp((queue - kOther) & ~7U, kLeastPayload, kMaxPayload);
}

}  // namespace eh::internal::ring

#endif  // LIBEVENTHEADER_BASE_RING_QUEUE_H_
