// The service's side of a region, the memory through which a service passes events to the collector
// (ring_layout.h): creates the memory, and writes events to it.
#ifndef LIBEVENTHEADER_PROVIDER_RING_MEMORY_H_
#define LIBEVENTHEADER_PROVIDER_RING_MEMORY_H_

#include <pthread.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "libeventheader/base/ring_layout.h"
#include "libeventheader/provider/own_descriptor.h"

namespace eh::internal {

// The region of this program, or of this shared object if it links the library statically.
//
// Write(), Begin() and Commit() are async-signal-safe, take no lock, allocate nothing and keep
// errno. Write() makes no system call, except for the first event of a thread and to send the
// message Full, which wakes the collector or, in an inline connection, the helper thread. All other
// functions are called under the transport's lock.
//
// A thread finds its writer by a pthread key instead of a thread-local variable. Thread-local
// variables of shared objects are allocated on first use, or use up a small reserve of the loader.
// The key's destructor completes the thread's chunk and ends its writer when the thread ends. glibc
// stores the values of the first 32 keys without allocating. If the key is not one of them, Write()
// calls gettid() for each event and searches for the thread's writer.
class RingMemory {
 public:
  constexpr RingMemory() noexcept = default;

  // Creates the pthread key, and the page that the kernel clears in a forked child. Returns 0 or an
  // errno.
  int Prepare() noexcept;
  // Creates a region with at most `chunks` chunks; fewer if limits of the process demand it.
  // Returns 0 or an errno. Writers use the region from then on.
  int Create(std::uint32_t chunks) noexcept;
  // Creates a region as Create() does, in memory that cannot be shared.
  int CreatePrivate(std::uint32_t chunks) noexcept;
  // Allocates memory for the first `chunks` chunks, or for fewer if memory does not suffice.
  void Grow(std::uint32_t chunks) noexcept;
  // Appends the name of a new set. `index` is the index of the set, which is the number of sets so
  // far. Returns 0 or an errno.
  int AddName(std::uint32_t index, std::string_view name) noexcept;
  // Stores the number of registrations of a set, which the collector can read.
  void SetUsers(std::uint32_t index, std::uint32_t users) noexcept;
  // Returns the collector's enable word for the 64 sets that begin at set 64 * `word`.
  std::uint64_t EnableWord(std::uint32_t word) const noexcept;
  // Returns the number of sets for which the collector's enable words are valid.
  std::uint32_t SetsRead() const noexcept;
  // Marks the chunks of all writers that are not inside Write() as complete, so that the collector
  // can free them. Ends the writers of threads that do not exist any more.
  void Flush() noexcept;
  // Makes writers send the message Full when the number of chunks completed so far reaches
  // CollectorPage::bell_at. Writers send it on the bell, a duplicate of `socket`. The bell stays
  // open until the library is unloaded, so that `socket` can be closed while writers send.
  void SetBell(const OwnDescriptor& socket) noexcept;
  // Makes writers stop sending Full, and shuts the connection of the bell down.
  void ClearBell() noexcept;
  // Returns whether writers can send Full. Returns false after the program has closed the bell.
  bool HasBell() const noexcept;
  // Sends the message Full, as a writer does.
  void SendFull() const noexcept {
    if (exists()) RingBell(Base());
  }
  // Makes writers send the message Full when `chunks` more chunks, but at least 1, are complete.
  // Returns false if that many are complete already. Overwrites CollectorPage::bell_at, so use it
  // only for an inline connection, where the collector does not set this number.
  bool ArmBell(std::uint32_t chunks) noexcept;

  bool exists() const noexcept { return Base() != nullptr; }
  // Returns the address of the region; null if there is none.
  std::byte* base() const noexcept { return Base(); }
  // Returns the descriptor of the memfd, which the program may have closed.
  const OwnDescriptor& descriptor() const noexcept { return descriptor_; }
  std::uint32_t chunk_count() const noexcept {
    return chunk_count_.load(std::memory_order_relaxed);
  }
  std::uint32_t usable_chunks() const noexcept;
  // Stops using the region, after the program has closed its descriptor. The region stays mapped,
  // because other threads may be inside Write(). The next Create() makes a new region.
  void Abandon() noexcept;
  // Forgets the region of the parent. Called in the child of a fork.
  void AfterFork() noexcept;
  // Unmaps the region when the shared object is unloaded. None of the object's code may be running.
  void Close() noexcept;

  // Writes an event to the region. Returns 0, ENOBUFS if it was lost and counted in the region, or
  // ENOTCONN if there is no region.
  [[gnu::always_inline]] int Write(std::uint32_t set, const std::byte* event,
                                   std::size_t size) noexcept {
    Place place;
    if (!Begin(ring::RecordBytes(static_cast<std::uint32_t>(size)), &place)) [[unlikely]]
      return WriteSlow(set, event, size);
    std::memcpy(place.record + 1, event, size);
    Commit(place, set, size);
    return 0;
  }

  // A place for a new event: directly after `record`. Until Commit(), Writer::chunk is kBusy.
  struct Place {
    ring::Record* record;
    ring::ChunkControl* control;
    ring::Writer* writer;
    std::uint64_t held;  // the value of Writer::chunk before kBusy
  };
  // Finds a place for a record of at most `bytes` bytes and returns true. The caller must then
  // write the event and call Commit(). Returns false if the caller must call Write() instead, for
  // example because the thread needs another chunk.
  [[gnu::always_inline]] bool Begin(std::uint64_t bytes, Place* place) noexcept {
    auto* const writer = static_cast<ring::Writer*>(pthread_getspecific(key_));
    std::byte* const base = Base();
    // IsWriterOf returns false for all writers if `base` is null.
    if (!IsWriterOf(base, writer)) [[unlikely]]
      return false;
    const std::uint64_t held =
        writer->chunk.exchange(ring::Writer::kBusy, std::memory_order_acquire);
    // The condition is also true for kNoChunk and kBusy, because the difference is unsigned.
    if (held - ring::Writer::kFirstChunk >= chunk_count()) [[unlikely]] {
      writer->chunk.store(held, std::memory_order_release);
      return false;
    }
    ring::ChunkControl* const control = ControlAt(base, held);
    const std::uint32_t at = control->committed.load(std::memory_order_relaxed);
    if (at + bytes > ring::kChunkBytes) [[unlikely]] {
      writer->chunk.store(held, std::memory_order_release);
      return false;
    }
    *place = {reinterpret_cast<ring::Record*>(ChunkAt(base, held) + at), control, writer, held};
    return true;
  }
  // Completes the record of an event of `size` bytes, so that the collector can read it.
  [[gnu::always_inline]] void Commit(const Place& place, std::uint32_t set,
                                     std::size_t size) noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ring::Record* const record = place.record;
    record->timestamp = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                        static_cast<std::uint64_t>(now.tv_nsec);
    record->size = static_cast<std::uint16_t>(size);
    record->set = static_cast<std::uint16_t>(set);
    record->cpu = Cpu();
    record->reserved = 0;
    const std::uint64_t number = place.writer->calls.load(std::memory_order_relaxed);
    record->number = static_cast<std::uint32_t>(number);
    record->reserved2 = 0;
    // Only the thread that has set Writer::chunk to kBusy changes `committed` and `calls`.
    place.control->committed.store(place.control->committed.load(std::memory_order_relaxed) +
                                       ring::RecordBytes(static_cast<std::uint32_t>(size)),
                                   std::memory_order_release);
    place.writer->calls.store(number + 1, std::memory_order_release);
    place.writer->chunk.store(place.held, std::memory_order_release);
  }

 private:
  // Holds the address of the region. The kernel clears this memory in a forked child, because the
  // child must not write to its parent's region. This also works if the child was not made by
  // fork().
  struct ForkPage {
    std::atomic<std::byte*> base{nullptr};
  };
  // The descriptor on which writers send Full. Writers read it without the transport's lock.
  struct Bell {
    std::atomic<bool> is_set{false};
    std::atomic<int> fd{-1};  // -1: none yet
    std::atomic<dev_t> device{0};
    std::atomic<ino_t> inode{0};
  };

  std::byte* Base() const noexcept {
    return page_.load(std::memory_order_acquire)->base.load(std::memory_order_acquire);
  }
  static bool IsWriterOf(const std::byte* base, const ring::Writer* writer) noexcept {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(writer) -
                                  reinterpret_cast<std::uintptr_t>(base) - ring::kWritersOffset;
    return offset < ring::kMaxWriters * sizeof(ring::Writer);
  }
  static ring::Writer* WriterAt(std::byte* base, std::uint32_t index) noexcept {
    return reinterpret_cast<ring::Writer*>(base + ring::kWritersOffset) + index;
  }
  static ring::ChunkControl* ControlAt(std::byte* base, std::uint64_t held) noexcept {
    return reinterpret_cast<ring::ChunkControl*>(base + ring::kControlsOffset) +
           (held - ring::Writer::kFirstChunk);
  }
  static std::byte* ChunkAt(std::byte* base, std::uint64_t held) noexcept {
    return base + ring::kChunksOffset +
           static_cast<std::size_t>(held - ring::Writer::kFirstChunk) * ring::kChunkBytes;
  }
  static ring::ServicePage* ServiceAt(std::byte* base) noexcept {
    return reinterpret_cast<ring::ServicePage*>(base + ring::kServiceOffset);
  }
  static ring::CollectorPage* CollectorAt(std::byte* base) noexcept {
    return reinterpret_cast<ring::CollectorPage*>(base + ring::kCollectorOffset);
  }

  std::uint16_t Cpu() const noexcept {
    const std::ptrdiff_t offset = rseq_offset_;
    if (offset == 0) return ring::kUnknownCpu;
    return static_cast<std::uint16_t>(*reinterpret_cast<const volatile std::uint32_t*>(
        static_cast<const char*>(__builtin_thread_pointer()) + offset));
  }

  [[gnu::cold, gnu::noinline]] int WriteSlow(std::uint32_t set, const std::byte* event,
                                             std::size_t size) noexcept;
  ring::Writer* WriterOfThread(std::byte* base) noexcept;
  ring::Writer* FindWriter(std::byte* base, std::uint32_t tid) const noexcept;
  ring::Writer* ClaimWriter(std::byte* base, std::uint32_t tid, std::uint32_t depth) noexcept;
  std::uint64_t TakeChunk(std::byte* base, ring::Writer* writer) noexcept;
  void Complete(std::byte* base, std::uint64_t held) noexcept;
  std::uint64_t FindHeld(std::byte* base, const ring::Writer* writer) const noexcept;
  void End(std::byte* base, ring::Writer* writer) noexcept;
  void RingBell(const std::byte* base) const noexcept;
  bool IsBell(int fd) const noexcept;
  bool ReplaceBell(int socket) noexcept;
  void CloseBell() noexcept;
  void UnmapOld() noexcept;
  void Use(std::byte* base, std::uint32_t chunks) noexcept;
  bool Allocate(std::uint64_t offset, std::uint64_t bytes) const noexcept;
  static void OnThreadExit(void* writer) noexcept;

  static ForkPage no_page_;
  std::atomic<ForkPage*> page_{&no_page_};
  pthread_key_t key_ = 0;
  // Offset of the CPU number (struct rseq) from the thread pointer, in bytes; 0: unknown.
  std::ptrdiff_t rseq_offset_ = 0;
  std::atomic<std::uint32_t> chunk_count_{0};
  bool is_prepared_ = false;
  // True if pthread_setspecific() does not allocate for key_, for example because key_ is one of
  // the first 32 keys of glibc.
  bool has_early_key_ = false;
  std::atomic<std::uint32_t> next_chunk_{0};  // index at which the search for a free chunk starts
  // CollectorPage::give_backs and the number of usable chunks, at the last search that found no
  // free chunk; 0: no such search. TakeChunk() does not search again before one of them changes.
  std::atomic<std::uint64_t> full_at_{0};
  Bell bell_;
  OwnDescriptor descriptor_;
  bool is_private_ = false;      // the region is not in a memfd
  std::byte* mapped_ = nullptr;  // start of the address range of the region, also in a forked child
  std::uint64_t mapped_bytes_ = 0;
};

[[gnu::visibility("hidden")]] extern RingMemory ring_memory;

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_RING_MEMORY_H_
