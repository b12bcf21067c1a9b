// A thread-safe copy of the totals of a running session, taken on the capture's thread.
#ifndef TOOLS_NETTRACED_SESSION_STATS_H_
#define TOOLS_NETTRACED_SESSION_STATS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/collector/session/session.h"
#include "tools/control/service.h"

namespace nettraced {

// Holds the totals of one session. The capture's thread updates them, and other threads read them.
class SessionStats {
 public:
  // `notice` is called on the capture's thread when the session has failed, was suspended or
  // resumed, has lost events, or has new warnings.
  explicit SessionStats(std::function<void()> notice) : notice_(std::move(notice)) {}

  // The following four functions must be called on the capture's thread. `session` is null before
  // the session begins and after it has ended.
  void SetSession(const collector::Session* session) { session_ = session; }
  bool has_session() const { return session_ != nullptr; }
  // Updates the totals if they are a second old, or at once after an error. Must be called after
  // each round of the capture.
  void UpdateIfDue(absl::Duration now);
  // Updates the totals if there is a session. Wakes threads that wait for `ticket` or a lower
  // number.
  void UpdateNow(std::uint64_t ticket);

  // Waits for at most `limit` until UpdateNow has been called with `ticket` or a higher number. May
  // be called on any thread.
  void WaitFor(std::uint64_t ticket, absl::Duration limit);
  // Returns a number for UpdateNow and WaitFor that is higher than all previous ones.
  std::uint64_t NewTicket();

  absl::Status status() const;
  bool is_suspended() const;
  std::uint64_t lost() const;
  // Returns the session's warnings that this function has not returned before.
  std::vector<std::string> TakeWarnings();
  // Copies the last known totals into `status`.
  void FillIn(control::SessionStatus* status) const;

 private:
  struct Sample {
    absl::Duration time;
    std::uint64_t events;
    std::uint64_t bytes;
  };
  static constexpr absl::Duration kUpdateEvery = absl::Seconds(1);
  // Maximum number of samples that are kept. A rate is the average over the time between the first
  // and the last sample.
  static constexpr std::size_t kSamples = 6;

  // Reads the totals of the session. Returns whether notice_ must be called.
  bool Take();

  const std::function<void()> notice_;
  // The members before mutex_ are used on the capture's thread only.
  const collector::Session* session_ = nullptr;
  absl::Duration updated_;
  mutable std::mutex mutex_;
  std::condition_variable seen_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t seen_ticket_ = 0;
  std::size_t warnings_taken_ = 0;
  collector::SessionSummary summary_;
  bool suspended_ = false;
  std::deque<Sample> samples_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SESSION_STATS_H_
