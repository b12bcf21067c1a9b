// Waits for space on a full disk.
#ifndef TOOLS_CLI_SPACE_WAIT_H_
#define TOOLS_CLI_SPACE_WAIT_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace cli {

// Lets a sink wait until the disk has space again, or until waiting is over. Waiting is over when
// the process is asked to end, and after a call of End. It is also over at the time given to EndAt,
// and when the command given to EndWith ends. CatchSignals (tools/cli/signals.h) must have been
// called. The functions of this class may be called from any thread, but Wait from only one.
class SpaceWait {
 public:
  // Interval between attempts to write.
  static constexpr absl::Duration kLook = absl::Milliseconds(250);

  // `notify` is called by the waiting thread: with true when a wait begins, and with false when a
  // retried write has succeeded.
  explicit SpaceWait(std::function<void(bool waiting)> notify) : notify_(std::move(notify)) {}
  SpaceWait(const SpaceWait&) = delete;
  SpaceWait& operator=(const SpaceWait&) = delete;

  // Limit the time of waiting. EndAt ends it at `time`, EndWith when the child process `command`
  // ends, and End at once.
  void EndAt(absl::Time time) { end_ = absl::ToUnixNanos(time); }
  void EndWith(pid_t command) { command_ = command; }
  void End() { over_ = true; }

  // Can be passed to nettrace::FdSink::set_retry. If a write failed with `error`, waits and returns
  // whether to retry the write. Returns false at once if `error` is not a lack of space, or if
  // waiting is over. If a write succeeded (`error` is 0), ends the wait and returns true.
  bool Wait(int error);

  bool is_waiting() const { return is_waiting_; }
  // Total duration of all waits that ended with a successful write.
  absl::Duration waited() const { return absl::Nanoseconds(waited_.load()); }

 private:
  bool IsOver() const;

  const std::function<void(bool waiting)> notify_;
  std::atomic<std::int64_t> end_ = INT64_MAX;  // ns since 1970
  std::atomic<pid_t> command_ = 0;             // process id; 0: none
  std::atomic<bool> over_ = false;
  std::atomic<bool> is_waiting_ = false;
  std::atomic<std::int64_t> waited_ = 0;  // ns
  absl::Time began_;                      // when is_waiting_ became true
};

}  // namespace cli

#endif  // TOOLS_CLI_SPACE_WAIT_H_
