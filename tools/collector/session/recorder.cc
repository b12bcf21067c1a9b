#include "tools/collector/session/recorder.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tools/collector/base/status_util.h"
#include "tools/collector/perf/cpu_list.h"

namespace collector {
namespace {

std::uint64_t Nanoseconds(absl::Duration duration) {
  return static_cast<std::uint64_t>(absl::ToInt64Nanoseconds(duration));
}

// Describes the trace, with one moment on its clock and in UTC.
nettrace::TraceInfo MakeTraceInfo(std::size_t cpus) {
  nettrace::TraceInfo info;
  // The file holds the UTC side to the millisecond: its clock is read at one, so that both sides
  // name the same moment.
  const absl::Time now = absl::Now();
  const auto ticks = static_cast<std::int64_t>(SessionClockNow());
  info.sync_time = absl::FromUnixMillis(absl::ToUnixMillis(now));
  info.sync_ticks = ticks - absl::ToInt64Nanoseconds(now - info.sync_time);
  info.ticks_per_second = 1'000'000'000;
  info.pointer_size = static_cast<std::int32_t>(sizeof(void*));
  info.key_values = {{nettrace::kKeyHardwareThreadCount, absl::StrCat(cpus)},
                     {nettrace::kKeySystemPageSize, absl::StrCat(sysconf(_SC_PAGESIZE))}};
  return info;
}

// Whether the kernel's counts of a tracepoint are those of its hits: it is hit in task context
// only, and counts one a hit. Others may count nanoseconds (sched_stat_*), or be dropped by perf
// itself where one interrupt meets another, without a trace in any count.
bool CountsAreExact(const std::string& system) {
  return system == Selector::kUserEventsSystem || system == "syscalls" || system == "raw_syscalls";
}

bool IsPattern(const Selector& selector) { return selector.kind == Selector::Kind::kProvider; }

}  // namespace

Recorder::Recorder(RecorderOptions options, Tracefs tracefs, PerfSession session)
    : options_(std::move(options)), tracefs_(std::move(tracefs)), session_(std::move(session)) {
  matched_.resize(options_.selectors.size());
  has_patterns_ = std::any_of(options_.selectors.begin(), options_.selectors.end(), IsPattern);
}

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Start(const RecorderOptions& options,
                                                          const SinkFactory& make_sink) {
  absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
  if (!tracefs.ok()) return tracefs.status();
  for (const Selector& selector : options.selectors) {
    if (selector.needs_user_events() && !tracefs->HasUserEvents()) {
      return absl::UnimplementedError(absl::StrCat(
          "selector '", selector.text,
          "' needs user_events, which this kernel does not have; use Linux 6.4 or newer with "
          "CONFIG_USER_EVENTS=y, or select kernel tracepoints (system:event)"));
    }
  }
  absl::StatusOr<std::vector<int>> cpus = OnlineCpus();
  if (!cpus.ok()) return cpus.status();
  RaiseDescriptorLimit();
  absl::StatusOr<PerfSession> session = PerfSession::Open(*cpus, options.ring_size);
  if (!session.ok()) return session.status();

  std::unique_ptr<Recorder> recorder(
      new Recorder(options, *std::move(tracefs), *std::move(session)));
  COLLECTOR_RETURN_IF_ERROR(recorder->AttachNamed());

  absl::StatusOr<std::unique_ptr<nettrace::Sink>> sink = make_sink();
  if (!sink.ok()) return sink.status();
  // CPU numbers may have holes: readers size tables by the maximum.
  const auto hardware_threads = static_cast<std::size_t>(cpus->back()) + 1;
  nettrace::WriterOptions writer_options;
  // The labels of one round are bounded by the rings; the interval is closed at its end.
  writer_options.max_labels = std::size_t{1} << 24;
  writer_options.max_label_bytes = std::size_t{1} << 30;
  absl::StatusOr<std::unique_ptr<nettrace::Writer>> writer =
      nettrace::Writer::Create(*std::move(sink), MakeTraceInfo(hardware_threads), writer_options);
  if (!writer.ok()) return writer.status();
  recorder->writer_ = *std::move(writer);
  std::vector<int> numbers;
  for (const PerfSession::Cpu& cpu : recorder->session_.cpus()) numbers.push_back(cpu.number);
  recorder->samples_ =
      std::make_unique<SampleWriter>(recorder->writer_.get(), &recorder->tasks_, numbers);
  // After the rings are open: a thread is in /proc by now, or its creation is in a ring.
  recorder->tasks_.LoadFromProc(SessionClockNow());
  recorder->interval_start_ = SessionClockNow();
  COLLECTOR_RETURN_IF_ERROR(recorder->EnableAttached());
  COLLECTOR_RETURN_IF_ERROR(recorder->AttachPatterns());
  return recorder;
}

// Everything that can be wrong with the named tracepoints comes to light here.
absl::Status Recorder::AttachNamed() {
  for (std::size_t i = 0; i < options_.selectors.size(); ++i) {
    const Selector& selector = options_.selectors[i];
    if (IsPattern(selector)) continue;
    if (selector.system == Selector::kUserEventsSystem) {
      // A name that is not EventHeader's can only be there already, defined by its program.
      absl::Status registered = registrations_.Register(selector.event, /*persistent=*/false);
      if (!registered.ok() && !absl::IsInvalidArgument(registered)) return registered;
    }
    COLLECTOR_RETURN_IF_ERROR(Attach(selector.system, selector.event));
    matched_[i] = true;
  }
  return absl::OkStatus();
}

absl::Status Recorder::AttachPatterns() {
  if (!has_patterns_) return absl::OkStatus();
  absl::StatusOr<std::vector<UserEvent>> events = tracefs_.UserEvents();
  if (!events.ok()) return events.status();
  for (const UserEvent& event : *events) {
    for (std::size_t i = 0; i < options_.selectors.size(); ++i) {
      if (!IsPattern(options_.selectors[i]) ||
          !options_.selectors[i].MatchesUserEvent(event.name)) {
        continue;
      }
      absl::Status attached = Attach(std::string(Selector::kUserEventsSystem), event.name);
      // It may have been removed since the list was read.
      if (!attached.ok() && !absl::IsNotFound(attached)) return attached;
      // At once: since the attachment the service writes events, which are lost until this.
      COLLECTOR_RETURN_IF_ERROR(EnableAttached());
      matched_[i] = matched_[i] || attached.ok();
    }
  }
  next_rescan_ = SessionClockNow() + Nanoseconds(options_.rescan);
  return absl::OkStatus();
}

absl::Status Recorder::Attach(const std::string& system, const std::string& event) {
  const std::string name = absl::StrCat(system, ":", event);
  if (attached_.contains(name)) return absl::OkStatus();
  absl::StatusOr<Tracefs::Tracepoint> tracepoint = tracefs_.ReadTracepoint(system, event);
  if (!tracepoint.ok()) return tracepoint.status();
  // The collector's work for one event must not make more events.
  std::string filter;
  if (system != Selector::kUserEventsSystem) filter = absl::StrCat("common_pid != ", gettid());
  COLLECTOR_RETURN_IF_ERROR(session_.Attach(tracepoint->id, name, filter));
  attached_.insert(name);
  counts_are_exact_ = counts_are_exact_ && CountsAreExact(system);
  new_tracepoints_.push_back({system, event, *std::move(tracepoint)});
  return absl::OkStatus();
}

absl::Status Recorder::EnableAttached() {
  if (new_tracepoints_.empty()) return absl::OkStatus();
  for (const NewTracepoint& added : new_tracepoints_) {
    COLLECTOR_RETURN_IF_ERROR(samples_->AddTracepoint(added.tracepoint.id, added.system,
                                                      added.event, added.tracepoint.format));
  }
  new_tracepoints_.clear();
  return session_.Enable();
}

absl::Status Recorder::Poll(absl::Duration timeout) {
  timeout = std::min(timeout, options_.interval / 4);
  if (has_patterns_) timeout = std::min(timeout, options_.rescan);
  if (closing_ != 0) timeout = std::min(timeout, options_.slack);
  timeout = std::max(timeout, absl::ZeroDuration());  // epoll takes a negative one for "no timeout"
  session_.Wait(static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  const std::uint64_t now = SessionClockNow();
  if (has_patterns_ && now >= next_rescan_) COLLECTOR_RETURN_IF_ERROR(AttachPatterns());
  return Round(now);
}

absl::Status Recorder::Round(std::uint64_t now) {
  // An interval ends at a moment when all its records are surely there: once `slack` has passed.
  // Until then later records wait in their rings, unless those fill up.
  if (closing_ == 0 &&
      (now - interval_start_ >= Nanoseconds(options_.interval) || samples_->interval_is_full())) {
    closing_ = now;
  }
  UpdateTasks();
  COLLECTOR_RETURN_IF_ERROR(DrainSamples(closing_ != 0 ? closing_ : now));
  if (closing_ == 0) return absl::OkStatus();

  if (now - closing_ >= Nanoseconds(options_.slack) || session_.IsPressed()) {
    COLLECTOR_RETURN_IF_ERROR(samples_->WriteSequencePoint(closing_));
    COLLECTOR_RETURN_IF_ERROR(writer_->Flush());
    interval_start_ = closing_;
    closing_ = 0;
  }
  return absl::OkStatus();
}

// To be called before the samples are drained, as a thread's creation may stand in another ring
// than its first event.
void Recorder::UpdateTasks() {
  if (session_.DrainTasks([this](const PerfRecord& record) { tasks_.Apply(record); })) {
    tasks_.RecordsWereLost();
  }
  tasks_.CatchUp(SessionClockNow());
}

absl::Status Recorder::DrainSamples(std::uint64_t limit) {
  return session_.Drain(
      limit,
      [this](std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
        return samples_->Write(cpu, sample, timestamp);
      },
      [this](std::size_t cpu, std::uint64_t count) { return samples_->AddLost(cpu, count); });
}

absl::StatusOr<RecorderSummary> Recorder::Finish() {
  session_.Disable();
  UpdateTasks();
  COLLECTOR_RETURN_IF_ERROR(DrainSamples(PerfRing::kNoLimit));
  COLLECTOR_RETURN_IF_ERROR(session_.AccountLost(
      [this](std::size_t cpu, std::uint64_t count) { return samples_->AddLost(cpu, count); }));
  const std::uint64_t now = SessionClockNow();
  COLLECTOR_RETURN_IF_ERROR(samples_->WriteSequencePoint(now));
  COLLECTOR_RETURN_IF_ERROR(writer_->Finish());

  const nettrace::Writer::Stats& stats = writer_->stats();
  RecorderSummary summary;
  summary.process_events = samples_->stats().process_events;
  summary.events = stats.events - summary.process_events;
  summary.lost = stats.lost;
  summary.undecoded = samples_->stats().undecoded;
  summary.late = samples_->stats().late;
  summary.bytes = stats.bytes;
  summary.threads = stats.threads;
  summary.tracepoints = session_.tracepoints();
  summary.sequence_points = stats.sequence_points;
  for (std::size_t i = 0; counts_are_exact_ && i < session_.cpus().size(); ++i) {
    const absl::StatusOr<PerfSession::Counts> counts = session_.ReadCounts(i);
    if (absl::IsUnimplemented(counts.status())) break;
    if (!counts.ok()) return counts.status();
    summary.hits = summary.hits.value_or(0) + counts->hits;
  }
  return summary;
}

std::vector<std::string> Recorder::Unmatched() const {
  std::vector<std::string> unmatched;
  for (std::size_t i = 0; i < options_.selectors.size(); ++i) {
    if (!matched_[i]) unmatched.push_back(options_.selectors[i].text);
  }
  return unmatched;
}

}  // namespace collector
