#include "tools/output/output_queue.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/base/signals_blocked.h"
#include "tools/base/status_macros.h"

namespace output {
namespace {

// With kTake, time after which the thread retries, or flushes the inner sink if nothing is queued.
constexpr std::chrono::seconds kTick{1};
// With kTake, Close waits a tenth of this time for the thread to end. It then cancels the call of
// the inner sink, and waits for up to this time.
constexpr std::chrono::milliseconds kAfterCancel{1000};

// Limits a duration so that std::condition_variable can add it to the current time.
std::chrono::nanoseconds Bounded(absl::Duration limit) {
  return absl::ToChronoNanoseconds(std::clamp(limit, absl::ZeroDuration(), absl::Hours(24 * 365)));
}

}  // namespace

enum class OutputQueue::Mark : std::uint8_t { kFlush, kSync, kFinish, kSection };

struct OutputQueue::State {
  State(std::unique_ptr<nettrace::Sink> sink, OutputQueueOptions queue_options)
      : options(std::move(queue_options)), inner(std::move(sink)) {}

  // The caller of the following functions, except Run, must hold the mutex.
  //
  // Returns whether the thread has something to pass to the inner sink. Fewer than kPiece bytes
  // usually stay in the queue until a mark follows them. They are passed without a mark if the
  // inner sink has failed, or if the queue is full: the writer then pauses, and makes no mark.
  bool HasWork() const {
    return !marks.empty() || appended - handed >= kPiece ||
           (appended != handed && (full || !status.ok()));
  }
  bool IsDelivered() const { return marks.empty() && appended == handed && status.ok(); }
  std::uint64_t Undelivered() const { return appended - handed + held_back; }
  bool waits() const { return options.when_full == WhenFull::kWait; }
  void Put(std::span<const std::byte> bytes);
  void AddMark(Mark mark);
  // After an error, makes the thread retry once, and waits for the result. Only for kWait.
  absl::Status TryAgain(std::unique_lock<std::mutex>* lock);
  // Waits until the inner sink has everything, the thread has ended, or `limit` has passed. With
  // kWait, an error also ends the wait. Returns the status of the inner sink.
  absl::Status Wait(std::unique_lock<std::mutex>* lock, absl::Duration limit);
  void UpdateFull();
  // Stores the result of a call of the inner sink, and calls on_status if necessary. Releases the
  // mutex while it calls on_status.
  void Note(absl::Status result, std::unique_lock<std::mutex>* lock);

  // Runs on the queue's thread until WaitForWork returns false.
  void Run();
  // Waits until there is work or a retry is requested. With kTake, waits at most kTick; the thread
  // then calls Tick, or retries if work is left after an error. Returns false when the thread must
  // end.
  bool WaitForWork(std::unique_lock<std::mutex>* lock);
  // The following functions release the mutex while they call the inner sink.
  absl::Status GivePiece(std::unique_lock<std::mutex>* lock);
  absl::Status GiveMark(std::unique_lock<std::mutex>* lock);
  absl::Status Tick(std::unique_lock<std::mutex>* lock);

  const OutputQueueOptions options;

  mutable std::mutex mutex;
  std::condition_variable work;      // notified when the thread may have something to do
  std::condition_variable progress;  // notified when the thread has done something
  // The queued bytes, in buffers of kPiece bytes. Byte n of the stream is in buffers[n / kPiece -
  // first_buffer].
  std::deque<std::unique_ptr<std::byte[]>> buffers;
  std::uint64_t first_buffer = 0;
  std::vector<std::unique_ptr<std::byte[]>> spare;  // empty buffers for reuse
  struct MarkAt {
    Mark mark;
    std::uint64_t at;  // number of bytes of the stream before the mark
  };
  std::deque<MarkAt> marks;
  // Counts of bytes since the start. handed <= appended.
  std::uint64_t handed = 0;  // bytes that the inner sink has taken
  std::uint64_t appended = 0;
  std::uint64_t held_back = 0;  // bytes of `handed` that the inner sink holds back
  bool full = false;
  bool wants_section = false;
  std::size_t sections = 0;  // number of section marks in `marks`
  absl::Status status;
  absl::Time stuck_since = absl::InfiniteFuture();
  absl::Status last_error;
  absl::Time last_error_time = absl::InfinitePast();
  std::uint32_t reported_codes = 0;  // bit mask of error codes since the last success
  bool try_again = false;            // the thread must retry at once after an error
  bool closed = false;               // nothing can be appended any more
  bool stopping = false;             // the thread must end
  bool ended = false;                // the thread has left its loop
  bool has_closer = false;  // a call of Close ends the thread; later calls wait for its end
  pid_t thread_id = 0;

  std::unique_ptr<nettrace::Sink> inner;  // used only by the thread, until it has ended
  std::thread thread;                     // used only by the caller that set has_closer
};

void OutputQueue::State::Put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t at = appended % kPiece;
    if (appended / kPiece - first_buffer == buffers.size()) {
      if (spare.empty()) {
        buffers.push_back(std::make_unique_for_overwrite<std::byte[]>(kPiece));
      } else {
        buffers.push_back(std::move(spare.back()));
        spare.pop_back();
      }
    }
    const std::size_t size = std::min(kPiece - at, bytes.size());
    std::memcpy(buffers.back().get() + at, bytes.data(), size);
    bytes = bytes.subspan(size);
    appended += size;
  }
}

void OutputQueue::State::AddMark(Mark mark) {
  const bool is_there = !marks.empty() && marks.back().mark == mark;
  if (is_there && marks.back().at == appended) return;
  // Consecutive flushes are merged into the last one. The first mark in the queue stays as it is,
  // because the thread may be passing it to the inner sink.
  if (is_there && mark == Mark::kFlush && marks.size() > 1) {
    marks.back().at = appended;
    return;
  }
  marks.push_back({mark, appended});
  if (mark == Mark::kSection) ++sections;
  work.notify_one();
}

void OutputQueue::State::UpdateFull() {
  const std::uint64_t queued = appended - handed;
  if (queued >= options.limit) full = true;
  if (queued <= options.limit / 2) full = false;
}

absl::Status OutputQueue::State::TryAgain(std::unique_lock<std::mutex>* lock) {
  if (status.ok() || ended) return status;
  try_again = true;
  work.notify_one();
  progress.wait(*lock, [this] { return !try_again || ended; });
  return status;
}

absl::Status OutputQueue::State::Wait(std::unique_lock<std::mutex>* lock, absl::Duration limit) {
  progress.wait_for(*lock, Bounded(limit),
                    [this] { return IsDelivered() || (waits() && !status.ok()) || ended; });
  return status;
}

bool OutputQueue::State::WaitForWork(std::unique_lock<std::mutex>* lock) {
  if (waits()) {
    work.wait(*lock, [this] { return stopping || try_again || (HasWork() && status.ok()); });
    return try_again || (HasWork() && status.ok());
  }
  work.wait_for(*lock, kTick,
                [this] { return stopping || try_again || (HasWork() && status.ok()); });
  return !stopping;
}

void OutputQueue::State::Run() {
  pthread_setname_np(pthread_self(), options.thread_name.c_str());
  std::unique_lock lock(mutex);
  thread_id = gettid();
  progress.notify_all();
  while (WaitForWork(&lock)) {
    absl::Status result;
    if (!marks.empty() && marks.front().at == handed) {
      result = GiveMark(&lock);
    } else if (HasWork()) {
      result = GivePiece(&lock);
    } else {
      result = Tick(&lock);
    }
    Note(std::move(result), &lock);
  }
  ended = true;
  progress.notify_all();
}

void OutputQueue::State::Note(absl::Status result, std::unique_lock<std::mutex>* lock) {
  held_back = inner->Undelivered();
  wants_section = inner->WantsSection();
  UpdateFull();
  bool changed = result.ok() != status.ok();
  if (result.ok()) {
    reported_codes = 0;
  } else {
    const std::uint32_t code = std::uint32_t{1} << (result.raw_code() & 31);
    changed = (reported_codes & code) == 0;
    reported_codes |= code;
  }
  if (!result.ok()) {
    last_error = result;
    last_error_time = absl::Now();
    if (status.ok()) stuck_since = last_error_time;
  } else {
    stuck_since = absl::InfiniteFuture();
  }
  status = std::move(result);
  try_again = false;
  progress.notify_all();
  if (!changed || !options.on_status) return;
  const absl::Status now = status;
  lock->unlock();
  options.on_status(now);
  lock->lock();
}

absl::Status OutputQueue::State::GivePiece(std::unique_lock<std::mutex>* lock) {
  const std::size_t at = handed % kPiece;
  const std::uint64_t end = marks.empty() ? appended : marks.front().at;
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece - at, end - handed));
  const std::span<const std::byte> piece(buffers.front().get() + at, size);
  lock->unlock();
  std::size_t taken = 0;
  absl::Status result = inner->Append(piece, &taken);
  taken = result.ok() ? size : std::min(taken, size);
  lock->lock();
  handed += taken;
  if (handed / kPiece > first_buffer) {
    spare.push_back(std::move(buffers.front()));
    buffers.pop_front();
    ++first_buffer;
  }
  return result;
}

absl::Status OutputQueue::State::GiveMark(std::unique_lock<std::mutex>* lock) {
  const Mark mark = marks.front().mark;
  lock->unlock();
  absl::Status result = mark == Mark::kFlush    ? inner->Flush()
                        : mark == Mark::kSync   ? inner->Sync()
                        : mark == Mark::kFinish ? inner->Finish()
                                                : inner->BeginSection();
  lock->lock();
  if (!result.ok()) return result;
  marks.pop_front();
  if (mark == Mark::kSection) --sections;
  return result;
}

absl::Status OutputQueue::State::Tick(std::unique_lock<std::mutex>* lock) {
  if (appended != handed) return status;
  // Frees unused buffers, so that a queue that filled up once does not keep the memory.
  const std::vector<std::unique_ptr<std::byte[]>> unused = std::exchange(spare, {});
  lock->unlock();
  absl::Status result = inner->Flush();
  lock->lock();
  return result;
}

absl::StatusOr<std::shared_ptr<OutputQueue>> OutputQueue::Create(
    std::unique_ptr<nettrace::Sink> inner, OutputQueueOptions options) {
  options.limit = std::max(options.limit, kPiece);
  auto state = std::make_shared<State>(std::move(inner), std::move(options));
  try {
    const base::SignalsBlocked blocked;
    // The thread shares ownership of the state, because it may outlive the queue; see Close.
    state->thread = std::thread([state] { state->Run(); });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a thread for the output: ", error.what(),
                     "; raise the limits of threads or memory"));
  }
  std::unique_lock lock(state->mutex);
  state->progress.wait(lock, [&] { return state->thread_id != 0; });
  return std::shared_ptr<OutputQueue>(new OutputQueue(state));
}

OutputQueue::OutputQueue(std::shared_ptr<State> state) : state_(std::move(state)) {}

OutputQueue::~OutputQueue() {
  Close(state_->waits() ? absl::InfiniteDuration() : absl::ZeroDuration());
}

OutputQueue::Stats OutputQueue::stats() const {
  const std::lock_guard lock(state_->mutex);
  Stats stats;
  stats.queued = state_->appended - state_->handed;
  stats.undelivered = state_->Undelivered();
  stats.appended = state_->appended;
  stats.status = state_->status;
  stats.stuck_since = state_->stuck_since;
  stats.last_error = state_->last_error;
  stats.last_error_time = state_->last_error_time;
  return stats;
}

pid_t OutputQueue::thread_id() const {
  const std::lock_guard lock(state_->mutex);
  return state_->thread_id;
}

void OutputQueue::RetryNow() {
  const std::lock_guard lock(state_->mutex);
  if (state_->status.ok()) return;
  state_->try_again = true;
  state_->work.notify_one();
}

bool OutputQueue::WaitUntilDelivered(absl::Duration limit) {
  std::unique_lock lock(state_->mutex);
  if (state_->appended != state_->handed) state_->AddMark(Mark::kFlush);
  state_->Wait(&lock, limit).IgnoreError();
  return state_->IsDelivered();
}

std::uint64_t OutputQueue::Close(absl::Duration limit) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.closed = true;
  if (state.has_closer) {
    state.progress.wait_for(lock, Bounded(limit), [&] { return state.ended; });
    return state.Undelivered();
  }
  state.has_closer = true;
  if (!state.ended) {
    state.AddMark(Mark::kFlush);
    state.try_again = !state.status.ok();
    state.work.notify_one();
    state.Wait(&lock, limit).IgnoreError();
    if (state.waits()) state.progress.wait(lock, [&] { return !state.try_again; });
  }
  state.stopping = true;
  state.work.notify_one();
  const auto has_ended = [&] { return state.ended; };
  if (state.waits()) {
    state.progress.wait(lock, has_ended);
  } else if (!state.progress.wait_for(lock, kAfterCancel / 10, has_ended)) {
    lock.unlock();
    if (state.options.cancel) state.options.cancel();
    lock.lock();
    state.progress.wait_for(lock, kAfterCancel, has_ended);
  }
  const std::uint64_t undelivered = state.Undelivered();
  const bool ended = state.ended;
  lock.unlock();
  if (!ended) {
    state.thread.detach();
    return undelivered;
  }
  state.thread.join();
  state.inner.reset();
  return undelivered;
}

absl::Status OutputQueue::Do(Mark mark) {
  std::unique_lock lock(state_->mutex);
  if (state_->closed)
    return absl::CancelledError("the output was already closed; this data is not written");
  state_->AddMark(mark);
  if (!state_->waits()) return absl::OkStatus();
  RETURN_IF_ERROR(state_->TryAgain(&lock));
  const bool is_waited_for = mark == Mark::kSync || mark == Mark::kFinish;
  return is_waited_for ? state_->Wait(&lock, absl::InfiniteDuration()) : absl::OkStatus();
}

absl::Status QueueSink::Append(std::span<const std::byte> bytes, std::size_t* taken) {
  *taken = 0;
  OutputQueue::State& state = *queue_->state_;
  std::unique_lock lock(state.mutex);
  if (state.closed)
    return absl::CancelledError("the output was already closed; this data is not written");
  if (!state.waits()) {
    state.Put(bytes);
    *taken = bytes.size();
    state.UpdateFull();
    if (state.HasWork()) state.work.notify_one();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(state.TryAgain(&lock));
  while (*taken < bytes.size()) {
    const auto has_room = [&] { return state.appended - state.handed < state.options.limit; };
    state.progress.wait(lock, [&] { return has_room() || !state.status.ok(); });
    if (!state.status.ok()) return state.status;
    const std::size_t room = state.options.limit - (state.appended - state.handed);
    const std::size_t size = std::min(room, bytes.size() - *taken);
    state.Put(bytes.subspan(*taken, size));
    *taken += size;
    if (state.HasWork()) state.work.notify_one();
  }
  return absl::OkStatus();
}

absl::Status QueueSink::Flush() { return queue_->Do(OutputQueue::Mark::kFlush); }

absl::Status QueueSink::Sync() { return queue_->Do(OutputQueue::Mark::kSync); }

absl::Status QueueSink::Finish() { return queue_->Do(OutputQueue::Mark::kFinish); }

absl::Status QueueSink::BeginSection() { return queue_->Do(OutputQueue::Mark::kSection); }

std::uint64_t QueueSink::Undelivered() const {
  const std::lock_guard lock(queue_->state_->mutex);
  return queue_->state_->Undelivered();
}

bool QueueSink::WantsSection() const {
  const std::lock_guard lock(queue_->state_->mutex);
  return queue_->state_->wants_section && queue_->state_->sections == 0;
}

bool QueueSink::IsFull() const {
  const std::lock_guard lock(queue_->state_->mutex);
  return queue_->state_->full && !queue_->state_->waits();
}

}  // namespace output
