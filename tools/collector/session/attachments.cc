#include "tools/collector/session/attachments.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libnettrace-writer/core/traceevent.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/tracefs/user_event_definition.h"

namespace collector {
namespace {

// Returns whether the kernel's counts of a tracepoint are exact counts of its hits. They are exact
// if the tracepoint is hit in task context only and each hit counts as one. Other tracepoints may
// count nanoseconds (sched_stat_*) or be hit in interrupts. When one interrupt occurs in another,
// perf may drop a hit without counting it.
bool CountsAreExact(const std::string& system) {
  return system == Selector::kUserEventsSystem || system == "syscalls" || system == "raw_syscalls";
}

bool IsNamed(const Selector& selector) { return selector.kind == Selector::Kind::kTracepoint; }

// Returns whether the selector may match tracepoints of user_events that do not exist yet.
bool AwaitsUserEvents(const Selector& selector) {
  return selector.kind == Selector::Kind::kProvider ||
         (selector.kind == Selector::Kind::kPattern &&
          (!selector.provider.empty() ||
           selector.MatchesSystem(std::string(Selector::kUserEventsSystem))));
}

bool AwaitsTracepoints(const Selector& selector) {
  return selector.kind == Selector::Kind::kPattern && !selector.needs_user_events();
}

std::string ToText(const Tracefs::Name& name) { return absl::StrCat(name.system, ":", name.event); }

// Fails with FailedPrecondition unless the sessions can share a capture: both must record the same
// events of each tracepoint that both select. If both sample CPU time, they must use the same rate.
absl::Status CheckShared(const SessionWriter& writer, const SessionWriter& other) {
  const SessionTracepoints& a = writer.tracepoints();
  const SessionTracepoints& b = other.tracepoints();
  const bool is_plain = !a.HasFilter() && !b.HasFilter() && !a.HasStacks() && !b.HasStacks();
  if (!is_plain && a.selectors() != b.selectors()) {
    return absl::FailedPreconditionError(
        "sessions with filters or stacks can share a capture only if their selectors, filters and "
        "stacks are the same");
  }
  if (writer.cpu_rate() != 0 && other.cpu_rate() != 0 && writer.cpu_rate() != other.cpu_rate()) {
    return absl::FailedPreconditionError(
        "sessions that sample CPU time can share a capture only if their rates are the same");
  }
  if (writer.sample_stacks() != other.sample_stacks()) {
    return absl::FailedPreconditionError(
        "sessions can share a capture only if the stacks of their samples are the same");
  }
  return absl::OkStatus();
}

absl::Status Removed(const Tracefs::Name& name) {
  return absl::NotFoundError(
      absl::StrCat("tracepoint ", ToText(name), " was removed while it was being opened"));
}

// Returns a warning if a tracepoint of user_events has a name of EventHeader's form, but other
// fields; else "".
std::string TakenNameWarning(const Tracefs::Name& name, const std::string& format) {
  if (name.system != Selector::kUserEventsSystem || !EventHeaderDefinition(name.event).ok()) {
    return "";
  }
  const UserEventDefinition definition = {name.event, FieldsOfFormat(format)};
  if (definition.IsEventHeader()) return "";
  return absl::StrCat(
      "tracepoint ", ToText(name), ": another program has registered the name with the fields '",
      definition.fields, "', so services cannot register it; 'eventheader unregister ", name.event,
      "' deletes this tracepoint, or names the processes that may use it");
}

// Marks the selectors in `tracepoints` that match the tracepoint `name`, which is already attached.
// `selected` holds the indices of the matching selectors of another session: the session for which
// the tracepoint was attached. The kernel's filters apply to all sessions of a capture, so sessions
// with filters have the same selectors, and `selected` also applies to `tracepoints`.
void SetMatched(SessionTracepoints* tracepoints, const Tracefs::Name& name,
                const std::vector<std::size_t>& selected) {
  if (tracepoints->HasFilter()) {
    for (const std::size_t i : selected) tracepoints->SetMatched(i);
    return;
  }
  for (std::size_t i = 0; i < tracepoints->selectors().size(); ++i) {
    if (tracepoints->selectors()[i].Matches(name.system, name.event)) tracepoints->SetMatched(i);
  }
}

}  // namespace

Attachments::Attachments(AttachmentOptions options, Tracefs tracefs, PerfCapture* perf,
                         Distributor* distributor, std::function<absl::Status()> before_attaching)
    : options_(std::move(options)),
      tracefs_(std::move(tracefs)),
      perf_(perf),
      distributor_(distributor),
      before_attaching_(std::move(before_attaching)) {}

absl::Status Attachments::Add(SessionWriter* session) {
  for (const Selector& selector : session->tracepoints().selectors()) {
    if (selector.needs_user_events() && !tracefs_.HasUserEvents() && !options_.uses_rings) {
      return absl::UnimplementedError(absl::StrCat(
          "selector '", selector.text,
          "' needs user_events, which this kernel does not have; use Linux 6.4 or newer with "
          "CONFIG_USER_EVENTS=y, or select kernel tracepoints (system:event)"));
    }
  }
  for (const SessionWriter* other : sessions_) {
    RETURN_IF_ERROR(CheckShared(*session, *other));
  }
  sessions_.push_back(session);
  UpdateAwaited();
  RETURN_IF_ERROR(AttachSamples(session));
  {
    FilterCheck check(tracefs_);
    RETURN_IF_ERROR(AttachNamed(session, &check));
  }
  if (awaits_user_events_) {
    RegisterRemembered(session->tracepoints());
    RETURN_IF_ERROR(AttachUserEvents({session}, false));
    if (has_more_user_events_) next_rescan_ = earliest_rescan_ = 0;
  }
  if (awaits_tracepoints_) {
    std::vector<Tracefs::Name> names = tracefs_.Tracepoints();
    RETURN_IF_ERROR(AttachKernelTracepoints(names, {session}, false));
    // Rescan matches names for all sessions only if they differ from known_tracepoints_. If there
    // are other sessions, some of these names may be new for them. The names are then not stored,
    // so that Rescan matches them. If this search is unfinished, the names are stored, because
    // Rescan continues an unfinished search for all sessions.
    if (sessions_.size() == 1 || has_more_tracepoints_) known_tracepoints_ = std::move(names);
  }
  return absl::OkStatus();
}

void Attachments::Remove(SessionWriter* session) {
  std::erase(sessions_, session);
  UpdateAwaited();
  for (auto& [name, tracepoint] : attached_) {
    if (tracepoint.first == session) tracepoint.first = nullptr;
  }
  for (const int id : distributor_->Remove(session)) {
    perf_->Disable(id);
    unused_.push_back(id);
    const auto entry = std::find_if(attached_.begin(), attached_.end(),
                                    [id](const auto& each) { return each.second.id == id; });
    if (entry == attached_.end()) continue;
    if (options_.memory != nullptr) {
      const absl::StatusOr<EventCounts> counts = perf_->ReadCounts(id);
      if (counts.ok() && counts->hits != 0) {
        options_.memory->Use(std::string_view(entry->first).substr(entry->first.find(':') + 1));
      }
    }
    attached_.erase(entry);
  }
}

void Attachments::RegisterRemembered(const SessionTracepoints& tracepoints) {
  if (options_.memory == nullptr) return;
  const std::uint64_t end = SessionClockNow() + base::Nanoseconds(options_.register_for);
  const std::string system(Selector::kUserEventsSystem);
  for (const std::string& name : options_.memory->ListNames()) {
    if (SessionClockNow() >= end) return;
    if (!tracepoints.HasPatternFor({system, name})) continue;
    // A tracepoint that cannot be registered here is recorded once its service registers it.
    const absl::Status registered = registrations_.Register(name, /*persistent=*/false);
    if (absl::IsPermissionDenied(registered)) return;
  }
}

void Attachments::Remember(const Tracefs::Name& name, bool enable) {
  if (options_.memory == nullptr || name.system != Selector::kUserEventsSystem) return;
  if (!options_.memory->Meet(name.event) || !enable) return;
  const std::string text = ToText(name);
  for (SessionWriter* session : distributor_->FindSessions(attached_.at(text).id)) {
    session->tracepoints().Meet(text);
  }
}

absl::Status Attachments::DisableSole(const SessionWriter* session,
                                      const std::function<absl::Status()>& meanwhile) {
  // Number of tracepoints between two calls of `meanwhile`. Disabling a tracepoint takes the kernel
  // some microseconds for each CPU.
  constexpr std::size_t kAtOnce = 50;
  std::size_t disabled = 0;
  for (const int id : distributor_->FindTracepoints(session)) {
    if (distributor_->FindSessions(id).size() != 1) continue;
    perf_->Disable(id);
    if (++disabled % kAtOnce == 0) RETURN_IF_ERROR(meanwhile());
  }
  return absl::OkStatus();
}

void Attachments::DetachUnused() {
  for (const int id : std::exchange(unused_, {})) {
    perf_->Detach(id);
    distributor_->RemoveTracepoint(id);
  }
}

bool Attachments::AnyAwaits(bool (*awaits)(const Selector&)) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [awaits](const SessionWriter* session) {
    const std::vector<Selector>& selectors = session->tracepoints().selectors();
    return std::any_of(selectors.begin(), selectors.end(), awaits);
  });
}

absl::Status Attachments::AttachSamples(SessionWriter* session) {
  if (session->cpu_rate() != 0) {
    RETURN_IF_ERROR(
        AttachSamples(session, kCpuTimeId, "cpu", "perf events for samples of CPU time"));
  }
  if (!session->off_cpu()) return absl::OkStatus();
  return AttachSamples(session, kSwitchesId, "cswitch", "perf events for switches of threads");
}

absl::Status Attachments::AttachSamples(SessionWriter* session, int id, const std::string& event,
                                        const std::string& text) {
  RETURN_IF_ERROR(before_attaching_());
  std::string name =
      absl::StrCat(std::string(nettrace::internal::traceevent::kUniversalEvents), ":", event);
  if (!attached_.contains(name)) {
    DetachUnused();
    StackOptions stacks = session->sample_stacks();
    if (stacks.max_frames == 0) stacks.max_frames = KernelMaxFrames();
    distributor_->AddUniversalEvent(id, event);
    distributor_->SetMaxFrames(id, stacks.max_frames);
    const std::uint32_t rate = id == kCpuTimeId ? session->cpu_rate() : 0;
    if (absl::Status attached = perf_->AttachSamples(id, text, rate, stacks); !attached.ok()) {
      distributor_->RemoveTracepoint(id);
      return attached;
    }
    attached_.emplace(std::move(name), Tracepoint{id, session, /*counts_are_exact=*/false, {}});
  }
  distributor_->Give(id, session);
  return absl::OkStatus();
}

absl::Status Attachments::AttachNamed(SessionWriter* session, FilterCheck* check) {
  const std::vector<Selector>& selectors = session->tracepoints().selectors();
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const Selector& selector = selectors[i];
    if (!IsNamed(selector)) continue;
    absl::Status registered;
    if (selector.system == Selector::kUserEventsSystem) {
      if (!tracefs_.HasUserEvents()) continue;  // RingFeed records the tracepoint
      registered = registrations_.Register(selector.event, /*persistent=*/false);
      // Ignores two errors, because the tracepoint may already exist. InvalidArgument: the name is
      // not an EventHeader name, so only its program can define the tracepoint. PermissionDenied:
      // this process may only read tracefs.
      if (!registered.ok() && !absl::IsInvalidArgument(registered) &&
          !absl::IsPermissionDenied(registered)) {
        return registered;
      }
    }
    const absl::Status attached =
        AttachOne({selector.system, selector.event}, session, check, nullptr);
    if (absl::IsNotFound(attached) && absl::IsPermissionDenied(registered)) {
      return absl::PermissionDeniedError(
          absl::StrCat(registered.message(), ", or first start the program that registers it"));
    }
    RETURN_IF_ERROR(attached);
    session->tracepoints().SetMatched(i);
  }
  return absl::OkStatus();
}

void Attachments::UpdateAwaited() {
  awaits_user_events_ = tracefs_.HasUserEvents() && AnyAwaits(AwaitsUserEvents);
  awaits_tracepoints_ = AnyAwaits(AwaitsTracepoints);
  if (!awaits_user_events_) has_more_user_events_ = false;
  if (!awaits_tracepoints_) has_more_tracepoints_ = false;
  if (!awaits_user_events_ || std::exchange(has_tried_to_watch_, true)) return;
  // If the call fails, user_events_status is read every options_.rescan instead.
  perf_->rings().WatchRegistrations().IgnoreError();
}

absl::Status Attachments::Rescan(std::uint64_t now) {
  if (awaits_user_events_ && now >= NextUserEventsLook()) {
    RETURN_IF_ERROR(RescanUserEvents(now));
  }
  // Attaches the tracepoints for which the last search had no time left. Does not read the names
  // again.
  if (std::exchange(has_more_tracepoints_, false)) {
    return AttachKernelTracepoints(known_tracepoints_, sessions_, true);
  }
  if (awaits_tracepoints_ && IsTimeForTracepoints(now)) {
    std::vector<Tracefs::Name> names = tracefs_.Tracepoints();
    if (names != known_tracepoints_ || lacks_descriptors_) {
      RETURN_IF_ERROR(AttachKernelTracepoints(names, sessions_, true));
      known_tracepoints_ = std::move(names);
    }
    next_tracepoint_rescan_ =
        SessionClockNow() + base::Nanoseconds(knows_when_tracepoints_come()
                                                  ? options_.slow_tracepoint_rescan
                                                  : options_.tracepoint_rescan);
  }
  return absl::OkStatus();
}

bool Attachments::IsTimeForTracepoints(std::uint64_t now) {
  if (now >= next_tracepoint_rescan_) return true;
  if (!knows_when_tracepoints_come() || now < next_look_at_made_) return false;
  next_look_at_made_ = now + base::Nanoseconds(options_.slow_rescan);
  std::string made = tracefs_.MadeTracepoints();
  if (made == made_tracepoints_) return false;
  made_tracepoints_ = std::move(made);
  return true;
}

absl::Status Attachments::RescanUserEvents(std::uint64_t now) {
  perf_->rings().ArmRegistrations();
  RETURN_IF_ERROR(AttachUserEvents(sessions_, true));
  const std::uint64_t end = SessionClockNow();
  // Other processes can make user_events_status long. The pause until the next read is at least ten
  // times as long as this read took.
  constexpr std::uint64_t kShare = 10;
  const std::uint64_t looking = end - now - std::min(end - now, attaching_);
  earliest_rescan_ = end + std::max(base::Nanoseconds(options_.least_rescan), kShare * looking);
  next_rescan_ =
      std::max(earliest_rescan_,
               end + base::Nanoseconds(perf_->rings().watches_registrations() ? options_.slow_rescan
                                                                              : options_.rescan));
  // Searches again even without a registration, because descriptors may have become free.
  if (lacks_descriptors_) {
    next_rescan_ =
        std::max(earliest_rescan_,
                 std::min(next_rescan_, end + base::Nanoseconds(options_.tracepoint_rescan)));
  }
  if (has_more_user_events_) next_rescan_ = earliest_rescan_ = end;
  return absl::OkStatus();
}

std::uint64_t Attachments::NextUserEventsLook() const {
  return perf_->rings().registrations() ? std::min(earliest_rescan_, next_rescan_) : next_rescan_;
}

std::uint64_t Attachments::next_rescan() const {
  if (has_more_tracepoints_) return 0;
  std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
  if (awaits_user_events_ &&
      (has_more_user_events_ || lacks_descriptors_ || perf_->rings().registrations() ||
       !perf_->rings().watches_registrations())) {
    next = NextUserEventsLook();
  }
  if (awaits_tracepoints_ && !knows_when_tracepoints_come()) {
    next = std::min(next, next_tracepoint_rescan_);
  }
  return next;
}

absl::Status Attachments::AttachUserEvents(const std::vector<SessionWriter*>& sessions,
                                           bool enable) {
  const std::string system(Selector::kUserEventsSystem);
  std::vector<Tracefs::Name> wanted;
  const absl::StatusOr<std::size_t> unclear =
      tracefs_.ForEachUserEvent([&](const UserEvent& event) {
        Tracefs::Name name = {system, std::string(event.name)};
        if (IsWanted(name, sessions)) wanted.push_back(std::move(name));
      });
  has_more_user_events_ = false;
  absl::Status enabled = AttachWanted(std::move(wanted), sessions, enable, options_.attach_for,
                                      &has_more_user_events_);
  if (!unclear.ok() && !enable) return unclear.status();
  // If user_events_status cannot be read, perhaps because too few descriptors were left, the next
  // search tries again.
  if (!unclear.ok()) SkipUnclear(sessions, std::string(unclear.status().message()));
  if (unclear.ok() && *unclear != 0) {
    SkipUnclear(sessions,
                "some names in user_events_status contain line feeds; tracepoints with such "
                "names are not recorded");
  }
  return enabled;
}

void Attachments::SkipUnclear(const std::vector<SessionWriter*>& sessions, const std::string& why) {
  for (SessionWriter* session : sessions) {
    const std::vector<Selector>& selectors = session->tracepoints().selectors();
    if (std::none_of(selectors.begin(), selectors.end(), AwaitsUserEvents)) continue;
    session->tracepoints().Skip("user_events_status", why);
  }
}

absl::Status Attachments::AttachKernelTracepoints(const std::vector<Tracefs::Name>& names,
                                                  const std::vector<SessionWriter*>& sessions,
                                                  bool enable) {
  std::vector<Tracefs::Name> wanted;
  for (const Tracefs::Name& name : names) {
    if (name.system != Selector::kUserEventsSystem && IsWanted(name, sessions)) {
      wanted.push_back(name);
    }
  }
  return AttachWanted(std::move(wanted), sessions, enable, options_.attach_tracepoints_for,
                      &has_more_tracepoints_);
}

bool Attachments::IsWanted(const Tracefs::Name& name,
                           const std::vector<SessionWriter*>& sessions) const {
  const auto attached = attached_.find(ToText(name));
  return std::any_of(sessions.begin(), sessions.end(), [&](const SessionWriter* session) {
    if (!session->tracepoints().HasPatternFor(name)) return false;
    if (attached == attached_.end()) {
      return session->tracepoints().IsDue(ToText(name), SessionClockNow());
    }
    const std::vector<SessionWriter*>& has_it = distributor_->FindSessions(attached->second.id);
    return std::find(has_it.begin(), has_it.end(), session) == has_it.end();
  });
}

absl::Status Attachments::AttachWanted(std::vector<Tracefs::Name> names,
                                       const std::vector<SessionWriter*>& sessions, bool enable,
                                       absl::Duration limit, bool* has_more) {
  attaching_ = 0;
  if (names.empty()) return absl::OkStatus();
  std::uint64_t end = 0;  // ns; end of the time for attaching; 0 until attaching begins
  FilterCheck check(tracefs_);
  DescriptorBudget budget =
      DescriptorBudget::OfProcess(names.size(), perf_->DescriptorsPerTracepoint());
  for (const auto& [text, tracepoint] : attached_) {
    const std::pair<std::string, std::string> name = absl::StrSplit(text, absl::MaxSplits(':', 1));
    budget.Count({name.first, name.second});
  }
  for (const Tracefs::Name& name : InTurns(std::move(names))) {
    const std::string text = ToText(name);
    const bool was_attached = attached_.contains(text);
    for (SessionWriter* session : sessions) {
      if (!session->tracepoints().HasPatternFor(name)) continue;
      const std::uint64_t begin = SessionClockNow();
      if (!session->tracepoints().IsDue(text, begin)) continue;
      if (!attached_.contains(text)) {
        if (end == 0) end = begin + base::Nanoseconds(limit);
        if (begin >= end) {
          *has_more = true;
          continue;
        }
      }
      const absl::Status attached = AttachOne(name, session, &check, &budget);
      attaching_ += SessionClockNow() - begin;
      if (attached.ok()) {
        session->tracepoints().SetRecorded(text);
      } else if (!absl::IsNotFound(attached)) {
        lacks_descriptors_ = lacks_descriptors_ || absl::IsResourceExhausted(attached);
        session->tracepoints().Skip(text, std::string(attached.message()));
      } else if (name.system != Selector::kUserEventsSystem) {
        // Only a removed tracepoint of the kernel is reported as skipped. A removed tracepoint of
        // user_events is not, because a program that ends usually removes its tracepoints.
        session->tracepoints().Skip(text, std::string(Removed(name).message()));
      }
    }
    // Enables the tracepoint at once: its service writes events as soon as the tracepoint is
    // attached, and the events are lost until it is enabled.
    if (enable && name.system == Selector::kUserEventsSystem) {
      RETURN_IF_ERROR(perf_->Enable());
    }
    if (!was_attached && attached_.contains(text)) Remember(name, enable);
  }
  return enable ? perf_->Enable() : absl::OkStatus();
}

// The format is read before the tracepoint is attached, because a tracepoint that a file cannot
// represent must not be attached.
absl::Status Attachments::AttachOne(const Tracefs::Name& name, SessionWriter* session,
                                    FilterCheck* check, DescriptorBudget* budget) {
  std::string text = ToText(name);
  if (const auto known = attached_.find(text); known != attached_.end()) {
    RETURN_IF_ERROR(before_attaching_());
    distributor_->Give(known->second.id, session);
    SetMatched(&session->tracepoints(), name, known->second.selectors);
    return absl::OkStatus();
  }
  if (budget != nullptr) RETURN_IF_ERROR(budget->Check(name));
  ASSIGN_OR_RETURN(const Tracefs::Tracepoint tracepoint,
                   tracefs_.ReadTracepoint(name.system, name.event));
  if (name.system != Selector::kUserEventsSystem && !tracefs_.CanBeEnabled(name)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tracepoint ", text,
        " cannot be enabled: the kernel gives it no file 'enable'; select other tracepoints"));
  }
  const absl::StatusOr<Selection> selection =
      Select(session->tracepoints().selectors(), name, tracepoint, check);
  if (!selection.ok()) {
    RETURN_IF_ERROR(CheckUnchanged(name, tracepoint));
    return selection.status();
  }
  DetachUnused();
  RETURN_IF_ERROR(before_attaching_());
  RETURN_IF_ERROR(
      distributor_->AddTracepoint(tracepoint.id, name.system, name.event, tracepoint.format));
  if (absl::Status attached = AttachToPerf(name, tracepoint.id, *selection); !attached.ok()) {
    distributor_->RemoveTracepoint(tracepoint.id);
    RETURN_IF_ERROR(CheckUnchanged(name, tracepoint));
    return attached;
  }
  if (absl::Status unchanged = CheckUnchanged(name, tracepoint); !unchanged.ok()) {
    unused_.push_back(tracepoint.id);
    DetachUnused();
    return unchanged;
  }
  if (const std::string taken = TakenNameWarning(name, tracepoint.format); !taken.empty()) {
    session->tracepoints().Warn(taken);
  }
  attached_.emplace(std::move(text), Tracepoint{tracepoint.id, session, CountsAreExact(name.system),
                                                selection->selectors});
  distributor_->Give(tracepoint.id, session);
  if (budget != nullptr) budget->Use(name);
  for (const std::size_t i : selection->selectors) session->tracepoints().SetMatched(i);
  return absl::OkStatus();
}

// The owner of a tracepoint may have removed the tracepoint after its format was read and before it
// was attached. Another tracepoint may then have its id.
absl::Status Attachments::CheckUnchanged(const Tracefs::Name& name,
                                         const Tracefs::Tracepoint& read) const {
  const auto now = tracefs_.ReadTracepoint(name.system, name.event);
  if (!now.ok() && !absl::IsNotFound(now.status())) return now.status();
  const bool is_same = now.ok() && now->id == read.id && now->format == read.format;
  return is_same ? absl::OkStatus() : Removed(name);
}

absl::Status Attachments::AttachToPerf(const Tracefs::Name& name, int id,
                                       const Selection& selection) {
  // Excludes kernel events of the collector's threads: the work for one event must not cause more
  // events.
  std::string others;
  if (name.system != Selector::kUserEventsSystem) {
    others = absl::StrCat("common_pid != ", gettid());
    for (const pid_t thread : options_.own_threads) {
      absl::StrAppend(&others, " && common_pid != ", thread);
    }
  }
  distributor_->SetMaxFrames(id, selection.stacks.max_frames);
  return perf_->Attach(id, ToText(name), BothFilters(selection.filter, others), selection.stacks);
}

absl::StatusOr<std::optional<std::uint64_t>> Attachments::CountHits(
    const SessionWriter* session) const {
  if (!perf_->hits_are_known()) return std::nullopt;
  std::optional<std::uint64_t> hits = 0;
  for (const auto& [name, tracepoint] : attached_) {
    const std::vector<SessionWriter*>& sessions = distributor_->FindSessions(tracepoint.id);
    if (std::find(sessions.begin(), sessions.end(), session) == sessions.end()) continue;
    if (!tracepoint.counts_are_exact || tracepoint.first != session || sessions.size() != 1 ||
        distributor_->HasLeftOut(tracepoint.id)) {
      return std::nullopt;
    }
    const absl::StatusOr<EventCounts> counts = perf_->ReadCounts(tracepoint.id);
    if (absl::IsUnimplemented(counts.status())) return std::nullopt;
    if (!counts.ok()) return counts.status();
    *hits += counts->hits;
  }
  return hits;
}

}  // namespace collector
