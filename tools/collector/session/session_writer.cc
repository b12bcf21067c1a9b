#include "tools/collector/session/session_writer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/session_clock.h"

namespace collector {

SessionWriter::SessionWriter(SessionOptions options)
    : name_(std::move(options.name)),
      interval_(std::max(options.interval, absl::Milliseconds(1))),
      longest_delivery_(options.longest_delivery),
      has_ring_positions_(options.has_ring_positions),
      only_rings_(options.only_rings),
      cpu_rate_(options.cpu_rate),
      off_cpu_(options.off_cpu),
      sample_stacks_(options.sample_stacks),
      target_(std::move(options.target)),
      why_no_rings_(std::move(options.why_no_rings)),
      recorded_rings_(std::move(options.recorded_rings)),
      tracepoints_(std::move(options.selectors), &account_) {
  if (!options.triggers.empty()) {
    triggers_.emplace(std::move(options.triggers), std::move(options.fire));
  }
}

absl::Status SessionWriter::OpenRingTarget() {
  ASSIGN_OR_RETURN(ring_target_, RingTarget::Open(target_));
  return absl::OkStatus();
}

std::uint64_t SessionWriter::events() const {
  return stats().events - trace_->stats().process_events - account_.written();
}

SessionSummary SessionWriter::Summarize() const {
  SessionSummary summary;
  summary.status = status_;
  summary.unmatched = tracepoints_.FindUnmatched();
  summary.skipped_tracepoints = tracepoints_.skipped().CopyNamed();
  summary.warnings = tracepoints_.warnings();
  const nettrace::Writer::Stats& stats = writer_->stats();
  summary.process_events = trace_->stats().process_events;
  summary.collector_events = account_.written();
  summary.account = account_.summary();
  summary.events = events();
  const std::uint64_t dropped_now = CountDropped();
  summary.lost = stats.lost + dropped_now;
  summary.dropped = dropped_ + dropped_now;
  summary.undecoded = trace_->stats().undecoded;
  summary.late = trace_->stats().late;
  summary.bytes = stats.bytes;
  summary.threads = stats.threads;
  summary.tracepoints = tracepoint_count_;
  summary.sequence_points = stats.sequence_points;
  summary.section = section_;
  summary.events_written = stats.events_written;
  summary.events_missing = stats.events - stats.events_written + stats.events_dropped;
  return summary;
}

std::uint64_t SessionWriter::CountUndelivered() const {
  const nettrace::Writer::Stats& stats = writer_->stats();
  return events() - (stats.events_written - stats.events_written_apart);
}

void SessionWriter::CpuChanged(const CpuChange& change) {
  if (!is_running()) return;
  account_.CpuChanged(change.number, change.online, change.since, change.until, change.error);
}

void SessionWriter::SamplesThrottled(int cpu, const CpuRing::Throttled& throttled) {
  if (!is_running() || cpu_rate() == 0) return;
  account_.SamplesThrottled(cpu, throttled.count, throttled.first, throttled.last);
}

void SessionWriter::StacksSkipped(const StackUnwinder::Skipped& skipped) {
  if (is_running()) account_.StacksSkipped(skipped.count, skipped.first, skipped.last);
}

void SessionWriter::ServiceUnknown(pid_t pid, std::uint64_t since, std::uint64_t until,
                                   std::string_view reason) {
  if (!is_running() || until < first_) return;
  if (std::max(since, first_) - first_ >= length_) return;
  if (since != 0) since = std::max(since, first_);
  until = std::min(until, first_ + (length_ - 1));
  account_.ServiceUnknown(absl::StrCat("ring:", pid), since, until, reason);
}

void SessionWriter::TargetCame(std::uint64_t since, std::uint64_t until, std::string_view error) {
  if (is_running()) account_.TargetCame(since, until, error);
}

absl::Status SessionWriter::Open(const SinkFactory& make_sink, const nettrace::TraceInfo& info) {
  ASSIGN_OR_RETURN(std::unique_ptr<nettrace::Sink> sink, make_sink());
  sink_ = sink.get();
  nettrace::WriterOptions options;
  // The limits are high, because labels and stacks are also limited elsewhere: the rings bound the
  // labels and stacks of one round, and an interval with many labels or events ends after the
  // round.
  options.max_labels = std::size_t{1} << 24;
  options.max_label_bytes = std::size_t{1} << 30;
  options.max_stacks = std::size_t{1} << 24;
  options.max_stack_bytes = std::size_t{1} << 30;
  options.max_metadata = TraceWriter::kMaxMetadata;
  ASSIGN_OR_RETURN(writer_, nettrace::Writer::Create(std::move(sink), info, options));
  account_.Open(writer_.get(), info);
  return absl::OkStatus();
}

void SessionWriter::Begin(std::uint64_t start, const TaskTracker* tasks) {
  trace_.emplace(writer_.get(), tasks, start, &account_);
  first_ = start + 1;
  length_ = std::numeric_limits<std::uint64_t>::max() - start;
  StartInterval(start);
}

// Intervals end at multiples of their length. Sessions with the same length therefore end their
// intervals at the same time, and the capture wakes up once for all of them.
void SessionWriter::StartInterval(std::uint64_t timestamp) {
  const auto length = static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(interval_));
  interval_start_ = timestamp;
  interval_events_ = stats().events;
  interval_lost_ = stats().lost;
  interval_end_ = (timestamp / length + 1) * length;
}

void SessionWriter::AddCpu(int number, std::uint64_t lost) {
  trace_->AddCpu(number);
  Losses& losses = losses_.emplace_back();
  losses.settled = lost;
  losses.counted_at = first_;
}

void SessionWriter::SetRingThread(std::size_t cpu, const std::string& name,
                                  const std::string& source) {
  if (cpu == losses_.size()) losses_.emplace_back();
  Losses& losses = losses_[cpu];
  if (is_running() && cpu < trace_->cpus()) {
    AccountRingLosses(cpu);
    if (losses.dropped != 0) {
      dropped_ += losses.dropped;
      account_.EventsDropped(trace_->cpu_number(cpu), losses.dropped, suspended_at_,
                             SessionClockNow(), "the output is full");
      Check(trace_->AddLost(cpu, losses.dropped));
    }
  }
  losses = Losses();
  trace_->SetRingThread(cpu, name, has_ring_positions_ ? source : "");
}

void SessionWriter::LoseOfRing(std::size_t cpu, std::string_view name, std::uint64_t count,
                               std::uint64_t until, std::uint64_t number, bool is_kept) {
  if (!is_running()) return;
  if (is_kept) until = std::max(until, first_);
  if (until - first_ >= length_) return;
  Losses& losses = losses_[cpu];
  // If the last event before the losses was late, its time in the file may be later than `until`.
  // The losses then get the time of this event.
  const std::uint64_t after = std::max(first_, trace_->last_timestamp(cpu));
  if (losses.of_ring == 0) losses.after = after;
  losses.name = name;
  losses.of_ring += count;
  losses.until = std::max(until, after);
  losses.accounted += count;
  trace_->SetRingNumber(cpu, number);
  AddLost(cpu, count);
}

std::optional<trace::RingPositionEntry> SessionWriter::FindRingUnits(std::size_t cpu) const {
  if (!is_running() || cpu >= trace_->cpus() || !trace_->has_ring_units(cpu)) return std::nullopt;
  trace::RingPositionEntry entry;
  entry.units = trace_->ring_units(cpu);
  entry.pending = trace_->pending_lost(cpu);
  return entry;
}

void SessionWriter::WriteRingPositions(const trace::RingRecord& record) {
  if (!is_active() || !has_ring_positions_) return;
  Flush();
  Check(account_.WriteRingPositions(record));
  Flush();
  has_written_positions_ = true;
}

void SessionWriter::AwaitDelivery(std::uint64_t now) {
  if (!is_active()) return;
  awaited_bytes_ = stats().bytes;
  awaited_since_ = now;
}

bool SessionWriter::IsDelivered(std::uint64_t now) {
  if (!is_active()) return true;
  if (stats().bytes - sink_->Undelivered() >= awaited_bytes_) {
    is_late_ = false;
    return true;
  }
  const absl::Duration waited = absl::Nanoseconds(static_cast<std::int64_t>(now - awaited_since_));
  is_late_ = is_late_ || waited >= longest_delivery_;
  return is_late_;
}

void SessionWriter::AccountRingLosses(std::size_t cpu) {
  Losses& losses = losses_[cpu];
  if (losses.of_ring == 0) return;
  account_.EventsLost(trace_->cpu_number(cpu), losses.name, std::exchange(losses.of_ring, 0),
                      losses.after, losses.until);
}

void SessionWriter::EndAt(std::uint64_t end) {
  if (is_running()) length_ = std::max(end, first_) + 1 - first_;
}

void SessionWriter::WriteProcessEvent(const ProcessEvent& event, Slot thread) {
  if (is_active()) Check(trace_->WriteProcessEvent(event, thread));
}

void SessionWriter::LostInPlace(std::size_t cpu, std::uint64_t total) {
  Losses& losses = losses_[cpu];
  if (losses.after == 0) losses.after = trace_->last_timestamp(cpu);
  if (!wants_all_ || total <= losses.settled) return;
  AddLost(cpu, total - losses.settled);
  losses.settled = total;
  losses.own = 0;
}

void SessionWriter::CountLost(std::size_t cpu, std::string_view name, std::uint64_t count,
                              const CountingTime& time) {
  if (!is_running()) return;
  Losses& losses = losses_[cpu];
  losses.own += count;
  if (losses.counted_at != time.began) {
    losses.from = std::max(losses.counted_at, losses.after);
    losses.counted_at = time.began;
    losses.after = 0;
  }
  losses.accounted += count;
  account_.EventsLost(trace_->cpu_number(cpu), name, count, losses.from, time.ended);
}

void SessionWriter::AccountUnknownLosses() {
  const std::uint64_t now = SessionClockNow();
  for (std::size_t cpu = 0; cpu < losses_.size(); ++cpu) {
    Losses& losses = losses_[cpu];
    AccountRingLosses(cpu);
    if (losses.written <= losses.accounted) continue;
    account_.EventsLost(trace_->cpu_number(cpu), "", losses.written - losses.accounted,
                        std::max(losses.counted_at, losses.after), now);
    losses.accounted = losses.written;
    losses.counted_at = now;
    losses.after = 0;
  }
}

void SessionWriter::SettleLosses(std::size_t cpu, std::uint64_t total) {
  Losses& losses = losses_[cpu];
  const std::uint64_t all = total - std::min(total, losses.settled);
  const std::uint64_t lost = wants_all_ ? all : losses.own;
  if (lost != 0) AddLost(cpu, lost);
  losses.settled = std::max(total, losses.settled);
  losses.own = 0;
}

void SessionWriter::AddLost(std::size_t cpu, std::uint64_t count) {
  if (!is_running()) return;
  losses_[cpu].written += count;
  Check(trace_->AddLost(cpu, count));
}

void SessionWriter::RequestSection() {
  wants_section_ = true;
  interval_end_ = std::min(interval_end_, std::max(interval_start_ + 1, SessionClockNow()));
}

void SessionWriter::FollowSink(std::uint64_t drained) {
  if (!is_running()) return;
  const bool is_full = sink_->IsFull();
  if (is_suspended()) {
    suspension_ = is_full ? Suspension::kFull : Suspension::kOver;
  } else if (is_full) {
    suspension_ = Suspension::kFull;
    suspended_at_ = std::max(drained, first_);
    Check(writer_->Flush());
  } else if (!wants_section_ && sink_->WantsSection()) {
    RequestSection();
  }
}

std::uint64_t SessionWriter::CountDropped() const {
  return std::accumulate(
      losses_.begin(), losses_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Losses& losses) { return sum + losses.dropped; });
}

void SessionWriter::EndSuspension(std::uint64_t timestamp) {
  if (!is_suspended()) return;
  suspension_ = Suspension::kNone;
  // No process events were written during the suspension, so a new section describes the processes
  // again.
  wants_section_ = true;
  for (std::size_t cpu = 0; cpu < losses_.size(); ++cpu) {
    const std::uint64_t count = std::exchange(losses_[cpu].dropped, 0);
    if (count == 0) continue;
    dropped_ += count;
    account_.EventsDropped(trace_->cpu_number(cpu), count, suspended_at_, timestamp,
                           "the output is full");
    Check(trace_->AddLost(cpu, count));
  }
}

absl::Status SessionWriter::AccountSection(std::uint64_t timestamp) {
  std::uint64_t ring_events = trace_->replaced_events();
  std::uint64_t ring_lost = trace_->replaced_lost();
  for (std::size_t cpu = 0; cpu < losses_.size(); ++cpu) {
    const std::uint64_t events = trace_->cpu_events(cpu);
    const std::uint64_t lost = trace_->cpu_lost(cpu);
    if (trace_->cpu_number(cpu) == CollectorEvents::kNoCpu) {
      ring_events += events;
      ring_lost += lost;
      continue;
    }
    if (events == 0 && lost == 0) continue;
    account_.SectionBegan(trace_->cpu_number(cpu), section_, events, lost, timestamp);
  }
  if (ring_events != 0 || ring_lost != 0) {
    account_.SectionBegan(CollectorEvents::kNoCpu, section_, ring_events, ring_lost, timestamp);
  }
  return account_.Write(timestamp);
}

bool SessionWriter::EndInterval(std::uint64_t timestamp) {
  if (!is_running()) return false;
  AccountUnknownLosses();
  EndSuspension(timestamp);
  const bool starts_section = std::exchange(wants_section_, false);
  if (!starts_section && IsIntervalEmpty()) {
    StartInterval(timestamp);
    return false;
  }
  absl::Status status =
      starts_section ? trace_->StartSection(timestamp) : trace_->WriteSequencePoint(timestamp);
  if (status.ok()) status = writer_->Flush();
  StartInterval(timestamp);
  if (status.ok() && starts_section) {
    ++section_;
    status = AccountSection(timestamp);
  }
  Check(status);
  return starts_section && is_running();
}

void SessionWriter::Finish(std::uint64_t timestamp) {
  if (!is_running()) return;
  AccountUnknownLosses();
  EndSuspension(timestamp);
  absl::Status status =
      has_written_positions_ ? account_.WriteRingPositions(trace::EndRecord()) : absl::OkStatus();
  if (status.ok()) {
    status = trace_->WriteSequencePoint(std::max(timestamp, interval_start_ + 1));
  }
  if (status.ok()) status = writer_->Finish();
  if (!status.ok()) return Fail(status);
  length_ = 0;
}

void SessionWriter::CheckTriggers(const ConvertedEvent& event) {
  triggers_->Check(event, [&event] { return event.source->MetadataFor(event); });
}

// After an error, the session accepts no more events, and writes nothing more to its file.
void SessionWriter::Fail(const absl::Status& status) {
  status_ = status;
  length_ = 0;
}

}  // namespace collector
