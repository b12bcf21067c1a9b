#include "libeventheader/provider/ring_sender.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "libeventheader/base/ring_queue.h"

namespace eh::internal {

struct RingSender::PageCopy {
  std::uint32_t set_count;
  std::uint32_t usable_chunks;
  std::uint64_t completed;
  std::uint64_t last_serial;
  std::uint64_t last_ordinal;
  std::uint64_t lost_without_writer;
};

struct RingSender::WriterCopy {
  std::uint64_t chunk;  // not copied: the collector does not need it
  std::uint64_t calls;
  std::uint64_t lost_nested;
  std::uint64_t ordinal;
  std::uint32_t state;
  std::uint32_t tid;
  std::uint32_t nested;  // not copied
  std::uint32_t depth;
  std::uint64_t accounted;
  std::uint64_t accounted_nested;
};

struct RingSender::ControlCopy {
  std::uint32_t state;
  std::uint32_t committed;
  std::uint64_t serial;
  std::uint64_t ordinal;
  std::uint64_t first;
  std::uint32_t writer;
  std::uint32_t tid;
  std::uint32_t depth;
  std::uint32_t reserved[5];
};

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
// Maximum number of bytes of a chunk in one Patch.
constexpr std::uint32_t kPieceBytes = 8 * 1024;
// Number of sets whose numbers of registrations are sent in one Patch.
constexpr std::uint32_t kUsersBlock = 16;
// Bytes of a Writer before `accounted`. The service changes the bytes after them only when it
// claims the writer.
constexpr std::size_t kWriterBytes = offsetof(ring::Writer, accounted);

std::uint64_t NowNs() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

ring::ServicePage* PageAt(std::byte* base) noexcept {
  return reinterpret_cast<ring::ServicePage*>(base + ring::kServiceOffset);
}
ring::CollectorPage* CollectorAt(std::byte* base) noexcept {
  return reinterpret_cast<ring::CollectorPage*>(base + ring::kCollectorOffset);
}
ring::Writer* WritersAt(std::byte* base) noexcept {
  return reinterpret_cast<ring::Writer*>(base + ring::kWritersOffset);
}
ring::ChunkControl* ControlsAt(std::byte* base) noexcept {
  return reinterpret_cast<ring::ChunkControl*>(base + ring::kControlsOffset);
}

}  // namespace

struct RingSender::Scratch {
  struct {
    ring::Message message;
    std::byte payload[ring::kMaxPayload];
  } out;
  alignas(8) std::byte in[ring::kMaxPayload];
  // Values of the region when the round began, and the values that were sent (sent_page,
  // sent_writers).
  PageCopy page;
  PageCopy sent_page;
  WriterCopy writers[ring::kMaxWriters];
  WriterCopy sent_writers[ring::kMaxWriters];
  std::uint32_t seen[ring::kMaxWriters];  // indices of the writers in `writers`
  std::uint32_t sent_users[ring::kMaxSets];
  // Arrays of SentChunk and Changed follow, with an element for each chunk.
};

RingSender::SentChunk* RingSender::sent_chunks() const noexcept {
  return reinterpret_cast<SentChunk*>(scratch_ + 1);
}
RingSender::Changed* RingSender::changed() const noexcept {
  return reinterpret_cast<Changed*>(sent_chunks() + chunk_count_);
}
std::byte* RingSender::input() const noexcept { return scratch_->in; }

bool RingSender::Start(std::byte* base, std::uint32_t chunk_count, int socket) noexcept {
  static_assert(ring::PatchBytes(ring::kNameBytes) <= ring::kLeastPayload);
  static_assert(sizeof(WriterCopy) == sizeof(ring::Writer));
  static_assert(sizeof(ControlCopy) == sizeof(ring::ChunkControl));
  static_assert(sizeof(PageCopy) == sizeof(ring::ServicePage));
  // Maps new memory. It is zero, like the collector's copy of the region at this time.
  Close();
  const std::size_t bytes = sizeof(Scratch) + chunk_count * (sizeof(SentChunk) + sizeof(Changed));
  void* const map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return false;
  base_ = base;
  scratch_ = static_cast<Scratch*>(map);
  scratch_bytes_ = bytes;
  chunk_count_ = chunk_count;
  phase_ = Phase::kIdle;
  names_sent_ = 0;
  out_size_ = 0;
  max_payload_ = ring::MaxPayload(socket);
  round_began_ = 0;
  sent_until_ = 0;
  return true;
}

void RingSender::Close() noexcept {
  if (scratch_ != nullptr) munmap(scratch_, scratch_bytes_);
  scratch_ = nullptr;
  base_ = nullptr;
}

ring::InlineHello RingSender::MakeHello() const noexcept {
  ring::InlineHello hello{};
  std::memcpy(&hello.header, base_, sizeof(hello.header));
  hello.give_backs = CollectorAt(base_)->give_backs.load(kRelaxed);
  hello.accounted_without_writer = CollectorAt(base_)->accounted_without_writer.load(kRelaxed);
  hello.last_serial = PageAt(base_)->last_serial.load(kRelaxed);
  hello.usable_chunks = PageAt(base_)->usable_chunks.load(kRelaxed);
  return hello;
}

RingSender::Result RingSender::Pump(int socket) noexcept {
  if (out_size_ != 0 && !Flush(socket)) return Result::kBlocked;
  if (phase_ == Phase::kIdle) {
    sent_until_ = round_began_;
    BeginRound();
  }
  while (phase_ != Phase::kIdle) {
    if (!Run(phase_, socket)) return Result::kBlocked;
    cursor_ = 0;
    phase_ =
        phase_ == Phase::kWriters ? Phase::kIdle : static_cast<Phase>(static_cast<int>(phase_) + 1);
  }
  return out_size_ == 0 || Flush(socket) ? Result::kDone : Result::kBlocked;
}

bool RingSender::SendCounts(int socket) noexcept {
  // Sends the pending Patches first, because the Patches of the counts depend on them.
  if (out_size_ != 0 && !Flush(socket)) return false;
  BeginRound();
  // This function sends no names, so set_count must include only names that were sent before.
  scratch_->page.set_count = names_sent_;
  for (const Phase phase : {Phase::kPage, Phase::kAccounted, Phase::kWriters}) {
    cursor_ = 0;
    if (!Run(phase, socket)) return false;
  }
  return out_size_ == 0 || Flush(socket);
}

// Sends what belongs to a phase of the round, from cursor_ on. Returns false if it cannot be sent.
bool RingSender::Run(Phase phase, int socket) noexcept {
  using Send = bool (RingSender::*)(int) noexcept;
  constexpr Send kSends[] = {&RingSender::SendNames,  &RingSender::SendPage,
                             &RingSender::SendUsers,  &RingSender::SendAccounted,
                             &RingSender::SendChunks, &RingSender::SendWriters};
  return (this->*kSends[static_cast<std::size_t>(phase) - 1])(socket);
}

// Reads the counts before it lists the chunks, so that the listed chunks have the records of all
// events that the counts include. Reads the number of sets last, so that the round sends the names
// of the sets of all these records.
void RingSender::BeginRound() noexcept {
  round_began_ = NowNs();
  const ring::ServicePage& page = *PageAt(base_);
  PageCopy& copy = scratch_->page;
  copy.lost_without_writer = page.lost_without_writer.load(kRelaxed);
  seen_count_ = 0;
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    const ring::Writer& from = WritersAt(base_)[i];
    const std::uint32_t state = from.state.load(kAcquire);
    const bool may_differ =
        state == ring::kWriterActive || state != scratch_->sent_writers[i].state;
    if (state == ring::kWriterClaiming || !may_differ) continue;
    WriterCopy& to = scratch_->writers[i];
    to = {};
    to.state = state;
    to.accounted = from.accounted.load(kRelaxed);
    to.accounted_nested = from.accounted_nested.load(kRelaxed);
    to.ordinal = from.ordinal.load(kRelaxed);
    to.tid = from.tid.load(kRelaxed);
    to.depth = from.depth.load(kRelaxed);
    to.lost_nested = from.lost_nested.load(kRelaxed);
    to.calls = from.calls.load(kAcquire);
    scratch_->seen[seen_count_++] = i;
  }
  copy.completed = page.completed.load();
  copy.last_serial = page.last_serial.load(kAcquire);
  copy.last_ordinal = page.last_ordinal.load(kRelaxed);
  copy.usable_chunks = page.usable_chunks.load(kAcquire);
  ListChunks();
  copy.set_count = std::min(page.set_count.load(kAcquire), ring::kMaxSets);
  phase_ = Phase::kNames;
  cursor_ = 0;
}

// Lists the chunks that have changed, oldest first.
void RingSender::ListChunks() noexcept {
  changed_count_ = 0;
  const std::uint32_t usable = std::min(scratch_->page.usable_chunks, chunk_count_);
  for (std::uint32_t i = 0; i < usable; ++i) {
    const ring::ChunkControl& from = ControlsAt(base_)[i];
    const std::uint32_t state = from.state.load(kAcquire);
    if (state != ring::kWriting && state != ring::kComplete) continue;
    const std::uint64_t serial = from.serial.load(kRelaxed);
    const SentChunk& sent = sent_chunks()[i];
    if (serial > scratch_->page.last_serial) continue;
    const std::uint32_t committed = from.committed.load(kAcquire);
    if (sent.serial == serial && sent.bytes == committed && sent.state == state) continue;
    changed()[changed_count_++] = {serial, i, committed, state};
  }
  std::sort(changed(), changed() + changed_count_,
            [](const Changed& a, const Changed& b) { return a.serial < b.serial; });
}

bool RingSender::SendNames(int socket) noexcept {
  for (; names_sent_ < scratch_->page.set_count; ++names_sent_) {
    const std::uint32_t offset = ring::kSetNamesOffset + names_sent_ * ring::kNameBytes;
    const auto* const name = reinterpret_cast<const char*>(base_ + offset);
    if (!Put(socket, offset, name, strnlen(name, ring::kNameBytes - 1) + 1)) return false;
  }
  return true;
}

bool RingSender::SendPage(int socket) noexcept {
  if (std::memcmp(&scratch_->page, &scratch_->sent_page, sizeof(PageCopy)) == 0) return true;
  if (!Put(socket, ring::kServiceOffset, &scratch_->page, sizeof(PageCopy))) return false;
  scratch_->sent_page = scratch_->page;
  return true;
}

bool RingSender::SendUsers(int socket) noexcept {
  const auto* const users =
      reinterpret_cast<const std::atomic<std::uint32_t>*>(base_ + ring::kSetUsersOffset);
  for (; cursor_ < scratch_->page.set_count; cursor_ += kUsersBlock) {
    std::uint32_t now[kUsersBlock];
    for (std::uint32_t i = 0; i < kUsersBlock; ++i) now[i] = users[cursor_ + i].load(kRelaxed);
    std::uint32_t* const sent = scratch_->sent_users + cursor_;
    if (std::memcmp(now, sent, sizeof(now)) == 0) continue;
    if (!Put(socket, ring::kSetUsersOffset + cursor_ * sizeof(now[0]), now, sizeof(now))) {
      return false;
    }
    std::memcpy(sent, now, sizeof(now));
  }
  return true;
}

// Sends the new writers as if they had written only the events that a collector has accounted for.
// SendWriters() sends their true counts, after SendChunks() has sent their records.
bool RingSender::SendAccounted(int socket) noexcept {
  for (; cursor_ < seen_count_; ++cursor_) {
    const std::uint32_t index = scratch_->seen[cursor_];
    WriterCopy copy = scratch_->writers[index];
    if (copy.ordinal == scratch_->sent_writers[index].ordinal) continue;
    copy.state = ring::kWriterActive;
    copy.calls = copy.accounted;
    copy.lost_nested = copy.accounted_nested;
    if (!Put(socket, ring::kWritersOffset + index * sizeof(copy), &copy, sizeof(copy)))
      return false;
    scratch_->sent_writers[index] = copy;
  }
  return true;
}

bool RingSender::SendChunks(int socket) noexcept {
  const auto max_piece =
      std::min(kPieceBytes, max_payload_ - static_cast<std::uint32_t>(sizeof(ring::Patch)));
  for (; cursor_ < changed_count_; ++cursor_) {
    const Changed& chunk = changed()[cursor_];
    const ring::ChunkControl& from = ControlsAt(base_)[chunk.index];
    // If the owner was claimed after the round began, the collector does not know it yet: its chunk
    // waits for the next round.
    const std::uint32_t writer = from.writer.load(kRelaxed) % ring::kMaxWriters;
    if (scratch_->sent_writers[writer].ordinal != from.ordinal.load(kRelaxed)) continue;
    SentChunk& sent = sent_chunks()[chunk.index];
    if (sent.serial != chunk.serial) sent = {chunk.serial, 0, ring::kFree};
    const std::uint64_t offset =
        ring::kChunksOffset + std::uint64_t{chunk.index} * ring::kChunkBytes;
    while (sent.bytes < chunk.committed) {
      const std::uint32_t piece = std::min(max_piece, chunk.committed - sent.bytes);
      if (!Put(socket, offset + sent.bytes, base_ + offset + sent.bytes, piece)) return false;
      sent.bytes += piece;
    }
    ControlCopy control{};
    control.state = chunk.state;
    control.committed = chunk.committed;
    control.serial = chunk.serial;
    control.ordinal = from.ordinal.load(kRelaxed);
    control.first = from.first.load(kRelaxed);
    control.writer = from.writer.load(kRelaxed);
    control.tid = from.tid.load(kRelaxed);
    control.depth = from.depth.load(kRelaxed);
    if (!Put(socket, ring::kControlsOffset + chunk.index * sizeof(control), &control,
             sizeof(control))) {
      return false;
    }
    sent.state = chunk.state;
  }
  return true;
}

bool RingSender::SendWriters(int socket) noexcept {
  for (; cursor_ < seen_count_; ++cursor_) {
    const std::uint32_t index = scratch_->seen[cursor_];
    const WriterCopy& now = scratch_->writers[index];
    WriterCopy& sent = scratch_->sent_writers[index];
    if (std::memcmp(&now, &sent, kWriterBytes) == 0) continue;
    // Sends only the first kWriterBytes: SendAccounted() has sent the rest, which only the
    // collector changes later.
    if (!Put(socket, ring::kWritersOffset + index * sizeof(now), &now, kWriterBytes)) return false;
    sent = now;
  }
  return true;
}

// Adds a Patch to the message. Sends the message first if it has no room. Returns false if it
// cannot be sent; the Patch was not added then.
bool RingSender::Put(int socket, std::uint64_t offset, const void* bytes,
                     std::size_t size) noexcept {
  const std::uint32_t room = ring::PatchBytes(static_cast<std::uint32_t>(size));
  if (out_size_ + room > max_payload_ && !Flush(socket)) return false;
  std::byte* const to = scratch_->out.payload + out_size_;
  const ring::Patch patch{static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)};
  std::memcpy(to, &patch, sizeof(patch));
  std::memcpy(to + sizeof(patch), bytes, size);
  std::memset(to + sizeof(patch) + size, 0, room - sizeof(patch) - size);
  out_size_ += room;
  return true;
}

// Sends the message with the Patches so far. Returns false if it cannot be sent. If the connection
// has ended, the next receive notices it.
bool RingSender::Flush(int socket) noexcept {
  // If no phase is left, this message completes the round.
  const std::uint64_t sent_until = phase_ == Phase::kIdle ? round_began_ : sent_until_;
  scratch_->out.message = {ring::kMessageMagic, ring::MessageType::kPatch, sent_until,
                           ring::kVersion, static_cast<std::uint32_t>(getpid())};
  const std::size_t size = sizeof(ring::Message) + out_size_;
  if (send(socket, &scratch_->out, size, MSG_DONTWAIT | MSG_NOSIGNAL) !=
      static_cast<ssize_t>(size)) {
    return false;
  }
  out_size_ = 0;
  return true;
}

bool RingSender::Apply(const std::byte* patches, std::size_t size) noexcept {
  while (size != 0) {
    ring::Patch patch;
    if (size < sizeof(patch)) return false;
    std::memcpy(&patch, patches, sizeof(patch));
    if (patch.size > ring::kMaxPayload || ring::PatchBytes(patch.size) > size) return false;
    if (!ApplyOne(patch.offset, patches + sizeof(patch), patch.size)) return false;
    patches += ring::PatchBytes(patch.size);
    size -= ring::PatchBytes(patch.size);
  }
  return true;
}

bool RingSender::ApplyOne(std::uint32_t offset, const std::byte* bytes,
                          std::uint32_t size) noexcept {
  if (offset == ring::kCollectorOffset && size == sizeof(ring::CollectorPage)) {
    ring::CollectorPage& page = *CollectorAt(base_);
    const auto load = [bytes](std::size_t at) {
      std::uint64_t value = 0;
      std::memcpy(&value, bytes + at, sizeof(value));
      return value;
    };
    for (std::size_t i = 0; i < std::size(page.enable); ++i) {
      page.enable[i].store(load(i * sizeof(std::uint64_t)), kRelaxed);
    }
    page.accounted_without_writer.store(
        load(offsetof(ring::CollectorPage, accounted_without_writer)), kRelaxed);
    page.sets_read.store(static_cast<std::uint32_t>(load(offsetof(ring::CollectorPage, sets_read))),
                         kRelease);
    page.give_backs.store(load(offsetof(ring::CollectorPage, give_backs)), kRelease);
    return true;
  }
  const std::uint32_t writer = (offset - ring::kWritersOffset) / sizeof(ring::Writer);
  const std::uint32_t chunk = (offset - ring::kControlsOffset) / sizeof(ring::ChunkControl);
  const std::uint32_t field = offset % 64;
  if (offset >= ring::kWritersOffset && writer < ring::kMaxWriters) {
    ring::Writer& to = WritersAt(base_)[writer];
    if (field == offsetof(ring::Writer, accounted) && size == 2 * sizeof(std::uint64_t)) {
      std::uint64_t values[2];
      std::memcpy(values, bytes, sizeof(values));
      to.accounted_nested.store(values[1], kRelaxed);
      to.accounted.store(values[0], kRelease);
      return true;
    }
    std::uint32_t state = ring::kWriterExited;
    if (field != offsetof(ring::Writer, state) || size != sizeof(state)) return false;
    if (!to.state.compare_exchange_strong(state, ring::kWriterFree)) return false;
    scratch_->sent_writers[writer].state = ring::kWriterFree;
    return true;
  }
  if (offset >= ring::kControlsOffset && chunk < chunk_count_) {
    std::uint32_t state = ring::kComplete;
    return field == offsetof(ring::ChunkControl, state) && size == sizeof(state) &&
           ControlsAt(base_)[chunk].state.compare_exchange_strong(state, ring::kFree);
  }
  return false;
}

}  // namespace eh::internal
