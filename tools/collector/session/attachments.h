// Holds which tracepoints a capture has attached for its sessions, and searches for new tracepoints
// that the sessions select.
//
// Input: the selectors of the sessions. Each tracepoint that a session selects is attached once
// (perf_capture.h), its format is registered, and its events go to all sessions that select it
// (distributor.h). Patterns are matched again whenever tracepoints appear. A tracepoint that a
// pattern selects but that cannot be recorded is skipped, and the session reports it.
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
#include "tools/collector/perf/perf_capture.h"
#include "tools/collector/session/attach_plan.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/pattern_memory.h"
#include "tools/collector/session/session_writer.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

struct AttachmentOptions {
  // Time between two reads of user_events_status for new tracepoints that match a pattern, if the
  // kernel does not report registrations.
  absl::Duration rescan = absl::Milliseconds(50);
  // Minimum time between two reads of user_events_status if the kernel reports registrations. In
  // addition, reads take at most a tenth of the collector's time. Both limits protect against a
  // process that registers unwanted tracepoints in a loop.
  absl::Duration least_rescan = absl::Milliseconds(5);
  // Time after which user_events_status is read although no registration was reported, when the
  // collector wakes up for another reason or an interval ends. The probe that reports registrations
  // misses some registrations when many processes register at once.
  absl::Duration slow_rescan = absl::Milliseconds(900);
  // Maximum time for attaching tracepoints of user_events that patterns select, before the rings
  // are drained again. Other processes can register thousands of tracepoints, and attaching one
  // takes milliseconds.
  absl::Duration attach_for = absl::Milliseconds(20);
  // Maximum time for attaching the tracepoints that patterns select and that are not of
  // user_events, before the rings are drained again and other sessions can be added. With an
  // infinite time, all are attached before the first of them is enabled.
  absl::Duration attach_tracepoints_for = absl::InfiniteDuration();
  // Time between two searches for new tracepoints that are not of user_events: `tracepoint_rescan`.
  // If the kernel reports loaded modules, `slow_tracepoint_rescan` applies instead. The collector
  // then also checks every `slow_rescan` whether tracepoints were made or removed by writing to
  // tracefs, as for uprobes. If so, it searches at once.
  absl::Duration tracepoint_rescan = absl::Seconds(1);
  absl::Duration slow_tracepoint_rescan = absl::Seconds(10);
  // Remembers the tracepoints of user_events that match patterns; may be null.
  std::shared_ptr<PatternMemory> memory;
  // Maximum time for registering remembered tracepoints when a session starts. Only those that its
  // patterns select are registered.
  absl::Duration register_for = absl::Seconds(2);
  // Whether the capture also records services that pass their events through rings in user space.
  // If so, a selector of user_events is not an error on a kernel without user_events.
  bool uses_rings = false;
  // Threads of the collector besides the thread that calls Capture::Poll. Kernel events of all
  // these threads are not recorded.
  std::vector<pid_t> own_threads;
};

// Attaches and detaches tracepoints for the sessions of a capture. Not thread-safe.
class Attachments {
 public:
  // `perf` and `distributor` must outlive this object. `before_attaching` is called before a
  // tracepoint is attached for a session, and before an attached tracepoint is also assigned to a
  // session. Events that are lost before this call do not count as losses of that session.
  Attachments(AttachmentOptions options, Tracefs tracefs, PerfCapture* perf,
              Distributor* distributor, std::function<absl::Status()> before_attaching);

  // Attaches the tracepoints that the session selects, and assigns them to it. The caller must then
  // enable new ones by PerfCapture::Enable. Fails if a tracepoint that a selector names cannot be
  // attached, or if user_events_status cannot be read. Fails with Unimplemented if a selector needs
  // user_events and the kernel has none. Fails with FailedPrecondition if the session cannot share
  // the capture with another session: the rates or stacks of their samples differ, or one of the
  // two has a filter or stacks and their selectors differ. The reason is that a tracepoint is
  // attached once for all sessions, with one filter and one choice of stacks. After an error, the
  // caller must call Remove.
  absl::Status Add(SessionWriter* session);
  // Removes the session here and from the Distributor. Disables the tracepoints that no other
  // session selects; DetachUnused detaches them.
  void Remove(SessionWriter* session);
  // Disables the tracepoints that only this session selects. Calls `meanwhile` after every few of
  // them, so that the caller can drain the rings, which other tracepoints still fill.
  absl::Status DisableSole(const SessionWriter* session,
                           const std::function<absl::Status()>& meanwhile);
  void DetachUnused();

  // has_more_user_events() returns true if Add or Rescan had no time to attach all tracepoints of
  // user_events that patterns select. has_more_tracepoints() does so for all other tracepoints. If
  // one of them returns true, Rescan must be called again soon.
  bool has_more_user_events() const { return has_more_user_events_; }
  bool has_more_tracepoints() const { return has_more_tracepoints_; }
  // Attaches and enables new tracepoints that patterns select, if a search for them is due.
  absl::Status Rescan(std::uint64_t now);
  // Returns the time on the session clock at which Rescan must be called at the latest, in ns; 0:
  // at once; the largest number: no search is planned.
  std::uint64_t next_rescan() const;
  // Enables the use of the kernel's reports of loaded modules. The caller must call ModuleLoaded
  // for each report.
  void UseModuleReports() { has_module_reports_ = true; }
  void ModuleLoaded() { next_tracepoint_rescan_ = 0; }
  // Returns whether the kernel reports the registration of tracepoints that a pattern waits for.
  // Returns no value if no pattern waits for tracepoints of user_events.
  std::optional<bool> watches_registrations() const {
    if (!awaits_user_events_) return std::nullopt;
    return perf_->rings().watches_registrations();
  }

  // Returns the kernel's count of the session's events if it is exact, else no value (see
  // SessionSummary). Fails if a count cannot be read. Must be called after DisableSole.
  absl::StatusOr<std::optional<std::uint64_t>> CountHits(const SessionWriter* session) const;

 private:
  struct Tracepoint {
    int id = 0;
    // Session for which the tracepoint was attached; null once the session is removed.
    const SessionWriter* first = nullptr;
    bool counts_are_exact = false;
    std::vector<std::size_t> selectors;  // indices of the selectors of `first` that match
  };

  absl::Status AttachNamed(SessionWriter* session, FilterCheck* check);
  // Attaches the sources of CPU time samples and of switches, if the session records them.
  absl::Status AttachSamples(SessionWriter* session);
  absl::Status AttachSamples(SessionWriter* session, int id, const std::string& event,
                             const std::string& text);
  // Registers the remembered tracepoints that patterns of a session select, so that they exist
  // before their services start. They stay registered until this object is destroyed.
  void RegisterRemembered(const SessionTracepoints& tracepoints);
  // Attaches the tracepoints of user_events that match patterns of `sessions`, and assigns them to
  // these sessions. If `enable` is set, also enables each at once.
  absl::Status AttachUserEvents(const std::vector<SessionWriter*>& sessions, bool enable);
  // Records in `sessions` that the names of some tracepoints of user_events cannot be read, for the
  // reason `why`.
  static void SkipUnclear(const std::vector<SessionWriter*>& sessions, const std::string& why);
  // Attaches those tracepoints of `names` that are not of user_events and that match patterns of
  // `sessions`. Assigns them to these sessions. If `enable` is set, also enables them.
  absl::Status AttachKernelTracepoints(const std::vector<Tracefs::Name>& names,
                                       const std::vector<SessionWriter*>& sessions, bool enable);
  // Returns whether one of `sessions` wants the tracepoint: a pattern of the session selects it,
  // and it is not yet assigned to the session. If the tracepoint is not attached, a session that
  // has skipped it recently does not want it.
  bool IsWanted(const Tracefs::Name& name, const std::vector<SessionWriter*>& sessions) const;
  // Assigns the tracepoints to those of `sessions` that want them. Attaches those that are not
  // attached yet as far as the descriptors suffice, and records the others as skipped. If `enable`
  // is set, all are enabled, those of user_events as soon as they are attached. Sets `*has_more` to
  // true if the function stopped attaching after the time `limit`.
  absl::Status AttachWanted(std::vector<Tracefs::Name> names,
                            const std::vector<SessionWriter*>& sessions, bool enable,
                            absl::Duration limit, bool* has_more);
  // Adds a tracepoint that a pattern has matched to the PatternMemory. If `enable` is set and the
  // PatternMemory did not contain the name, also calls SessionTracepoints::Meet for the sessions of
  // the tracepoint.
  void Remember(const Tracefs::Name& name, bool enable);
  // Attaches the tracepoint if necessary, and assigns it to the session. `budget` is null for a
  // tracepoint that a selector names, which may use all descriptors.
  absl::Status AttachOne(const Tracefs::Name& name, SessionWriter* session, FilterCheck* check,
                         DescriptorBudget* budget);
  // Fails with NotFound if the tracepoint `name` has been removed or replaced since ReadTracepoint
  // returned `read`, and with another error if the tracepoint cannot be read now.
  absl::Status CheckUnchanged(const Tracefs::Name& name, const Tracefs::Tracepoint& read) const;
  absl::Status AttachToPerf(const Tracefs::Name& name, int id, const Selection& selection);
  bool AnyAwaits(bool (*awaits)(const Selector&)) const;
  // Updates `awaits_user_events_` and `awaits_tracepoints_` from the selectors of the sessions.
  void UpdateAwaited();
  absl::Status RescanUserEvents(std::uint64_t now);
  std::uint64_t NextUserEventsLook() const;
  bool knows_when_tracepoints_come() const { return has_module_reports_ && !lacks_descriptors_; }
  bool IsTimeForTracepoints(std::uint64_t now);

  AttachmentOptions options_;
  Tracefs tracefs_;
  UserEventRegistrations registrations_;
  PerfCapture* perf_;
  Distributor* distributor_;
  std::function<absl::Status()> before_attaching_;
  std::vector<SessionWriter*> sessions_;
  absl::flat_hash_map<std::string, Tracepoint> attached_;  // by "system:event"
  std::vector<int> unused_;  // ids of tracepoints that are disabled but not yet detached
  std::vector<Tracefs::Name> known_tracepoints_;  // names at the last search; see Add and Rescan
  std::uint64_t attaching_ = 0;  // time spent on attaching in the last search, in ns
  bool has_more_user_events_ = false;
  bool has_more_tracepoints_ = false;
  bool awaits_user_events_ = false;
  bool awaits_tracepoints_ = false;
  bool lacks_descriptors_ = false;  // whether a tracepoint was skipped for lack of descriptors
  bool has_module_reports_ = false;
  bool has_tried_to_watch_ = false;
  std::uint64_t next_rescan_ = 0;
  std::uint64_t earliest_rescan_ = 0;
  std::uint64_t next_tracepoint_rescan_ = 0;
  std::uint64_t next_look_at_made_ = 0;
  std::string made_tracepoints_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_ATTACHMENTS_H_
