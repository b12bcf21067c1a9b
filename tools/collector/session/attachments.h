// The tracepoints of a capture: which there are, which of them some session selects, and their perf
// events.
//
// In: the selectors of the sessions. Out: each tracepoint that some session selects is attached
// once (perf), its samples are known, and it is given to all sessions that select it (distributor).
// Patterns are looked at again and again, as tracepoints come; one that cannot be taken is left
// out.
#ifndef TOOLS_COLLECTOR_SESSION_ATTACHMENTS_H_
#define TOOLS_COLLECTOR_SESSION_ATTACHMENTS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/perf/perf_session.h"
#include "tools/collector/session/attach_plan.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/pattern_memory.h"
#include "tools/collector/session/session.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

struct AttachmentOptions {
  // How often user_events_status is read for new tracepoints that a pattern selects, where the
  // kernel cannot tell of them.
  absl::Duration rescan = absl::Milliseconds(50);
  // The least time between two looks where it does. A process that registers in a loop what nobody
  // records has no more than a tenth of the recorder's time, either.
  absl::Duration least_rescan = absl::Milliseconds(5);
  // How often it is read all the same, when something else wakes or an interval ends: a return
  // probe misses what too many processes do at the same moment.
  absl::Duration slow_rescan = absl::Milliseconds(900);
  // How long tracepoints that patterns select are attached at a time: then the rings are drained
  // before the next ones. Others can register thousands, each of which takes milliseconds.
  absl::Duration attach_for = absl::Milliseconds(20);
  // How often other tracepoints are looked for where the kernel does not tell of its modules. Where
  // it does, it is looked as often as slow_rescan what has been made by writing to tracefs, and
  // everything is looked through now and then.
  absl::Duration tracepoint_rescan = absl::Seconds(1);
  absl::Duration slow_tracepoint_rescan = absl::Seconds(10);
  // Remembers the tracepoints of user_events that patterns meet. If null, nobody does.
  std::shared_ptr<PatternMemory> memory;
  // How long a session's start may take to register what is remembered and its patterns select.
  absl::Duration register_for = absl::Seconds(2);
  // Threads of the collector besides the one that polls: as of that, no kernel event is recorded.
  std::vector<pid_t> own_threads;
};

// Not thread-safe.
class Attachments {
 public:
  // All but the options outlive this object. `before_attaching` is called before a session
  // is given a tracepoint: what was lost of it until then is not that session's.
  Attachments(AttachmentOptions options, Tracefs tracefs, PerfSession* perf,
              Distributor* distributor, std::function<absl::Status()> before_attaching);

  // Attaches what the session selects, and gives it all of that; what is new is enabled by Enable.
  // The status says what is missing: everything that can be wrong with named tracepoints comes to
  // light here. FailedPrecondition if it, or another one, has a filter in its selectors, unless
  // their selectors are the same: what passes the filters is all that a capture has.
  absl::Status Add(Session* session);
  // The session is removed from the distributor, too. What no other one selects is disabled, and
  // detached by DetachUnused.
  void Remove(Session* session);
  absl::Status Enable() { return perf_->Enable(); }
  // Ends the events of tracepoints that only this session selects. `meanwhile` is called again and
  // again, so that the rings of the others do not fill up.
  absl::Status DisableSole(const Session* session, const std::function<absl::Status()>& meanwhile);
  void DetachUnused();

  // There are tracepoints of user_events that patterns select and that Add or Rescan had no time to
  // attach: Rescan is to be called again soon.
  bool has_more() const { return has_more_; }
  // Attaches and enables what patterns select by now, as far as it is time to look for it.
  absl::Status Rescan(std::uint64_t now);
  // When Rescan is to be called next even if nothing wakes, on the session clock.
  std::uint64_t next_rescan() const;
  // The kernel tells when it loads a module, by ModuleCame.
  void SetToldOfModules() { is_told_of_modules_ = true; }
  void ModuleCame() { next_tracepoint_rescan_ = 0; }
  // Whether the kernel tells of the tracepoints of user_events that a pattern waits for; no value
  // if none does.
  std::optional<bool> watches_registrations() const {
    if (!awaits_user_events_) return std::nullopt;
    return perf_->watches_registrations();
  }

  // The kernel's count of the events that the session has had, if that is exact: see
  // SessionSummary. To be called after DisableSole.
  absl::StatusOr<std::optional<std::uint64_t>> HitsOf(const Session* session) const;

 private:
  struct Tracepoint {
    int id = 0;
    const Session* first = nullptr;  // for which it was attached; null once that is removed
    bool counts_are_exact = false;
    std::vector<std::size_t> selectors;  // of that session, which select it
  };

  absl::Status AttachNamed(Session* session, FilterCheck* check);
  // Registers those that are remembered and that the session's patterns select: they are there then
  // before their service is. They stay for as long as this object.
  void RegisterRemembered(const Session& session);
  // Gives tracepoints of user_events to those of `sessions` that have a pattern for them; with
  // `enable` they are enabled as they are attached.
  absl::Status AttachUserEvents(const std::vector<Session*>& sessions, bool enable);
  // Says that there are tracepoints of user_events whose names cannot be told, and why.
  static void LeaveOutUnclear(const std::vector<Session*>& sessions, const std::string& why);
  // The same with tracepoints `names` of other systems.
  absl::Status AttachKernelTracepoints(const std::vector<Tracefs::Name>& names,
                                       const std::vector<Session*>& sessions, bool enable);
  // Whether a session's patterns select the tracepoint, and it is not left out just now.
  bool IsWanted(const Tracefs::Name& name, const std::vector<Session*>& sessions) const;
  // Gives those that are attached, and as many others as there are descriptors for, to each of the
  // sessions that IsWanted is true of, or notes that they are left out. With `enable` those of
  // user_events are enabled as they are attached.
  absl::Status AttachWanted(std::vector<Tracefs::Name> names, const std::vector<Session*>& sessions,
                            bool enable);
  // A pattern has met the tracepoint; with `enable` while it was being recorded.
  void Remember(const Tracefs::Name& name, bool enable);
  // Whether a tracepoint of user_events that is new may be attached in this look at them.
  bool HasTimeToAttach();
  // Attaches the tracepoint if it is not, and gives it to the session. `budget` is null for one
  // that is named, which has what descriptors there are.
  absl::Status AttachOne(const Tracefs::Name& name, Session* session, FilterCheck* check,
                         DescriptorBudget* budget);
  absl::Status AttachToPerf(const Tracefs::Name& name, int id, const std::string& filter);
  bool AnyAwaits(bool (*awaits)(const Selector&)) const;
  // Learns from sessions_ what patterns wait for.
  void UpdateAwaited();
  absl::Status RescanUserEvents(std::uint64_t now);
  std::uint64_t NextUserEventsLook() const;
  bool knows_when_tracepoints_come() const { return is_told_of_modules_ && !lacks_descriptors_; }
  bool IsTimeForTracepoints(std::uint64_t now);

  AttachmentOptions options_;
  Tracefs tracefs_;
  UserEventRegistrations registrations_;
  PerfSession* perf_;
  Distributor* distributor_;
  std::function<absl::Status()> before_attaching_;
  std::vector<Session*> sessions_;
  absl::flat_hash_map<std::string, Tracepoint> attached_;  // by "system:event"
  std::vector<int> unused_;                                // disabled, not yet detached
  std::vector<Tracefs::Name> known_tracepoints_;           // when AttachKernelTracepoints ran last
  bool is_timed_ = false;                                  // for AttachUserEvents
  std::uint64_t attaching_since_ = 0;  // ns: when that attached the first one; 0: not yet
  std::uint64_t attaching_ = 0;        // ns that it took for attaching
  bool has_more_ = false;
  bool awaits_user_events_ = false;
  bool awaits_tracepoints_ = false;
  bool lacks_descriptors_ = false;  // for some tracepoint, at some time
  bool is_told_of_modules_ = false;
  bool has_tried_to_watch_ = false;
  std::uint64_t next_rescan_ = 0;
  std::uint64_t earliest_rescan_ = 0;
  std::uint64_t next_tracepoint_rescan_ = 0;
  std::uint64_t next_look_at_made_ = 0;
  std::string made_tracepoints_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_ATTACHMENTS_H_
