#include "tools/collector/session/off_cpu_tracker.h"

#include <algorithm>
#include <span>

namespace collector {

void OffCpuTracker::StartAt(std::uint64_t timestamp) {
  threads_.clear();
  waiting_.clear();
  stacks_.clear();
  bytes_ = 0;
  started_ = timestamp;
  missing_until_ = 0;
}

void OffCpuTracker::Add(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
  // The idle task has no times without a CPU. A thread without ids is ending and cannot be
  // identified.
  if (timestamp < started_ || sample.tid == 0 || sample.tid == kExitedTask) return;
  Waiting waiting;
  waiting.timestamp = timestamp;
  waiting.pid = sample.pid;
  waiting.tid = sample.tid;
  waiting.cpu = cpu;
  if (sample.kind == SampleRecord::Kind::kSwitchIn) {
    waiting.step = Step::kIn;
  } else {
    waiting.cgroup = sample.cgroup;
    waiting.stack = stacks_.size();
    if (sample.stack) {
      const std::span<const std::byte> entries = sample.stack->entries;
      waiting.stack_size = entries.size();
      waiting.is_cut = sample.stack->is_cut;
      stacks_.insert(stacks_.end(), entries.begin(), entries.end());
    }
  }
  waiting_.push_back(waiting);
}

void OffCpuTracker::Miss(std::uint64_t from, std::uint64_t until) {
  Waiting waiting;
  waiting.timestamp = from;
  waiting.step = Step::kMissing;
  waiting.until = until;
  waiting_.push_back(waiting);
}

void OffCpuTracker::Process(std::uint64_t limit, absl::FunctionRef<void(const Interval&)> consume) {
  if (waiting_.empty()) return;
  std::stable_sort(waiting_.begin(), waiting_.end(),
                   [](const Waiting& a, const Waiting& b) { return a.timestamp < b.timestamp; });
  std::size_t next = 0;
  for (; next < waiting_.size() && waiting_[next].timestamp <= limit; ++next) {
    const Waiting& waiting = waiting_[next];
    switch (waiting.step) {
      case Step::kOut:
        SwitchOut(waiting);
        break;
      case Step::kIn:
        SwitchIn(waiting, consume);
        break;
      case Step::kMissing:
        MissUntil(waiting.until);
        break;
    }
  }
  Keep(next);
  DropEnded(limit);
}

void OffCpuTracker::Keep(std::size_t first) {
  kept_stacks_.clear();
  for (std::size_t i = first; i < waiting_.size(); ++i) {
    Waiting& waiting = waiting_[i];
    const auto stack = stacks_.begin() + static_cast<std::ptrdiff_t>(waiting.stack);
    waiting.stack = kept_stacks_.size();
    kept_stacks_.insert(kept_stacks_.end(), stack,
                        stack + static_cast<std::ptrdiff_t>(waiting.stack_size));
  }
  stacks_.swap(kept_stacks_);
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(first));
}

void OffCpuTracker::SwitchOut(const Waiting& waiting) {
  // The kernel reports the end of a thread before it switches the thread out for the last time.
  // That switch begins no interval.
  if (tasks_->HasEnded(waiting.tid, waiting.timestamp)) return;
  if (waiting.timestamp <= missing_until_) {
    ++lost_;
    return;
  }
  Thread& thread = threads_[waiting.tid];
  // If the thread's previous interval has not ended, the record of its switch in is missing or
  // comes too late. That interval counts as lost.
  if (std::exchange(thread.out, 0) != 0) ++lost_;
  const std::size_t capacity = thread.stack.capacity();
  if (waiting.stack_size > capacity && bytes_ + waiting.stack_size - capacity > kMaxBytes) {
    ++lost_;
    return;
  }
  const auto stack = stacks_.begin() + static_cast<std::ptrdiff_t>(waiting.stack);
  thread.stack.assign(stack, stack + static_cast<std::ptrdiff_t>(waiting.stack_size));
  bytes_ += thread.stack.capacity() - capacity;
  thread.is_cut = waiting.is_cut;
  thread.out = waiting.timestamp;
  thread.pid = waiting.pid;
  thread.cgroup = waiting.cgroup;
}

void OffCpuTracker::SwitchIn(const Waiting& waiting,
                             absl::FunctionRef<void(const Interval&)> consume) {
  const auto found = threads_.find(waiting.tid);
  if (found == threads_.end()) return;
  Thread& thread = found->second;
  if (waiting.timestamp < thread.out) return;  // the switch in was added too late
  const std::uint64_t out = std::exchange(thread.out, 0);
  if (out == 0 || thread.pid != waiting.pid) return;
  Interval interval;
  interval.cpu = waiting.cpu;
  interval.timestamp = waiting.timestamp;
  interval.duration = waiting.timestamp - out;
  interval.sample.pid = waiting.pid;
  interval.sample.tid = waiting.tid;
  interval.sample.cgroup = thread.cgroup;
  SampleStack& stack = interval.sample.stack.emplace();
  stack.entries = thread.stack;
  stack.is_cut = thread.is_cut;
  consume(interval);
}

// Counts the current interval of each thread without a CPU as lost, because the missing switches
// before `timestamp` may be of any thread.
void OffCpuTracker::MissUntil(std::uint64_t timestamp) {
  missing_until_ = std::max(missing_until_, timestamp);
  for (auto& [tid, thread] : threads_) {
    if (std::exchange(thread.out, 0) != 0) ++lost_;
  }
}

void OffCpuTracker::DropEnded(std::uint64_t timestamp) {
  if (threads_.size() < next_drop_) return;
  absl::erase_if(threads_, [this, timestamp](const auto& entry) {
    const auto& [tid, thread] = entry;
    const bool stays = tasks_->Knows(tid) && !tasks_->HasEnded(tid, timestamp);
    if (stays) return false;
    bytes_ -= thread.stack.capacity();
    if (thread.out != 0) ++lost_;
    return true;
  });
  next_drop_ = std::max<std::size_t>(1024, 2 * threads_.size());
}

}  // namespace collector
