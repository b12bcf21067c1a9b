// Makes regions, the shared memory in which a service passes events to the collector, without the
// library. Tests of hostile services can therefore make wrong regions.
#ifndef TESTS_SUPPORT_EVENTHEADER_HANDMADE_REGION_H_
#define TESTS_SUPPORT_EVENTHEADER_HANDMADE_REGION_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "libeventheader/base/ring_layout.h"
#include "tests/support/eventheader/ring_peer.h"
#include "tools/base/unique_fd.h"

namespace tests {

namespace ring = eh::internal::ring;

inline constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
inline constexpr std::uint32_t kChunks = 32;

inline ring::Header CorrectHeader() { return CorrectHeader(kChunks); }

inline base::UniqueFd MakeRegion(const ring::Header& header, int seals = kSeals,
                                 std::uint64_t bytes = ring::RegionBytes(kChunks)) {
  base::UniqueFd fd(memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(pwrite(fd.get(), &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

}  // namespace tests

#endif  // TESTS_SUPPORT_EVENTHEADER_HANDMADE_REGION_H_
