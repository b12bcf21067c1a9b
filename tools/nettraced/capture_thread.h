// A capture on a thread of its own, which others hand work to.
#ifndef TOOLS_NETTRACED_CAPTURE_THREAD_H_
#define TOOLS_NETTRACED_CAPTURE_THREAD_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/session/capture.h"
#include "tools/nettraced/heartbeat.h"

namespace nettraced {

// The clock by which the daemon waits and limits: nobody sets it.
absl::Duration MonotonicNow();

// All functions may be called from any thread, but where it says otherwise.
class CaptureThread {
 public:
  // Opens the capture and begins to drain it.
  static absl::StatusOr<std::shared_ptr<CaptureThread>> Start(
      const collector::CaptureOptions& options);
  // Waits for the work that was handed over. All sessions have been stopped.
  ~CaptureThread();
  CaptureThread(const CaptureThread&) = delete;
  CaptureThread& operator=(const CaptureThread&) = delete;

  // Has the thread do this between two rounds, even after the capture has failed. If there is not
  // enough memory for it, the capture fails.
  void Post(std::function<void(collector::Capture& capture)> work);
  // The same, and waits until it is done. Not to be called on the thread itself.
  void Run(const std::function<void(collector::Capture& capture)>& work);

  // `look` is called on the thread after each round, and once more when the capture has failed,
  // until it is removed by `key`. Both are to be called on the thread.
  void AddObserver(const void* key, std::function<void()> look);
  void RemoveObserver(const void* key);

  // Not OK once a round has failed: then no more are made, and the sessions are to be stopped.
  absl::Status status() const;
  std::size_t ring_size() const { return ring_size_; }

  // It goes on after this object, for those who look whether the thread is alive.
  std::shared_ptr<const Heartbeat> heartbeat() const { return heartbeat_; }

 private:
  CaptureThread(std::unique_ptr<collector::Capture> capture, collector::UniqueFd wake,
                std::size_t ring_size);

  void Loop();
  // Returns whether the thread is to end.
  bool DoWork();
  // Does a step. If there is not enough memory for it, the capture fails.
  void Do(const std::function<void()>& step);
  void Fail(const absl::Status& status);
  void Wake();

  const std::unique_ptr<collector::Capture> capture_;
  const collector::UniqueFd wake_;  // an eventfd
  const std::size_t ring_size_;
  const std::shared_ptr<Heartbeat> heartbeat_;
  mutable std::mutex mutex_;
  std::vector<std::function<void(collector::Capture&)>> work_;
  bool ends_ = false;
  absl::Status status_;
  std::vector<std::pair<const void*, std::function<void()>>> observers_;  // the thread's
  std::thread thread_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CAPTURE_THREAD_H_
