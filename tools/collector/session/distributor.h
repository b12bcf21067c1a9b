// Which session has which tracepoint: converts each sample once, and hands the event to the
// sessions that have its tracepoint; does the same for what happens to processes and for losses.
//
// It knows nothing of rings and of the kernel: the Capture gives it what it takes from there.
#ifndef TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_
#define TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/collector/convert/sample_converter.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_records.h"
#include "tools/collector/session/session.h"

namespace collector {

// Not thread-safe.
class Distributor {
 public:
  // `tasks` outlives this object.
  explicit Distributor(TaskTracker* tasks) : tasks_(tasks), converter_(tasks) {}

  // Samples come from one more CPU. Its index is one above the last one's.
  void AddCpu(int number);

  // The session, which is open and outlives its time here, gets events after `start`: those of
  // tracepoints that it has been given before or is given later. It is told which processes there
  // are.
  void Begin(Session* session, std::uint64_t start);
  // It gets nothing any more. Returns the tracepoints that no session has now.
  std::vector<int> Remove(Session* session);

  // Makes a tracepoint's samples known, as SampleConverter does.
  absl::Status AddTracepoint(int id, const std::string& system, const std::string& event,
                             const std::string& format);
  // Samples of it that still come are of no session.
  void RemoveTracepoint(int id);
  // The session has the tracepoint from here on.
  void Give(int id, Session* session);
  const std::vector<Session*>& SessionsOf(int id) const;
  // The tracepoints that the session has, in ascending order.
  std::vector<int> TracepointsOf(const Session* session) const;

  // What this process does is in no session's kernel events from here on.
  void LeaveOut(std::uint32_t pid) { left_out_process_ = pid; }
  // Whether samples of the tracepoint were left out, as they were of that process.
  bool HasLeftOut(int id) const { return tracepoints_[static_cast<std::size_t>(id)].has_left_out; }

  // A sample of the CPU at index `cpu`.
  void Write(std::size_t cpu, const SampleRecord& sample, std::uint64_t timestamp) {
    ++samples_;
    std::uint16_t id = 0;
    if (!ParseTracepointId(sample.raw, &id) || id >= tracepoints_.size() ||
        !tracepoints_[id].was_known) [[unlikely]] {
      return CountUnknown(cpu);
    }
    const std::vector<Session*>& sessions = tracepoints_[id].sessions;
    if (sessions.empty() || IsLeftOut(&tracepoints_[id], sample)) return;
    if (any_suspended_) [[unlikely]]
      return WriteToActive(sessions, cpu, id, sample, timestamp);
    const ConvertedEvent& event = converter_.Convert(id, sample, timestamp);
    for (Session* session : sessions) session->Write(cpu, event);
  }
  // Samples so far.
  std::uint64_t samples() const { return samples_; }

  // A record in the ring of `cpu` says that it has lost `total` samples since the start.
  void LostInPlace(std::size_t cpu, std::uint64_t total);
  // The kernel does not say which tracepoints' samples are lost (before 6.0): then CountLost is not
  // called, and each session takes all losses for its own.
  void SetLossesUncounted() { losses_are_counted_ = false; }
  // `count` more samples of the tracepoint were lost on `cpu`; see Session::CountLost.
  void CountLost(std::size_t cpu, int id, std::uint64_t count, const CountingTime& time);
  // All losses so far have been counted: the sessions write their own (see Session::SettleLosses).
  void SettleLosses();

  // All samples up to `drained` have been written: the sessions ask their sinks how to go on.
  void FollowSinks(std::uint64_t drained);

  // A section of the session has begun at `timestamp`, up to which process events were written: it
  // is told which processes there are then.
  void TellProcesses(Session* session, std::uint64_t timestamp);

  // What has happened to processes up to `limit`, to which all samples have been written, goes to
  // all sessions.
  void WriteProcessEvents(std::uint64_t limit);

 private:
  struct Tracepoint {
    bool was_known = false;
    bool is_kernels = false;
    bool has_left_out = false;
    std::string name;  // "system:event"
    std::vector<Session*> sessions;
  };
  struct Subscriber {
    Session* session;
    std::uint64_t first_process_event;  // its number
  };
  struct Cpu {
    int number;
    std::uint64_t lost = 0;      // by all tracepoints
    std::uint64_t reported = 0;  // by records
  };

  // Whether a sample of the kernel's tracepoints is of the process that is left out.
  bool IsLeftOut(Tracepoint* tracepoint, const SampleRecord& sample) const {
    if (sample.pid != left_out_process_ || !tracepoint->is_kernels) [[likely]]
      return false;
    tracepoint->has_left_out = true;
    return true;
  }
  // The same as Write does where no session is suspended; what nobody takes is not converted.
  void WriteToActive(const std::vector<Session*>& sessions, std::size_t cpu, std::uint16_t id,
                     const SampleRecord& sample, std::uint64_t timestamp);
  // The kernel writes the id; a sample without a known one cannot be named, only counted.
  void CountUnknown(std::size_t cpu);
  // Tells each session whether it has all tracepoints, if something has changed about that.
  void UpdateWantsAll();

  TaskTracker* tasks_;
  SampleConverter converter_;
  std::vector<Cpu> cpus_;
  std::vector<Tracepoint> tracepoints_;  // by id
  std::vector<Subscriber> subscribers_;  // the sessions that have begun
  bool changed_ = false;                 // since UpdateWantsAll
  // No pid until there is one to leave out: 0 is the idle task's, kExitedTask that of any that
  // ended.
  std::uint64_t left_out_process_ = std::uint64_t{1} << 32;
  bool any_suspended_ = false;  // at FollowSinks
  bool losses_are_counted_ = true;
  std::uint64_t samples_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_DISTRIBUTOR_H_
