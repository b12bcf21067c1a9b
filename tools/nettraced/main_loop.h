// The daemon's main thread: handles signals, notifies systemd, feeds the watchdog, and regularly
// saves the pattern memory.
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
#include "tools/base/unique_fd.h"
#include "tools/nettraced/daemon.h"
#include "tools/nettraced/supervisor.h"

namespace nettraced {

// A loop on the main thread that waits only for signals, calls of Wake, and timeouts. Slow work
// runs on other threads, so that the watchdog is fed even if a session hangs. These threads end
// before Run returns. If no thread can be created, starting and stopping the sessions runs on the
// main thread.
class MainLoop {
 public:
  // Blocks the signals that Run handles, in this thread and in threads that it starts later, and
  // ignores SIGPIPE and SIGXFSZ. Fails if there are no free descriptors. Must be called before any
  // other thread is started.
  static absl::StatusOr<std::unique_ptr<MainLoop>> Create();

  // Runs the daemon until it is asked to stop and its sessions have ended.
  void Run(Daemon* daemon);
  // Wakes Run, which then checks the daemon's state. Thread-safe.
  void Wake();

 private:
  // Work on another thread, and a function for the main thread to call after it.
  struct Job {
    std::future<void> done;
    std::function<void()> then;
  };

  MainLoop(base::UniqueFd signals, base::UniqueFd wake);

  // Runs `work` on another thread. When it is done, runs `then` on the main thread. If no thread
  // can be created, logs the reason, calls neither function, and returns false.
  bool Begin(const std::function<void()>& work, std::function<void()> then);
  void BeginStart();
  void TakeSignals();
  void OnSignal(int number);
  void FinishJobs();
  void BeginReload();
  void BeginStop();
  void FeedWatchdog(absl::Duration now);
  void ReportStatus(absl::Duration now);

  const base::UniqueFd signals_;
  const base::UniqueFd wake_;
  Supervisor supervisor_;
  Daemon* daemon_ = nullptr;
  absl::Duration watchdog_;  // timeout of systemd's watchdog; 0 without one
  absl::Duration last_fed_;  // times are of base::MonotonicNow
  absl::Duration last_status_;
  absl::Duration last_save_;
  std::string status_;
  bool stopping_ = false;
  bool stopped_ = false;
  std::list<Job> jobs_;  // last member: destroyed first, because jobs use the others
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_MAIN_LOOP_H_
