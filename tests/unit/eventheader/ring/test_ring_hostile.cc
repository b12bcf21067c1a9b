// Tests the collector with regions that no correct service would send, and with a service that
// changes its region while the collector reads it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <random>

#include "eventheader/eh.h"
#include "tests/support/eventheader/handmade_region.h"
#include "tests/unit/eventheader/ring/service_process.h"

namespace {

namespace ring = eh::internal::ring;
using base::UniqueFd;
using collector::RingRegion;

using tests::CorrectHeader;
using tests::kChunks;
using tests::kSeals;
using tests::MakeRegion;

std::string ErrorOf(UniqueFd fd) {
  const auto region = RingRegion::Open(std::move(fd), {});
  return region.ok() ? "" : std::string(region.status().message());
}

TEST(RingHostileTest, AcceptsACorrectRegion) {
  EXPECT_EQ(ErrorOf(MakeRegion(CorrectHeader())), "");
}

TEST(RingHostileTest, RejectsDescriptorsOfOtherFiles) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (const int fd : {ends[0], ends[1], open("/dev/zero", O_RDWR), open("/tmp", O_RDONLY),
                       open("/proc/self/exe", O_RDONLY), eventfd(0, 0)}) {
    EXPECT_NE(ErrorOf(UniqueFd(fd)).find("it is not a memfd"), std::string::npos);
  }
  EXPECT_NE(ErrorOf(UniqueFd()).find("it is not a memfd"), std::string::npos);
}

TEST(RingHostileTest, RejectsRegionsThatCanShrinkOrAreReadOnly) {
  for (const int seals :
       {0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_SEAL}) {
    EXPECT_NE(ErrorOf(MakeRegion(CorrectHeader(), seals)).find("it is not sealed"),
              std::string::npos);
  }
  EXPECT_NE(ErrorOf(MakeRegion(CorrectHeader(), kSeals | F_SEAL_WRITE)).find("cannot be written"),
            std::string::npos);
  const UniqueFd fd = MakeRegion(CorrectHeader());
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  EXPECT_NE(ErrorOf(UniqueFd(open(path.c_str(), O_RDONLY))).find("cannot be written"),
            std::string::npos);
}

TEST(RingHostileTest, RejectsWrongSizesAndHeaders) {
  EXPECT_NE(ErrorOf(MakeRegion(CorrectHeader(), kSeals, 4096)).find("too small"),
            std::string::npos);
  EXPECT_NE(ErrorOf(MakeRegion(CorrectHeader(), kSeals, std::uint64_t{1} << 40)).find("larger"),
            std::string::npos);
  EXPECT_NE(ErrorOf(MakeRegion(CorrectHeader(), kSeals, ring::RegionBytes(kChunks + 1)))
                .find("its header is not that of version 1"),
            std::string::npos);
  ring::Header header = CorrectHeader();
  header.magic[0] = 'X';
  EXPECT_NE(ErrorOf(MakeRegion(header)).find("EHRING1"), std::string::npos);
  header = CorrectHeader();
  header.version = 2;
  EXPECT_NE(ErrorOf(MakeRegion(header)).find("version 2"), std::string::npos);
  // Changes each word after the version. The collector must accept changes of pid, time, id and the
  // reserved field only.
  const ring::Header correct = CorrectHeader();
  for (std::size_t at = offsetof(ring::Header, header_bytes); at < sizeof(header); at += 4) {
    const bool is_free =
        (at >= offsetof(ring::Header, pid) && at < offsetof(ring::Header, collector_offset)) ||
        at == offsetof(ring::Header, reserved);
    header = correct;
    reinterpret_cast<char*>(&header)[at] ^= 1;
    EXPECT_EQ(ErrorOf(MakeRegion(header)).empty(), is_free) << at;
  }
}

TEST(RingHostileTest, AServiceMayChangeItsRegionAtAnyMoment) {
  const UniqueFd fd = MakeRegion(CorrectHeader());
  UniqueFd received(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
  const auto opened = RingRegion::Open(std::move(received), {});
  ASSERT_TRUE(opened.ok()) << opened.status();
  RingRegion& region = **opened;
  const pid_t hostile = fork();
  if (hostile == 0) {
    auto* const base = static_cast<char*>(
        mmap(nullptr, ring::RegionBytes(kChunks), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    std::mt19937_64 random(4711);
    const std::uint64_t values[] = {0, 1, 2, 3, 8, 40, 48, 16'384, ~std::uint64_t{0}};
    for (;;) {
      const std::uint64_t r = random();
      // Most changes are to words that the reader uses as offsets, sizes or links.
      static constexpr std::uint64_t kStarts[] = {ring::kServiceOffset,  ring::kWritersOffset,
                                                  ring::kControlsOffset, ring::kControlsOffset,
                                                  ring::kChunksOffset,   ring::kSetNamesOffset};
      static constexpr std::uint64_t kSizes[] = {48, 512, kChunks * 64, kChunks * 64, 65'536, 512};
      const std::size_t part = r % 6;
      const std::uint64_t at = kStarts[part] + ((r >> 8) % kSizes[part] & ~std::uint64_t{3});
      const std::uint64_t value = (r >> 40) % 4 == 0 ? random() : values[(r >> 42) % 9];
      __atomic_store_n(reinterpret_cast<std::uint32_t*>(base + at),
                       static_cast<std::uint32_t>(value), __ATOMIC_RELAXED);
    }
  }
  std::size_t rounds = 0;
  std::uint64_t records = 0;
  unsigned sum = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    std::size_t in_round = 0;
    region.Read(
        1 << 20,
        [&](const collector::RingRecord& record) {
          ++in_round;
          EXPECT_LT(record.set, ring::kMaxSets);
          EXPECT_GE(record.event.size(), 8u);
          EXPECT_LE(record.event.size(), ring::kMaxEventBytes);
          for (const std::byte byte : record.event) sum += static_cast<unsigned>(byte);
          // Leaves some of the events to the next round.
          return sum % 1024 != 0;
        },
        [](const collector::RingWriter&, std::uint64_t lost, std::uint64_t /*next*/) {
          EXPECT_LE(lost, std::uint64_t{1} << 40);
        });
    EXPECT_LE(in_round, std::size_t{kChunks} * ring::kChunkBytes / ring::RecordBytes(8));
    records += in_round;
    region.ReadNames(
        16, [](std::uint32_t, std::string_view name) { EXPECT_LT(name.size(), ring::kNameBytes); });
    if (rounds % 3 == 0) region.GiveBack();
  }
  kill(hostile, SIGKILL);
  waitpid(hostile, nullptr, 0);
  EXPECT_GT(rounds, 0u);
  EXPECT_GT(region.corrupt(), 0u);
  RecordProperty("records", static_cast<int>(records + sum % 2));
}

}  // namespace
