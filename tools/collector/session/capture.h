// The floor of recordings: what the kernel records for the whole machine, taken from its rings
// once, for any number of sessions (session.h).
//
// In: sessions, each with selectors (selector.h) and a sink to write to. Out: a file for each, and
// a summary that accounts for every event of it. The floor decides when: tracepoints that appear
// are attached, once for all sessions (attachments.h); the rings are drained in rounds; the records
// of threads are applied (identity) before the samples that name them; each sample is converted
// once (convert) and written by each session that has its tracepoint (distributor.h); and a
// session's interval is closed with a sequence point once no record of before it can still come. It
// holds no events: they go from the rings to the writers.
//
// Promises: a session that cannot begin says what is missing and what to do, makes no file, and
// leaves the others as they are. All events in a session's file and all counted as lost in it are
// together the kernel's hits between its start and its end, where the kernel counts those exactly.
// A session whose sink fails, or that ends, costs the others nothing. The memory needed does not
// depend on how long a session lasts.
#ifndef TOOLS_COLLECTOR_SESSION_CAPTURE_H_
#define TOOLS_COLLECTOR_SESSION_CAPTURE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/base/uevents.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_session.h"
#include "tools/collector/session/attachments.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/session.h"
#include "tools/collector/session/target.h"
#include "tools/collector/tracefs/tracefs.h"

namespace collector {

struct CaptureOptions {
  AttachmentOptions attachments;
  // Whose events.
  TargetSelection target;
  // Rows of threads say the executable, the cgroup, the systemd unit and the container (see
  // tools/collector/identity/task_tracker.h). Costs 8 bytes of a ring for each event.
  bool identity = false;
  // Bytes of each CPU's ring; a power of two, at least a page.
  std::size_t ring_size = 1 << 20;
  // How long after its timestamp a record may appear in its ring and still be in order. Records are
  // written there by the kernel within microseconds; a virtual CPU may be away for longer.
  absl::Duration slack = absl::Milliseconds(20);
  // How long a session's start may take for tracepoints of user_events that patterns select; what
  // is left is attached while the session runs.
  absl::Duration attach_at_start = absl::Seconds(5);
  // What this process does is in no session's kernel events. The threads that AttachmentOptions
  // names do not even get into the rings, but a daemon has threads that come and go.
  bool leave_out_own_process = false;
  // How often it is looked which CPUs are online, when something wakes or an interval ends: where
  // the kernel tells of their coming, to know of a time when one was not there.
  absl::Duration cpu_look = absl::Milliseconds(900);
};

// Life: Open; then StartSession, Poll and StopSession in any order. Not thread-safe.
class Capture {
 public:
  // Opens the rings of all CPUs. The status says what is missing and what to do.
  static absl::StatusOr<std::unique_ptr<Capture>> Open(const CaptureOptions& options);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Begins a session, whose events are recorded from the moment it returns. The session is the
  // capture's, until StopSession.
  absl::StatusOr<Session*> StartSession(SessionOptions options, const SinkFactory& make_sink);
  // How many tracepoints the session has.
  std::size_t CountTracepoints(const Session* session) const {
    return distributor_.TracepointsOf(session).size();
  }
  // Ends a session: writes what the rings still hold for it and its final account, and ends its
  // file. Where there are other sessions that may take as long as CaptureOptions::slack.
  SessionSummary StopSession(Session* session);

  // Waits for up to `timeout` for something to do, and does it. An error is one of the capture;
  // that of a session's sink is its own (Session::status).
  absl::Status Poll(absl::Duration timeout);
  // Makes Poll return early when `fd` is readable.
  absl::Status WakeOn(int fd) { return perf_.WakeOn(fd); }
  // All processes or threads whose events are recorded have ended.
  bool HasTargetEnded() { return target_watch_.HaveEnded(); }

 private:
  // Fewer events do not say how many bytes one takes.
  static constexpr std::size_t kEventsToJudgeBy = 1000;
  static constexpr int kRoundsAtOnce = 100;

  Capture(const CaptureOptions& options, Tracefs tracefs, PerfSession perf, TargetWatch watch);

  // Begins to hear of CPUs and modules, as far as the kernel tells.
  void ListenToKernel();
  // Takes what the kernel has told, and has the CPUs recorded that have come.
  void HearKernel(std::uint64_t now, bool may_be_told);
  absl::Status BeginToFollow(std::optional<CgroupFollower> follower);
  // Has a cgroup recorded that has come.
  void FollowTarget(std::uint64_t now, bool may_be_told);
  // When there is something to do even if nothing wakes, on the session clock.
  std::uint64_t NextWork() const;
  // Attaches what patterns select, for a session that began at `start`.
  absl::Status AttachTheRest(std::uint64_t start);
  // Does all that can fail when a session starts, the sink last. Returns the time from which on it
  // is to have events.
  absl::StatusOr<std::uint64_t> Prepare(Session* session, const SinkFactory& make_sink);
  // Drains up to `now`, in parts that an interval can hold, and ends the intervals that are full or
  // whose time is over. `settled`: no record of an earlier time can still appear in a ring.
  absl::Status Round(std::uint64_t now, std::uint64_t settled);
  std::uint64_t NextLimit(std::uint64_t now) const;
  bool AnyIntervalIsOver() const;
  absl::Status EndIntervals(std::uint64_t moment);
  void UpdateTasks();
  void DrainSamples(std::uint64_t limit);
  // Takes what the kernel counts as lost, and has the sessions write it; see
  // Session::SettleLosses.
  absl::Status AccountLosses(PerfSession::Losses which);
  // The rings hold nothing any more of what the session is to have.
  absl::Status DrainForEnd(Session* session);

  CaptureOptions options_;
  PerfSession perf_;
  TargetWatch target_watch_;
  TaskTracker tasks_;
  Distributor distributor_;
  Attachments attachments_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::optional<UeventSocket> uevents_;
  std::optional<CgroupFollower> follower_;
  std::uint64_t next_target_look_ = 0;
  bool target_error_told_ = false;
  std::uint64_t next_cpu_look_ = 0;
  std::uint64_t last_moment_ = 0;  // ns of the session clock: when intervals were ended last
  std::uint64_t closing_ = 0;      // the moment at which intervals end next; 0: not yet decided
  std::uint64_t drained_ = 0;      // samples up to here have been taken from the rings
  bool counted_since_drained_ = false;  // all losses, by AccountLosses
  // Of the rings, for an event; at first no more than one can have.
  std::size_t bytes_per_event_ = 40;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_CAPTURE_H_
