// Makes the header of a region (the shared memory of a service's rings), and sends packets with
// descriptors, as a service does, but without the library. Fuzzers use this file, so it does not
// need GoogleTest.
#ifndef TESTS_SUPPORT_EVENTHEADER_RING_PEER_H_
#define TESTS_SUPPORT_EVENTHEADER_RING_PEER_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "libeventheader/base/ring_layout.h"

namespace tests {

// Returns the header of a region with that number of chunks.
inline eh::internal::ring::Header CorrectHeader(std::uint32_t chunks) {
  namespace ring = eh::internal::ring;
  ring::Header header{};
  std::memcpy(header.magic, ring::kMagic, sizeof(header.magic));
  header.version = ring::kVersion;
  header.header_bytes = sizeof(header);
  header.region_bytes = ring::RegionBytes(chunks);
  header.chunk_bytes = ring::kChunkBytes;
  header.chunk_count = chunks;
  header.clock = ring::kClockMonotonic;
  header.collector_offset = ring::kCollectorOffset;
  header.service_offset = ring::kServiceOffset;
  header.set_users_offset = ring::kSetUsersOffset;
  header.set_names_offset = ring::kSetNamesOffset;
  header.writers_offset = ring::kWritersOffset;
  header.controls_offset = ring::kControlsOffset;
  header.chunks_offset = ring::kChunksOffset;
  header.max_sets = ring::kMaxSets;
  header.max_writers = ring::kMaxWriters;
  return header;
}

// Sends a packet with descriptors, at most 64. Returns the result of sendmsg.
inline ssize_t SendPacket(int socket, std::span<const std::byte> bytes, std::span<const int> fds,
                          int flags) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * 64)] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = room;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(control), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket, &header, flags);
}

}  // namespace tests

#endif  // TESTS_SUPPORT_EVENTHEADER_RING_PEER_H_
