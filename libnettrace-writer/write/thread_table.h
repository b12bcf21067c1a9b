// Holds the threads that the writer has defined and not removed, with the open event blocks of the
// capture threads.
#ifndef LIBNETTRACE_WRITER_WRITE_THREAD_TABLE_H_
#define LIBNETTRACE_WRITER_WRITE_THREAD_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libnettrace-writer/write/event_block.h"

namespace nettrace::internal {

struct Thread {
  ThreadIndex index = kNoThread;
  std::optional<std::uint64_t> os_thread_id;
  std::uint64_t lost = 0;  // events lost after both its last event and the last sequence point
  bool captures = false;   // true after its first event or loss
  bool apart = false;      // true if Writer::CountApart was called for it
  EventBlock block;

  // Returns the sequence number of the thread's last event, which may be a lost event.
  std::uint32_t sequence() const {
    return block.last_sequence() + static_cast<std::uint32_t>(lost);
  }
};

class ThreadTable {
 public:
  explicit ThreadTable(ThreadIndex first_index)
      : first_index_(first_index), next_index_(first_index) {
    recent_.fill(&none_);
  }
  ThreadTable(const ThreadTable&) = delete;
  ThreadTable& operator=(const ThreadTable&) = delete;

  ThreadIndex next_index() const { return next_index_; }
  std::size_t size() const { return threads_.size(); }
  // Adds a thread with index next_index().
  void Add(std::optional<std::uint64_t> os_thread_id);

  // Returns the thread with this index, or nullptr if there is none. The result is valid until
  // Remove() is called for this thread, or Clear() is called.
  Thread* Find(ThreadIndex index) {
    Thread* const recent = FindRecent(index);
    return recent->index == index && index != kNoThread ? recent : FindInMap(index);
  }
  // Returns whether a thread with this index exists. Compares with the range of indices, and
  // searches the table only if Remove() was called since the last Clear().
  bool IsLive(ThreadIndex index) {
    return any_removed_ ? Find(index) != nullptr : index >= first_index_ && index < next_index_;
  }
  // Returns the thread with this index if Find() returned it recently. Otherwise returns another
  // thread, or an empty Thread with index kNoThread: the caller must compare the index.
  Thread* FindRecent(ThreadIndex index) { return RecentAt(index); }

  // Marks a thread as one that captures events. Capturing() returns these threads, in order of
  // index.
  void SetCaptures(Thread* thread);
  const std::vector<Thread*>& Capturing();

  void Remove(Thread* thread);
  // Remove all threads. Clear() does not change the index of the next thread; Clear(first_index)
  // sets it.
  void Clear() { Clear(next_index_); }
  void Clear(ThreadIndex first_index);

 private:
  Thread*& RecentAt(ThreadIndex index) {
    return recent_[static_cast<std::size_t>(ToNumber(index) % recent_.size())];
  }
  Thread* FindInMap(ThreadIndex index);

  ThreadIndex first_index_;  // index of the first thread after the last Clear
  ThreadIndex next_index_;
  bool any_removed_ = false;  // true if a thread was removed after the last Clear
  Thread none_;
  // For each value of the low 8 bits of an index: the thread with such an index that was found most
  // recently; &none_ if no such thread was found.
  std::array<Thread*, 256> recent_;
  absl::flat_hash_map<ThreadIndex, std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> capturing_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_THREAD_TABLE_H_
