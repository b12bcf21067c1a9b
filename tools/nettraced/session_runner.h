// One session of the daemon, by its name: started, stopped, tried again, and told of.
#ifndef TOOLS_NETTRACED_SESSION_RUNNER_H_
#define TOOLS_NETTRACED_SESSION_RUNNER_H_

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
#include "tools/collector/base/unique_fd.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/control/service.h"
#include "tools/collector/session/capture.h"
#include "tools/nettraced/backoff.h"
#include "tools/nettraced/capture_pool.h"
#include "tools/nettraced/capture_thread.h"
#include "tools/nettraced/rate_limit.h"
#include "tools/nettraced/session_output.h"
#include "tools/nettraced/session_view.h"
#include "tools/nettraced/tail_stream.h"

namespace nettraced {

// What all sessions of a daemon have in common. It outlives them.
struct SessionEnvironment {
  explicit SessionEnvironment(std::shared_ptr<collector::PatternMemory> memory)
      : captures(std::move(memory)) {}

  CapturePool captures;
  // Called by any thread when a session's state has changed.
  std::function<void()> on_change;
  // Nobody is to wait any more for an output that takes nothing.
  std::atomic<bool> hurry = false;
};

// Does everything that may take its time on a thread of its own, so that a session whose directory
// hangs keeps no other one waiting. All functions may be called from any thread; those that return
// a future have its value come when the thread has done it, in the order of the calls.
class SessionRunner {
 public:
  // The session is stopped until Start. The settings name the directory of the files. Throws
  // std::system_error if there is no thread for it.
  SessionRunner(collector::SessionSettings settings, SessionEnvironment* environment);
  // Stops the session.
  ~SessionRunner();
  SessionRunner(const SessionRunner&) = delete;
  SessionRunner& operator=(const SessionRunner&) = delete;

  const collector::SessionSettings& settings() const { return settings_; }

  // Starts the session, and returns why it could not: then it is tried again, by and by.
  std::future<absl::Status> Start();
  // Returns when its last file is complete; the error says what of it is missing.
  std::future<absl::Status> Stop();
  // Returns the path of the file that is complete then.
  std::future<absl::StatusOr<std::string>> Rotate();
  // Returns the path of the file. Where one is about to be written, it is that one, which then has
  // all that comes within `after`, too.
  std::future<absl::StatusOr<std::string>> Snapshot(absl::Duration after);
  absl::StatusOr<std::unique_ptr<collector::Tail>> StartTail(collector::UniqueFd socket,
                                                             std::string first);
  // Has the capture's thread look at the session; Status then tells what it saw. `limit` is how
  // long Status waits for that.
  void BeginLook();
  collector::SessionStatus Status(absl::Duration limit);

 private:
  // Of a session that collects.
  struct Running {
    std::shared_ptr<CaptureThread> capture;
    std::shared_ptr<SessionView> view;
    std::shared_ptr<SessionOutput> output;
    collector::Session* session = nullptr;  // the capture thread's
  };
  using PathPromise = std::promise<absl::StatusOr<std::string>>;
  // What an earlier loss was told with is not told again.
  static constexpr absl::Duration kTellLosses = absl::Minutes(1);

  void Post(std::function<void()> request);
  void Notice();
  std::shared_ptr<const Running> running() const;
  // All below are the thread's.
  void Loop();
  absl::Duration NextWork() const;
  // Starts the session; if it cannot, says so and sets the time of the next attempt.
  absl::Status TryStart();
  absl::Status Begin();
  // Ends it, with all events up to now in its output.
  absl::Status End();
  void Fail(const absl::Status& status, const char* what);
  // Sees what the capture's thread has noticed.
  void LookAtSession();
  void AnswerTrigger();
  void TellLosses();
  void BeginRotation(const std::shared_ptr<PathPromise>& promise);
  void BeginSnapshot(absl::Duration after, std::shared_ptr<PathPromise> promise);
  void FinishSnapshot();
  void SetState(collector::SessionStatus::State state,
                const absl::Status& error = absl::OkStatus());
  void Tell(int priority, const std::string& what, const absl::Status& error = absl::OkStatus());

  const collector::SessionSettings settings_;
  SessionEnvironment* const environment_;

  Backoff backoff_;
  // Times are of MonotonicNow.
  absl::Duration next_try_ = absl::InfiniteDuration();
  absl::Duration started_;
  absl::Duration losses_told_ = -absl::InfiniteDuration();
  std::uint64_t lost_told_ = 0;
  absl::Duration snapshot_at_ = absl::InfiniteDuration();
  std::vector<std::shared_ptr<PathPromise>> snapshot_for_;
  RateLimit snapshot_limit_;  // by triggers
  bool refusal_told_ = false;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::function<void()>> requests_;
  bool noticed_ = false;
  std::optional<std::size_t> trigger_;  // that has fired and is not answered
  bool ends_ = false;
  collector::SessionStatus status_;         // what the thread knows
  std::shared_ptr<const Running> running_;  // null: it does not collect; set by the thread
  std::uint64_t ticket_ = 0;                // of the last BeginLook
  std::vector<std::weak_ptr<TailStream>> tails_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SESSION_RUNNER_H_
