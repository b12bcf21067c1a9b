// Writes one session: its events, losses, intervals and sections. The parts of a capture use it;
// users of a session have session.h.
//
// All calls are on the capture's thread:
// 1. The Attachments (attachments.h) and the RingFeed (ring_feed.h) use tracepoints() when the
//    session is added, and whenever tracepoints appear.
// 2. The Capture (capture.h) calls Open when everything else has been set up. The Distributor
//    (distributor.h) then calls Begin, and AddCpu for each CPU.
// 3. While the capture drains its rings, the Distributor passes events, process events and losses.
// 4. Between two drains, the Capture ends the intervals that are over.
// 5. At the end, the Capture calls EndAt unless the session is the only one, and then Finish.
#ifndef TOOLS_COLLECTOR_SESSION_SESSION_WRITER_H_
#define TOOLS_COLLECTOR_SESSION_SESSION_WRITER_H_

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/collector_events.h"
#include "tools/collector/convert/trace_writer.h"
#include "tools/collector/perf/cpu_rings.h"
#include "tools/collector/session/ring_target.h"
#include "tools/collector/session/session.h"
#include "tools/collector/session/session_tracepoints.h"
#include "tools/collector/session/trigger_set.h"
#include "tools/collector/unwind/stack_unwinder.h"
#include "tools/trace/ring_positions.h"

namespace collector {

// The period in which the kernel's counts of losses were read, in ns of the session clock. The
// counts include all losses before `began` and none after `ended`.
struct CountingTime {
  std::uint64_t began = 0;
  std::uint64_t ended = 0;
};

// A session with its file, interval and losses. Not thread-safe.
class SessionWriter final : public Session {
 public:
  explicit SessionWriter(SessionOptions options);

  const absl::Status& status() const override { return status_; }
  bool is_suspended() const override { return suspension_ != Suspension::kNone; }
  const nettrace::Writer::Stats& stats() const override { return writer_->stats(); }
  std::uint64_t events() const override;
  SessionSummary Summarize() const override;
  void LeaveOut(const std::string& name, const std::string& why) override {
    tracepoints_.SkipAgain(name, why);
  }
  void RequestSection() override;
  std::uint64_t CountUndelivered() const override;

  // Returns SessionOptions::name.
  const std::string& name() const { return name_; }
  // Returns SessionOptions::only_rings.
  bool records_only_rings() const { return only_rings_; }
  // Returns SessionOptions::cpu_rate.
  std::uint32_t cpu_rate() const { return cpu_rate_; }
  // Returns SessionOptions::off_cpu.
  bool off_cpu() const { return off_cpu_; }
  // Returns SessionOptions::sample_stacks.
  const StackOptions& sample_stacks() const { return sample_stacks_; }
  // Opens SessionOptions::target. Fails as RingTarget::Open does.
  absl::Status OpenRingTarget();
  // Selects the services with rings in user space whose events the session gets.
  RingTarget& ring_target() { return ring_target_; }
  // States that the session has events of a StreamFeed (.NET streams or the journal). The kernel
  // does not count these events, so the summary then has no count of the kernel.
  void SetHasEventsOfStreams() { has_events_of_streams_ = true; }
  bool has_events_of_streams() const { return has_events_of_streams_; }
  // Returns SessionOptions::why_no_rings.
  const std::string& why_no_rings() const { return why_no_rings_; }

  // Functions for the Attachments.

  SessionTracepoints& tracepoints() { return tracepoints_; }
  const SessionTracepoints& tracepoints() const { return tracepoints_; }

  // Functions for the Capture. The RingFeed calls the functions about positions.

  // Creates the file. Fails if its sink or its writer cannot be created. The session gets no events
  // before Begin.
  absl::Status Open(const SinkFactory& make_sink, const nettrace::TraceInfo& info);
  // Returns whether the session is running and not suspended.
  bool is_active() const { return is_running() && !is_suspended(); }
  std::size_t events_in_interval() const { return trace_->events_in_interval(); }
  std::uint64_t interval_end() const { return interval_end_; }
  // Returns whether the interval must be ended. All events up to `now` must have been written. The
  // interval of a suspended session ends when the suspension ends.
  bool IsIntervalOver(std::uint64_t now) const {
    if (!is_running() || now < first_ || now <= interval_start_) return false;
    if (is_suspended()) return suspension_ == Suspension::kOver;
    return now >= interval_end_ || trace_->interval_is_full();
  }
  // Ends the interval. Begins a section if RequestSection or the sink has requested one; otherwise
  // writes a sequence point, if there is anything to write. Then flushes the file. Returns whether
  // a section has begun; the caller must then write the existing processes to it.
  bool EndInterval(std::uint64_t timestamp);
  void CpuChanged(const CpuChange& change);
  // Records in the account how often the kernel stopped the samples of the CPU with the number
  // `cpu`. Does nothing if the session has no samples of CPU time.
  void SamplesThrottled(int cpu, const CpuRing::Throttled& throttled);
  // Records in the account that samples got no complete stack, because there were more of them than
  // could be unwound.
  void StacksSkipped(const StackUnwinder::Skipped& skipped);
  // Records in the account that an unknown number of events of the service with this pid may be
  // lost, with times from `since` to `until`. If `since` is 0, the first of these times is unknown,
  // and may be before the session. Does nothing if none of these times is within the session.
  void ServiceUnknown(pid_t pid, std::uint64_t since, std::uint64_t until, std::string_view reason);
  // Records that the followed cgroup appeared. Its activity between `since` and `until` may not
  // have been recorded. If `error` is not empty, the cgroup is not recorded.
  void TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error);
  // Makes the session ignore events with timestamps after `end`.
  void EndAt(std::uint64_t end);
  // Passes all data that the writer still holds to the sink, if the session is active.
  void Flush() {
    if (is_active()) Check(writer_->Flush());
  }
  // Returns whether the file has positions of services with rings in user space
  // (tools/trace/ring_positions.h).
  bool has_ring_positions() const { return has_ring_positions_; }
  // Returns SessionOptions::recorded_rings. A second call returns no positions.
  trace::RecordedRings TakeRecordedRings() { return std::exchange(recorded_rings_, {}); }
  // Returns, for a record of positions, the number of the next unit (event or lost event) of the
  // ring thread and its pending losses (tools/trace/ring_positions.h). Returns nullopt if the
  // session has no unit of the thread.
  std::optional<trace::RingPositionEntry> FindRingUnits(std::size_t cpu) const;
  // Writes a record of positions. Everything before it is passed to the sink first.
  void WriteRingPositions(const trace::RingRecord& record);
  // Begins to wait until the sink has delivered everything that was written so far.
  void AwaitDelivery(std::uint64_t now);
  // Returns whether the sink has delivered what was written before AwaitDelivery. Also returns true
  // if the session is not active, or if its sink has not delivered it within
  // SessionOptions::longest_delivery: such an output must not delay other sessions.
  bool IsDelivered(std::uint64_t now);
  // Ends the file with a last sequence point at `timestamp`, or just after the previous sequence
  // point if that is later.
  void Finish(std::uint64_t timestamp);

  // Functions for the Distributor.

  // Begins to accept events with timestamps after `start`, from the CPUs that AddCpu adds.
  void Begin(std::uint64_t start, const TaskTracker* tasks);
  // Adds a CPU. `lost` is the number of samples that its ring had lost when the session began.
  void AddCpu(int number, std::uint64_t lost);
  // Uses the index `cpu` for a source that Distributor::AddRingThread has added. If the index was
  // that of another source, first writes its losses that are not yet in the file or in the account.
  // `name` and `source` have the meaning of TraceWriter::SetRingThread; `source` has no effect if
  // has_ring_positions() is false.
  void SetRingThread(std::size_t cpu, const std::string& name, const std::string& source);
  // Counts one more tracepoint that the session has.
  void AddTracepoint() { ++tracepoint_count_; }
  // Sets whether the session has all tracepoints of the capture. In that case, every loss in the
  // rings is a loss of the session.
  void SetWantsAll(bool wants_all) { wants_all_ = wants_all; }
  // Queries whether the sink is full and whether it wants a new section. Must be called between two
  // parts of a drain, after all events up to `drained` have been written.
  void FollowSink(std::uint64_t drained);

  // Writes the event if its timestamp is within the session, and checks the triggers.
  void Write(std::size_t cpu, const ConvertedEvent& event) {
    if (event.timestamp - first_ >= length_) return;
    Check(trace_->Write(cpu, event));
    if (triggers_) [[unlikely]]
      CheckTriggers(event);
  }
  // Writes an event of a ring thread: a source that Distributor::AddRingThread has added. `number`
  // is the number that the service gave to the event. If `is_kept` is set, the session gets the
  // event even if the event is older than the session: a service kept it for the collector, for
  // example after a crash of the previous collector. An event that is older than the interval gets
  // the earliest time that the format allows, and a label with its original time.
  void WriteOfRing(std::size_t cpu, const ConvertedEvent& event, std::uint32_t processor,
                   std::uint64_t number, bool is_kept) {
    if (!is_running()) return;
    trace_->SetProcessor(cpu, processor);
    trace_->SetRingNumber(cpu, number);
    if (is_kept && event.timestamp < first_) {
      Check(trace_->Write(cpu, event));
    } else {
      Write(cpu, event);
    }
    trace_->SetRingNumber(cpu, number + 1);
  }
  // Must be called for an event that arrives while the session is suspended. Counts the event as
  // dropped if its timestamp is within the session, or also if it is earlier and `is_kept` is set
  // (see WriteOfRing).
  void Drop(std::size_t cpu, std::uint64_t timestamp, bool is_kept = false) {
    if (is_kept) timestamp = std::max(timestamp, first_);
    if (timestamp - first_ < length_) ++losses_[cpu].dropped;
  }
  void WriteProcessEvent(const ProcessEvent& event, Slot thread);

  // Records that samples of `cpu` were lost after the event that was passed to Write last. `total`
  // is the number of samples that the CPU has lost since the capture began; 0: not known.
  void LostInPlace(std::size_t cpu, std::uint64_t total);
  // Counts `count` more lost samples of the tracepoint `name` ("system:event"), which this session
  // has. Their place in the ring is not known.
  void CountLost(std::size_t cpu, std::string_view name, std::uint64_t count,
                 const CountingTime& time);
  // Writes the session's losses that no LOST record in the ring has reported. All losses of `cpu`
  // up to `total` must have been counted by CountLost.
  void SettleLosses(std::size_t cpu, std::uint64_t total);
  // Records in the file that `count` events of a ring thread were lost between its previous event
  // and `until`. `name` is the name in the account, such as "ring:PID/TID" or "dotnet:PID", or the
  // name of the event if the collector itself makes the events. `number` is the number that the
  // service gave to the first lost event. If `is_kept` is set, the lost events may be older than
  // the session, as in WriteOfRing.
  void LoseOfRing(std::size_t cpu, std::string_view name, std::uint64_t count, std::uint64_t until,
                  std::uint64_t number, bool is_kept);
  // Records in the file that `count` samples of `cpu` were lost, without naming tracepoints.
  void AddLost(std::size_t cpu, std::uint64_t count);

 private:
  struct Losses {
    // The session's losses are in the file up to this value of the ring's counter of losses.
    std::uint64_t settled = 0;
    std::uint64_t own = 0;  // losses of the session's tracepoints after `settled`
    // The following members serve the account of losses (collector_events.h). All times are ns of
    // the session clock.
    std::uint64_t written = 0;     // losses that gaps in the sequence numbers of the file show
    std::uint64_t accounted = 0;   // losses in the account; may exceed `written` until SettleLosses
    std::uint64_t after = 0;       // time of the last sample before a gap in the ring; 0: no gap
    std::uint64_t counted_at = 0;  // time before which all losses are in the account
    std::uint64_t from = 0;        // earliest time of the losses that were counted last
    std::uint64_t dropped = 0;     // events that arrived during the current suspension
    // Losses of a ring thread that are not yet in the account: the name for the account, the number
    // of lost events, and the latest time at which they were lost.
    std::string name = {};
    std::uint64_t of_ring = 0;
    std::uint64_t until = 0;
  };
  enum class Suspension {
    kNone,
    kFull,  // the sink is full
    kOver,  // the sink has space again; the session resumes when its interval ends
  };

  // Returns whether the session accepts events.
  bool is_running() const { return length_ != 0; }
  void Check(const absl::Status& status) {
    if (!status.ok()) [[unlikely]]
      Fail(status);
  }
  void Fail(const absl::Status& status);
  void CheckTriggers(const ConvertedEvent& event);
  // Adds the losses of a ring thread to the account.
  void AccountRingLosses(std::size_t cpu);
  // Adds to the account the losses whose tracepoints are not known.
  void AccountUnknownLosses();
  // Resumes the session, and records the events that were dropped while it was suspended as losses.
  void EndSuspension(std::uint64_t timestamp);
  std::uint64_t CountDropped() const;
  absl::Status AccountSection(std::uint64_t timestamp);
  void StartInterval(std::uint64_t timestamp);
  // Returns whether nothing has been written or lost since the last sequence point.
  bool IsIntervalEmpty() const {
    return stats().events == interval_events_ && stats().lost == interval_lost_ &&
           account_.is_empty();
  }

  const std::string name_;
  const absl::Duration interval_;
  const absl::Duration longest_delivery_;
  const bool has_ring_positions_;
  const bool only_rings_;
  const std::uint32_t cpu_rate_;
  const bool off_cpu_;
  const StackOptions sample_stacks_;
  const TargetSelection target_;
  const std::string why_no_rings_;
  RingTarget ring_target_;
  trace::RecordedRings recorded_rings_;
  bool has_written_positions_ = false;
  absl::Status status_;
  nettrace::Sink* sink_ = nullptr;  // owned by the writer
  std::unique_ptr<nettrace::Writer> writer_;
  CollectorEvents account_;
  SessionTracepoints tracepoints_;      // refers to the account
  std::uint64_t tracepoint_count_ = 0;  // tracepoints that the session has
  std::optional<TraceWriter> trace_;    // refers to writer and account; none before Begin
  std::optional<TriggerSet> triggers_;  // none if the session has no triggers
  // The session has events with timestamps from `first_` on, for `length_` ns. `length_` is 0
  // before Begin, after Finish and after an error.
  std::uint64_t first_ = 0;
  std::uint64_t length_ = 0;
  std::uint64_t interval_start_ = 0;
  std::uint64_t interval_end_ = 0;
  std::uint64_t interval_events_ = 0;  // events in the writer when the interval began
  std::uint64_t interval_lost_ = 0;
  Suspension suspension_ = Suspension::kNone;
  std::uint64_t suspended_at_ = 0;
  std::uint64_t dropped_ = 0;  // events that were dropped in earlier suspensions
  bool wants_section_ = false;
  std::uint64_t section_ = 0;  // number of the current section
  bool wants_all_ = false;
  bool has_events_of_streams_ = false;
  std::uint64_t awaited_bytes_ = 0;  // bytes that were written before AwaitDelivery
  std::uint64_t awaited_since_ = 0;  // ns
  bool is_late_ = false;        // the sink was too slow; it is not awaited until it has caught up
  std::vector<Losses> losses_;  // by index of the CPU or ring thread
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_SESSION_WRITER_H_
