#include "tools/collector/ring/ring_mirror.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "libeventheader/base/ring_queue.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

namespace ring = eh::internal::ring;

// Memory order of all accesses to the copy. No stronger order is needed, because only one thread
// accesses the copy.
constexpr auto kAnyOrder = std::memory_order_relaxed;
constexpr std::uint32_t kNamesEnd = ring::kSetNamesOffset + ring::kMaxSets * ring::kNameBytes;

// Collects Patches (ring_layout.h), which are changes of bytes of the region, and passes them in
// messages of at most `max_payload` bytes.
class PatchWriter {
 public:
  using Send = absl::FunctionRef<void(std::span<const std::byte>)>;
  PatchWriter(std::uint32_t max_payload, Send send) : max_payload_(max_payload), send_(send) {}

  void Add(std::uint64_t offset, std::span<const std::byte> bytes) {
    const ring::Patch patch{static_cast<std::uint32_t>(offset),
                            static_cast<std::uint32_t>(bytes.size())};
    const std::size_t room = ring::PatchBytes(patch.size);
    if (bytes_.size() + room > max_payload_) Flush();
    const std::size_t at = bytes_.size();
    bytes_.resize(at + room);
    std::memcpy(bytes_.data() + at, &patch, sizeof(patch));
    std::memcpy(bytes_.data() + at + sizeof(patch), bytes.data(), bytes.size());
  }
  template <typename Value>
  void AddValue(std::uint64_t offset, const Value& value) {
    Add(offset, std::as_bytes(std::span(&value, 1)));
  }
  void Flush() {
    if (!bytes_.empty()) send_(bytes_);
    bytes_.clear();
  }

 private:
  const std::uint32_t max_payload_;
  Send send_;
  std::vector<std::byte> bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<RingMirror>> RingMirror::Create(std::span<const std::byte> hello,
                                                               std::uint32_t chunks) {
  ring::InlineHello claimed;
  if (hello.size() < sizeof(claimed)) {
    return absl::InvalidArgumentError("the service's message Hello is too short");
  }
  std::memcpy(&claimed, hello.data(), sizeof(claimed));
  if (claimed.usable_chunks > ring::kMaxChunks) {
    return absl::InvalidArgumentError("the service claims more chunks of memory than it may have");
  }
  auto mirror = std::unique_ptr<RingMirror>(new RingMirror);
  // The copy may have fewer chunks than the service's region.
  mirror->chunk_count_ = std::min(std::max({chunks, claimed.usable_chunks, ring::kFirstChunks}),
                                  std::clamp(claimed.header.chunk_count, 1U, ring::kMaxChunks));
  mirror->created_ = claimed.header.created;
  claimed.header.chunk_count = mirror->chunk_count_;
  mirror->region_bytes_ = ring::RegionBytes(mirror->chunk_count_);
  claimed.header.region_bytes = mirror->region_bytes_;
  mirror->controls_end_ =
      ring::kControlsOffset + std::size_t{mirror->chunk_count_} * sizeof(ring::ChunkControl);
  mirror->fd_ = base::UniqueFd(memfd_create("nettrace", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!mirror->fd_.valid()) {
    return base::DescriptorStatus(errno,
                                  "cannot create a copy of the service's region: memfd_create");
  }
  const int fd = mirror->fd_.get();
  if (ftruncate(fd, static_cast<off_t>(mirror->region_bytes_)) != 0 ||
      fallocate(fd, 0, 0, static_cast<off_t>(mirror->controls_end_)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return base::ErrnoStatus(errno, "cannot allocate a copy of the service's region");
  }
  void* const map = mmap(nullptr, mirror->region_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) return base::ErrnoStatus(errno, "cannot map a copy of the region");
  mirror->base_ = static_cast<std::byte*>(map);
  std::memcpy(mirror->base_, &claimed.header, sizeof(claimed.header));
  mirror->collector_page().give_backs.store(claimed.give_backs, kAnyOrder);
  mirror->collector_page().accounted_without_writer.store(claimed.accounted_without_writer,
                                                          kAnyOrder);
  reinterpret_cast<ring::ServicePage*>(mirror->base_ + ring::kServiceOffset)
      ->last_serial.store(claimed.last_serial, kAnyOrder);
  mirror->has_memory_.resize(mirror->region_bytes_ / ring::kChunkBytes);
  mirror->chunk_states_.resize(mirror->chunk_count_);
  mirror->writer_states_.resize(ring::kMaxWriters);
  mirror->sent_.resize(ring::kMaxWriters);
  return mirror;
}

std::uint64_t RingMirror::MemoryOf(std::uint32_t chunks) {
  // Allocate() allocates memory in units of kChunkBytes. The names may begin and end within a unit,
  // so two units are added to their size.
  return std::uint64_t{ring::kControlsOffset} + ring::kMaxSets * ring::kNameBytes +
         2 * ring::kChunkBytes +
         std::uint64_t{chunks} * (sizeof(ring::ChunkControl) + ring::kChunkBytes);
}

RingMirror::~RingMirror() {
  if (base_ != nullptr) munmap(base_, region_bytes_);
}

base::UniqueFd RingMirror::Duplicate() const {
  return base::UniqueFd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
}

std::string RingMirror::ReasonOf(std::uint64_t flags) {
  const int error = static_cast<int>(flags >> 16 & 0xFFFF);
  const std::string cause =
      error == 0 ? "" : absl::StrCat(": ", std::generic_category().message(error));
  switch (static_cast<ring::InlineReason>(flags >> 8 & 0xFF)) {
    case ring::InlineReason::kChosen:
      return "EVENTHEADER_TRANSPORT is ring-inline";
    case ring::InlineReason::kNoMemory:
      return absl::StrCat("the service cannot share memory", cause);
    case ring::InlineReason::kNotSent:
      return absl::StrCat("the service cannot send descriptors", cause);
    case ring::InlineReason::kNotReceived:
      return "the descriptor of the service's memory did not arrive";
    case ring::InlineReason::kNone:
      break;
  }
  return "the service states no reason";
}

ring::CollectorPage& RingMirror::collector_page() const {
  return *reinterpret_cast<ring::CollectorPage*>(base_ + ring::kCollectorOffset);
}
ring::Writer& RingMirror::writer(std::uint32_t index) const {
  return reinterpret_cast<ring::Writer*>(base_ + ring::kWritersOffset)[index];
}
ring::ChunkControl& RingMirror::control(std::uint32_t index) const {
  return reinterpret_cast<ring::ChunkControl*>(base_ + ring::kControlsOffset)[index];
}

bool RingMirror::Contains(std::uint32_t offset, std::uint32_t size) const {
  const std::uint64_t end = std::uint64_t{offset} + size;
  const auto is_in = [&](std::uint64_t first, std::uint64_t last) {
    return offset >= first && end <= last;
  };
  return is_in(ring::kServiceOffset, controls_end_) || is_in(ring::kSetNamesOffset, kNamesEnd) ||
         is_in(ring::kChunksOffset, region_bytes_);
}

bool RingMirror::Allocate(std::uint32_t offset, std::uint32_t size) {
  if (offset < controls_end_) return true;
  const std::uint32_t last = (offset + size - 1) / ring::kChunkBytes;
  for (std::uint32_t i = offset / ring::kChunkBytes; i <= last; ++i) {
    if (has_memory_[i]) continue;
    if (fallocate(fd_.get(), 0, static_cast<off_t>(i) * ring::kChunkBytes, ring::kChunkBytes) !=
        0) {
      return false;
    }
    has_memory_[i] = true;
  }
  return true;
}

bool RingMirror::Apply(std::span<const std::byte> patches) {
  while (!patches.empty()) {
    ring::Patch patch;
    if (patches.size() < sizeof(patch)) return false;
    std::memcpy(&patch, patches.data(), sizeof(patch));
    if (patch.size == 0 || patch.size > ring::kMaxPayload ||
        ring::PatchBytes(patch.size) > patches.size() || !Contains(patch.offset, patch.size) ||
        !Allocate(patch.offset, patch.size)) {
      return false;
    }
    std::memcpy(base_ + patch.offset, patches.data() + sizeof(patch), patch.size);
    Follow(patch.offset, patch.size);
    patches = patches.subspan(ring::PatchBytes(patch.size));
  }
  return true;
}

void RingMirror::Follow(std::uint32_t offset, std::uint32_t size) {
  // Calls `follow` with the index of each array element that contains changed bytes.
  const auto each = [&](std::uint32_t array, std::uint32_t count, std::uint32_t bytes,
                        auto follow) {
    const std::uint64_t last = std::uint64_t{array} + std::uint64_t{count} * bytes;
    std::uint64_t at = std::max(offset, array);
    const std::uint64_t end = std::min(std::uint64_t{offset} + size, last);
    while (at < end) {
      const auto index = static_cast<std::uint32_t>((at - array) / bytes);
      follow(index);
      at = array + (std::uint64_t{index} + 1) * bytes;
    }
  };
  each(ring::kWritersOffset, ring::kMaxWriters, sizeof(ring::Writer), [this](std::uint32_t i) {
    const std::uint64_t ordinal = writer(i).ordinal.load(kAnyOrder);
    writer_states_[i] = writer(i).state.load(kAnyOrder);
    if (sent_[i].ordinal != ordinal) {
      sent_[i] = {ordinal, writer(i).accounted.load(kAnyOrder),
                  writer(i).accounted_nested.load(kAnyOrder)};
    }
    RaiseAccounted(i);
  });
  each(ring::kControlsOffset, chunk_count_, sizeof(ring::ChunkControl),
       [this](std::uint32_t i) { chunk_states_[i] = control(i).state.load(kAnyOrder); });
}

// Sends the numbers of accounted events before the chunks and writers that become free. The service
// may reuse a free chunk or writer at once, and the connection may end after any message. A reused
// writer numbers its events from 0 again.
void RingMirror::TakeChanges(std::uint32_t max_payload,
                             absl::FunctionRef<void(std::span<const std::byte>)> send) {
  static_assert(ring::PatchBytes(sizeof(ring::CollectorPage)) <= ring::kLeastPayload);
  PatchWriter patches(max_payload, send);
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const std::uint64_t offset = ring::kWritersOffset + i * sizeof(ring::Writer);
    ring::Writer& now = writer(i);
    const std::uint64_t numbers[2] = {now.accounted.load(kAnyOrder),
                                      now.accounted_nested.load(kAnyOrder)};
    if (numbers[0] != sent_[i].number || numbers[1] != sent_[i].nested) {
      patches.AddValue(offset + offsetof(ring::Writer, accounted), numbers);
      sent_[i].number = numbers[0];
      sent_[i].nested = numbers[1];
    }
  }
  for (std::uint32_t i = 0; i < chunk_count_; ++i) {
    const std::uint32_t state = control(i).state.load(kAnyOrder);
    if (chunk_states_[i] == ring::kComplete && state == ring::kFree) {
      patches.AddValue(ring::kControlsOffset + i * sizeof(ring::ChunkControl) +
                           offsetof(ring::ChunkControl, state),
                       state);
    }
    chunk_states_[i] = state;
  }
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const std::uint32_t state = writer(i).state.load(kAnyOrder);
    if (writer_states_[i] == ring::kWriterExited && state == ring::kWriterFree) {
      patches.AddValue(
          ring::kWritersOffset + i * sizeof(ring::Writer) + offsetof(ring::Writer, state), state);
    }
    writer_states_[i] = state;
  }
  // Does not send the page if only `bell_at` has changed, because the service ignores `bell_at`.
  ring::CollectorPage& page = collector_page();
  page.bell_at.store(0, kAnyOrder);
  const auto bytes = std::as_bytes(std::span(&page, 1));
  if (!std::equal(bytes.begin(), bytes.end(), sent_page_.begin(), sent_page_.end())) {
    sent_page_.assign(bytes.begin(), bytes.end());
    patches.Add(ring::kCollectorOffset, sent_page_);
  }
  patches.Flush();
}

// Raises the numbers of accounted events of the writer to those that Inherit() has taken over.
void RingMirror::RaiseAccounted(std::uint32_t index) {
  if (inherited_.empty()) return;
  const Accounted& least = inherited_[index];
  ring::Writer& to = writer(index);
  if (least.ordinal == 0 || to.ordinal.load(kAnyOrder) != least.ordinal) return;
  to.accounted.store(std::max(to.accounted.load(kAnyOrder), least.number), kAnyOrder);
  to.accounted_nested.store(std::max(to.accounted_nested.load(kAnyOrder), least.nested), kAnyOrder);
}

void RingMirror::Inherit(const RingMirror& older) {
  inherited_.resize(ring::kMaxWriters);
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const ring::Writer& from = older.writer(i);
    inherited_[i] = {from.ordinal.load(kAnyOrder), from.accounted.load(kAnyOrder),
                     from.accounted_nested.load(kAnyOrder)};
    RaiseAccounted(i);
  }
  std::atomic<std::uint64_t>& lost = collector_page().accounted_without_writer;
  lost.store(std::max(lost.load(kAnyOrder),
                      older.collector_page().accounted_without_writer.load(kAnyOrder)),
             kAnyOrder);
}

}  // namespace collector
