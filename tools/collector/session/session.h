// One recording of a capture: selected tracepoints, streamed into a file of its own.
//
// A session is started and stopped by its Capture (capture.h), which hands it the events that it
// wants, already converted, and tells it when its intervals end. What it knows of its own: its
// selectors and what they matched, its file, when its interval is over, and how many events were
// lost to it.
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
#include "tools/collector/perf/perf_session.h"
#include "tools/collector/session/left_out.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/trigger_set.h"
#include "tools/common/account_summary.h"

namespace collector {

struct SessionOptions {
  std::vector<Selector> selectors;
  // An interval between sequence points lasts this long, or less when it holds much; the first one
  // ends at a multiple of it.
  // At least 1 ms.
  absl::Duration interval = absl::Seconds(1);
  // Events at which `fire` is called, on the capture's thread, once they are written.
  std::vector<Trigger> triggers;
  TriggerSet::Fire fire;
};

struct SessionSummary {
  // OK if the file is whole. If not, it is readable to its last whole block.
  absl::Status status;
  std::uint64_t events = 0;     // those of processes and of the collector are not in it
  std::uint64_t lost = 0;       // by the kernel, as rings were full, and those that were dropped
  std::uint64_t dropped = 0;    // of `lost`: they came while the sink was full
  std::uint64_t undecoded = 0;  // of `events`: written as bytes
  std::uint64_t late = 0;       // of `events`: written with a later timestamp than their own
  // The kernel's count, always events + lost. No value where it does not count exactly what is this
  // session's: before 6.0, for tracepoints that count something else or are hit in interrupts, and
  // where another session had a tracepoint before or has it afterwards.
  std::optional<std::uint64_t> hits;
  std::uint64_t process_events = 0;  // which say what processes there were
  // Which say what was lost, and what else is not in the file.
  std::uint64_t collector_events = 0;
  tools::AccountSummary account;  // what they add up to
  std::uint64_t bytes = 0;        // of the file
  std::uint64_t threads = 0;
  std::uint64_t tracepoints = 0;
  std::uint64_t sequence_points = 0;
  std::uint64_t section = 0;  // the number of the last one; the first is 0
  // Of all events, those of processes and of the collector included: what is surely in the file,
  // and what is not.
  std::uint64_t events_written = 0;
  std::uint64_t events_missing = 0;
  // A pattern waits for tracepoints of user_events: whether the kernel tells of them.
  std::optional<bool> watches_registrations;
  std::vector<std::string> unmatched;  // see Session
  LeftOut left_out;                    // see Session
};

// When the kernel's counts of losses were read: all that was lost before `began` is in them, and
// nothing that was lost after `ended`. In ns of the session clock.
struct CountingTime {
  std::uint64_t began = 0;
  std::uint64_t ended = 0;
};

// Makes the sink. It is called once all else that a session needs is there, so that one that cannot
// begin leaves no file.
using SinkFactory = std::function<absl::StatusOr<std::unique_ptr<nettrace::Sink>>()>;

// Not thread-safe.
class Session {
 public:
  explicit Session(SessionOptions options);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Not OK once its sink has failed: then nothing more is written.
  const absl::Status& status() const { return status_; }
  // Progress so far. The writer's events are those of processes and of the collector, too.
  const nettrace::Writer::Stats& stats() const { return writer_->stats(); }
  std::uint64_t events() const { return stats().events - process_events() - account_.written(); }
  std::uint64_t process_events() const { return trace_->stats().process_events; }
  // Selectors for which no tracepoint has been recorded so far.
  std::vector<std::string> Unmatched() const;
  // Tracepoints that a pattern selects and that cannot be recorded.
  const LeftOut& left_out() const { return left_out_; }
  // As the sink is full, events are counted and not written.
  bool is_suspended() const { return suspension_ != Suspension::kNone; }
  // A section of the sink begins as soon as the interval can end.
  void RequestSection();
  // What there is to say so far, at little cost; `hits` and `tracepoints` are the capture's to say.
  SessionSummary Summary() const;

  // All below is for the capture.

  const std::vector<Selector>& selectors() const { return options_.selectors; }
  void SetMatched(std::size_t selector) { matched_[selector] = true; }
  LeftOut& left_out() { return left_out_; }
  // The tracepoint `name`, which a pattern selects, cannot be recorded.
  void LeaveOut(const std::string& name, const std::string& why);
  // A pattern has met the tracepoint `name` for the first time, and it is recorded from now on.
  void MetTracepoint(const std::string& name);
  void CpuChanged(const CpuChange& change);
  // See CollectorEvents.
  void TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error);

  // Makes the file. There are no events in it before Begin.
  absl::Status Open(const SinkFactory& make_sink, const nettrace::TraceInfo& info);
  // Events with a timestamp after `start` are the session's, from the CPUs that AddCpu has named.
  void Begin(std::uint64_t start, SampleConverter* converter, const TaskTracker* tasks);
  // `lost`: how many samples the CPU's ring had lost when the session began.
  void AddCpu(int number, std::uint64_t lost);
  // No event with a later timestamp is the session's.
  void EndAt(std::uint64_t end);

  // Writes the event if it is of the session's time.
  void Write(std::size_t cpu, const ConvertedEvent& event) {
    if (event.timestamp - first_ >= length_) return;
    Check(trace_->Write(cpu, event));
    if (triggers_) [[unlikely]]
      CheckTriggers(event);
  }
  // Counts an event that comes while the session is suspended.
  void Drop(std::size_t cpu, std::uint64_t timestamp) {
    if (timestamp - first_ < length_) ++losses_[cpu].dropped;
  }
  void WriteProcessEvent(const ProcessEvent& event, Slot thread);

  // The session has all tracepoints of the capture: what its rings lose is the session's loss.
  void SetWantsAll(bool wants_all) { wants_all_ = wants_all; }
  // A record in the ring of `cpu` says that it has lost `total` samples since the capture began.
  void LostInPlace(std::size_t cpu, std::uint64_t total);
  // Of the samples lost, `count` more were of the tracepoint `name` ("system:event"), which this
  // session has; the place is not known.
  void CountLost(std::size_t cpu, std::string_view name, std::uint64_t count,
                 const CountingTime& time);
  // All losses of `cpu` up to `total` have been counted: writes those that are the session's and
  // that no record has said in their place.
  void SettleLosses(std::size_t cpu, std::uint64_t total);
  // Samples of that CPU were lost, whatever their tracepoint.
  void AddLost(std::size_t cpu, std::uint64_t count);

  // Asks the sink whether it takes more and whether it would have a section. To be called between
  // two parts of a drain: all events up to `drained` have been given.
  void FollowSink(std::uint64_t drained);

  bool is_running() const { return length_ != 0; }
  // It is written to, and its interval ends.
  bool is_active() const { return is_running() && !is_suspended(); }
  std::size_t events_in_interval() const { return trace_->events_in_interval(); }
  std::uint64_t interval_end() const { return interval_end_; }
  // Its interval, whose events up to `now` have been written, is to be ended. That of a session
  // that is suspended ends with the suspension.
  bool IsIntervalOver(std::uint64_t now) const {
    if (!is_running() || now < first_ || now <= interval_start_) return false;
    if (is_suspended()) return suspension_ == Suspension::kOver;
    return now >= interval_end_ || trace_->interval_is_full();
  }
  absl::Duration interval() const { return options_.interval; }
  // Writes a sequence point and flushes the file, unless there is nothing to write; or begins a
  // section, if one is wanted. Returns whether one has begun: it is to be told then which processes
  // there are.
  bool EndInterval(std::uint64_t timestamp);
  // Ends the file, with a last sequence point at `timestamp`, or after the last one.
  void Finish(std::uint64_t timestamp);

 private:
  struct Losses {
    std::uint64_t settled = 0;  // up to so many losses of the ring, the session's are written
    std::uint64_t own = 0;      // of those after, so many are known to be the session's
    // For the account. All times are ns of the session clock.
    std::uint64_t written = 0;     // events that are lost by the numbers of those in the file
    std::uint64_t told = 0;        // of those, so many are in the account
    std::uint64_t after = 0;       // the ring was short of samples after this one; 0: of none since
    std::uint64_t counted_at = 0;  // what was lost before is in the account
    std::uint64_t from = 0;        // what was counted last was lost after this time
    std::uint64_t dropped = 0;     // events that came since the session was suspended
  };
  enum class Suspension {
    kNone,
    kFull,  // the sink is full
    kOver,  // it is not any more; the session goes on when its interval can end
  };

  void Check(const absl::Status& status) {
    if (!status.ok()) [[unlikely]]
      Fail(status);
  }
  void Fail(const absl::Status& status);
  void CheckTriggers(const ConvertedEvent& event);
  // Has the account tell of what was lost and is of no known tracepoint.
  void TellUnknownLosses();
  // Writes what was dropped while the session was suspended as losses.
  void EndSuspension(std::uint64_t timestamp);
  std::uint64_t DroppedNow() const;
  absl::Status TellSection(std::uint64_t timestamp);
  void StartInterval(std::uint64_t timestamp);
  // Nothing has been written or lost since the last sequence point.
  bool IsIntervalEmpty() const {
    return stats().events == interval_events_ && stats().lost == interval_lost_ &&
           account_.is_empty();
  }

  SessionOptions options_;
  absl::Status status_;
  nettrace::Sink* sink_ = nullptr;  // the writer's
  std::unique_ptr<nettrace::Writer> writer_;
  CollectorEvents account_;
  std::optional<TraceWriter> trace_;            // refers to both; none before Begin
  std::optional<TriggerSet> triggers_;          // none if the session has no triggers
  const SampleConverter* converter_ = nullptr;  // of the events; none before Begin
  // Its events have timestamps from `first_` on, for `length_` ns; 0 before Begin and after an
  // error.
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t interval_start_ = 0;
  std::uint64_t interval_end_ = 0;
  std::uint64_t interval_events_ = 0;  // of the writer, when the interval began
  std::uint64_t interval_lost_ = 0;
  Suspension suspension_ = Suspension::kNone;
  std::uint64_t suspended_at_ = 0;
  std::uint64_t dropped_ = 0;  // in earlier suspensions
  bool wants_section_ = false;
  std::uint64_t section_ = 0;  // the number of the one that is written
  bool wants_all_ = false;
  std::vector<Losses> losses_;  // by the CPU's index
  std::vector<bool> matched_;   // by selector
  LeftOut left_out_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SESSION_H_
