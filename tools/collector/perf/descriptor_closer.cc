#include "tools/collector/perf/descriptor_closer.h"

#include <signal.h>
#include <unistd.h>

#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace collector {

absl::StatusOr<std::unique_ptr<DescriptorCloser>> DescriptorCloser::Start() {
  std::unique_ptr<DescriptorCloser> closer(new DescriptorCloser());
  DescriptorCloser* const raw = closer.get();
  try {
    raw->thread_ = std::thread([raw] { raw->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread that closes descriptors: ", error.what()));
  }
  std::unique_lock<std::mutex> lock(raw->mutex_);
  raw->progress_.wait(lock, [raw] { return raw->thread_id_ != 0; });
  return closer;
}

DescriptorCloser::~DescriptorCloser() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  progress_.notify_all();
  thread_.join();
}

void DescriptorCloser::Close(std::vector<base::UniqueFd> fds) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.insert(waiting_.end(), std::make_move_iterator(fds.begin()),
                    std::make_move_iterator(fds.end()));
  }
  progress_.notify_all();
}

void DescriptorCloser::Run() {
  // This thread blocks all signals, so that the kernel delivers them to other threads, which may
  // wait for a signal.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::unique_lock<std::mutex> lock(mutex_);
  thread_id_ = gettid();
  progress_.notify_all();
  for (;;) {
    progress_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<base::UniqueFd> closing = std::exchange(waiting_, {});
    lock.unlock();
    closing.clear();
    lock.lock();
  }
}

}  // namespace collector
