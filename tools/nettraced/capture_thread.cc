#include "tools/nettraced/capture_thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <condition_variable>
#include <new>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "tools/base/descriptor_status.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/session_clock.h"

namespace nettraced {
namespace {

// Maximum time that a round waits for events. An idle thread stamps the heartbeat this often.
constexpr absl::Duration kLongestRound = absl::Seconds(1);

}  // namespace

absl::StatusOr<std::shared_ptr<CaptureThread>> CaptureThread::Start(
    const collector::CaptureOptions& options) {
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) {
    return base::DescriptorStatus(errno, "opening a capture: eventfd");
  }
  ASSIGN_OR_RETURN(std::unique_ptr<collector::Capture> capture, collector::Capture::Open(options));
  RETURN_IF_ERROR(capture->WakeOn(wake.get()));
  std::shared_ptr<CaptureThread> result(
      new CaptureThread(std::move(capture), std::move(wake), options.ring_size));
  try {
    result->thread_ = std::thread([thread = result.get()] { thread->Loop(); });
  } catch (const std::system_error& error) {
    return base::ErrnoStatus(error.code().value(), "cannot create the thread of the capture",
                             "raise TasksMax= of nettraced.service");
  }
  return result;
}

CaptureThread::CaptureThread(std::unique_ptr<collector::Capture> capture, base::UniqueFd wake,
                             std::size_t ring_size)
    : capture_(std::move(capture)),
      wake_(std::move(wake)),
      ring_size_(ring_size),
      heartbeat_(std::make_shared<Heartbeat>(base::MonotonicNow())) {}

CaptureThread::~CaptureThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  Wake();
  thread_.join();
}

void CaptureThread::Post(std::function<void(collector::Capture& capture)> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  Wake();
}

void CaptureThread::Run(const std::function<void(collector::Capture& capture)>& work) {
  std::mutex mutex;
  std::condition_variable progress;
  bool done = false;
  Post([&](collector::Capture& capture) {
    // Wakes the waiting thread even if the work throws.
    const absl::Cleanup notify = [&] {
      // Notifies under the lock: Run destroys `progress` as soon as it sees that `done` is true.
      const std::lock_guard lock(mutex);
      done = true;
      progress.notify_one();
    };
    work(capture);
  });
  std::unique_lock lock(mutex);
  progress.wait(lock, [&done] { return done; });
}

void CaptureThread::AddObserver(const void* key, std::function<void()> look) {
  observers_.emplace_back(key, std::move(look));
}

void CaptureThread::RemoveObserver(const void* key) {
  std::erase_if(observers_, [key](const auto& each) { return each.first == key; });
}

absl::Status CaptureThread::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void CaptureThread::Loop() {
  pthread_setname_np(pthread_self(), "capture");
  for (bool failed = false; !DoWork();) {
    heartbeat_->Stamp(base::MonotonicNow());
    if (failed) {
      pollfd wake = {wake_.get(), POLLIN, 0};
      poll(&wake, 1, static_cast<int>(absl::ToInt64Milliseconds(kLongestRound)));
      continue;
    }
    Do([this] { Fail(capture_->Poll(kLongestRound)); });
    for (const auto& [key, look] : observers_) Do(look);
    failed = !status().ok();
  }
  heartbeat_->End();
}

bool CaptureThread::DoWork() {
  eventfd_t count = 0;
  eventfd_read(wake_.get(), &count);
  std::vector<std::function<void(collector::Capture&)>> work;
  bool ends = false;
  {
    const std::lock_guard lock(mutex_);
    work.swap(work_);
    ends = ends_;
  }
  for (auto& each : work) {
    heartbeat_->BeginWork(base::MonotonicNow());
    Do([&] { each(*capture_); });
    each = nullptr;
    heartbeat_->EndWork(base::MonotonicNow());
  }
  return ends;
}

void CaptureThread::Do(const std::function<void()>& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    // The exception ended the step halfway, so the capture may be inconsistent and cannot continue.
    Fail(absl::ResourceExhaustedError(
        "not enough memory; lower ring_size or queue_bytes of sessions"));
  }
}

void CaptureThread::Fail(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  status_.Update(status);
}

void CaptureThread::Wake() { eventfd_write(wake_.get(), 1); }

}  // namespace nettraced
