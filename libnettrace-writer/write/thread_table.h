// The live rows of the thread table, with the open event blocks of capture threads.
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
  std::uint64_t lost = 0;  // since its last event or the sequence point that lists them
  bool captures = false;   // it has had an event or a loss
  EventBlock block;

  // The number of its last event or loss.
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
  // Adds thread next_index().
  void Add(std::optional<std::uint64_t> os_thread_id);

  // nullptr if no live thread has this index. Valid until the thread is removed.
  Thread* Find(ThreadIndex index) {
    Thread* const recent = FindRecent(index);
    return recent->index == index && index != kNoThread ? recent : FindInMap(index);
  }
  // Whether a live thread has this index; a search only where threads were removed one by one.
  bool IsLive(ThreadIndex index) {
    return any_removed_ ? Find(index) != nullptr : index >= first_index_ && index < next_index_;
  }
  // That thread if it was found lately, else another, or one that has no events and no index.
  Thread* FindRecent(ThreadIndex index) { return RecentAt(index); }

  // Marks a thread as one that captures events; those are Capturing(), in order of index.
  void SetCaptures(Thread* thread);
  const std::vector<Thread*>& Capturing();

  void Remove(Thread* thread);
  // Removes all. The numbers of those to come go on, or begin at `first_index`.
  void Clear() { Clear(next_index_); }
  void Clear(ThreadIndex first_index);

 private:
  Thread*& RecentAt(ThreadIndex index) {
    return recent_[static_cast<std::size_t>(ToNumber(index) % recent_.size())];
  }
  Thread* FindInMap(ThreadIndex index);

  ThreadIndex first_index_;  // of all since Clear
  ThreadIndex next_index_;
  bool any_removed_ = false;  // since Clear
  Thread none_;
  std::array<Thread*, 256> recent_;  // by the low bits of their index; never nullptr
  absl::flat_hash_map<ThreadIndex, std::unique_ptr<Thread>> threads_;
  std::vector<Thread*> capturing_;
};

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_WRITE_THREAD_TABLE_H_
