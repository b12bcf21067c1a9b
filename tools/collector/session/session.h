// A recording of selected tracepoints in a capture, streamed into its own file.
//
// The Capture (capture.h) starts and stops a session, passes it the converted events that it
// selects, and ends its intervals. The session holds its selectors and which of them matched, its
// file, the end of its interval, and the number of events that it has lost.
#ifndef TOOLS_COLLECTOR_SESSION_SESSION_H_
#define TOOLS_COLLECTOR_SESSION_SESSION_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/collector_events.h"
#include "tools/collector/convert/trace_writer.h"
#include "tools/collector/perf/cpu_rings.h"
#include "tools/collector/session/left_out.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/trigger_set.h"
#include "tools/trace/account_summary.h"

namespace collector {

struct SessionOptions {
  std::vector<Selector> selectors;
  // Time between two sequence points, at least 1 ms. An interval is shorter if it holds many
  // events. The first interval ends at a multiple of this time.
  absl::Duration interval = absl::Seconds(1);
  // Events that trigger a call of `fire`, on the capture's thread, once they have been written.
  std::vector<Trigger> triggers;
  TriggerSet::Fire fire;
};

struct SessionSummary {
  // OK if the file is complete. After an error, the file is readable up to its last complete block.
  absl::Status status;
  std::uint64_t events = 0;     // without events of processes and of the collector
  std::uint64_t lost = 0;       // events lost because a ring was full, or dropped
  std::uint64_t dropped = 0;    // part of `lost`: events that came while the sink was full
  std::uint64_t undecoded = 0;  // part of `events`: written as bytes
  std::uint64_t late = 0;       // part of `events`: written with a later timestamp
  // The kernel's count of events; always events + lost. No value if the kernel does not count
  // exactly the events of this session. This is the case before Linux 6.0, and for tracepoints that
  // count something else or are hit in interrupts. It is also the case if another session had a
  // tracepoint before or keeps it afterwards.
  std::optional<std::uint64_t> hits;
  std::uint64_t process_events = 0;  // events that describe processes
  // Events that describe losses and other gaps in the file.
  std::uint64_t collector_events = 0;
  trace::AccountSummary account;  // totals of the collector's events
  std::uint64_t bytes = 0;        // size of the file
  std::uint64_t threads = 0;
  std::uint64_t tracepoints = 0;
  std::uint64_t sequence_points = 0;
  std::uint64_t section = 0;  // number of the last section; the first is 0
  // Events that are certainly in the file, and events that are not. Both include events of
  // processes and of the collector.
  std::uint64_t events_written = 0;
  std::uint64_t events_missing = 0;
  // Whether the kernel reports the registration of tracepoints of user_events. No value if no
  // pattern waits for them.
  std::optional<bool> watches_registrations;
  std::vector<std::string> unmatched;  // see Session::Unmatched
  LeftOut left_out;                    // see Session::left_out
  std::vector<std::string> warnings;   // see Session::warnings
};

// Interval in which the kernel's counts of losses were read, in ns of the session clock. The counts
// include all losses before `began` and none after `ended`.
struct CountingTime {
  std::uint64_t began = 0;
  std::uint64_t ended = 0;
};

// Creates the sink. It is called after everything else that a session needs has been set up, so
// that a session that cannot begin leaves no file.
using SinkFactory = std::function<absl::StatusOr<std::unique_ptr<nettrace::Sink>>()>;

// A recording with its file, interval and losses. Not thread-safe.
class Session {
 public:
  explicit Session(SessionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // OK until the sink has failed. After an error, nothing more is written.
  const absl::Status& status() const { return status_; }
  // Progress so far. The writer's `events` include those of processes and of the collector.
  const nettrace::Writer::Stats& stats() const { return writer_->stats(); }
  std::uint64_t events() const { return stats().events - process_events() - account_.written(); }
  std::uint64_t process_events() const { return trace_->stats().process_events; }
  // Returns the selectors for which no tracepoint has been recorded so far.
  std::vector<std::string> Unmatched() const;
  // Tracepoints that a pattern selects but that cannot be recorded.
  const LeftOut& left_out() const { return left_out_; }
  // Warnings about tracepoints that are recorded, at most LeftOut::kMaxReasons.
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Returns whether events are only counted, and not written, because the sink is full.
  bool is_suspended() const { return suspension_ != Suspension::kNone; }
  // Requests a new section of the sink. It begins as soon as the interval can end.
  void RequestSection();
  // Returns a summary of the session so far, at low cost. The Capture sets `hits` and
  // `tracepoints`.
  SessionSummary Summary() const;

  // The methods below are called by the Capture only.

  const std::vector<Selector>& selectors() const { return options_.selectors; }
  void SetMatched(std::size_t selector) { matched_[selector] = true; }
  LeftOut& left_out() { return left_out_; }
  // Records that the tracepoint `name`, which a pattern selects, cannot be recorded.
  void LeaveOut(const std::string& name, const std::string& why);
  // Adds a warning about a tracepoint that is recorded.
  void Warn(const std::string& warning);
  // Records that a pattern has matched the tracepoint `name` for the first time, and that it is
  // recorded from now on.
  void MetTracepoint(const std::string& name);
  void CpuChanged(const CpuChange& change);
  // See CollectorEvents::TargetCame.
  void TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error);

  // Creates the file. It gets no events before Begin.
  absl::Status Open(const SinkFactory& make_sink, const nettrace::TraceInfo& info);
  // Begins to accept events with timestamps after `start`, from the CPUs that AddCpu adds.
  void Begin(std::uint64_t start, SampleConverter* converter, const TaskTracker* tasks);
  // Adds a CPU. `lost` is the number of samples that its ring had lost when the session began.
  void AddCpu(int number, std::uint64_t lost);
  // Ignores events with timestamps after `end`.
  void EndAt(std::uint64_t end);

  // Writes the event if its timestamp is within the session.
  void Write(std::size_t cpu, const ConvertedEvent& event) {
    if (event.timestamp - first_ >= length_) return;
    Check(trace_->Write(cpu, event));
    if (triggers_) [[unlikely]]
      CheckTriggers(event);
  }
  // Counts an event that arrives while the session is suspended.
  void Drop(std::size_t cpu, std::uint64_t timestamp) {
    if (timestamp - first_ < length_) ++losses_[cpu].dropped;
  }
  void WriteProcessEvent(const ProcessEvent& event, Slot thread);

  // Sets whether the session has all tracepoints of the capture. In that case, every loss in the
  // rings is a loss of the session.
  void SetWantsAll(bool wants_all) { wants_all_ = wants_all; }
  // Handles a record in the ring of `cpu` that reports `total` lost samples since the capture
  // began.
  void LostInPlace(std::size_t cpu, std::uint64_t total);
  // Counts `count` more lost samples of the tracepoint `name` ("system:event"), which this session
  // has. Where in the ring they were lost is not known.
  void CountLost(std::size_t cpu, std::string_view name, std::uint64_t count,
                 const CountingTime& time);
  // Writes the session's losses that no record has reported in the ring. All losses of `cpu` up to
  // `total` have been counted.
  void SettleLosses(std::size_t cpu, std::uint64_t total);
  // Writes `count` lost samples of that CPU, whatever their tracepoint.
  void AddLost(std::size_t cpu, std::uint64_t count);

  // Returns the number of events that the sink has accepted but not delivered, without those of
  // processes and of the collector. The number is exact, also after Finish. The sink's queue must
  // not change during the call.
  std::uint64_t CountUndelivered() const;

  // Queries whether the sink is full and whether it wants a new section. Must be called between two
  // parts of a drain, after all events up to `drained` have been written.
  void FollowSink(std::uint64_t drained);

  bool is_running() const { return length_ != 0; }
  // Returns whether the session is running and not suspended.
  bool is_active() const { return is_running() && !is_suspended(); }
  std::size_t events_in_interval() const { return trace_->events_in_interval(); }
  std::uint64_t interval_end() const { return interval_end_; }
  // Returns whether the interval must be ended. All events up to `now` have been written. The
  // interval of a suspended session ends when the suspension ends.
  bool IsIntervalOver(std::uint64_t now) const {
    if (!is_running() || now < first_ || now <= interval_start_) return false;
    if (is_suspended()) return suspension_ == Suspension::kOver;
    return now >= interval_end_ || trace_->interval_is_full();
  }
  absl::Duration interval() const { return options_.interval; }
  // Ends the interval: writes a sequence point and flushes the file, if there is anything to write,
  // or begins a section if one is wanted. Returns whether a section has begun; the caller must then
  // write the existing processes to it.
  bool EndInterval(std::uint64_t timestamp);
  // Ends the file with a last sequence point at `timestamp`, or just after the previous one if that
  // is later.
  void Finish(std::uint64_t timestamp);

 private:
  struct Losses {
    std::uint64_t settled = 0;  // losses of the ring up to which the session's are written
    std::uint64_t own = 0;      // later losses that are known to be the session's
    // Members for the account. All times are ns of the session clock.
    std::uint64_t written = 0;     // losses that the event numbers in the file imply
    std::uint64_t told = 0;        // part of `written` that is in the account
    std::uint64_t after = 0;       // ns; last sample before a gap in the ring; 0: no gap since
    std::uint64_t counted_at = 0;  // losses before this time are in the account
    std::uint64_t from = 0;        // earliest time of the losses that were counted last
    std::uint64_t dropped = 0;     // events that came during the current suspension
  };
  enum class Suspension {
    kNone,
    kFull,  // the sink is full
    kOver,  // the sink has space again; the session resumes when its interval ends
  };

  void Check(const absl::Status& status) {
    if (!status.ok()) [[unlikely]]
      Fail(status);
  }
  void Fail(const absl::Status& status);
  void CheckTriggers(const ConvertedEvent& event);
  // Adds losses whose tracepoints are not known to the account.
  void TellUnknownLosses();
  // Ends the suspension, and writes the events that were dropped in it as losses.
  void EndSuspension(std::uint64_t timestamp);
  std::uint64_t DroppedNow() const;
  absl::Status TellSection(std::uint64_t timestamp);
  void StartInterval(std::uint64_t timestamp);
  // Returns whether nothing has been written or lost since the last sequence point.
  bool IsIntervalEmpty() const {
    return stats().events == interval_events_ && stats().lost == interval_lost_ &&
           account_.is_empty();
  }

  SessionOptions options_;
  absl::Status status_;
  nettrace::Sink* sink_ = nullptr;  // owned by the writer
  std::unique_ptr<nettrace::Writer> writer_;
  CollectorEvents account_;
  std::optional<TraceWriter> trace_;            // refers to both members above; none before Begin
  std::optional<TriggerSet> triggers_;          // none if the session has no triggers
  const SampleConverter* converter_ = nullptr;  // none before Begin
  // The session has events with timestamps from `first_` on, for `length_` ns. `length_` is 0
  // before Begin and after an error.
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t interval_start_ = 0;
  std::uint64_t interval_end_ = 0;
  std::uint64_t interval_events_ = 0;  // count of the writer when the interval began
  std::uint64_t interval_lost_ = 0;
  Suspension suspension_ = Suspension::kNone;
  std::uint64_t suspended_at_ = 0;
  std::uint64_t dropped_ = 0;  // events, in earlier suspensions
  bool wants_section_ = false;
  std::uint64_t section_ = 0;  // number of the current section
  bool wants_all_ = false;
  std::vector<Losses> losses_;  // by the CPU's index
  std::vector<bool> matched_;   // by selector
  LeftOut left_out_;
  std::vector<std::string> warnings_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SESSION_H_
