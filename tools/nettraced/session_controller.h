// Runs one session of the daemon: starts, stops and retries it, and reports its status.
#ifndef TOOLS_NETTRACED_SESSION_CONTROLLER_H_
#define TOOLS_NETTRACED_SESSION_CONTROLLER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/dotnet_recording.h"
#include "tools/control/service.h"
#include "tools/nettraced/backoff.h"
#include "tools/nettraced/capture_pool.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/config/settings.h"
#include "tools/nettraced/output_chain.h"
#include "tools/nettraced/rate_limit.h"
#include "tools/nettraced/session_stats.h"
#include "tools/nettraced/tail_stream.h"

namespace nettraced {

// Holds what all sessions of a daemon share. Must outlive the sessions.
struct SharedState {
  explicit SharedState(std::shared_ptr<collector::PatternMemory> memory)
      : captures(std::move(memory)) {}

  CapturePool captures;
  // Called when a session's state has changed, on any thread.
  std::function<void()> on_change;
  // Set when sessions must stop waiting for outputs that accept no data.
  std::atomic<bool> hurry = false;
};

// Runs a session on a separate thread, so that a session whose directory hangs does not block the
// others. All functions are thread-safe. A function that returns a future posts a request; the
// thread completes requests in the order of the calls.
class SessionController {
 public:
  // Creates a stopped session. The settings must come from InDirectory, which sets the directory of
  // the files. Throws std::system_error if no thread can be started.
  SessionController(SessionSettings settings, SharedState* shared);
  // Stops the session and waits until it has stopped.
  ~SessionController();
  SessionController(const SessionController&) = delete;
  SessionController& operator=(const SessionController&) = delete;

  const SessionSettings& settings() const { return settings_; }

  // Starts the session. The future holds the error if the session cannot start. The thread then
  // retries the start after increasing waits. If the session is already running, the future holds
  // FailedPrecondition, and nothing is retried.
  std::future<absl::Status> Start();
  // Stops the session. The future is ready when the session's last file is complete, or when its
  // output has given up writing. The future holds OK, the session's error, or an error that says
  // how many bytes and events are missing.
  std::future<absl::Status> Stop();
  // Starts a new file. The future holds the path of the previous file, which is then complete. It
  // holds FailedPrecondition if the session does not run or does not write a series of files.
  std::future<absl::StatusOr<std::string>> Rotate();
  // Writes a snapshot after the time `after`. The future holds the path of the file, or an error.
  // If a snapshot is already scheduled, one file answers both requests, at the later of the two
  // times.
  std::future<absl::StatusOr<std::string>> Snapshot(absl::Duration after);
  // Starts a stream of the session's events to `socket`, after the bytes `first`, which are the
  // reply to the client's request. Fails with FailedPrecondition if the session does not run. The
  // stream ends when the session ends.
  absl::StatusOr<std::unique_ptr<control::Tail>> StartTail(base::UniqueFd socket,
                                                           std::string first);
  // Requests that the capture's thread updates the session's totals.
  void RequestUpdate();
  // Waits for at most `limit` until the update of the last RequestUpdate is done. Returns the last
  // known state.
  control::SessionStatus Status(absl::Duration limit);

 private:
  // The parts of the session while it collects events.
  struct Running {
    CapturePool::Place place;
    std::shared_ptr<CaptureThread> capture;
    std::shared_ptr<SessionStats> stats;
    std::shared_ptr<OutputChain> output;
    std::unique_ptr<collector::DotnetRecording> dotnet;  // null if no provider is recorded
    // Selectors of the tracepoints that `dotnet` has registered.
    std::vector<collector::Selector> dotnet_selectors;
    collector::Session* session = nullptr;  // used on the capture's thread only
  };
  using PathPromise = std::promise<absl::StatusOr<std::string>>;
  // Wakes the controller from a thread that may outlive it.
  struct Waker {
    std::mutex mutex;
    SessionController* controller;  // null once the controller is being destroyed
  };
  // Losses within this time of a log message are added to the next message.
  static constexpr absl::Duration kLogLossesEvery = absl::Minutes(1);

  void Post(std::function<void()> request);
  // Wakes the controller's thread, which then calls HandleReports. Thread-safe.
  void Notice();
  std::shared_ptr<const Running> running() const;
  // All functions below are called on the controller's thread.
  void Loop();
  // Returns the time at which the thread must wake even if no request and no call of Notice
  // arrives; infinite if there is none. `mutex_` must be held.
  absl::Duration NextWork() const;
  // Starts the session. If that fails, logs the error and schedules the next attempt.
  absl::Status TryStart();
  absl::Status Begin();
  // Ends the session, if it runs. Waits until all events up to now are in its output, or the output
  // gives up (OutputChain::Close).
  absl::Status End();
  // Marks the session as failed and schedules the next attempt. Logs `what` and the error, unless
  // the same error was logged last.
  void Fail(const absl::Status& status, const char* what);
  // Logs new warnings and losses, schedules the snapshot that a trigger has requested, and updates
  // the state. After an error of the session, ends the session and schedules the next attempt.
  void HandleReports();
  void AnswerTrigger();
  void LogLosses();
  void BeginRotation(const std::shared_ptr<PathPromise>& promise);
  void BeginSnapshot(absl::Duration after, std::shared_ptr<PathPromise> promise);
  void FinishSnapshot();
  void SetState(control::SessionStatus::State state, const absl::Status& error = absl::OkStatus());
  void LogMessage(int priority, const std::string& what,
                  const absl::Status& error = absl::OkStatus());

  const SessionSettings settings_;
  SharedState* const shared_;

  Backoff backoff_;
  // All times below are of base::MonotonicNow.
  absl::Duration next_try_ = absl::InfiniteDuration();
  absl::Duration started_;
  // Last failure that was logged, to log it only once. Reset to OK when the session starts, and at
  // a request to start it.
  absl::Status logged_failure_;
  absl::Duration losses_logged_at_ = -absl::InfiniteDuration();
  std::uint64_t lost_logged_ = 0;
  absl::Duration snapshot_at_ = absl::InfiniteDuration();
  std::vector<std::shared_ptr<PathPromise>> snapshot_for_;  // requests for the scheduled snapshot
  RateLimit snapshot_limit_;                                // limit of snapshots by triggers
  bool refusal_logged_ = false;  // whether a refused trigger was logged since the last allowed one

  const std::shared_ptr<Waker> waker_ = std::make_shared<Waker>();
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> requests_;
  bool noticed_ = false;                // whether Notice was called since the thread last woke
  std::optional<std::size_t> trigger_;  // index of the latest trigger that is not handled yet
  bool ends_ = false;
  control::SessionStatus status_;  // the state, without the totals of a running session
  // Parts of the running session; null while it is not running. Only the controller's thread sets
  // this pointer.
  std::shared_ptr<const Running> running_;
  std::uint64_t ticket_ = 0;  // ticket of the last RequestUpdate
  std::vector<std::weak_ptr<TailStream>> tails_;
  std::thread thread_;  // last member: the thread uses the others
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SESSION_CONTROLLER_H_
