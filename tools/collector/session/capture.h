// Records the events of the machine, or of one target, for any number of sessions (session.h). A
// capture reads each ring once for all of its sessions.
//
// Input: sessions, each with selectors (selector.h) and a sink to write to. Output: a file for each
// session, and a summary that accounts for every event. The capture decides when each step happens:
// - Tracepoints that appear are attached once for all sessions (attachments.h).
// - The rings are drained in rounds. The records of threads are applied to the task tracker
//   (tools/collector/identity) before the samples of these threads are read.
// - Services without user_events connect, and their rings in user space are drained in the same
//   rounds (ring_feed.h).
// - The streams of .NET processes and the entries of the journal are read in the same rounds
//   (eventpipe_feed.h, journal_feed.h).
// - Samples with a copy of the stack stay in the rings until another thread has unwound the copy
//   (tools/collector/unwind).
// - Switches of threads are put in the order of time, and become the times in which threads had no
//   CPU (off_cpu_tracker.h).
// - Each sample is converted once (tools/collector/convert) and written by each session that
//   selects its tracepoint (distributor.h).
// - A session's interval is closed with a sequence point once no earlier record can still appear in
//   a ring, or earlier if a ring is more than half full.
//
// The capture stores no samples; they go from the perf rings to the writers.
//
// Guarantees: If a session cannot begin, the error says what is missing and what to do, and the
// other sessions continue unchanged. The session's file is created when all that the session needs
// has been set up. The events in a session's file and those counted as lost in it add up to the
// kernel's hits between its start and its end, where the kernel counts those exactly. A session
// that ends, or whose sink fails, has no effect on the others. The memory use does not depend on
// how long a session lasts.
#ifndef TOOLS_COLLECTOR_SESSION_CAPTURE_H_
#define TOOLS_COLLECTOR_SESSION_CAPTURE_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/deferred_stacks.h"
#include "tools/collector/perf/perf_capture.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/session/attachments.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/off_cpu_tracker.h"
#include "tools/collector/session/ring_feed.h"
#include "tools/collector/session/session.h"
#include "tools/collector/session/session_writer.h"
#include "tools/collector/session/stream_feed.h"
#include "tools/collector/session/target.h"
#include "tools/collector/system/uevents.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/unwind/stack_unwinder.h"

namespace collector {

struct CaptureOptions {
  AttachmentOptions attachments;
  // Processes, threads or cgroups whose events are recorded.
  TargetSelection target;
  // Whether the file states the executable, cgroup, systemd unit and container of each thread
  // (see tools/collector/identity/task_tracker.h). Adds 8 bytes to each event in a ring.
  bool identity = false;
  // Whether sessions may have stacks: selectors with stacks, samples of CPU time, or times without
  // a CPU. The capture then tracks the code that processes map, so that the files can describe the
  // addresses.
  bool stacks = false;
  // Maximum of StackOptions::copied_bytes of all sessions; 0: no stacks are copied and unwound.
  std::size_t copied_bytes = 0;
  // Whether sessions may have selectors. Without them, the capture does not need tracefs.
  bool tracepoints = true;
  // Size of each CPU's ring, in bytes; a power of two, at least one page.
  std::size_t ring_size = 1 << 20;
  // Settings of the socket for services with rings in user space; no value: no socket. Services use
  // such rings if the kernel has no user_events, or if they choose to. The first session that may
  // select tracepoints of services opens the socket, and fails if the socket cannot be opened. With
  // a value, an error of perf or tracefs is not an error of Open: the capture then records through
  // rings only (see Capture::kernel_status).
  std::optional<RingServerOptions> rings;
  // Whether sessions may have streams of .NET processes or entries of the journal. If so, Open
  // succeeds even if perf or tracefs cannot be used, as with `rings`.
  bool streams = false;
  // A function that returns whether more sessions are about to start; see
  // RingFeedOptions::expects_sessions. The thread of the capture calls it. May be empty.
  std::function<bool()> expects_sessions;
  // The clock of RingFeedOptions::reconnect_clock.
  std::function<std::uint64_t()> reconnect_clock = SessionClockNow;
  // Maximum time from the timestamp of a record until the record appears in its ring. The kernel
  // writes records within microseconds, but a virtual CPU may be paused for longer.
  absl::Duration slack = absl::Milliseconds(20);
  // Time that the start of a session may take to attach tracepoints of user_events that patterns
  // select. The rest is attached while the session runs.
  absl::Duration attach_at_start = absl::Seconds(5);
  // Time that the start of a session may take to attach the tracepoints that patterns select and
  // that are not of user_events. Without effect if AttachmentOptions::attach_tracepoints_for has no
  // limit, because all are then attached.
  absl::Duration attach_tracepoints_at_start = absl::Seconds(1);
  // Whether kernel events of this process are left out of all sessions.
  // AttachmentOptions::own_threads keeps events of known threads out of the rings; this option also
  // covers threads that a daemon starts later.
  bool leave_out_own_process = false;
  // Minimum time between two checks for CPUs that have come online or gone offline. A check is made
  // when the capture wakes up for another reason, or an interval of a session ends. Checks are
  // needed even if the kernel reports CPUs that come online: they determine when a CPU was last
  // known to be offline.
  absl::Duration cpu_look = absl::Milliseconds(900);
};

// Records sessions. Call Open first, then StartSession, Poll and StopSession in any order. Not
// thread-safe.
class Capture {
 public:
  // Opens the rings of all CPUs. An error says what is missing and what to do.
  static absl::StatusOr<std::unique_ptr<Capture>> Open(const CaptureOptions& options);
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Starts a session. Its tracepoints are recorded when StartSession returns, except those for
  // which the time limits in CaptureOptions did not suffice: Poll attaches them later. The capture
  // owns the session until StopSession. Fails with kernel_status() if that is an error and a
  // selector needs the kernel (CheckKernel). Also fails if SessionOptions::target, a tracepoint
  // that a selector names, the socket for services or the session's sink cannot be opened.
  absl::StatusOr<Session*> StartSession(SessionOptions options, const SinkFactory& make_sink);
  // Ends the streams of .NET processes of the session and its reading of the journal, and writes
  // their remaining events. This usually takes 0.1 s, and at most 5 s. StopSession does the same if
  // it was not done before.
  absl::Status EndStreams(Session* session);
  // Asks the .NET processes of the session to end their streams, and ends the session's reading of
  // the journal. Poll then reads what is left. Does not block. Returns whether all streams have
  // ended and all their events have been passed. Must be called again while it returns false.
  bool RequestEndOfStreams(Session* session);
  // Stops reading the streams of the session, and reports the streams that have not ended.
  void AbandonStreams(Session* session);
  // Stops a session: writes its events that are still in the rings and its final account, and ends
  // its file. This takes at least CaptureOptions::slack if there are other sessions. It takes up to
  // 0.5 s longer if a service with rings does not answer, and up to 2 s longer if samples wait for
  // their stacks. `stopped`, unless null, receives the session, which no longer refers to the
  // capture. Of its functions, only CountUndelivered may be called.
  SessionSummary StopSession(Session* session, std::unique_ptr<Session>* stopped = nullptr);

  // Waits for work for up to `timeout`, and does it. If events keep coming as fast as they are
  // drained, Poll returns after about 0.1 s of work; the next call continues. Returns errors of the
  // capture; errors of a session's sink are in Session::status.
  absl::Status Poll(absl::Duration timeout);
  // Makes Poll return early when `fd` is readable.
  absl::Status WakeOn(int fd) { return perf_.rings().WakeOn(fd); }
  // Returns OK, or the reason why only events through rings in user space can be recorded.
  const absl::Status& kernel_status() const { return kernel_status_; }
  // Returns the socket of services with rings in user space; null if it is not open.
  const RingServer* ring_server() const { return rings_ ? &rings_->server() : nullptr; }
  // Describes the services with rings in user space. Returns an empty report if the socket is not
  // open.
  RingReport ReportServices() { return rings_ ? rings_->Report() : RingReport(); }
  // Returns true once all processes or threads whose events are recorded have ended. Returns false
  // if the whole machine or a cgroup is recorded.
  bool HasTargetEnded() { return target_watch_.HaveEnded(); }

 private:
  // Minimum number of drained events from which the average size of an event is computed.
  static constexpr std::size_t kEventsToJudgeBy = 1000;
  static constexpr int kRoundsAtOnce = 100;

  Capture(const CaptureOptions& options, Tracefs tracefs, PerfCapture perf, TargetWatch watch);

  // The interfaces of the kernel that a capture uses.
  struct Kernel {
    Tracefs tracefs;
    PerfCapture perf;
    absl::Status status;  // see kernel_status()
  };
  static absl::StatusOr<Kernel> OpenKernel(const CaptureOptions& options, PerfTarget target);
  // Opens the socket for services with rings in user space, if the session may select their
  // tracepoints.
  absl::Status OpenRings(const SessionWriter& session);
  // Waits until services have confirmed which tracepoints are enabled, for at most 0.5 s.
  absl::Status WaitForServices();
  // Accepts all services that have connected, even if they have ended since.
  absl::Status AcceptServices();
  // Flushes all sessions, and gives the memory of the events that were read from rings in user
  // space back to the services. Keeps the memory while an output has not delivered the events; a
  // later call gives it back.
  void GiveBackRings();
  // Gives back the memory that GiveBackRings had to keep, if the outputs have now delivered the
  // events. Returns false if the memory must still be kept.
  bool GiveBackDelivered();
  // Waits for at most `limit` ns, as CpuRings::Wait does. While outputs have not delivered the
  // events from rings in user space, also calls GiveBackDelivered from time to time. Returns
  // whether a descriptor that was passed to CpuRings::WakeOn is readable.
  bool Wait(std::uint64_t limit);

  // Begins to read the session's streams of .NET processes.
  void OpenStreams(SessionWriter* session, std::shared_ptr<EventPipeInbox> inbox);
  // Begins to write the session's entries of the journal, from `start` on.
  void OpenJournal(SessionWriter* session, std::shared_ptr<JournalReader> reader,
                   std::uint64_t start);
  // Returns the maximum time from the timestamp of a record until it appears in its ring or stream,
  // in ns.
  std::uint64_t Slack() const;
  // Passes events of streams up to `limit`, in ns. Returns the time up to which the caller must
  // drain the rings: `limit`, or earlier if there are more events than an interval can hold.
  std::uint64_t DrainStreams(std::uint64_t limit);
  // Returns whether rings or streams have so many records that they should be drained again at
  // once.
  bool IsWorthDraining() const;

  // Opens the socket for the kernel's reports of CPUs and modules, if the kernel provides it.
  void OpenKernelReports();
  // Reads the kernel's reports, and records CPUs that have come online. `is_woken` is true if a
  // descriptor that was passed to CpuRings::WakeOn is readable.
  void ReadKernelReports(std::uint64_t now, bool is_woken);
  absl::Status BeginToFollow(std::optional<CgroupFollower> follower);
  // Starts to record the followed cgroup if it has appeared or has been replaced. `is_woken` is
  // true if a descriptor that was passed to CpuRings::WakeOn is readable.
  void FollowTarget(std::uint64_t now, bool is_woken);
  // Returns the time on the session clock of the next work that no descriptor announces.
  std::uint64_t NextWork() const;
  // Attaches the remaining tracepoints that patterns select, for a session that began at `start`.
  absl::Status AttachTheRest(std::uint64_t start);
  // Does the first part of a session's start: attaches and enables its tracepoints, and finally
  // creates its sink. Returns the time from which the session has events.
  absl::StatusOr<std::uint64_t> Prepare(SessionWriter* session, const SinkFactory& make_sink);
  // Drains the rings up to `now`, in parts that an interval can hold, and ends the intervals that
  // are full or whose time is over. `settled` is the time up to which no more records can appear in
  // a ring.
  absl::Status Round(std::uint64_t now, std::uint64_t settled);
  std::uint64_t NextLimit(std::uint64_t now) const;
  bool AnyIntervalIsOver() const;
  absl::Status EndIntervals(std::uint64_t moment);
  void UpdateTasks();
  void DrainSamples(std::uint64_t limit);
  void WriteSample(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
    if (sample.kind == SampleRecord::Kind::kEvent) [[likely]] {
      distributor_.Write(cpu, sample, timestamp);
    } else {
      off_cpu_.Add(cpu, sample, timestamp);
    }
  }
  // Completes the stack of the sample before it writes the sample.
  void WriteSampleWithStack(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp);
  // Reads the user parts of stacks that the kernel has deferred, and begins to unwind the stacks of
  // all waiting samples that have a copy of the stack. Returns the time up to which the rings can
  // be drained, in ns: `now`, or an earlier time before which no sample waits for its stack. If a
  // ring is more than half full, gives up the stacks that samples wait for.
  std::uint64_t PrepareStacks(std::uint64_t now);
  // Begins to unwind the waiting samples. Returns the timestamp of the oldest sample that is not
  // unwound; StackUnwinder::kNone if there is none.
  std::uint64_t BeginToUnwind();
  // Drains the rings until no sample waits for its stack, for at most 2 s.
  absl::Status AwaitStacks();
  // Records in the accounts of the sessions how many stacks were given up.
  void AccountSkippedStacks();
  // Passes all waiting samples to Distributor::Learn, if the capture records events of .NET.
  void LearnFromSamples();
  // Begins to record times without a CPU, if the session records them and no other session does.
  void PrepareOffCpu(const SessionWriter& session);
  // Writes the times without a CPU that ended no later than `limit`. All samples up to `limit` must
  // have been drained.
  void WriteOffCpu(std::uint64_t limit);
  // Drains rings in user space up to `limit`, in ns; `extends` has the meaning of RingFeed::Drain.
  // Returns the time up to which the caller must drain the samples of the kernel next.
  std::uint64_t DrainRings(std::uint64_t limit, bool extends);
  // Records in the accounts of the sessions how often the kernel has stopped samples of CPU time.
  void AccountThrottled();
  // Calls AccountThrottled and AccountSkippedStacks. Then reads the kernel's counts of losses and
  // passes them to the sessions, which write them (SessionWriter::SettleLosses).
  absl::Status AccountLosses(PerfCapture::Losses which);
  // Drains everything that belongs to the session from the rings, before the session stops.
  absl::Status DrainForEnd(SessionWriter* session);

  CaptureOptions options_;
  PerfCapture perf_;
  TargetWatch target_watch_;
  TaskTracker tasks_;
  Distributor distributor_;
  Attachments attachments_;
  OffCpuTracker off_cpu_;
  DeferredStacks deferred_stacks_;
  bool awaits_stacks_ = false;  // whether the last Round left samples that wait for their stacks
  // Index, in the Distributor, of the capture thread that contains the times without a CPU. Its
  // events are of all CPUs, in the order of time. No value before the first session that records
  // such times.
  std::optional<std::size_t> off_cpu_index_;
  std::unique_ptr<RingFeed> rings_;                   // null: the socket is not open
  std::unique_ptr<StackUnwinder> unwinder_;           // null: no stacks are unwound
  std::vector<std::unique_ptr<StreamFeed>> streams_;  // feeds of the sessions that have any
  bool awaits_delivery_ = false;  // memory of rings is kept until outputs have delivered
  std::vector<CgroupFolder> cgroups_;
  absl::Status kernel_status_;
  std::vector<std::unique_ptr<SessionWriter>> sessions_;
  std::optional<UeventSocket> uevents_;
  std::optional<CgroupFollower> follower_;
  std::uint64_t next_target_look_ = 0;
  bool target_error_reported_ = false;
  std::uint64_t next_cpu_look_ = 0;
  std::uint64_t last_moment_ = 0;       // ns, session clock: when intervals were ended last
  std::uint64_t closing_ = 0;           // ns: time at which intervals end next; 0: not decided
  std::uint64_t drained_ = 0;           // ns: samples up to this time have been drained
  bool counted_since_drained_ = false;  // whether AccountLosses(kAll) ran after the last drain
  // Average bytes per event in the rings. The initial value is less than the size of any sample, so
  // that the number of waiting events is not underestimated.
  std::size_t bytes_per_event_ = 40;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_CAPTURE_H_
