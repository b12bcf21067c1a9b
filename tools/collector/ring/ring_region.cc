#include "tools/collector/ring/ring_region.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tools/base/status_macros.h"

namespace collector {
namespace {

namespace ring = eh::internal::ring;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
// Seals that a region must have. Without them, a service could shrink the file while the collector
// accesses its mapping, which would raise SIGBUS.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// Maximum number of events that can be lost at once. A larger gap between two event numbers is
// counted as corrupt, not as a loss.
constexpr std::uint64_t kMostLost = std::uint64_t{1} << 40;

absl::Status NotARegion(const std::string& why) {
  return absl::InvalidArgumentError("the descriptor of the service is not a region: " + why);
}

// Fills `out` with the bytes of the file from `offset` on. Returns false if the file has fewer
// bytes, or on an error.
bool ReadAt(int fd, std::uint64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t got = pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

absl::Status CheckHeader(const ring::Header& header, std::uint64_t bytes) {
  if (std::memcmp(header.magic, ring::kMagic, sizeof(ring::kMagic)) != 0) {
    return NotARegion("it does not begin with EHRING1");
  }
  if (header.version != ring::kVersion) {
    return NotARegion("version " + std::to_string(header.version) + " is not supported");
  }
  const bool is_right =
      header.header_bytes == sizeof(ring::Header) && header.region_bytes == bytes &&
      header.chunk_bytes == ring::kChunkBytes && header.clock == ring::kClockMonotonic &&
      header.chunk_count >= 1 && header.chunk_count <= ring::kMaxChunks &&
      bytes == ring::RegionBytes(header.chunk_count) &&
      header.collector_offset == ring::kCollectorOffset &&
      header.service_offset == ring::kServiceOffset &&
      header.set_users_offset == ring::kSetUsersOffset &&
      header.set_names_offset == ring::kSetNamesOffset &&
      header.writers_offset == ring::kWritersOffset &&
      header.controls_offset == ring::kControlsOffset &&
      header.chunks_offset == ring::kChunksOffset && header.max_sets == ring::kMaxSets &&
      header.max_writers == ring::kMaxWriters;
  return is_right ? absl::OkStatus() : NotARegion("its header is not that of version 1");
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Returns the number nearest to `near` whose lower 32 bits are `low`.
std::uint64_t Extend(std::uint64_t near, std::uint32_t low) {
  const auto difference = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(difference));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingRegion>> RingRegion::Open(base::UniqueFd fd,
                                                             const Limits& limits) {
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0) return NotARegion("it is not a memfd");
  // Rejects a memfd of huge pages, which is in hugetlbfs: the memory of its chunks could not be
  // allocated in small parts.
  struct statfs system;
  if (fstatfs(fd.get(), &system) != 0 || system.f_type != TMPFS_MAGIC) {
    return NotARegion("its pages are not normal pages");
  }
  if ((seals & kSeals) != kSeals) return NotARegion("it is not sealed");
  const int flags = fcntl(fd.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || (seals & F_SEAL_WRITE) != 0) {
    return NotARegion("it cannot be written");
  }
  struct stat status;
  if (fstat(fd.get(), &status) != 0)
    return base::ErrnoStatus(errno, "reading the size of the shared memory: fstat");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || bytes < ring::RegionBytes(1))
    return NotARegion("it is too small");
  if (bytes > limits.region_bytes) {
    return absl::OutOfRangeError("the service's region of " + std::to_string(bytes) +
                                 " bytes is larger than the limit of " +
                                 std::to_string(limits.region_bytes) + " bytes");
  }
  ring::Header header;
  if (!ReadAt(fd.get(), 0, std::as_writable_bytes(std::span(&header, 1)))) {
    return NotARegion("it cannot be read");
  }
  RETURN_IF_ERROR(CheckHeader(header, bytes));
  auto region = std::unique_ptr<RingRegion>(new RingRegion);
  region->chunk_count_ = header.chunk_count;
  std::copy(std::begin(header.id), std::end(header.id), region->id_.begin());
  // Maps only the parts before the names. fallocate() gives them memory, and reports an error if
  // memory runs out. Without fallocate(), access to a hole in the mapping would raise SIGBUS in
  // that case.
  region->mapped_bytes_ =
      ring::kControlsOffset + std::size_t{header.chunk_count} * sizeof(ring::ChunkControl);
  if (fallocate(fd.get(), 0, 0, static_cast<off_t>(region->mapped_bytes_)) != 0) {
    return base::ErrnoStatus(errno, "cannot allocate the memory of the service's region");
  }
  void* const map =
      mmap(nullptr, region->mapped_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (map == MAP_FAILED) return base::ErrnoStatus(errno, "cannot map the service's region");
  region->base_ = static_cast<std::byte*>(map);
  region->fd_ = std::move(fd);
  region->expected_.resize(ring::kMaxWriters);
  region->chunks_.resize(header.chunk_count);
  region->copy_.resize(ring::kChunkBytes);
  // Makes writers search for free chunks again: a previous collector may have freed chunks, and
  // ended before it incremented this count.
  region->had_collector_ = region->collector_page().give_backs.fetch_add(1, kRelease) != 0;
  return region;
}

RingRegion::~RingRegion() {
  if (base_ != nullptr) munmap(base_, mapped_bytes_);
}

ring::CollectorPage& RingRegion::collector_page() const {
  return *reinterpret_cast<ring::CollectorPage*>(base_ + ring::kCollectorOffset);
}
const ring::ServicePage& RingRegion::service_page() const {
  return *reinterpret_cast<const ring::ServicePage*>(base_ + ring::kServiceOffset);
}
ring::Writer& RingRegion::writer(std::uint32_t index) const {
  return reinterpret_cast<ring::Writer*>(base_ + ring::kWritersOffset)[index];
}
ring::ChunkControl& RingRegion::control(std::uint32_t index) const {
  return reinterpret_cast<ring::ChunkControl*>(base_ + ring::kControlsOffset)[index];
}

bool RingRegion::ReadNames(std::size_t most, Name name) {
  const std::uint32_t count = CountNames();
  for (; names_read_ < count && most > 0; ++names_read_, --most) {
    name(names_read_, ReadName(names_read_));
  }
  return names_read_ < count;
}

std::uint32_t RingRegion::CountNames() const {
  return std::min(service_page().set_count.load(kAcquire), ring::kMaxSets);
}

std::string RingRegion::ReadName(std::uint32_t set) const {
  char text[ring::kNameBytes];
  const std::uint64_t offset = ring::kSetNamesOffset + std::uint64_t{set} * ring::kNameBytes;
  if (!ReadAt(fd_.get(), offset, std::as_writable_bytes(std::span(text)))) return "";
  const std::size_t size = strnlen(text, sizeof(text));
  if (size == sizeof(text) || !std::all_of(text, text + size, IsNameCharacter)) return "";
  return {text, size};
}

std::uint32_t RingRegion::CountUsers(std::uint32_t set) const {
  if (set >= ring::kMaxSets) return 0;
  const auto* const users =
      reinterpret_cast<const std::atomic<std::uint32_t>*>(base_ + ring::kSetUsersOffset);
  return users[set].load(kRelaxed);
}

void RingRegion::SetEnabled(std::uint32_t set, bool enabled) {
  if (set >= ring::kMaxSets) return;
  std::atomic<std::uint64_t>& word = collector_page().enable[set / 64];
  const std::uint64_t mask = std::uint64_t{1} << (set % 64);
  if (enabled) {
    word.fetch_or(mask, kRelaxed);
  } else {
    word.fetch_and(~mask, kRelaxed);
  }
}

void RingRegion::DisableAll() {
  collector_page().sets_read.store(0, kRelaxed);
  for (std::atomic<std::uint64_t>& word : collector_page().enable) word.store(0, kRelaxed);
}

void RingRegion::PublishEnabled() { collector_page().sets_read.store(names_read_, kRelease); }

bool RingRegion::Read(std::size_t most_bytes, Consume consume, Lose lose) {
  // Loads the counts of the writers before it lists the chunks. Each event that these counts
  // include, and that is not lost, is then already committed in a listed chunk. All earlier unread
  // chunks of the same writer are then complete, and are listed too.
  const std::uint64_t lost = service_page().lost_without_writer.load(kRelaxed);
  ReadWriters();
  ListChunks();
  ++reads_;
  left_events_ = false;
  std::size_t bytes = 0;
  for (const std::uint32_t index : listed_) {
    if (bytes >= most_bytes) return true;
    bytes += ReadChunk(index, consume);
  }
  ReadTrailingLosses(lose);
  if (lost_without_writer_ == 0) {
    lost_without_writer_ = collector_page().accounted_without_writer.load(kRelaxed);
  }
  if (lost > lost_without_writer_) {
    lose({}, std::min(lost - lost_without_writer_, kMostLost), lost);
    lost_without_writer_ = lost;
  }
  return false;
}

// Copies the counts of all writers that are active or have ended to seen_.
void RingRegion::ReadWriters() {
  seen_.clear();
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const ring::Writer& from = writer(i);
    const std::uint32_t state = from.state.load(kAcquire);
    if (state != ring::kWriterActive && state != ring::kWriterExited) continue;
    const std::uint64_t lost_nested = from.lost_nested.load(kRelaxed);
    const std::uint64_t next = from.calls.load(kAcquire);
    const RingWriter claimed{from.ordinal.load(kRelaxed), from.tid.load(kRelaxed),
                             from.depth.load(kRelaxed)};
    seen_.push_back({claimed, i, next, lost_nested, state == ring::kWriterExited});
  }
}

// Lists the chunks that may have unread records, oldest first.
void RingRegion::ListChunks() {
  listed_.clear();
  used_chunks_ = 0;
  complete_chunks_ = 0;
  completed_ = service_page().completed.load();
  const std::uint64_t last_serial = service_page().last_serial.load(kAcquire);
  usable_chunks_ = std::min(service_page().usable_chunks.load(kAcquire), chunk_count_);
  for (std::uint32_t i = 0; i < usable_chunks_; ++i) {
    const ring::ChunkControl& from = control(i);
    if (chunks_[i].done) continue;
    const std::uint32_t state = from.state.load(kAcquire);
    if (state != ring::kWriting && state != ring::kComplete) continue;
    ++used_chunks_;
    if (state == ring::kComplete) ++complete_chunks_;
    ChunkInfo& info = chunks_[i];
    if (!info.known) {
      if (from.serial.load(kRelaxed) > last_serial) continue;
      info = {};
      info.known = true;
      info.serial = from.serial.load(kRelaxed);
      info.next = from.first.load(kRelaxed);
      info.writer = {from.ordinal.load(kRelaxed), from.tid.load(kRelaxed),
                     from.depth.load(kRelaxed)};
      info.writer_index = from.writer.load(kRelaxed) % ring::kMaxWriters;
    }
    // Records that are committed later wait for the next Read(), so that all chunks are read up to
    // about the same time. `state` was loaded before `committed`: if it was kComplete, `committed`
    // is final.
    info.is_complete = state == ring::kComplete;
    info.committed = from.committed.load(kAcquire);
    listed_.push_back(i);
  }
  std::sort(listed_.begin(), listed_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return chunks_[a].serial < chunks_[b].serial;
  });
}

// Returns how far the events of the writer with this index have been read. If the index belonged to
// another writer before, starts with the first event that no collector has accounted for.
RingRegion::Expected& RingRegion::ExpectedOf(std::uint32_t index, const RingWriter& claimed) {
  Expected& expected = expected_[index];
  if (expected.ordinal != claimed.ordinal) {
    expected = {claimed.ordinal, 0, 0};
    // A previous collector may have accounted for the writer's first events, and stored their
    // number in the region.
    if (writer(index).ordinal.load(kRelaxed) == claimed.ordinal) {
      expected.number = writer(index).accounted.load(kAcquire);
      expected.nested = writer(index).accounted_nested.load(kRelaxed);
    }
  }
  return expected;
}

std::size_t RingRegion::ReadChunk(std::uint32_t index, Consume consume) {
  ChunkInfo& info = chunks_[index];
  if (ExpectedOf(info.writer_index, info.writer).left == reads_) return 0;
  std::uint32_t committed = info.committed;
  if (committed > ring::kChunkBytes || committed % 8 != 0 || committed < info.read) {
    ++corrupt_;
    committed = info.read;
  }
  const std::span<std::byte> copy(copy_.data(), committed - info.read);
  if (!copy.empty()) {
    const std::uint64_t offset =
        ring::kChunksOffset + std::uint64_t{index} * ring::kChunkBytes + info.read;
    std::size_t read = copy.size();
    if (ReadAt(fd_.get(), offset, copy)) {
      read = Parse(&info, copy, consume);
    } else {
      ++corrupt_;
    }
    info.read += static_cast<std::uint32_t>(read);
  }
  info.done = info.is_complete && info.read == committed;
  return copy.size();
}

std::size_t RingRegion::Parse(ChunkInfo* info, std::span<const std::byte> bytes, Consume consume) {
  Expected& expected = ExpectedOf(info->writer_index, info->writer);
  std::size_t at = 0;
  while (bytes.size() - at >= sizeof(ring::Record)) {
    ring::Record record;
    std::memcpy(&record, bytes.data() + at, sizeof(record));
    const std::uint32_t size = ring::RecordBytes(record.size);
    if (record.size < 8 || record.size > ring::kMaxEventBytes || size > bytes.size() - at ||
        record.set >= ring::kMaxSets) {
      break;
    }
    const std::uint64_t number = Extend(info->next, record.number);
    if (number < info->next || number - info->next > kMostLost) break;
    // Passes only events that neither this nor a previous collector has accounted for.
    if (number >= expected.number) [[likely]] {
      const std::uint64_t lost = number - expected.number;
      if (!consume({info->writer, number, lost > kMostLost ? 0 : lost, record.timestamp, record.set,
                    record.cpu, bytes.subspan(at + sizeof(record), record.size)})) {
        expected.left = reads_;
        left_events_ = true;
        return at;
      }
      expected.number = number + 1;
      if (lost > kMostLost) ++corrupt_;
    }
    info->next = number + 1;
    at += size;
  }
  if (at != bytes.size()) ++corrupt_;
  return bytes.size();
}

// Reports losses after the last event of each writer, and lists the writers that have ended.
void RingRegion::ReadTrailingLosses(Lose lose) {
  finished_writers_.clear();
  for (const Seen& seen : seen_) {
    Expected& expected = ExpectedOf(seen.index, seen.writer);
    if (expected.left == reads_) continue;
    const std::uint64_t from = expected.number;
    if (seen.next > from) {
      if (seen.next - from > kMostLost) {
        ++corrupt_;
      } else {
        lose(seen.writer, seen.next - from, seen.next);
      }
      expected.number = seen.next;
    }
    lost_nested_ +=
        std::min(seen.lost_nested - std::min(seen.lost_nested, expected.nested), kMostLost);
    if (seen.lost_nested > expected.nested) {
      lose(seen.writer, std::min(seen.lost_nested - expected.nested, kMostLost), kNoNumber);
      expected.nested = seen.lost_nested;
    }
    if (seen.exited) finished_writers_.push_back(seen.index);
  }
}

std::vector<RingRegion::Progress> RingRegion::ReadProgress() const {
  std::vector<Progress> all;
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const ring::Writer& from = writer(i);
    const std::uint32_t state = from.state.load(kAcquire);
    const std::uint64_t ordinal = from.ordinal.load(kRelaxed);
    if (ordinal == 0 || state == ring::kWriterClaiming) continue;
    const bool was_read = expected_[i].ordinal == ordinal;
    const std::uint64_t number = was_read ? expected_[i].number : from.accounted.load(kAcquire);
    if (number == 0) continue;
    all.push_back({{ordinal, from.tid.load(kRelaxed), from.depth.load(kRelaxed)},
                   number,
                   state == ring::kWriterFree});
  }
  return all;
}

bool RingRegion::WasUsed() const { return service_page().last_serial.load(kRelaxed) != 0; }

std::vector<std::uint64_t> RingRegion::Mark() {
  std::vector<std::uint64_t> ordinals;
  for (const Seen& seen : seen_) {
    const Expected& expected = expected_[seen.index];
    if (expected.ordinal == seen.writer.ordinal) {
      marked_.push_back({seen.index, expected.number, expected.nested});
    }
    // finished_writers_ is sorted, because its indices were added in the order of seen_.
    if (std::binary_search(finished_writers_.begin(), finished_writers_.end(), seen.index)) {
      ordinals.push_back(seen.writer.ordinal);
    }
  }
  marked_finished_ = std::exchange(finished_writers_, {});
  marked_without_writer_ = lost_without_writer_;
  for (ChunkInfo& chunk : chunks_) chunk.marked = chunk.known && chunk.done;
  seen_.clear();
  return ordinals;
}

// The service does not change the state of a complete chunk or of a writer that has ended. So the
// marked chunks and writers have not changed since Mark().
void RingRegion::GiveBackMarked() {
  for (const Marked& marked : std::exchange(marked_, {})) {
    writer(marked.index).accounted_nested.store(marked.nested, kRelaxed);
    writer(marked.index).accounted.store(marked.number, kRelease);
  }
  collector_page().accounted_without_writer.store(marked_without_writer_, kRelaxed);
  bool any = false;
  for (std::uint32_t i = 0; i < usable_chunks_; ++i) {
    if (!std::exchange(chunks_[i].marked, false)) continue;
    chunks_[i].known = false;
    chunks_[i].done = false;
    control(i).state.store(ring::kFree, kRelease);
    any = true;
  }
  for (const std::uint32_t index : marked_finished_) {
    writer(index).state.store(ring::kWriterFree, kRelease);
    std::erase(finished_writers_, index);
    std::erase_if(seen_, [index](const Seen& seen) { return seen.index == index; });
  }
  marked_finished_.clear();
  if (any) collector_page().give_backs.fetch_add(1, kRelease);
}

bool RingRegion::ArmBell(std::uint32_t chunks) {
  const std::uint64_t at = completed_ + std::max(chunks, 1U);
  collector_page().bell_at.store(at);
  return service_page().completed.load() >= at;
}

}  // namespace collector
