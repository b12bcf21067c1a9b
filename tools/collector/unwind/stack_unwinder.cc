#include "tools/collector/unwind/stack_unwinder.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <string>
#include <system_error>

#include "absl/status/status.h"
#include "tools/base/descriptor_status.h"
#include "tools/collector/perf/user_registers.h"

namespace collector {

StackUnwinder::StackUnwinder(std::size_t max_frames, const Limits& limits, base::UniqueFd wake)
    : max_frames_(max_frames), limits_(limits), wake_(std::move(wake)) {}

absl::StatusOr<std::unique_ptr<StackUnwinder>> StackUnwinder::Start(std::size_t max_frames,
                                                                    const Limits& limits) {
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::DescriptorStatus(errno, "unwinding stacks: eventfd");
  std::unique_ptr<StackUnwinder> unwinder(new StackUnwinder(max_frames, limits, std::move(wake)));
  // The new thread blocks all signals, because another thread waits for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  absl::Status status;
  std::promise<pid_t> tid;
  std::future<pid_t> started = tid.get_future();
  try {
    unwinder->thread_ = std::thread(
        [self = unwinder.get(), tid = std::move(tid)]() mutable { self->Run(std::move(tid)); });
    unwinder->tid_ = started.get();
  } catch (const std::system_error& error) {
    status = absl::ResourceExhaustedError(
        std::string("unwinding stacks: the thread cannot be created: ") + error.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!status.ok()) return status;
  return unwinder;
}

StackUnwinder::~StackUnwinder() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StackUnwinder::ClearWake() {
  std::uint64_t count = 0;
  // The call fails if there is nothing to clear, which is no error.
  [[maybe_unused]] const ssize_t got = read(wake_.get(), &count, sizeof count);
}

void StackUnwinder::Run(std::promise<pid_t> tid) {
  tid.set_value(gettid());
  pthread_setname_np(pthread_self(), "unwind");
  // The caller is woken when all stacks are unwound, and each time this number of stacks is
  // unwound.
  constexpr std::size_t kWakeEvery = 64;
  std::size_t done = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const std::shared_ptr<Job> job = std::move(queue_.front());
    queue_.pop_front();
    const bool is_last = queue_.empty();
    lock.unlock();
    const std::uint64_t pc = job->state.registers[kProgramCounter];
    if (job->code != nullptr && job->has_64_bits) {
      const std::uint32_t pid = job->state.pid;
      job->is_whole = WalkStack(
          job->state, *job->code, max_frames_,
          [this, pid](const CodeMapping& mapping) { return modules_.Find(pid, mapping); },
          &job->frames);
    } else {
      job->frames.push_back(pc);
    }
    job->is_done.store(true, std::memory_order_release);
    if (is_last || ++done % kWakeEvery == 0) {
      const std::uint64_t one = 1;
      // The call fails only if the descriptor is readable already.
      [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
    }
    lock.lock();
  }
}

bool StackUnwinder::HasCopy(const SampleRecord& sample) {
  return sample.stack && sample.stack->copy && !sample.stack->copy->registers.empty();
}

ThreadState StackUnwinder::StateOf(const SampleRecord& sample, std::uint64_t timestamp) {
  ThreadState state;
  state.pid = sample.pid;
  state.timestamp = timestamp;
  for (std::size_t i = 0; i < kUserRegisters.size(); ++i) {
    state.registers[kUserRegisters[i]] =
        internal::Load<std::uint64_t>(sample.stack->copy->registers, i * sizeof(std::uint64_t));
  }
  return state;
}

bool StackUnwinder::Begin(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp,
                          absl::FunctionRef<std::shared_ptr<const CodeSnapshot>()> code) {
  if (!HasCopy(sample)) return true;
  const UserCopy& copy = *sample.stack->copy;
  const Key key(cpu, timestamp, sample.tid);
  if (jobs_.contains(key)) return true;
  if (jobs_.size() >= limits_.samples || bytes_ + copy.stack.size() > limits_.bytes) return false;
  auto job = std::make_shared<Job>();
  job->copy.assign(copy.stack.begin(), copy.stack.end());
  job->state = StateOf(sample, timestamp);
  job->state.stack = job->copy;
  job->has_64_bits = copy.has_64_bits;
  job->code = code();
  bytes_ += job->copy.size();
  jobs_.emplace(key, job);
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

std::uint64_t StackUnwinder::FindOldest() const {
  std::uint64_t oldest = kNone;
  for (const auto& [key, job] : jobs_) {
    if (!job->is_done.load(std::memory_order_acquire)) oldest = std::min(oldest, std::get<1>(key));
  }
  return oldest;
}

void StackUnwinder::GiveUp(std::uint64_t limit) {
  const std::lock_guard lock(mutex_);
  std::erase_if(queue_,
                [limit](const std::shared_ptr<Job>& job) { return job->state.timestamp <= limit; });
}

void StackUnwinder::Complete(std::size_t cpu, SampleRecord* sample, std::uint64_t timestamp) {
  if (!HasCopy(*sample)) return;
  SampleStack& stack = *sample->stack;
  std::shared_ptr<Job> job;
  if (const auto found = jobs_.find(Key(cpu, timestamp, sample->tid)); found != jobs_.end()) {
    job = std::move(found->second);
    bytes_ -= job->copy.size();
    jobs_.erase(found);
  }
  entries_.clear();
  for (std::size_t at = 0; at + 8 <= stack.entries.size(); at += 8) {
    entries_.push_back(internal::Load<std::uint64_t>(stack.entries, at));
  }
  entries_.push_back(static_cast<std::uint64_t>(PERF_CONTEXT_USER));
  if (job != nullptr && job->is_done.load(std::memory_order_acquire)) {
    entries_.insert(entries_.end(), job->frames.begin(), job->frames.end());
    stack.is_cut = !job->is_whole;
  } else {
    entries_.push_back(StateOf(*sample, timestamp).registers[kProgramCounter]);
    stack.is_cut = true;
    if (skipped_.count++ == 0) skipped_.first = timestamp;
    skipped_.first = std::min(skipped_.first, timestamp);
    skipped_.last = std::max(skipped_.last, timestamp);
  }
  stack.entries = std::as_bytes(std::span<const std::uint64_t>(entries_));
}

}  // namespace collector
