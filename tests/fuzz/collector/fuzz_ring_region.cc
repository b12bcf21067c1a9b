// Changes the region of a service with rings in user space, at places that the input chooses, and
// checks what the reader delivers between the changes. The input is a list of steps: a number that
// selects a part of the region or a call, an index, an offset, a size, and the bytes to write.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "libeventheader/base/ring_layout.h"
#include "tests/support/eventheader/ring_peer.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/ring/ring_region.h"

namespace {

namespace ring = eh::internal::ring;

constexpr std::uint32_t kChunks = 4;

void Require(bool promise) {
  if (!promise) std::abort();
}

void FillHeader(int fd) {
  const ring::Header header = tests::CorrectHeader(kChunks);
  Require(pwrite(fd, &header, sizeof(header), 0) == sizeof(header));
}

// One step of the input.
struct Step {
  std::uint8_t kind;
  std::uint8_t index;
  std::uint16_t offset;
  std::uint8_t size;
};

// Returns the offset in the region at which the step writes; 0 if the step is a call.
std::uint64_t PlaceOf(const Step& step) {
  switch (step.kind % 10) {
    case 0:
      return ring::kServiceOffset + step.offset % sizeof(ring::ServicePage);
    case 1:
      return ring::kWritersOffset + (step.index % 8) * sizeof(ring::Writer) + step.offset % 64;
    case 2:
      return ring::kControlsOffset + (step.index % kChunks) * sizeof(ring::ChunkControl) +
             step.offset % 64;
    case 3:
      return ring::kChunksOffset + std::uint64_t{step.index % kChunks} * ring::kChunkBytes +
             step.offset % ring::kChunkBytes;
    case 4:
      return ring::kSetNamesOffset + (step.index % 8) * ring::kNameBytes + step.offset % 300;
    case 5:
      return ring::kCollectorOffset + step.offset % sizeof(ring::CollectorPage);
    default:
      return 0;
  }
}

// Reads the region twice, and checks each event. Leaves events whose first byte is `left` in the
// region; -1: leaves none.
void Read(collector::RingRegion* region, int left = -1) {
  std::size_t records = 0;
  std::size_t not_taken = 0;
  const auto consume = [&](const collector::RingRecord& record) {
    Require(record.event.size() >= 8 && record.event.size() <= ring::kMaxEventBytes);
    Require(record.set < ring::kMaxSets);
    // Touches the first and last byte, for AddressSanitizer.
    volatile std::byte sum = record.event.front() ^ record.event.back();
    static_cast<void>(sum);
    ++records;
    if (static_cast<int>(record.event.front()) != left) return true;
    ++not_taken;
    return false;
  };
  const auto lose = [&](const collector::RingWriter&, std::uint64_t lost, std::uint64_t /*next*/) {
    Require(lost > 0 && lost <= std::uint64_t{1} << 40);
  };
  bool has_more = true;
  for (int i = 0; i < 2 && has_more; ++i) {
    not_taken = 0;
    has_more = region->Read(ring::kChunkBytes, consume, lose);
    Require(region->left_events() == (not_taken != 0));
  }
  Require(records <= kChunks * 2 * ring::kChunkBytes / ring::RecordBytes(8));
  Require(region->used_chunks() <= kChunks && region->complete_chunks() <= region->used_chunks());
  region->ReadNames(64, [](std::uint32_t set, std::string_view name) {
    Require(set < ring::kMaxSets && name.size() < ring::kNameBytes);
    Require(
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
        std::string_view::npos);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  Require(fd >= 0 && ftruncate(fd, static_cast<off_t>(ring::RegionBytes(kChunks))) == 0);
  FillHeader(fd);
  Require(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  // The service's descriptor, through which it changes the region.
  const base::UniqueFd service(fcntl(fd, F_DUPFD_CLOEXEC, 3));
  auto opened = collector::RingRegion::Open(base::UniqueFd(fd), {});
  Require(opened.ok());
  collector::RingRegion& region = **opened;
  std::span<const std::uint8_t> rest(bytes, size);
  while (rest.size() >= sizeof(Step)) {
    Step step{rest[0], rest[1], static_cast<std::uint16_t>(rest[2] | rest[3] << 8), rest[4]};
    rest = rest.subspan(5);
    const std::uint64_t place = PlaceOf(step);
    const auto content = rest.first(std::min<std::size_t>(
        {step.size, rest.size(), static_cast<std::size_t>(ring::RegionBytes(kChunks) - place)}));
    if (place != 0) {
      rest = rest.subspan(content.size());
      Require(pwrite(service.get(), content.data(), content.size(), static_cast<off_t>(place)) ==
              static_cast<ssize_t>(content.size()));
    } else if (step.kind % 10 == 6) {
      Read(&region, step.offset % 2 == 0 ? -1 : step.index);
    } else if (step.kind % 10 == 7) {
      if (step.size % 2 == 0) region.Mark();
      Read(&region);
      if (step.size % 2 == 0) {
        region.GiveBackMarked();
      } else {
        region.GiveBack();
      }
    } else if (step.kind % 10 == 8) {
      static_cast<void>(region.ReadName(step.offset));
    } else {
      static_cast<void>(region.ArmBell(step.index));
      region.SetEnabled(step.offset, step.size % 2 == 0);
      static_cast<void>(region.CountUsers(step.offset));
    }
  }
  Read(&region);
  region.GiveBack();
  return 0;
}
