// What others may see of a session that collects: its numbers, taken on the capture's thread.
#ifndef TOOLS_NETTRACED_SESSION_VIEW_H_
#define TOOLS_NETTRACED_SESSION_VIEW_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/collector/control/service.h"
#include "tools/collector/session/capture.h"
#include "tools/collector/session/session.h"

namespace nettraced {

class SessionView {
 public:
  // `notice` is called on the capture's thread when the session has failed, has been suspended or
  // goes on, or has lost events.
  explicit SessionView(std::function<void()> notice) : notice_(std::move(notice)) {}

  // These four are the capture thread's. Both are null before the session has begun and once it has
  // ended.
  void SetSession(const collector::Capture* capture, const collector::Session* session) {
    capture_ = capture;
    session_ = session;
  }
  bool has_session() const { return session_ != nullptr; }
  // To be called after each round; it looks once a second, or if something is wrong.
  void Look(absl::Duration now);
  // Looks if there is a session; wakes who waits for number `ticket` or one before.
  void LookNow(std::uint64_t ticket);

  // On any thread: waits for LookNow(ticket), but no longer than `limit`.
  void WaitFor(std::uint64_t ticket, absl::Duration limit);
  std::uint64_t NewTicket();

  absl::Status status() const;
  bool is_suspended() const;
  std::uint64_t lost() const;
  // Puts the numbers that were seen last into `status`.
  void FillIn(collector::SessionStatus* status) const;

 private:
  struct Sample {
    absl::Duration time;
    std::uint64_t events;
    std::uint64_t bytes;
  };
  static constexpr absl::Duration kLook = absl::Seconds(1);
  // Rates are of so many seconds.
  static constexpr std::size_t kSamples = 6;

  // Takes the numbers; returns whether they are to be noticed.
  bool Take();

  const std::function<void()> notice_;
  // The capture thread's, down to the mutex.
  const collector::Capture* capture_ = nullptr;
  const collector::Session* session_ = nullptr;
  absl::Duration looked_;
  mutable std::mutex mutex_;
  std::condition_variable seen_;
  std::uint64_t last_ticket_ = 0;
  std::uint64_t seen_ticket_ = 0;
  collector::SessionSummary summary_;
  bool suspended_ = false;
  std::deque<Sample> samples_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SESSION_VIEW_H_
