// A recording: selected tracepoints of the whole machine, streamed into a NetTrace file.
#ifndef TOOLS_COLLECTOR_SESSION_RECORDER_H_
#define TOOLS_COLLECTOR_SESSION_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  std::uint64_t events = 0;
  std::uint64_t lost = 0;       // by the kernel, as rings were full
  std::uint64_t undecoded = 0;  // of `events`: written as bytes
  std::uint64_t late = 0;       // of `events`: written with a later timestamp than their own
  // What the kernel counted; always events + lost. Nothing where it does not count exactly:
  // before 6.0, and for tracepoints that count something else or are hit in interrupts.
  std::optional<std::uint64_t> hits;
  std::uint64_t bytes = 0;  // of the file
  std::uint64_t threads = 0;
  std::uint64_t tracepoints = 0;
  std::uint64_t sequence_points = 0;
};

// Makes the sink once all else that Start needs is there, so that a recording that cannot begin
// leaves no file behind.
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

  // Progress so far.
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
  void DrainSideBand();
  absl::Status Drain(std::uint64_t limit);
  absl::Status AccountLost();

  RecorderOptions options_;
  Tracefs tracefs_;
  UserEventRegistrations registrations_;
  PerfSession session_;
  ThreadTable threads_;
  std::unique_ptr<nettrace::Writer> writer_;
  std::unique_ptr<SampleWriter> samples_;
  // Records of the round, copied out of their rings, with their timestamps.
  std::vector<std::pair<std::uint64_t, std::vector<std::byte>>> side_band_;
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
  std::vector<std::uint64_t> lost_;       // per CPU: as its ring's records say
  std::vector<std::uint64_t> accounted_;  // per CPU: handed to the writer
  std::uint64_t interval_start_ = 0;      // ns of the session's clock
  std::uint64_t closing_ = 0;             // where the current interval is to end; 0: not yet known
  std::uint64_t next_rescan_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_SESSION_RECORDER_H_
