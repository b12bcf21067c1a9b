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

// The rings are drained in parts of at least this time, in ns.
constexpr std::uint64_t kSmallestPart = 10'000;

bool IsNamed(const Selector& selector) { return selector.kind == Selector::Kind::kTracepoint; }

// Whether the selector may match tracepoints of user_events that do not exist yet.
bool AwaitsUserEvents(const Selector& selector) {
  return selector.kind == Selector::Kind::kProvider ||
         (selector.kind == Selector::Kind::kPattern &&
          (!selector.provider.empty() ||
           selector.MatchesSystem(std::string(Selector::kUserEventsSystem))));
}

std::string TextOf(const Tracefs::Name& name) { return absl::StrCat(name.system, ":", name.event); }

bool AwaitsTracepoints(const Selector& selector) {
  return selector.kind == Selector::Kind::kPattern && !selector.needs_user_events();
}

}  // namespace

Recorder::Recorder(RecorderOptions options, Tracefs tracefs, PerfSession session, TargetWatch watch)
    : options_(std::move(options)),
      tracefs_(std::move(tracefs)),
      session_(std::move(session)),
      target_watch_(std::move(watch)) {
  matched_.resize(options_.selectors.size());
  const std::vector<Selector>& selectors = options_.selectors;
  awaits_user_events_ =
      tracefs_.HasUserEvents() && std::any_of(selectors.begin(), selectors.end(), AwaitsUserEvents);
  awaits_tracepoints_ = std::any_of(selectors.begin(), selectors.end(), AwaitsTracepoints);
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
  absl::StatusOr<PerfTarget> target = OpenTarget(options.target);
  if (!target.ok()) return target.status();
  TargetWatch watch(*target);
  absl::StatusOr<PerfSession> session =
      PerfSession::Open(*cpus, {options.ring_size, *std::move(target)});
  if (!session.ok()) return session.status();
  for (const int fd : watch.descriptors()) COLLECTOR_RETURN_IF_ERROR(session->WakeOn(fd));

  std::unique_ptr<Recorder> recorder(
      new Recorder(options, *std::move(tracefs), *std::move(session), std::move(watch)));
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
  recorder->interval_start_ = recorder->drained_ = SessionClockNow();
  COLLECTOR_RETURN_IF_ERROR(recorder->EnableNamed());
  COLLECTOR_RETURN_IF_ERROR(recorder->AttachPatterns(SessionClockNow()));
  return recorder;
}

// Everything that can be wrong with the named tracepoints comes to light here.
absl::Status Recorder::AttachNamed() {
  FilterCheck check(tracefs_);
  for (const Selector& selector : options_.selectors) {
    if (!IsNamed(selector)) continue;
    absl::Status registered;
    if (selector.system == Selector::kUserEventsSystem) {
      registered = registrations_.Register(selector.event, /*persistent=*/false);
      // A name that is not EventHeader's can only be there already, defined by its program, and so
      // can any name if this process may only read.
      if (!registered.ok() && !absl::IsInvalidArgument(registered) &&
          !absl::IsPermissionDenied(registered)) {
        return registered;
      }
    }
    const absl::Status attached = AttachNamed({selector.system, selector.event}, &check);
    if (absl::IsNotFound(attached) && absl::IsPermissionDenied(registered)) {
      return absl::PermissionDeniedError(
          absl::StrCat(registered.message(), "; or start the program that registers it before"));
    }
    COLLECTOR_RETURN_IF_ERROR(attached);
  }
  return absl::OkStatus();
}

absl::Status Recorder::AttachPatterns(std::uint64_t now) {
  if (awaits_user_events_ && now >= next_rescan_) {
    COLLECTOR_RETURN_IF_ERROR(AttachUserEvents(now));
    next_rescan_ = SessionClockNow() + Nanoseconds(options_.rescan);
  }
  if (awaits_tracepoints_ && now >= next_tracepoint_rescan_) {
    COLLECTOR_RETURN_IF_ERROR(AttachTracepoints(now));
    next_tracepoint_rescan_ = SessionClockNow() + Nanoseconds(options_.tracepoint_rescan);
  }
  return absl::OkStatus();
}

absl::Status Recorder::AttachUserEvents(std::uint64_t now) {
  const std::string system(Selector::kUserEventsSystem);
  absl::StatusOr<std::vector<UserEvent>> events = tracefs_.UserEvents();
  if (!events.ok()) return events.status();
  std::vector<Tracefs::Name> names;
  for (const UserEvent& event : *events) names.push_back({system, event.name});
  if (!left_out_.is_empty()) {
    std::vector<std::string> there;
    for (const UserEvent& event : *events) there.push_back(event.name);
    std::sort(there.begin(), there.end());
    left_out_.KeepOnly(system, there);
  }
  return AttachAll(std::move(names), now);
}

absl::Status Recorder::AttachTracepoints(std::uint64_t now) {
  std::vector<Tracefs::Name> names = tracefs_.Tracepoints();
  if (names == known_tracepoints_ && left_out_.is_empty()) return absl::OkStatus();
  known_tracepoints_ = names;
  std::erase_if(names, [](const auto& name) { return name.system == Selector::kUserEventsSystem; });
  return AttachAll(std::move(names), now);
}

absl::Status Recorder::AttachAll(std::vector<Tracefs::Name> names, std::uint64_t now) {
  std::erase_if(names, [&](const Tracefs::Name& name) {
    return IsAttached(name) || left_out_.IsTooEarly(TextOf(name), now) ||
           std::none_of(options_.selectors.begin(), options_.selectors.end(),
                        [&name](const Selector& selector) {
                          return selector.Matches(name.system, name.event);
                        });
  });
  if (names.empty()) return absl::OkStatus();
  FilterCheck check(tracefs_);
  const std::size_t descriptors = session_.DescriptorsPerTracepoint();
  budget_.Look(names.size() * descriptors);
  for (const Tracefs::Name& name : InTurns(std::move(names))) {
    const bool is_user_event = name.system == Selector::kUserEventsSystem;
    if (const absl::Status attached = AttachOne(name, descriptors, &check); !attached.ok()) {
      // It may have been removed since its name was read.
      if (absl::IsNotFound(attached) && is_user_event) continue;
      left_out_.Add(TextOf(name), attached, now);
      continue;
    }
    left_out_.Remove(TextOf(name));
    // At once: since the attachment the service writes events, which are lost until this.
    if (is_user_event) COLLECTOR_RETURN_IF_ERROR(session_.Enable());
  }
  return session_.Enable();
}

// The format is read first: what has no place in the file is not attached.
absl::Status Recorder::AttachOne(const Tracefs::Name& name, std::size_t descriptors,
                                 FilterCheck* check) {
  if (name.system != Selector::kUserEventsSystem && !tracefs_.CanBeEnabled(name)) {
    return absl::FailedPreconditionError(
        absl::StrCat("tracepoint ", TextOf(name), " cannot be enabled"));
  }
  COLLECTOR_RETURN_IF_ERROR(budget_.Check(name, descriptors));
  absl::StatusOr<Tracefs::Tracepoint> tracepoint = tracefs_.ReadTracepoint(name.system, name.event);
  if (!tracepoint.ok()) return tracepoint.status();
  absl::StatusOr<Selection> selection = Select(options_.selectors, name, *tracepoint, check);
  if (!selection.ok()) return selection.status();
  COLLECTOR_RETURN_IF_ERROR(
      samples_->AddTracepoint(tracepoint->id, name.system, name.event, tracepoint->format));
  COLLECTOR_RETURN_IF_ERROR(AttachToSession(name, tracepoint->id, *selection));
  budget_.Use(name, descriptors);
  return absl::OkStatus();
}

bool Recorder::IsAttached(const Tracefs::Name& name) const {
  return attached_.contains(TextOf(name));
}

// Attaches a tracepoint that is named: samples_ hears of it once it is there.
absl::Status Recorder::AttachNamed(const Tracefs::Name& name, FilterCheck* check) {
  if (IsAttached(name)) return absl::OkStatus();
  absl::StatusOr<Tracefs::Tracepoint> tracepoint = tracefs_.ReadTracepoint(name.system, name.event);
  if (!tracepoint.ok()) return tracepoint.status();
  absl::StatusOr<Selection> selection = Select(options_.selectors, name, *tracepoint, check);
  if (!selection.ok()) return selection.status();
  COLLECTOR_RETURN_IF_ERROR(AttachToSession(name, tracepoint->id, *selection));
  new_tracepoints_.push_back({name, *std::move(tracepoint)});
  return absl::OkStatus();
}

absl::Status Recorder::AttachToSession(const Tracefs::Name& name, int id,
                                       const Selection& selection) {
  // The collector's work for one event must not make more events.
  std::string own;
  if (name.system != Selector::kUserEventsSystem) {
    own = absl::StrCat("common_pid != ", gettid());
    for (const pid_t thread : options_.own_threads) {
      absl::StrAppend(&own, " && common_pid != ", thread);
    }
  }
  COLLECTOR_RETURN_IF_ERROR(session_.Attach(id, TextOf(name), BothFilters(selection.filter, own)));
  attached_.insert(TextOf(name));
  for (const std::size_t i : selection.selectors) matched_[i] = true;
  counts_are_exact_ = counts_are_exact_ && CountsAreExact(name.system);
  return absl::OkStatus();
}

absl::Status Recorder::EnableNamed() {
  for (const NewTracepoint& added : new_tracepoints_) {
    COLLECTOR_RETURN_IF_ERROR(samples_->AddTracepoint(added.tracepoint.id, added.name.system,
                                                      added.name.event, added.tracepoint.format));
  }
  new_tracepoints_.clear();
  return session_.Enable();
}

absl::Status Recorder::Poll(absl::Duration timeout) {
  timeout = std::min(timeout, options_.interval / 4);
  if (awaits_user_events_) timeout = std::min(timeout, options_.rescan);
  if (awaits_tracepoints_) timeout = std::min(timeout, options_.tracepoint_rescan);
  if (closing_ != 0) timeout = std::min(timeout, options_.slack);
  timeout = std::max(timeout, absl::ZeroDuration());  // epoll takes a negative one for "no timeout"
  session_.Wait(static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  const std::uint64_t now = SessionClockNow();
  COLLECTOR_RETURN_IF_ERROR(AttachPatterns(now));
  return Round(now, now - Nanoseconds(options_.slack));
}

// Drains up to `now`, in parts that an interval can hold, and ends the intervals that are full or
// whose time is over. `settled`: no record of an earlier time can still appear in a ring.
absl::Status Recorder::Round(std::uint64_t now, std::uint64_t settled) {
  UpdateTasks();
  for (;;) {
    const std::uint64_t limit = closing_ != 0 ? closing_ : NextLimit(now);
    const std::size_t waiting = session_.waiting_bytes();
    const std::size_t before = samples_->events_in_interval();
    COLLECTOR_RETURN_IF_ERROR(DrainSamples(limit));
    drained_ = limit;
    const std::size_t drained = samples_->events_in_interval() - before;
    if (limit == now && drained >= kEventsToJudgeBy) bytes_per_event_ = waiting / drained;

    if (closing_ == 0) {
      if (!samples_->interval_is_full() &&
          drained_ - interval_start_ < Nanoseconds(options_.interval)) {
        if (limit == now) return absl::OkStatus();
        continue;
      }
      closing_ = drained_;
    }
    // An interval ends at a moment when all its records are surely there. Until then later records
    // wait in their rings, unless those fill up.
    if (closing_ > settled && !session_.IsPressed()) return absl::OkStatus();
    COLLECTOR_RETURN_IF_ERROR(samples_->WriteSequencePoint(closing_));
    COLLECTOR_RETURN_IF_ERROR(writer_->Flush());
    interval_start_ = closing_;
    closing_ = 0;
    if (drained_ == now) return absl::OkStatus();
  }
}

// The time up to which the rings are drained next: `now`, or earlier where the interval's time is
// over before, or where it would get too many events. How many wait until then is estimated from
// the bytes that wait, as if they had come evenly since the rings were drained last: where that is
// wrong, more and smaller parts come of it.
std::uint64_t Recorder::NextLimit(std::uint64_t now) const {
  const std::uint64_t end = interval_start_ + Nanoseconds(options_.interval);
  std::uint64_t limit = std::max(std::min(now, end), drained_);
  const std::size_t waiting = session_.waiting_bytes() / std::max<std::size_t>(bytes_per_event_, 1);
  constexpr std::size_t kFull = SampleWriter::kFullInterval;
  const std::size_t room = kFull * 3 / 2 - std::min(samples_->events_in_interval(), kFull);
  if (waiting > room && now > drained_) {
    // A quarter of what there is room for, as they may come closer together there.
    const double part = static_cast<double>(room) / 4 / static_cast<double>(waiting);
    const double time = static_cast<double>(now - drained_) * part;
    limit = std::min(limit, drained_ + static_cast<std::uint64_t>(time) + kSmallestPart);
  }
  return limit;
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
  const std::uint64_t disabled = SessionClockNow();
  COLLECTOR_RETURN_IF_ERROR(Round(disabled, disabled));
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
  const bool knows_hits = counts_are_exact_ && session_.hits_are_known();
  for (std::size_t i = 0; knows_hits && i < session_.cpus().size(); ++i) {
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
