// Runs a capture on a separate thread, which also runs work that other threads post.
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
#include "tools/base/unique_fd.h"
#include "tools/collector/session/capture.h"
#include "tools/nettraced/heartbeat.h"

namespace nettraced {

// Drains a capture on a thread, in rounds: each round is a call of Capture::Poll. All functions are
// thread-safe unless their comment says otherwise.
class CaptureThread {
 public:
  // Opens the capture and starts the thread that drains it. Fails with the error of Capture::Open,
  // or if no descriptor or thread can be created.
  static absl::StatusOr<std::shared_ptr<CaptureThread>> Start(
      const collector::CaptureOptions& options);
  // Waits until all posted work is done, and ends the thread. All sessions must have been stopped.
  // Must not be called on the thread itself.
  ~CaptureThread();
  CaptureThread(const CaptureThread&) = delete;
  CaptureThread& operator=(const CaptureThread&) = delete;

  // Posts work that the thread does between two rounds, even after the capture has failed. The
  // capture fails if there is not enough memory for the work.
  //
  // The thread destroys each piece of work after executing it. If work holds a shared_ptr to this
  // object, the caller must keep another shared_ptr until the work is destroyed. Otherwise the
  // thread would destroy this object and join itself. The work is certainly destroyed when a later
  // call of Run returns.
  void Post(std::function<void(collector::Capture& capture)> work);
  // Posts the work and waits until it has ended. If the work ends early for lack of memory,
  // status() has the error. Must not be called on the thread itself.
  void Run(const std::function<void(collector::Capture& capture)>& work);

  // Adds a function that the thread calls after each round, including a round that fails, until
  // RemoveObserver(key). AddObserver and RemoveObserver must be called on the thread.
  void AddObserver(const void* key, std::function<void()> look);
  void RemoveObserver(const void* key);

  // Returns the error of the first round that failed, or of the first work that ran out of memory;
  // OK if there is none. After an error, the thread makes no more rounds, and the sessions must be
  // stopped.
  absl::Status status() const;
  std::size_t ring_size() const { return ring_size_; }
  // Returns Capture::kernel_status.
  const absl::Status& kernel_status() const { return capture_->kernel_status(); }

  // Returns the heartbeat, which may be used after this object is destroyed.
  std::shared_ptr<const Heartbeat> heartbeat() const { return heartbeat_; }

 private:
  CaptureThread(std::unique_ptr<collector::Capture> capture, base::UniqueFd wake,
                std::size_t ring_size);

  void Loop();
  // Executes the posted work. Returns whether the thread must then end.
  bool DoWork();
  // Runs a step. If there is not enough memory for it, the capture fails.
  void Do(const std::function<void()>& step);
  void Fail(const absl::Status& status);
  void Wake();

  const std::unique_ptr<collector::Capture> capture_;
  const base::UniqueFd wake_;  // an eventfd
  const std::size_t ring_size_;
  const std::shared_ptr<Heartbeat> heartbeat_;
  mutable std::mutex mutex_;
  std::vector<std::function<void(collector::Capture&)>> work_;
  bool ends_ = false;
  absl::Status status_;
  std::vector<std::pair<const void*, std::function<void()>>> observers_;  // used on the thread only
  std::thread thread_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CAPTURE_THREAD_H_
