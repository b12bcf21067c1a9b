// The daemon's main thread: signals, what systemd is told, and the watchdog.
#ifndef TOOLS_NETTRACED_MAIN_LOOP_H_
#define TOOLS_NETTRACED_MAIN_LOOP_H_

#include <functional>
#include <future>
#include <list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/unique_fd.h"
#include "tools/nettraced/daemon.h"

namespace nettraced {

// It waits for nothing but signals and time; what may take longer is done by threads that end with
// it, so that the watchdog is fed whatever happens to one session.
class MainLoop {
 public:
  // Blocks the signals that Run takes, in this thread and those that it starts later. To be called
  // before any other thread is there.
  static absl::StatusOr<std::unique_ptr<MainLoop>> Create();

  // Runs the daemon until it has been asked to end, and has ended its sessions.
  void Run(Daemon* daemon);
  // Has Run look at the daemon's state; any thread may call it.
  void Wake();

 private:
  struct Job {
    std::future<void> done;
    std::function<void()> then;
  };

  MainLoop(collector::UniqueFd signals, collector::UniqueFd wake);

  // Does `work` on another thread, and then `then` on this one.
  void Begin(std::function<void()> work, std::function<void()> then);
  void TakeSignals();
  void OnSignal(int number);
  void FinishJobs();
  void BeginReload();
  void BeginStop();
  void FeedWatchdog(absl::Duration now);
  void TellStatus(absl::Duration now);

  const collector::UniqueFd signals_;
  const collector::UniqueFd wake_;
  Daemon* daemon_ = nullptr;
  absl::Duration watchdog_;  // how often systemd wants to hear; 0: it does not
  absl::Duration last_fed_;  // times are of MonotonicNow
  absl::Duration last_status_;
  absl::Duration last_save_;
  std::string status_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::list<Job> jobs_;  // last: what they use goes after them
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_MAIN_LOOP_H_
