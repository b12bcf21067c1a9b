// A session as its users see it: `nettrace record` and nettraced start sessions in a Capture
// (capture.h), and read their progress here. The capture itself uses session_writer.h.
#ifndef TOOLS_COLLECTOR_SESSION_SESSION_H_
#define TOOLS_COLLECTOR_SESSION_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/dotnet/eventpipe_inbox.h"
#include "tools/collector/journal/journal_reader.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/skipped_tracepoints.h"
#include "tools/collector/session/target.h"
#include "tools/collector/session/trigger_set.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/ring_positions.h"

namespace collector {

class Session;

struct SessionOptions {
  std::string name;  // for Capture::ReportServices; may be ""
  std::vector<Selector> selectors;
  // Samples of CPU time per second and CPU; 0: none. CaptureOptions::stacks must be set.
  std::uint32_t cpu_rate = 0;
  // Whether the times in which threads have no CPU are recorded. CaptureOptions::stacks must be
  // set.
  bool off_cpu = false;
  // Stacks of the samples of CPU time and of the times without a CPU. max_frames 0 is the kernel's
  // limit.
  StackOptions sample_stacks = {/*user=*/true, /*kernel=*/true};
  // Time between two sequence points, at least 1 ms. Intervals end at multiples of this time, or
  // earlier if they hold many events.
  absl::Duration interval = absl::Seconds(1);
  // Events that trigger a call of `fire`, on the capture's thread, once they have been written.
  std::vector<Trigger> triggers;
  TriggerSet::Fire fire;
  // Whether the files contain positions (tools/trace/ring_positions.h). The position of a thread of
  // a service with rings is the event up to which the files have all events of the thread.
  // `recorded_rings` has the positions in the files of the previous collector.
  bool has_ring_positions = false;
  trace::RecordedRings recorded_rings;
  // Time within which the sink should deliver what it has taken. Services with rings in user space
  // keep their events until the sink has delivered them, but not longer than this time. Events that
  // a slower sink has not delivered are lost if the collector crashes. The next collector counts
  // them if the files contain positions.
  absl::Duration longest_delivery = absl::Seconds(1);
  // Whether the session records only services with rings in user space, and no tracepoint of the
  // kernel. Only such a session can have a target and filters that other sessions of the capture do
  // not have. It gets the events of the services that `target` selects.
  bool only_rings = false;
  TargetSelection target;  // ignored unless only_rings is set
  // Reason why services with rings in user space are not recorded although selectors may match
  // their tracepoints; "" if they are recorded, or if no service uses such rings.
  std::string why_no_rings;
  // Streams of .NET processes that the session records; null: none. CaptureOptions::streams should
  // be set.
  std::shared_ptr<EventPipeInbox> streams;
  // Another session of the capture. The new session also records the streams of .NET processes that
  // this other session has requested. Null: none. Only the address is compared, so the other
  // session may have ended.
  const Session* streams_of = nullptr;
  // Entries of the journal that the session records; null: none. CaptureOptions::streams should be
  // set.
  std::shared_ptr<JournalReader> journal;
};

struct SessionSummary {
  // OK if no error has occurred; the file is then complete after Capture::StopSession. After an
  // error, the file is readable up to its last complete block.
  absl::Status status;
  std::uint64_t events = 0;   // number of events, without process_events and collector_events
  std::uint64_t lost = 0;     // lost events, including dropped ones
  std::uint64_t dropped = 0;  // part of `lost`: events that came while the sink was full
  // Part of `events`: written as bytes, because they could not be decoded, or because their process
  // created new kinds of events too fast.
  std::uint64_t undecoded = 0;
  std::uint64_t late = 0;  // part of `events`: written with a later timestamp
  // The kernel's count of events; always equal to events + lost. Set by Capture::StopSession. No
  // value if the kernel does not count exactly the events of this session:
  // - before Linux 6.0;
  // - if a tracepoint counts another quantity than hits, or is hit in interrupts;
  // - if another session had one of the tracepoints earlier, or keeps it after this session;
  // - if the session records samples of CPU time, times without a CPU, streams or the journal;
  // - if events of the collector's own process were left out;
  // - if the socket for services with rings is open.
  std::optional<std::uint64_t> hits;
  std::uint64_t process_events = 0;  // events that describe processes
  // Events that describe losses and other gaps in the file.
  std::uint64_t collector_events = 0;
  trace::AccountSummary account;  // totals of the collector's events
  std::uint64_t bytes = 0;        // bytes that the sink has taken, before compression
  std::uint64_t threads = 0;
  std::uint64_t tracepoints = 0;
  std::uint64_t sequence_points = 0;
  std::uint64_t section = 0;  // number of the last section; the first is 0
  // `events_written` are the events that are certainly in the file, because the sink has delivered
  // them. `events_missing` are all other events. Both include `process_events` and
  // `collector_events`.
  std::uint64_t events_written = 0;
  std::uint64_t events_missing = 0;
  // Whether the kernel reports the registration of tracepoints of user_events. No value if no
  // pattern waits for them. Set by Capture::StopSession.
  std::optional<bool> watches_registrations;
  // Selectors for which no tracepoint has been recorded so far.
  std::vector<std::string> unmatched;
  // Tracepoints that a selector matches but that cannot be recorded.
  SkippedTracepoints skipped_tracepoints;
  // Warnings about recorded tracepoints and stacks, at most SkippedTracepoints::kMaxReasons.
  std::vector<std::string> warnings;
};

// A function that creates the sink of a session. The capture calls it after everything else that
// the session needs has been set up, so that a session that cannot begin leaves no file.
using SinkFactory = std::function<absl::StatusOr<std::unique_ptr<nettrace::Sink>>()>;

// A recording of selected tracepoints, streamed into its own file. Not thread-safe: all functions
// must be called on the thread that uses the capture.
class Session {
 public:
  Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session() = default;

  // Returns OK until the sink or the writer has failed. After an error, nothing more is written.
  virtual const absl::Status& status() const = 0;
  // Returns whether events are only counted, and not written, because the sink is full, or was full
  // and the interval has not ended since.
  virtual bool is_suspended() const = 0;
  // Returns the writer's counts so far. They include events that describe processes and events of
  // the collector.
  virtual const nettrace::Writer::Stats& stats() const = 0;
  // Returns the number of events so far, without events that describe processes and without events
  // of the collector.
  virtual std::uint64_t events() const = 0;
  // Returns a summary of the session so far, at low cost.
  virtual SessionSummary Summarize() const = 0;
  // Records in the file, and in the summary, that `name` is not recorded, and `why`. Must be called
  // only for objects that are not tracepoints, such as "dotnet:PID" for a process.
  virtual void LeaveOut(const std::string& name, const std::string& why) = 0;
  // Requests a new section of the sink. It begins as soon as the interval can end.
  virtual void RequestSection() = 0;
  // Returns how many of events() the sink has not delivered so far. The number is exact, also after
  // the session was stopped. The sink's queue must not change during the call.
  virtual std::uint64_t CountUndelivered() const = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SESSION_H_
