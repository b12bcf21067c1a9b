// Waiting for space on a disk that is full.
#ifndef TOOLS_COMMON_SPACE_WAIT_H_
#define TOOLS_COMMON_SPACE_WAIT_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace tools {

// Lets a sink wait until there is space again, or until what it writes is to end: when the process
// is asked to (tools/common/signals.h, whose CatchSignals must have been called), at a time, or
// when a command ends. Its functions may be called from any thread; a sink calls Wait from one.
class SpaceWait {
 public:
  // How often it is time to try again.
  static constexpr absl::Duration kLook = absl::Milliseconds(250);

  // `tell` is called by the thread that waits, with true when that begins and false when the write
  // that is tried then was successful.
  explicit SpaceWait(std::function<void(bool waiting)> tell) : tell_(std::move(tell)) {}
  SpaceWait(const SpaceWait&) = delete;
  SpaceWait& operator=(const SpaceWait&) = delete;

  // When not to wait any more.
  void EndAt(absl::Time time) { end_ = absl::ToUnixNanos(time); }
  void EndWith(pid_t command) { command_ = command; }
  void End() { over_ = true; }

  // For nettrace::FdSink::set_retry: after a write failed with `error`, waits and returns true if
  // it is to be tried again, at once false if that is not because of space or nobody is to wait any
  // more; after a write was successful (`error` is 0) notes that.
  bool Wait(int error);

  bool is_waiting() const { return is_waiting_; }
  // How long all waiting has taken that is over.
  absl::Duration waited() const { return absl::Nanoseconds(waited_.load()); }

 private:
  bool IsOver() const;

  const std::function<void(bool waiting)> tell_;
  std::atomic<std::int64_t> end_ = INT64_MAX;  // ns since 1970
  std::atomic<pid_t> command_ = 0;             // 0: none
  std::atomic<bool> over_ = false;
  std::atomic<bool> is_waiting_ = false;
  std::atomic<std::int64_t> waited_ = 0;  // ns
  absl::Time began_;                      // when is_waiting_ became true
};

}  // namespace tools

#endif  // TOOLS_COMMON_SPACE_WAIT_H_
