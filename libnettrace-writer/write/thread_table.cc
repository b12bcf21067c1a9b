#include "libnettrace-writer/write/thread_table.h"

#include <algorithm>

namespace nettrace::internal {

void ThreadTable::Add(std::optional<std::uint64_t> os_thread_id) {
  auto thread = std::make_unique<Thread>();
  thread->index = next_index_;
  thread->os_thread_id = os_thread_id;
  threads_.emplace(next_index_, std::move(thread));
  next_index_ = ThreadIndex{ToNumber(next_index_) + 1};
}

Thread* ThreadTable::FindInMap(ThreadIndex index) {
  const auto found = threads_.find(index);
  if (found == threads_.end()) return nullptr;
  return RecentAt(index) = found->second.get();
}

void ThreadTable::SetCaptures(Thread* thread) {
  if (thread->captures) return;
  thread->captures = true;
  capturing_.push_back(thread);
}

const std::vector<Thread*>& ThreadTable::Capturing() {
  const auto by_index = [](const Thread* a, const Thread* b) { return a->index < b->index; };
  if (!std::is_sorted(capturing_.begin(), capturing_.end(), by_index)) {
    std::sort(capturing_.begin(), capturing_.end(), by_index);
  }
  return capturing_;
}

void ThreadTable::Remove(Thread* thread) {
  if (thread->captures) std::erase(capturing_, thread);
  Thread*& recent = RecentAt(thread->index);
  if (recent == thread) recent = &none_;
  threads_.erase(thread->index);
  any_removed_ = true;
}

void ThreadTable::Clear(ThreadIndex first_index) {
  recent_.fill(&none_);
  capturing_.clear();
  threads_.clear();
  first_index_ = next_index_ = first_index;
  any_removed_ = false;
}

}  // namespace nettrace::internal
