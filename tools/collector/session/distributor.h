// Stores which session has which tracepoint. Converts each sample once, and passes the event to the
// sessions that have its tracepoint. Also passes process events and losses to the sessions.
//
// The Distributor does not access the rings or the kernel; the Capture passes the data to it.
#ifndef TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_
#define TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/session/session_writer.h"

namespace collector {

// Passes events from the CPUs and from rings in user space to sessions. Not thread-safe.
class Distributor {
 public:
  // `tasks` must outlive this object.
  explicit Distributor(TaskTracker* tasks) : tasks_(tasks), converter_(tasks) {}

  // Adds a CPU that samples come from. The first CPU has the index 0, and each further CPU the next
  // index. Must not be called after AddRingThread.
  void AddCpu(int number);

  // Adds a capture thread, whose events have their own numbers, as the events of each CPU do. It is
  // for a thread whose events come through a ring in user space or in a stream of .NET, for the
  // journal, or for events of WriteValue. Returns its index, which follows those of the CPUs and is
  // the same in each session. `name` is its name in the files. `source` identifies the ring writer
  // (trace::RingThreadSource); "" if the events are not of a ring.
  std::size_t AddRingThread(const std::string& name, const std::string& source = "");
  // Removes the capture thread at `index`. Another capture thread may get this index.
  void RemoveRingThread(std::size_t index) { free_ring_threads_.push_back(index); }
  // Adds a tracepoint of EventHeader events that come through rings in user space or from the
  // journal. Returns its id, which no tracepoint of the kernel has. Fails with InvalidArgument if
  // the name is not that of an EventHeader tracepoint. SessionSummary::tracepoints includes the
  // tracepoint if `is_counted` is set.
  absl::StatusOr<int> AddRingTracepoint(const std::string& name, bool is_counted = true);
  // Adds an id for the events of the streams of .NET of one session.
  int AddDotnetStreams();
  // An event of a ring in user space, of a stream of .NET, or of the journal.
  struct RingEvent {
    std::size_t index;  // returned by AddRingThread
    int id;             // returned by AddRingTracepoint or AddDotnetStreams
    Slot thread;        // identity of the thread that wrote the event
    std::uint32_t processor;
    std::uint64_t number;  // number that the ring writer gave to the event
    // Sessions that get the event even if the event is older than the session; see
    // SessionWriter::WriteOfRing.
    std::span<SessionWriter* const> kept_for = {};
    const DotnetStreamEvent* of_stream = nullptr;  // null: the event is not of a stream
  };
  // Passes the event to the sessions that record its tracepoint, except those in `without`. Returns
  // whether any session records the tracepoint. A suspended session counts the event as dropped.
  bool WriteOfRing(const RingEvent& event, const SampleRecord& sample, std::uint64_t timestamp,
                   std::span<SessionWriter* const> without = {});

  // Counts events of a stream of .NET as lost in the sessions that record it; see
  // SessionWriter::LoseOfRing.
  void LoseOfStream(int id, std::size_t index, std::string_view name, std::uint64_t count,
                    std::uint64_t until, std::uint64_t number);

  // Passes an event to the sessions that record it. `id` is the id that was passed to
  // AddUniversalEvent, and `value` is the value of the event. `index`, from AddRingThread, selects
  // the capture thread that numbers the event.
  void WriteValue(std::size_t index, int id, const SampleRecord& sample, std::uint64_t timestamp,
                  std::uint32_t processor, std::uint64_t value);
  // Counts `count` more events of WriteValue as lost. They were lost no later than `until`.
  void LoseValues(std::size_t index, int id, std::uint64_t count, std::uint64_t until);

  // Begins to pass events after `start` to the session: those of all tracepoints that Give has
  // assigned to it or assigns later. Also writes to the session an event for each process that
  // exists, with its name. The session must be open, and must live until Remove.
  void Begin(SessionWriter* session, std::uint64_t start);
  // Stops passing events to the session. Returns the ids of AddTracepoint and AddUniversalEvent
  // that no session has any more.
  std::vector<int> Remove(SessionWriter* session);

  // Registers the format of a tracepoint, unless it is registered already. Fails with
  // InvalidArgument if the format cannot be parsed or a file cannot contain its fields.
  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format);
  // Registers the samples with this id as events `name` of the provider Universal.Events. They are
  // not from a tracepoint, so SessionSummary::tracepoints does not include them.
  void AddUniversalEvent(int id, const std::string& name);
  // Removes a tracepoint. Its samples that still arrive are ignored.
  void RemoveTracepoint(int id);
  // Sets the maximum number of frames in stacks of the tracepoint.
  void SetMaxFrames(int id, std::size_t max_frames) { converter_.SetMaxFrames(id, max_frames); }
  // Assigns the tracepoint to the session.
  void Give(int id, SessionWriter* session);
  const std::vector<SessionWriter*>& FindSessions(int id) const;
  // Returns the ids of AddTracepoint and AddUniversalEvent that the session has, in ascending
  // order.
  std::vector<int> FindTracepoints(const SessionWriter* session) const;

  // Leaves kernel events of the process `pid` out of all sessions from now on.
  void LeaveOut(std::uint32_t pid) { left_out_process_ = pid; }
  // Returns whether samples of the tracepoint were left out because of LeaveOut.
  bool HasLeftOut(int id) const { return tracepoints_[static_cast<std::size_t>(id)].has_left_out; }

  // Passes a sample, taken on the CPU with index `cpu`, to the sessions that record its tracepoint.
  // A sample of an unknown tracepoint counts as lost in all sessions.
  void Write(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
    ++samples_;
    std::uint16_t id = 0;
    if (!ParseTracepointId(sample.raw, &id) || id >= tracepoints_.size()) [[unlikely]]
      return CountUnknown(cpu);
    Tracepoint& tracepoint = tracepoints_[id];
    const std::vector<SessionWriter*>& sessions = tracepoint.sessions;
    if (sessions.empty()) [[unlikely]] {
      if (!tracepoint.was_known) CountUnknown(cpu);
      return;
    }
    if (IsLeftOut(&tracepoint, sample)) return;
    if (any_suspended_) [[unlikely]]
      return WriteToActive(sessions, cpu, id, sample, timestamp);
    const ConvertedEvent& event = converter_.Convert(id, sample, timestamp);
    for (SessionWriter* session : sessions) session->Write(cpu, event);
  }
  // Returns whether Learn must be called, because there are tracepoints for .NET.
  bool must_learn() const { return converter_.has_dotnet(); }
  // Reads the description of a kind of .NET events, if the sample contains one. Events of other
  // CPUs may need it, so Learn must be called for all waiting samples before Write is called for
  // one of them.
  void Learn(const SampleRecord& sample, std::uint64_t timestamp) {
    std::uint16_t id = 0;
    if (ParseTracepointId(sample.raw, &id)) converter_.Learn(id, sample, timestamp);
  }
  // Number of samples so far, without events of rings in user space.
  std::uint64_t samples() const { return samples_; }

  // Reports to the sessions that samples of `cpu` were lost after the sample that was passed to
  // Write last. `total` is the number of samples that the CPU has lost since the capture began; 0:
  // not known.
  void LostInPlace(std::size_t cpu, std::uint64_t total);
  // Disables the counting of losses by tracepoint, for kernels before 6.0. Each session then counts
  // all losses in the rings as its own. CountLost must not be called afterwards.
  void SetLossesUncounted() { losses_are_counted_ = false; }
  // Counts `count` more lost samples of the tracepoint on `cpu`. Their place in the ring is not
  // known. `time` has the times before and after the call that read the kernel's count.
  void CountLost(std::size_t cpu, int id, std::uint64_t count, const CountingTime& time);
  // Makes the sessions write those of their losses that no LOST record in a ring has reported. All
  // losses so far must have been counted by CountLost.
  void SettleLosses();

  // Makes each session check whether its sink is full and whether it wants a new section. All
  // samples up to `drained` must have been written.
  void FollowSinks(std::uint64_t drained);

  // Writes events of the processes that exist at `timestamp` to the session, whose current section
  // began at that time. Process events up to `timestamp` must have been written.
  void WriteProcesses(SessionWriter* session, std::uint64_t timestamp);

  // Writes the process events up to `limit` to all sessions. All samples up to `limit` must have
  // been written.
  void WriteProcessEvents(std::uint64_t limit);

 private:
  struct Tracepoint {
    bool was_known = false;
    bool is_kernels = false;
    bool has_left_out = false;
    bool is_tracepoint = true;
    std::string name;  // "system:event"
    std::vector<SessionWriter*> sessions;
  };
  struct Subscriber {
    SessionWriter* session;
    std::uint64_t first_process_event;  // number of the first process event that the session gets
  };
  struct Cpu {
    int number;
    std::uint64_t lost = 0;      // lost samples, by the counts of the tracepoints
    std::uint64_t reported = 0;  // lost samples, by the LOST records
    bool is_ring_thread = false;
    std::string name = {};    // name of the capture thread; empty for a CPU
    std::string source = {};  // for a ring thread; see AddRingThread
  };

  // Lowest id that AddRingTracepoint returns. The kernel's ids are lower.
  static constexpr int kFirstRingTracepoint = 1 << 16;

  Tracepoint& At(int id) {
    return id < kFirstRingTracepoint
               ? tracepoints_[static_cast<std::size_t>(id)]
               : ring_tracepoints_[static_cast<std::size_t>(id - kFirstRingTracepoint)];
  }
  // Returns whether the sample is a kernel event of the process that is left out.
  bool IsLeftOut(Tracepoint* tracepoint, const SampleRecord& sample) const {
    if (sample.pid != left_out_process_ || !tracepoint->is_kernels) [[likely]]
      return false;
    tracepoint->has_left_out = true;
    return true;
  }
  // Does the work of Write while a session is suspended. Does not convert a sample that only
  // suspended sessions record.
  void WriteToActive(const std::vector<SessionWriter*>& sessions, std::size_t cpu, std::uint16_t id,
                     const SampleRecord& sample, std::uint64_t timestamp);
  // Counts a sample with an unknown tracepoint id as lost in all sessions. Processes cannot cause
  // this, because the kernel writes the id.
  void CountUnknown(std::size_t cpu);
  // Returns the last id in free_ring_tracepoints_. If the list is empty, first adds a new id to it.
  int FindRingId();
  // Updates in each session whether it has all tracepoints of the capture, if that may have
  // changed.
  void UpdateWantsAll();

  TaskTracker* tasks_;
  SampleConverter converter_;
  std::vector<Cpu> cpus_;
  std::vector<std::size_t> free_ring_threads_;  // indices in cpus_ that can be used again
  std::vector<Tracepoint> tracepoints_;         // by id
  std::vector<Tracepoint> ring_tracepoints_;    // by id - kFirstRingTracepoint
  std::vector<int> free_ring_tracepoints_;      // ids that can be used again
  std::vector<Subscriber> subscribers_;         // the sessions that have begun
  bool changed_ = false;  // whether tracepoints or sessions changed since UpdateWantsAll
  // Process whose kernel events are left out. The initial value has more than 32 bits, so that no
  // sample has this pid: samples may have pid 0 (the idle task) and kExitedTask.
  std::uint64_t left_out_process_ = std::uint64_t{1} << 32;
  bool any_suspended_ = false;  // whether a session was suspended at the last FollowSinks
  bool losses_are_counted_ = true;
  std::uint64_t samples_ = 0;
  std::uint64_t values_ = 0;  // number of events of WriteValue and LoseValues
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_
