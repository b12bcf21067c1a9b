// Feeds the events of services with rings in user space (tools/collector/ring) to the sessions of a
// capture.
//
// Input: the services that connect, the names of their tracepoints, the chunks of memory with their
// events, and the sessions. Output: enabled tracepoints in the services; events and losses, which
// the distributor passes to the sessions. Each thread of a service is a separate capture thread in
// the files, as each CPU is, and its events are numbered separately. So the thread's events in a
// file and those counted as lost there add up to the events that the thread wrote. A service that
// cannot share its memory sends its events over an *inline* connection (ring_mirror.h).
//
// Guarantees: A service can change its memory at any moment, and can claim anything. Only its
// process and user are certain, because the kernel reports them. Timestamps that are earlier than
// the thread's previous event or in the future are corrected. Work and memory are bounded for each
// service and for each user. No service can cause the loss of another service's events.
#ifndef TOOLS_COLLECTOR_SESSION_RING_FEED_H_
#define TOOLS_COLLECTOR_SESSION_RING_FEED_H_

#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/ring/ring_server.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/ring_filter.h"
#include "tools/collector/session/ring_report.h"
#include "tools/collector/session/ring_target.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/session_writer.h"
#include "tools/trace/ring_positions.h"

namespace collector {

// Returns why services pass events through rings: the kernel has no user_events, tracefs is not
// mounted, or EVENTHEADER_TRANSPORT demands it. Returns "" if they do not, or if this is not known.
std::string WhyServicesUseRings();
// Returns whether the selector may match tracepoints of services.
bool MayMatchServices(const Selector& selector);
// Returns whether one of the selectors needs perf and tracefs, because it selects tracepoints that
// services do not have. An example is `sched:*`: a name without capital letters is taken as the
// name of a system of the kernel. A pattern such as `Shop_*:*` may match tracepoints of the kernel
// and of services, and does not need the kernel: without it, only those of services are recorded.
bool NeedsKernel(const std::vector<Selector>& selectors);
// `kernel` is OK, or the reason why events of the kernel are not available. Fails with this reason
// if a selector needs them. The message then has the selector and what to do.
absl::Status CheckKernel(const std::vector<Selector>& selectors, const absl::Status& kernel);

struct RingFeedOptions {
  RingServerOptions server;
  // Services whose events are recorded. A session may have a narrower target
  // (SessionOptions::target).
  RingTarget target;
  // Largest CPU number of the machine. If a service claims a larger number, the event is written
  // without a CPU.
  std::uint32_t last_cpu = 0;
  // Whether processes must be read from /proc, because perf does not report them.
  bool reads_processes = false;
  // A function that applies the kernel's records of threads to the TaskTracker. RingFeed calls it
  // before it looks up a thread.
  std::function<void()> update_tasks;
  // A function that returns whether more sessions are about to start. The events that services have
  // kept since a crash of the previous collector then wait for these sessions, but at most 10 s.
  // May be empty.
  std::function<bool()> expects_sessions;
  // A function that returns the time of the session clock, in ns. RingFeed uses it only to measure
  // how long a service whose inline connection broke may take to connect again. Tests replace it.
  std::function<std::uint64_t()> reconnect_clock = SessionClockNow;
  // Maximum number of tracepoints of one user's services that are recorded. Further tracepoints are
  // skipped.
  std::size_t tracepoints_of_user = 8192;
};

// Holds the clients of a RingServer. Not thread-safe.
class RingFeed final : private RingServerUser {
 public:
  // Opens the socket as RingServer::Listen does, and fails as it does. `tasks` and `distributor`
  // must outlive this object.
  static absl::StatusOr<std::unique_ptr<RingFeed>> Open(RingFeedOptions options, TaskTracker* tasks,
                                                        Distributor* distributor);
  RingFeed(const RingFeed&) = delete;
  RingFeed& operator=(const RingFeed&) = delete;
  ~RingFeed();

  const RingServer& server() const { return *server_; }
  // A descriptor that is readable while Serve has work to do.
  int fd() const { return server_->fd(); }
  // Returns whether connections or messages wait for Serve.
  bool HasArrivals() const;
  // Accepts services and handles their messages. Must be called when `fd` is readable.
  void Serve() { server_->Serve(this); }

  // Sets the cgroups of RingFeedOptions::target. The cgroup of a service is checked when the
  // service connects. SetCgroups checks it again if the service is not recorded. A service that is
  // recorded stays recorded even if it moves to another cgroup.
  void SetCgroups(std::vector<CgroupFolder> cgroups);
  // Searches for the cgroups that targets of sessions follow, and records services in those that
  // have appeared. Must be called at least once a second.
  void FollowTargets(std::uint64_t now);

  // Enables the tracepoints that the session selects, now and whenever services register more. If
  // the session has the positions of an earlier collector (SessionOptions::recorded_rings), the
  // session gets the events of each ring writer from that writer's position on. If the earlier
  // recording was interrupted, counts the events after the positions that services no longer have
  // as lost. Distributor::Begin must have been called for the session.
  void Add(SessionWriter* session);
  // Writes the positions of all writers to the session. Must be called when a section has begun.
  void WritePositions(SessionWriter* session) { WritePositions(session, /*all=*/true); }
  // Disables the tracepoints that only this session selects.
  void Disable(const SessionWriter* session);
  // Records in the session's account the services that may have events that they did not send and
  // that are in no count: services with inline connections that have not confirmed the Enable of
  // Disable(), or that ended without the message End. Must be called after the last Drain of the
  // session.
  void AccountUnsent(SessionWriter* session) const;
  // Removes the session, and the tracepoints that no other session selects.
  void Remove(const SessionWriter* session);
  // Returns whether all services have confirmed the last message Enable, or have sent End. Ignores
  // services that had not confirmed an Enable when StopWaiting was called.
  bool HaveConfirmed() const;
  void StopWaiting();

  // Passes the events up to `limit`, in ns of the session clock, and the losses before and after
  // them to the distributor. Later events stay in the services' memory until a later call. If
  // `extends` is true, they are passed at once, too. Returns the time of the latest passed event,
  // or `limit` if that is later.
  std::uint64_t Drain(std::uint64_t limit, bool extends);
  // Returns whether Mark may have memory to mark: Drain has read a service's memory since the last
  // Mark.
  bool CanMark() const;
  // Marks the memory of the events that Drain has passed. Writes the positions of the writers to
  // the sessions.
  void Mark();
  // Gives the marked memory back to the services, which may then overwrite it. The outputs of the
  // sessions must have delivered the events and the positions.
  void GiveBack();

  // Returns the maximum time from an event to its arrival, in ns. It is above 0 if services send
  // their events over the socket. Events that arrive later are late (TraceWriter::kLateLabel).
  std::uint64_t delay() const;
  // Returns whether Drain should be called again at once. This is so if a service has filled a
  // quarter of its chunks during the last Drain, has more events to read, or has just connected or
  // disconnected.
  bool IsWorthDraining() const;
  // Returns whether more than half of the chunks of a service were complete at the last Drain.
  bool IsPressed() const;

  // Describes the services that are connected, and those that were refused.
  RingReport Report();

 private:
  // A tracepoint that services have registered and sessions select.
  struct Set {
    std::string name;
    int id = 0;  // returned by Distributor::AddRingTracepoint
    std::size_t clients = 0;
    uid_t owner = 0;  // user of the service that registered it first
    std::vector<SessionWriter*> sessions;
    // Sessions in which every selector that matches the tracepoint has a filter, each session with
    // the filters of these selectors. The session gets an event only if one of its filters accepts
    // the event.
    std::vector<std::pair<SessionWriter*, std::vector<RingFilter>>> filters;
  };
  // A ring writer of a client (RingWriter): a thread, or the signal handlers of a thread.
  struct Thread {
    std::size_t index = 0;      // returned by Distributor::AddRingThread
    std::uint64_t ordinal = 0;  // ordinal of its ring writer
    std::uint64_t next = 0;     // number after the last event or loss that was passed
    bool has_moved = false;     // whether `next` has grown since the last Mark
    std::uint32_t tid = 0;
    Slot identity;
    bool is_target = true;
    std::string name;                            // "ring:PID/TID"
    std::uint64_t last = 0;                      // ns; time of its last event
    std::uint64_t left = RingRegion::kNoNumber;  // number of the last event that was not due
    std::uint64_t left_time = 0;                 // ns; time of that event
    std::string comm;                            // name of the thread, for filters
    std::uint64_t comm_read = 0;  // ns; time of the event for which `comm` was read; 0: not read
  };
  // An event with the losses before it, or losses without an event.
  struct Part {
    std::uint64_t ordinal;  // ordinal of the writer
    // Number of the event. Without an event: the number after the losses, or RingRegion::kNoNumber
    // if the losses have no numbers.
    std::uint64_t number;
    std::uint64_t timestamp;
    std::uint64_t lost;
    std::uint32_t set;  // ring::kMaxSets: no event
    std::uint16_t cpu;
  };
  // The positions of a client's writers in the files of one session, by ordinal. A position is
  // removed when the writer has passed it.
  struct SessionPositions {
    SessionWriter* session;
    std::map<std::uint64_t, trace::RingPosition> positions;
  };
  // The positions of clients whose regions have not been read since the session was added.
  struct UnusedPositions {
    trace::RecordedRings rings;
    std::uint64_t until = 0;  // ns; time after which the positions are useless
  };
  // The times between which the service of an inline connection may have written events that it
  // did not send, in ns.
  struct Unsent {
    std::uint64_t since;
    std::uint64_t until;
  };
  struct Client {
    RingClient* connection = nullptr;
    std::uint64_t events_read = 0;
    std::uint64_t lost = 0;
    std::uint64_t lost_without_writer = 0;       // part of `lost`
    std::optional<RingReport::Process> process;  // no value until Report has read it
    std::uint64_t connected_at = 0;              // ns, session clock
    bool is_target = true;
    std::vector<SessionWriter*> excluded;  // sessions whose targets do not include the service
    bool IsExcludedFrom(const SessionWriter* session) const {
      return std::find(excluded.begin(), excluded.end(), session) != excluded.end();
    }
    // Time in ns up to which earlier connections of the process have sent the region's events.
    std::uint64_t sent_before = 0;
    // Set when an inline connection ends without the message End, until AccountUnsent() has
    // recorded the loss, or the process has connected again and sends the events.
    std::optional<Unsent> unsent;
    std::uint64_t predecessor = 0;  // number of an earlier client with the same region; 0: none
    std::vector<Set*> sets;         // by index in the region; null: no session records the set
    std::vector<SessionWriter*> sessions;                // sessions that record one of the sets
    absl::flat_hash_map<std::uint64_t, Thread> threads;  // by ordinal of the writer
    // The result of the last FindThread; null after a thread was removed. Events of a writer follow
    // each other, so this saves most searches.
    Thread* last_thread = nullptr;
    std::uint64_t enable_number = 0;  // value of the last message Enable
    std::uint64_t next_flush = 0;     // ns; earliest time of the next message Flush
    // The region may have events that the service kept since a crash of the previous collector.
    bool has_kept = false;
    // Sessions that get events of the client even if the events are older than the session.
    std::vector<SessionWriter*> kept_for;
    std::vector<SessionPositions> positions;
    bool is_silent = false;  // had not confirmed the last Enable when StopWaiting was called
    bool was_read = false;   // its region was read at least once
    bool has_more = false;   // its region has more events to read
    bool is_final = false;   // its region was read to the end after the connection had ended
    bool can_mark = false;   // its region was read since the last Mark
    bool is_marked = false;  // GiveBack has not been called since its region was marked
    std::vector<std::uint64_t> marked_threads;  // ordinals of marked writers that have ended
    bool is_filled = false;  // IsWorthDraining returns true because of this client
  };

  RingFeed(RingFeedOptions options, TaskTracker* tasks, Distributor* distributor)
      : options_(std::move(options)), tasks_(tasks), distributor_(distributor) {}

  void Connected(RingClient* connection) override;
  void SetsChanged(RingClient* connection) override;
  void Disconnected(RingClient* connection) override;

  // Updates Client::excluded for the session. Returns whether the session's target includes the
  // service now and did not at the previous check.
  static bool CheckTarget(Client* client, SessionWriter* session);
  // Reads all names of tracepoints in the client's region again.
  void ReadSetsAgain(Client* client);
  // Reads the names of tracepoints that are new in the client's region. Returns whether sessions
  // select one of them.
  bool ReadSets(Client* client);
  // Returns the tracepoint, and adds it if it is new. Returns null if no session selects it, or if
  // it cannot be added, for example because the services of `user` have too many tracepoints.
  Set* FindSet(const std::string& name, uid_t user);
  // Assigns the tracepoint to the session, so that the session gets its events from now on.
  void Give(Set* set, SessionWriter* session);
  // Returns whether the session selects the tracepoint. Records the tracepoint as skipped if the
  // filters of all selectors that match it are invalid for events of rings.
  static bool Selects(SessionWriter* session, const std::string& name);
  // Returns the filters by which the session selects the tracepoint; none if it records all events.
  static std::vector<RingFilter> FiltersOf(SessionWriter* session, const std::string& name);
  // Determines the sessions that record the client, sets in its region which tracepoints they
  // select, and sends the message Enable. Ignores the session `without`.
  void Enable(Client* client, const SessionWriter* without = nullptr);
  // Subtracts 1 from the number of clients of the tracepoint. Deletes the tracepoint if no client
  // is left.
  void Leave(Set* set);
  // Returns the time up to which the service has sent its events, in ns. The connection must be
  // inline.
  static std::uint64_t SentUntil(const Client& client) {
    return std::max(client.sent_before, client.connection->sent_until());
  }
  // Returns whether both connections are those of one process with one region.
  static bool HaveSameRegion(const RingClient& a, const RingClient& b);
  // Searches for earlier connections with the client's region. Takes over, from those of the same
  // process, the time up to which they have sent events.
  void FindPredecessor(Client* client);
  // Records in the sessions that the client may have ended with unsent events, if the process has
  // ended or has not connected again in time.
  static void AccountUnsent(Client* client, std::uint64_t now);
  // Ends the wait for the process to connect again.
  static void ClearUnsent(Client* client);
  // Returns whether the client's region must not be read yet.
  bool IsBlocked(const Client& client) const;
  Thread& FindThread(Client* client, const RingWriter& writer) {
    Thread* const last = client->last_thread;
    if (last != nullptr && last->ordinal == writer.ordinal) [[likely]]
      return *last;
    // Replaces the last result, which an insertion may have moved.
    client->last_thread = &SearchThread(client, writer);
    return *client->last_thread;
  }
  Thread& SearchThread(Client* client, const RingWriter& writer);
  void Read(Client* client, std::uint64_t limit);
  // Returns whether the event with this number is due: its time is not later than `limit`. If the
  // event's own time is in the future, `*time` is the current time, which is later in each call.
  // IsDue therefore sets `*time` to its value in the first call for this event.
  static bool IsDue(Thread* thread, std::uint64_t number, std::uint64_t limit, std::uint64_t* time);
  // Returns the name of the thread for filters. Reads it from /proc unless it was read for an event
  // that is less than 0.1 s older. If the thread has ended, returns the last name that is known.
  const std::string& CommOf(const Client& client, Thread* thread, std::uint64_t timestamp) const;
  // Passes a part of the thread to the sessions. The event of the part has `size` bytes at `event`.
  // Two parameters are faster than a span: a span is copied by one load of both of its words, and
  // the processor delays this load until both words have been stored.
  void Pass(Client* client, Thread* thread, const Part& part, const std::byte* event,
            std::size_t size);
  // Adds to without_ the sessions whose filters reject the event.
  void ApplyFilters(const Client& client, Thread* thread, const Set& set,
                    const SampleRecord& sample, std::uint64_t timestamp);
  // Moves the session's positions of the client's writers from unused_positions_ to the client, and
  // calls PassMissing. Returns whether any of these positions are left.
  bool TakePositions(Client* client, SessionWriter* session);
  // Moves each position to the first event that the session can still get from the region. The
  // events in between may be in no file of the session: their memory was given back to the service,
  // but the session's output had not delivered them, or the session had not started again. If
  // `ending` is kInterrupted, counts those that the files lack as losses of the session. If the
  // number is not known, because there is no position of a writer or `ending` is kInterruptedEarly,
  // states in the session's account that the service's losses are unknown.
  void PassMissing(Client* client, SessionPositions* of_session,
                   trace::RecordedRings::Ending ending);
  // Leaves out what the session's files already have, so that nothing is recorded twice. This
  // depends on the position that the session has stored for the writer of `part`. Returns how many
  // of the losses in `part` the session must count. Adds the session to `*without` if its files
  // already have the event. `gets_event` states whether the session selects the event.
  static std::uint64_t ApplyPosition(SessionPositions* of_session, const Part& part,
                                     bool gets_event, std::vector<SessionWriter*>* without);
  // Passes the losses of the part to the sessions, and adds to without_ the sessions whose files
  // already have the event. `set` is null if no session records the event.
  void PassLosses(Client* client, const Thread& thread, const Part& part, const Set* set);
  // Writes the positions of all writers to the session. If `all` is false, writes only those of
  // writers that have moved since the last Mark.
  void WritePositions(SessionWriter* session, bool all);
  void GiveBack(Client* client);
  // Describes a service with at most `most_tracepoints` of its tracepoints.
  static RingReport::Service Describe(Client* client, std::size_t most_tracepoints);
  static RingReport::Losses LossesOf(const Client& client);
  static void AddTo(const Client& client, RingReport::Totals* totals);
  // Removes the entry of the thread whose writer has this ordinal, if there is one.
  void EraseThread(Client* client, std::uint64_t ordinal);
  void RemoveThread(Thread* thread);
  void Forget(std::uint64_t number);

  RingFeedOptions options_;
  TaskTracker* tasks_;
  Distributor* distributor_;
  std::unique_ptr<RingServer> server_;
  // Sessions that do not get the current event of Pass. Keeps its memory to save allocations.
  std::vector<SessionWriter*> without_;
  RingReport::Totals ended_;  // totals of the clients that were removed
  std::vector<SessionWriter*> sessions_;
  std::uint64_t next_follow_ = 0;            // ns; next call of RingTarget::Follow that is due
  std::map<std::uint64_t, Client> clients_;  // by RingClient::number
  std::map<std::string, Set> sets_;          // by name; only sets that sessions select
  absl::flat_hash_map<uid_t, std::size_t> owned_;  // number of sets, by Set::owner
  std::map<SessionWriter*, UnusedPositions> unused_positions_;
  std::uint64_t latest_ = 0;  // ns; time of the last event that was passed
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RING_FEED_H_
