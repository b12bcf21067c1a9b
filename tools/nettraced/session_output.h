// Where a session's events go: the chain of sinks that its settings describe, and what can be asked
// of it while it is written to.
#ifndef TOOLS_NETTRACED_SESSION_OUTPUT_H_
#define TOOLS_NETTRACED_SESSION_OUTPUT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "tools/collector/config/settings.h"
#include "tools/collector/control/service.h"
#include "tools/collector/output/file_set_sink.h"
#include "tools/collector/output/flight_recorder.h"
#include "tools/collector/output/output_queue.h"
#include "tools/collector/output/pipe_sink.h"

namespace nettraced {

// A queue, whose thread compresses where that is asked for, and then files, a pipe or a flight
// recorder. All functions may be called by any thread.
class SessionOutput {
 public:
  // An output of which nobody has taken a byte for so long is given up when it is closed.
  static constexpr absl::Duration kStuck = absl::Seconds(5);

  // Repairs what an earlier run has left, and tells the journal of it. `settings.files.directory`
  // is there. `on_status` is OutputQueueOptions::on_status.
  static absl::StatusOr<std::unique_ptr<SessionOutput>> Open(
      const collector::SessionSettings& settings,
      std::function<void(const absl::Status& status)> on_status);

  // The end for the session; to be called once.
  std::unique_ptr<nettrace::Sink> MakeSink();

  // The error, for sessions that write no files: they have nothing to rotate.
  absl::Status Rotate(collector::FileSetControl::Done done);
  // FailedPrecondition if the session is no flight recorder.
  absl::StatusOr<std::string> WriteSnapshot(absl::Duration patience);
  void FillIn(collector::SessionStatus* status) const;

  // Waits until all is where it belongs, as long as it gets on and `hurry` is false, and ends the
  // output. The error says what is missing.
  absl::Status Close(const std::atomic<bool>& hurry);

 private:
  SessionOutput() = default;

  absl::StatusOr<std::unique_ptr<nettrace::Sink>> MakeDestination(
      const collector::SessionSettings& settings, std::function<void()>* cancel);

  std::shared_ptr<collector::OutputQueue> queue_;
  // One of them is there.
  std::shared_ptr<collector::FileSetControl> files_;
  std::shared_ptr<const collector::PipeState> pipe_;
  std::shared_ptr<collector::FlightRecorder> flight_;
  std::size_t queue_limit_ = 0;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_SESSION_OUTPUT_H_
