#include "tools/collector/perf/descriptor_closer.h"

#include <unistd.h>

#include <iterator>
#include <utility>

namespace collector {

DescriptorCloser::DescriptorCloser() : thread_([this] { Run(); }) {
  std::unique_lock<std::mutex> lock(mutex_);
  progress_.wait(lock, [this] { return thread_id_ != 0; });
}

DescriptorCloser::~DescriptorCloser() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  progress_.notify_all();
  thread_.join();
}

void DescriptorCloser::Close(std::vector<UniqueFd> fds) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(fds.begin()),
                    std::make_move_iterator(fds.end()));
  }
  progress_.notify_all();
}

void DescriptorCloser::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  thread_id_ = gettid();
  progress_.notify_all();
  for (;;) {
    progress_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<UniqueFd> closing = std::exchange(waiting_, {});
    lock.unlock();
    closing.clear();
    lock.lock();
  }
}

}  // namespace collector
