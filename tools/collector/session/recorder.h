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
#include "tools/collector/session/selector.h"
#include "tools/collector/tracefs/tracefs.h"
#include "tools/collector/tracefs/user_event_registrations.h"

namespace collector {

struct RecorderOptions {
  std::vector<Selector> selectors;
  // Bytes of each CPU's ring; a power of two, at least a page.
  std::size_t ring_size = 1 << 20;
  // An interval between sequence points lasts about this long, or less when it holds much.
  absl::Duration interval = absl::Seconds(1);
  // How long after its timestamp a record may appear in its ring and still be in order. Records are
  // written there by the kernel within microseconds; a virtual CPU may be away for longer.
  absl::Duration slack = absl::Milliseconds(20);
  // How often user_events_status is read for new tracepoints that a pattern selects.
  absl::Duration rescan = absl::Milliseconds(50);
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
  // Makes Poll return early when `fd` is readable.
  absl::Status WakeOn(int fd) { return session_.WakeOn(fd); }

  // Stops recording, writes what the rings still hold and the final account, and ends the file.
  absl::StatusOr<RecorderSummary> Finish();

  // Progress so far. The writer's events are those of processes, too.
  const nettrace::Writer::Stats& stats() const { return writer_->stats(); }
  // Selectors that no tracepoint has matched so far.
  std::vector<std::string> Unmatched() const;

 private:
  Recorder(RecorderOptions options, Tracefs tracefs, PerfSession session);

  absl::Status AttachNamed();
  absl::Status AttachPatterns();
  absl::Status Attach(const std::string& system, const std::string& event);
  absl::Status EnableAttached();
  absl::Status Round(std::uint64_t now);
  void UpdateTasks();
  absl::Status DrainSamples(std::uint64_t limit);

  RecorderOptions options_;
  Tracefs tracefs_;
  UserEventRegistrations registrations_;
  PerfSession session_;
  TaskTracker tasks_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<SampleWriter> samples_;
  std::set<std::string> attached_;  // "system:event"
  // Attached, but not yet known to samples_.
  struct NewTracepoint {
    std::string system;
    std::string event;
    Tracefs::Tracepoint tracepoint;
  };
  std::vector<NewTracepoint> new_tracepoints_;
  bool counts_are_exact_ = true;
  std::vector<bool> matched_;  // per selector
  bool has_patterns_ = false;
  std::uint64_t interval_start_ = 0;  // ns of the session's clock
  std::uint64_t closing_ = 0;         // end of the current interval; 0: not yet decided
  std::uint64_t next_rescan_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RECORDER_H_
