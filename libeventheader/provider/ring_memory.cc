#include "libeventheader/provider/ring_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "libeventheader/base/errno_keeper.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

// Location of the memory in which the kernel stores the thread's CPU number (struct rseq). glibc
// defines these symbols since 2.35; elsewhere, their addresses are null.
extern "C" {
[[gnu::weak]] extern const std::ptrdiff_t __rseq_offset;  // NOLINT(bugprone-reserved-identifier)
[[gnu::weak]] extern const unsigned int __rseq_size;      // NOLINT(bugprone-reserved-identifier)
}

namespace eh::internal {
namespace {

using ring::ChunkControl;
using ring::Writer;

// Maximum number of signal handlers that have interrupted each other on a thread, each of them in a
// call of Write(), so that the last one can still write events.
constexpr std::uint32_t kMaxDepth = 3;
// Maximum number of writers that FindWriter() checks. The search is necessary only if the pthread
// key is not below kEarlyKeys.
constexpr std::uint32_t kProbes = 64;
// Minimum number of chunks of a region.
constexpr std::uint32_t kMinChunks = 2;
// glibc stores the values of pthread keys below this number in the thread's control block, without
// allocating.
constexpr pthread_key_t kEarlyKeys = 32;
// Number of low bits of RingMemory::full_at_ that hold CollectorPage::give_backs. The bits above
// them hold the number of usable chunks plus 1.
constexpr int kGiveBackBits = 44;
// Offset of cpu_id in struct rseq.
constexpr std::ptrdiff_t kRseqCpu = 4;

std::uint32_t Tid() noexcept { return static_cast<std::uint32_t>(syscall(SYS_gettid)); }

std::uint64_t Now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Returns a memfd or a negative errno. Uses MFD_NOEXEC_SEAL if the kernel has it: kernels since 6.3
// log a message about memfds that may be executed.
int MakeMemfd() noexcept {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  long fd = syscall(SYS_memfd_create, "eventheader", kFlags | MFD_NOEXEC_SEAL);
  if (fd < 0 && errno == EINVAL) fd = syscall(SYS_memfd_create, "eventheader", kFlags);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

// Halves the number of chunks until RLIMIT_FSIZE permits the region, because a larger file would
// raise SIGXFSZ. Returns the number, which is below kMinChunks if no region is permitted.
std::uint32_t PermittedChunks(std::uint32_t chunks) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return chunks;
  while (chunks >= kMinChunks && ring::RegionBytes(chunks) > limit.rlim_cur) chunks /= 2;
  return chunks;
}

void FillHeader(std::byte* base, std::uint32_t chunks) noexcept {
  auto* const header = new (base) ring::Header{};
  std::memcpy(header->magic, ring::kMagic, sizeof(header->magic));
  header->version = ring::kVersion;
  header->header_bytes = sizeof(ring::Header);
  header->region_bytes = ring::RegionBytes(chunks);
  header->chunk_bytes = ring::kChunkBytes;
  header->chunk_count = chunks;
  header->clock = ring::kClockMonotonic;
  header->pid = static_cast<std::uint32_t>(getpid());
  header->created = Now();
  if (getrandom(header->id, sizeof(header->id), GRND_NONBLOCK) != sizeof(header->id)) {
    // Early in the boot, the kernel has no random numbers yet. Time and pid then identify the
    // region.
    std::memcpy(header->id, &header->created, sizeof(header->created));
    std::memcpy(header->id + sizeof(header->created), &header->pid, sizeof(header->pid));
  }
  header->collector_offset = ring::kCollectorOffset;
  header->service_offset = ring::kServiceOffset;
  header->set_users_offset = ring::kSetUsersOffset;
  header->set_names_offset = ring::kSetNamesOffset;
  header->writers_offset = ring::kWritersOffset;
  header->controls_offset = ring::kControlsOffset;
  header->chunks_offset = ring::kChunksOffset;
  header->max_sets = ring::kMaxSets;
  header->max_writers = ring::kMaxWriters;
}

}  // namespace

constinit RingMemory::ForkPage RingMemory::no_page_;
constinit RingMemory ring_memory;

int RingMemory::Prepare() noexcept {
  if (is_prepared_) return 0;
  const ErrnoKeeper keeper;
  if (const int error = pthread_key_create(&key_, &OnThreadExit)) return error;
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const page =
      mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    pthread_key_delete(key_);
    return ENOMEM;
  }
  // This madvise fails on kernels before 4.14, which do not have MADV_WIPEONFORK. On these kernels,
  // only the fork handlers detect a child, so a child that is not made by fork() remains
  // undetected.
  madvise(page, page_bytes, MADV_WIPEONFORK);
#if defined(__GLIBC__)
  has_early_key_ = key_ < kEarlyKeys;
  if (&__rseq_offset != nullptr && &__rseq_size != nullptr && __rseq_size != 0) {
    rseq_offset_ = __rseq_offset + kRseqCpu;
  }
#else
  has_early_key_ = true;
#endif
  page_.store(new (page) ForkPage, std::memory_order_release);
  is_prepared_ = true;
  return 0;
}

int RingMemory::Create(std::uint32_t chunks) noexcept {
  const ErrnoKeeper keeper;
  chunks = PermittedChunks(std::clamp(chunks, kMinChunks, ring::kMaxChunks));
  if (chunks < kMinChunks) return EFBIG;
  UnmapOld();
  const int fd = MakeMemfd();
  if (fd < 0) return -fd;
  // Maps the region before setting its size: if addresses are scarce, only a smaller region can be
  // mapped, and a sealed memfd cannot change its size.
  void* map = MAP_FAILED;
  for (; chunks >= kMinChunks; chunks /= 2) {
    map = mmap(nullptr, static_cast<std::size_t>(ring::RegionBytes(chunks)), PROT_READ | PROT_WRITE,
               MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) break;
  }
  if (map == MAP_FAILED) {
    close(fd);
    return ENOMEM;
  }
  const std::uint64_t bytes = ring::RegionBytes(chunks);
  auto* const base = static_cast<std::byte*>(map);
  const std::uint64_t shared = ring::kControlsOffset + chunks * sizeof(ChunkControl);
  int error = 0;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0 ||
      fallocate(fd, 0, 0, static_cast<off_t>(shared)) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    error = errno;
    close(fd);
  } else if (!descriptor_.Adopt(fd)) {
    error = EMFILE;
  }
  if (error != 0) {
    munmap(map, static_cast<std::size_t>(bytes));
    return error;
  }
  is_private_ = false;
  Use(base, chunks);
  return 0;
}

int RingMemory::CreatePrivate(std::uint32_t chunks) noexcept {
  const ErrnoKeeper keeper;
  chunks = std::clamp(chunks, kMinChunks, ring::kMaxChunks);
  UnmapOld();
  for (; chunks >= kMinChunks; chunks /= 2) {
    void* const map =
        mmap(nullptr, static_cast<std::size_t>(ring::RegionBytes(chunks)), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) continue;
    is_private_ = true;
    Use(static_cast<std::byte*>(map), chunks);
    return 0;
  }
  return ENOMEM;
}

// In a forked child, unmaps the address range of the parent's region.
void RingMemory::UnmapOld() noexcept {
  if (mapped_ != nullptr) munmap(mapped_, static_cast<std::size_t>(mapped_bytes_));
  mapped_ = nullptr;
}

// Makes writers use the new region at `base`.
void RingMemory::Use(std::byte* base, std::uint32_t chunks) noexcept {
  mapped_ = base;
  mapped_bytes_ = ring::RegionBytes(chunks);
  madvise(base, static_cast<std::size_t>(mapped_bytes_), MADV_DONTFORK);
  FillHeader(base, chunks);
  next_chunk_.store(0, std::memory_order_relaxed);
  full_at_.store(0, std::memory_order_relaxed);
  // Threads may still write to an abandoned region with more chunks, so the count must not shrink.
  if (chunks > chunk_count()) chunk_count_.store(chunks, std::memory_order_relaxed);
  page_.load(std::memory_order_relaxed)->base.store(base, std::memory_order_release);
}

bool RingMemory::Allocate(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  if (is_private_) return true;
  if (!descriptor_.IsOurs()) return false;
  int result = 0;
  do {
    result = fallocate(descriptor_.fd(), 0, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void RingMemory::Grow(std::uint32_t chunks) noexcept {
  const ErrnoKeeper keeper;
  std::byte* const base = Base();
  if (base == nullptr) return;
  std::uint32_t usable = usable_chunks();
  chunks = std::min(chunks, static_cast<std::uint32_t>((mapped_bytes_ - ring::kChunksOffset) /
                                                       ring::kChunkBytes));
  // Allocates the memory now: if there is none, fallocate reports an error, but a write to the
  // region would raise SIGBUS.
  constexpr std::uint32_t kStep = 16;
  while (usable < chunks) {
    const std::uint32_t step = std::min(kStep, chunks - usable);
    if (!Allocate(ring::kChunksOffset + std::uint64_t{usable} * ring::kChunkBytes,
                  std::uint64_t{step} * ring::kChunkBytes)) {
      return;
    }
    // Maps the pages now, so that writers have no page faults. On kernels before 5.14, this fails
    // without an effect.
    madvise(base + ring::kChunksOffset + std::size_t{usable} * ring::kChunkBytes,
            std::size_t{step} * ring::kChunkBytes, MADV_POPULATE_WRITE);
    usable += step;
    ServiceAt(base)->usable_chunks.store(usable, std::memory_order_release);
  }
}

std::uint32_t RingMemory::usable_chunks() const noexcept {
  std::byte* const base = Base();
  return base == nullptr ? 0 : ServiceAt(base)->usable_chunks.load(std::memory_order_relaxed);
}

int RingMemory::AddName(std::uint32_t index, std::string_view name) noexcept {
  const ErrnoKeeper keeper;
  std::byte* const base = Base();
  const std::uint32_t offset = ring::kSetNamesOffset + index * ring::kNameBytes;
  if (!Allocate(offset, ring::kNameBytes)) return ENOMEM;
  std::memcpy(base + offset, name.data(), name.size());
  ServiceAt(base)->set_count.store(index + 1, std::memory_order_release);
  return 0;
}

void RingMemory::SetUsers(std::uint32_t index, std::uint32_t users) noexcept {
  auto* const counts =
      reinterpret_cast<std::atomic<std::uint32_t>*>(Base() + ring::kSetUsersOffset);
  counts[index].store(users, std::memory_order_relaxed);
}

std::uint64_t RingMemory::EnableWord(std::uint32_t word) const noexcept {
  return CollectorAt(Base())->enable[word].load(std::memory_order_relaxed);
}

std::uint32_t RingMemory::SetsRead() const noexcept {
  return CollectorAt(Base())->sets_read.load(std::memory_order_acquire);
}

void RingMemory::Flush() noexcept {
  const ErrnoKeeper keeper;
  std::byte* const base = Base();
  if (base == nullptr) return;
  for (std::uint32_t i = 0; i < ring::kMaxWriters; ++i) {
    Writer* const writer = WriterAt(base, i);
    if (writer->state.load(std::memory_order_acquire) != ring::kWriterActive) continue;
    std::uint64_t held = writer->chunk.load(std::memory_order_relaxed);
    if (held - Writer::kFirstChunk < chunk_count() &&
        writer->chunk.compare_exchange_strong(held, Writer::kNoChunk, std::memory_order_acquire,
                                              std::memory_order_relaxed)) {
      Complete(base, held);
    }
    const std::uint64_t ordinal = writer->ordinal.load(std::memory_order_relaxed);
    const auto tid = static_cast<pid_t>(writer->tid.load(std::memory_order_relaxed));
    if (writer->depth.load(std::memory_order_relaxed) != 0 ||
        syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH) {
      continue;
    }
    // If OnThreadExit has ended the writer already, another thread may own it now, with another
    // ordinal.
    if (writer->state.load(std::memory_order_acquire) == ring::kWriterActive &&
        writer->ordinal.load(std::memory_order_relaxed) == ordinal) {
      End(base, writer);
    }
  }
}

void RingMemory::SetBell(const OwnDescriptor& socket) noexcept {
  const ErrnoKeeper keeper;
  if (!ReplaceBell(socket.fd())) return;
  bell_.is_set.store(true, std::memory_order_release);
}

void RingMemory::ClearBell() noexcept {
  const ErrnoKeeper keeper;
  bell_.is_set.store(false, std::memory_order_relaxed);
  // Ends the connection although the descriptor stays open.
  if (IsBell(bell_.fd.load(std::memory_order_relaxed))) {
    shutdown(bell_.fd.load(std::memory_order_relaxed), SHUT_RDWR);
  }
}

bool RingMemory::ArmBell(std::uint32_t chunks) noexcept {
  std::byte* const base = Base();
  const std::uint64_t at = ServiceAt(base)->completed.load() + std::max(chunks, 1U);
  CollectorAt(base)->bell_at.store(at);
  return ServiceAt(base)->completed.load() < at;
}

bool RingMemory::HasBell() const noexcept {
  const ErrnoKeeper keeper;
  return bell_.is_set.load(std::memory_order_relaxed) &&
         IsBell(bell_.fd.load(std::memory_order_relaxed));
}

bool RingMemory::IsBell(int fd) const noexcept {
  struct stat now;
  return fd >= 0 && fstat(fd, &now) == 0 &&
         now.st_dev == bell_.device.load(std::memory_order_relaxed) &&
         now.st_ino == bell_.inode.load(std::memory_order_relaxed);
}

void RingMemory::CloseBell() noexcept {
  const int fd = bell_.fd.exchange(-1, std::memory_order_relaxed);
  if (IsBell(fd)) close(fd);
}

// Makes the bell's descriptor refer to the file of `socket`. Returns false if that fails.
//
// dup3() replaces the file and keeps the number. If the number were closed here, another thread of
// the program could get it for another file while a writer is inside RingBell(), and the writer
// would send its message to that file.
bool RingMemory::ReplaceBell(int socket) noexcept {
  int fd = bell_.fd.load(std::memory_order_relaxed);
  if (IsBell(fd)) {
    if (dup3(socket, fd, O_CLOEXEC) != fd) return false;
  } else {
    // There is no bell yet, or the program has closed it.
    fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return false;
    fd = MoveAway(fd);
  }
  struct stat status;
  if (fstat(fd, &status) != 0) return false;
  bell_.device.store(status.st_dev, std::memory_order_relaxed);
  bell_.inode.store(status.st_ino, std::memory_order_relaxed);
  bell_.fd.store(fd, std::memory_order_release);
  return true;
}

// Sends the message Full on the bell: to the collector, or to this process's helper thread if the
// connection is inline.
void RingMemory::RingBell(const std::byte* base) const noexcept {
  const ErrnoKeeper keeper;
  if (!bell_.is_set.load(std::memory_order_acquire)) return;
  const int fd = bell_.fd.load(std::memory_order_acquire);
  if (!IsBell(fd)) return;
  const ring::Message full{ring::kMessageMagic, ring::MessageType::kFull, 0, ring::kVersion,
                           reinterpret_cast<const ring::Header*>(base)->pid};
  // If the socket's queue is full, the message is lost, but the other messages in the queue wake
  // the receiver.
  static_cast<void>(send(fd, &full, sizeof(full), MSG_DONTWAIT | MSG_NOSIGNAL));
}

void RingMemory::Abandon() noexcept {
  page_.load(std::memory_order_relaxed)->base.store(nullptr, std::memory_order_release);
  ClearBell();
  descriptor_.Close();
  // A thread may be inside Write(), so the addresses stay mapped.
  mapped_ = nullptr;
}

void RingMemory::AfterFork() noexcept {
  const ErrnoKeeper keeper;
  page_.load(std::memory_order_relaxed)->base.store(nullptr, std::memory_order_release);
  bell_.is_set.store(false, std::memory_order_relaxed);
  // Closes the child's copy of the parent's connection. If the fork was in a signal handler that
  // interrupted RingBell(), the rest of RingBell() still uses the number, so an unconnected socket
  // gets it.
  if (bell_.fd.load(std::memory_order_relaxed) >= 0) {
    const int unconnected = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (unconnected < 0 || !ReplaceBell(unconnected)) CloseBell();
    if (unconnected >= 0) close(unconnected);
  }
  descriptor_.Close();
  if (is_prepared_ && has_early_key_) pthread_setspecific(key_, nullptr);
  if (mapped_ == nullptr) return;
  // If the fork was in a signal handler that interrupted Write(), the rest of Write() still writes
  // to the addresses of the parent's region. Maps private memory there.
  void* const map = mmap(mapped_, static_cast<std::size_t>(mapped_bytes_), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (map == mapped_) return;
  if (map != MAP_FAILED) munmap(map, static_cast<std::size_t>(mapped_bytes_));
  mapped_ = nullptr;
}

void RingMemory::Close() noexcept {
  const ErrnoKeeper keeper;
  if (!is_prepared_) return;
  is_prepared_ = false;
  pthread_key_delete(key_);
  ForkPage* const page = page_.exchange(&no_page_);
  munmap(page, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  if (mapped_ != nullptr) munmap(mapped_, static_cast<std::size_t>(mapped_bytes_));
  mapped_ = nullptr;
  bell_.is_set.store(false, std::memory_order_relaxed);
  CloseBell();
  descriptor_.Close();
}

// Returns the writer of the calling thread. If the thread has no writer, claims a free writer;
// returns null if there is none.
Writer* RingMemory::WriterOfThread(std::byte* base) noexcept {
  auto* writer = static_cast<Writer*>(pthread_getspecific(key_));
  if (IsWriterOf(base, writer)) return writer;
  const std::uint32_t tid = Tid();
  writer = has_early_key_ ? nullptr : FindWriter(base, tid);
  if (writer != nullptr) return writer;
  writer = ClaimWriter(base, tid, 0);
  if (writer == nullptr || !has_early_key_) return writer;
  // A signal handler of this thread may have claimed a writer in the meantime.
  auto* const other = static_cast<Writer*>(pthread_getspecific(key_));
  if (IsWriterOf(base, other)) {
    writer->state.store(ring::kWriterFree, std::memory_order_release);
    return other;
  }
  pthread_setspecific(key_, writer);
  return writer;
}

// Writes an event for which Begin() has returned false.
int RingMemory::WriteSlow(std::uint32_t set, const std::byte* event, std::size_t size) noexcept {
  const ErrnoKeeper keeper;
  std::byte* const base = Base();
  if (base == nullptr) return ENOTCONN;
  Writer* const first = WriterOfThread(base);
  if (first == nullptr) {
    ServiceAt(base)->lost_without_writer.fetch_add(1, std::memory_order_relaxed);
    return ENOBUFS;
  }
  Writer* writer = first;
  std::uint64_t held = writer->chunk.exchange(Writer::kBusy, std::memory_order_acquire);
  while (held == Writer::kBusy) {
    // This code runs in a signal handler that has interrupted a write of its thread.
    const std::uint32_t depth = writer->depth.load(std::memory_order_relaxed) + 1;
    std::uint32_t nested = writer->nested.load(std::memory_order_relaxed);
    Writer* next = nullptr;
    if (nested - 1 < ring::kMaxWriters) {
      next = WriterAt(base, nested - 1);
    } else if (depth <= kMaxDepth) {
      next = ClaimWriter(base, writer->tid.load(std::memory_order_relaxed), depth);
      if (next != nullptr) {
        nested = static_cast<std::uint32_t>(next - WriterAt(base, 0)) + 1;
        writer->nested.store(nested, std::memory_order_relaxed);
      }
    }
    if (next == nullptr || next->depth.load(std::memory_order_relaxed) != depth) {
      first->lost_nested.fetch_add(1, std::memory_order_relaxed);
      return ENOBUFS;
    }
    writer = next;
    held = writer->chunk.exchange(Writer::kBusy, std::memory_order_acquire);
  }
  const bool has_chunk = held - Writer::kFirstChunk < chunk_count();
  std::uint32_t at =
      has_chunk ? ControlAt(base, held)->committed.load(std::memory_order_relaxed) : 0;
  if (!has_chunk ||
      std::uint64_t{at} + ring::RecordBytes(static_cast<std::uint32_t>(size)) > ring::kChunkBytes) {
    if (has_chunk) Complete(base, held);
    held = TakeChunk(base, writer);
    at = 0;
    if (held == Writer::kNoChunk) {
      writer->calls.store(writer->calls.load(std::memory_order_relaxed) + 1,
                          std::memory_order_release);
      writer->chunk.store(Writer::kNoChunk, std::memory_order_release);
      return ENOBUFS;
    }
  }
  const Place place{reinterpret_cast<ring::Record*>(ChunkAt(base, held) + at),
                    ControlAt(base, held), writer, held};
  std::memcpy(place.record + 1, event, size);
  Commit(place, set, size);
  return 0;
}

// Returns the active writer of a thread, or null if it is not among the kProbes writers from index
// tid % kMaxWriters on.
Writer* RingMemory::FindWriter(std::byte* base, std::uint32_t tid) const noexcept {
  for (std::uint32_t i = 0; i < kProbes; ++i) {
    Writer* const writer = WriterAt(base, (tid + i) % ring::kMaxWriters);
    if (writer->state.load(std::memory_order_acquire) == ring::kWriterActive &&
        writer->tid.load(std::memory_order_relaxed) == tid &&
        writer->depth.load(std::memory_order_relaxed) == 0) {
      return writer;
    }
  }
  return nullptr;
}

// Claims a free writer for a thread. Returns null if no writer is free. If has_early_key_ is false,
// claims only one of the kProbes writers that FindWriter() checks.
Writer* RingMemory::ClaimWriter(std::byte* base, std::uint32_t tid, std::uint32_t depth) noexcept {
  const std::uint32_t probes = has_early_key_ ? ring::kMaxWriters : kProbes;
  for (std::uint32_t i = 0; i < probes; ++i) {
    Writer* const writer = WriterAt(base, (tid + i) % ring::kMaxWriters);
    std::uint32_t state = ring::kWriterFree;
    if (!writer->state.compare_exchange_strong(
            state, ring::kWriterClaiming, std::memory_order_acquire, std::memory_order_relaxed)) {
      continue;
    }
    writer->chunk.store(Writer::kNoChunk, std::memory_order_relaxed);
    writer->calls.store(0, std::memory_order_relaxed);
    writer->lost_nested.store(0, std::memory_order_relaxed);
    writer->ordinal.store(ServiceAt(base)->last_ordinal.fetch_add(1, std::memory_order_relaxed) + 1,
                          std::memory_order_relaxed);
    writer->tid.store(tid, std::memory_order_relaxed);
    writer->nested.store(0, std::memory_order_relaxed);
    writer->depth.store(depth, std::memory_order_relaxed);
    writer->accounted.store(0, std::memory_order_relaxed);
    writer->accounted_nested.store(0, std::memory_order_relaxed);
    writer->state.store(ring::kWriterActive, std::memory_order_release);
    return writer;
  }
  return nullptr;
}

// Takes a free chunk for the writer. Returns the value for Writer::chunk, or kNoChunk if no chunk
// is free.
std::uint64_t RingMemory::TakeChunk(std::byte* base, Writer* writer) noexcept {
  ring::ServicePage* const service = ServiceAt(base);
  const std::uint32_t usable =
      std::min(service->usable_chunks.load(std::memory_order_acquire), chunk_count());
  // A number that changes when chunks become free: the collector frees them, or Grow() adds them.
  const std::uint64_t frees = CollectorAt(base)->give_backs.load(std::memory_order_acquire) +
                              (std::uint64_t{usable + 1} << kGiveBackBits);
  if (full_at_.load(std::memory_order_relaxed) == frees) return Writer::kNoChunk;
  std::uint32_t index = next_chunk_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < usable; ++i, ++index) {
    if (index >= usable) index = 0;
    const std::uint64_t held = Writer::kFirstChunk + index;
    ChunkControl* const control = ControlAt(base, held);
    std::uint32_t state = ring::kFree;
    if (!control->state.compare_exchange_strong(state, ring::kTaking, std::memory_order_acquire,
                                                std::memory_order_relaxed)) {
      continue;
    }
    next_chunk_.store(index + 1, std::memory_order_relaxed);
    constexpr auto kRelaxed = std::memory_order_relaxed;
    control->committed.store(0, kRelaxed);
    control->serial.store(service->last_serial.fetch_add(1, std::memory_order_acq_rel) + 1,
                          kRelaxed);
    control->ordinal.store(writer->ordinal.load(kRelaxed), kRelaxed);
    control->first.store(writer->calls.load(kRelaxed), kRelaxed);
    control->writer.store(static_cast<std::uint32_t>(writer - WriterAt(base, 0)), kRelaxed);
    control->tid.store(writer->tid.load(kRelaxed), kRelaxed);
    control->depth.store(writer->depth.load(kRelaxed), kRelaxed);
    control->state.store(ring::kWriting, std::memory_order_release);
    return held;
  }
  full_at_.store(frees, std::memory_order_relaxed);
  return Writer::kNoChunk;
}

// Marks a chunk as complete. Sends the message Full if the number of chunks completed so far is now
// the number for which the message was requested (CollectorPage::bell_at).
void RingMemory::Complete(std::byte* base, std::uint64_t held) noexcept {
  ControlAt(base, held)->state.store(ring::kComplete, std::memory_order_release);
  const std::uint64_t completed = ServiceAt(base)->completed.fetch_add(1) + 1;
  if (completed == CollectorAt(base)->bell_at.load()) RingBell(base);
}

// Finds the chunk of a writer whose Writer::chunk is kBusy although its thread has ended: a signal
// handler that interrupted Write() ended the thread. Returns the value that Writer::chunk had
// before kBusy; kNoChunk if the thread had no chunk.
std::uint64_t RingMemory::FindHeld(std::byte* base, const Writer* writer) const noexcept {
  const std::uint64_t ordinal = writer->ordinal.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < usable_chunks(); ++i) {
    const std::uint64_t held = Writer::kFirstChunk + i;
    if (ControlAt(base, held)->state.load(std::memory_order_acquire) == ring::kWriting &&
        ControlAt(base, held)->ordinal.load(std::memory_order_relaxed) == ordinal) {
      return held;
    }
  }
  return Writer::kNoChunk;
}

// Ends the writer of a thread that has ended, and the writers of its signal handlers.
void RingMemory::End(std::byte* base, Writer* writer) noexcept {
  for (std::uint32_t i = 0; i <= kMaxDepth; ++i) {
    std::uint64_t held = writer->chunk.exchange(Writer::kNoChunk, std::memory_order_acquire);
    if (held == Writer::kBusy) held = FindHeld(base, writer);
    if (held - Writer::kFirstChunk < chunk_count()) Complete(base, held);
    const std::uint32_t nested = writer->nested.load(std::memory_order_relaxed);
    writer->state.store(ring::kWriterExited, std::memory_order_release);
    if (nested - 1 >= ring::kMaxWriters) return;
    writer = WriterAt(base, nested - 1);
  }
}

void RingMemory::OnThreadExit(void* writer) noexcept {
  const ErrnoKeeper keeper;
  std::byte* const base = ring_memory.Base();
  if (base == nullptr || !IsWriterOf(base, static_cast<Writer*>(writer))) return;
  ring_memory.End(base, static_cast<Writer*>(writer));
}

}  // namespace eh::internal
