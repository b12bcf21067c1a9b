// The floor of sessions: a recording of selected tracepoints of the whole machine, streamed into a
// NetTrace file.
//
// In: selectors (selector.h), and a sink to write to. Out: the file, and a summary that accounts
// for every event. The floor decides when: it attaches tracepoints that appear (tracefs, perf),
// drains the rings in rounds, applies the records of threads (identity) before the samples that
// name them, has the samples written (convert), and closes an interval with a sequence point once
// no record of before it can still come. It holds no events: they go from the rings to the writer.
//
// Promises: a recording that cannot begin says what is missing and what to do, and makes no file.
// All events in the file and all counted as lost are together the kernel's hits, where the kernel
// counts those exactly. The memory needed does not depend on how long the recording lasts.
#ifndef TOOLS_COLLECTOR_SESSION_RECORDER_H_
#define TOOLS_COLLECTOR_SESSION_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "nettrace/writer.h"
#include "tools/collector/convert/sample_writer.h"
#include "tools/collector/identity/task_tracker.h"
#include "tools/collector/perf/perf_session.h"
#include "tools/collector/session/attach_plan.h"
#include "tools/collector/session/selector.h"
#include "tools/collector/session/target.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

struct RecorderOptions {
  std::vector<Selector> selectors;
  // Whose events.
  TargetSelection target;
  // Threads of the collector besides the one that polls: as of that, no kernel event is recorded.
  std::vector<pid_t> own_threads;
  // Bytes of each CPU's ring; a power of two, at least a page.
  std::size_t ring_size = 1 << 20;
  // An interval between sequence points lasts about this long, or less when it holds much.
  absl::Duration interval = absl::Seconds(1);
  // How long after its timestamp a record may appear in its ring and still be in order. Records are
  // written there by the kernel within microseconds; a virtual CPU may be away for longer.
  absl::Duration slack = absl::Milliseconds(20);
  // How often user_events_status is read for new tracepoints that a pattern selects.
  absl::Duration rescan = absl::Milliseconds(50);
  // How often other tracepoints are looked for, which come with modules of the kernel.
  absl::Duration tracepoint_rescan = absl::Seconds(1);
};

struct RecorderSummary {
  std::uint64_t events = 0;     // those of processes are not in it
  std::uint64_t lost = 0;       // by the kernel, as rings were full
  std::uint64_t undecoded = 0;  // of `events`: written as bytes
  std::uint64_t late = 0;       // of `events`: written with a later timestamp than their own
  // The kernel's count, always events + lost. No value where it does not count exactly:
  // before 6.0, and for tracepoints that count something else or are hit in interrupts.
  std::optional<std::uint64_t> hits;
  std::uint64_t process_events = 0;  // which say what processes there were
  std::uint64_t bytes = 0;           // of the file
  std::uint64_t threads = 0;
  std::uint64_t tracepoints = 0;
  std::uint64_t sequence_points = 0;
};

// Makes the sink. Start calls it once all else that it needs is there, so that a recording that
// cannot begin leaves no file.
using SinkFactory = std::function<absl::StatusOr<std::unique_ptr<nettrace::Sink>>()>;

// Life: Start, Poll until it is time to stop, Finish. Not thread-safe.
class Recorder {
 public:
  // Opens everything and begins to record. Events are recorded from the moment it returns. The
  // status says what is missing and what to do.
  static absl::StatusOr<std::unique_ptr<Recorder>> Start(const RecorderOptions& options,
                                                         const SinkFactory& make_sink);

  // Waits for up to `timeout` for something to do, and does it.
  absl::Status Poll(absl::Duration timeout);
  // All processes or threads whose events are recorded have ended.
  bool HasTargetEnded() { return target_watch_.HaveEnded(); }
  // Makes Poll return early when `fd` is readable.
  absl::Status WakeOn(int fd) { return session_.WakeOn(fd); }

  // Stops recording, writes what the rings still hold and the final account, and ends the file.
  absl::StatusOr<RecorderSummary> Finish();

  // Progress so far. The writer's events are those of processes, too.
  const nettrace::Writer::Stats& stats() const { return writer_->stats(); }
  std::uint64_t events() const { return stats().events - process_events(); }
  std::uint64_t process_events() const { return samples_->stats().process_events; }
  // Selectors for which no tracepoint has been recorded so far.
  std::vector<std::string> Unmatched() const;
  const LeftOut& left_out() const { return left_out_; }

 private:
  // Fewer events do not say how many bytes one takes.
  static constexpr std::size_t kEventsToJudgeBy = 1000;

  Recorder(RecorderOptions options, Tracefs tracefs, PerfSession session, TargetWatch watch);

  absl::Status AttachNamed();
  absl::Status AttachNamed(const Tracefs::Name& name, FilterCheck* check);
  absl::Status EnableNamed();
  // Attaches and enables what patterns select, as far as it is time to look for it.
  absl::Status AttachPatterns(std::uint64_t now);
  absl::Status AttachUserEvents(std::uint64_t now);
  absl::Status AttachTracepoints(std::uint64_t now);
  // Attaches and enables those that it can, and notes of the others that they are left out.
  absl::Status AttachAll(std::vector<Tracefs::Name> names, std::uint64_t now);
  absl::Status AttachOne(const Tracefs::Name& name, std::size_t descriptors, FilterCheck* check);
  absl::Status AttachToSession(const Tracefs::Name& name, int id, const Selection& selection);
  bool IsAttached(const Tracefs::Name& name) const;
  absl::Status Round(std::uint64_t now, std::uint64_t settled);
  std::uint64_t NextLimit(std::uint64_t now) const;
  void UpdateTasks();
  absl::Status DrainSamples(std::uint64_t limit);

  RecorderOptions options_;
  Tracefs tracefs_;
  UserEventRegistrations registrations_;
  PerfSession session_;
  TargetWatch target_watch_;
  TaskTracker tasks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<SampleWriter> samples_;
  std::set<std::string> attached_;  // "system:event"
  LeftOut left_out_;
  DescriptorBudget budget_;
  std::vector<Tracefs::Name> known_tracepoints_;  // when AttachTracepoints ran last
  // Attached, but not yet known to samples_.
  struct NewTracepoint {
    Tracefs::Name name;
    Tracefs::Tracepoint tracepoint;
  };
  std::vector<NewTracepoint> new_tracepoints_;
  bool counts_are_exact_ = true;
  std::vector<bool> matched_;  // per selector
  bool awaits_user_events_ = false;
  bool awaits_tracepoints_ = false;
  std::uint64_t interval_start_ = 0;  // ns of the session's clock
  std::uint64_t closing_ = 0;         // end of the current interval; 0: not yet decided
  std::uint64_t drained_ = 0;         // samples up to here have been taken from the rings
  // Of the rings, for an event; at first no more than one can have.
  std::size_t bytes_per_event_ = 40;
  std::uint64_t next_rescan_ = 0;
  std::uint64_t next_tracepoint_rescan_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RECORDER_H_
