// The output of a session: the chain of sinks that its settings describe. It accepts requests, such
// as for a snapshot, while the session writes to it.
#ifndef TOOLS_NETTRACED_OUTPUT_CHAIN_H_
#define TOOLS_NETTRACED_OUTPUT_CHAIN_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "nettrace/sink.h"
#include "tools/control/service.h"
#include "tools/nettraced/config/settings.h"
#include "tools/output/file_set_sink.h"
#include "tools/output/flight_recorder.h"
#include "tools/output/output_queue.h"
#include "tools/output/pipe_sink.h"
#include "tools/trace/ring_positions.h"

namespace nettraced {

// Holds the output of one session: a queue, an optional compressor, and files, a pipe or a flight
// recorder. The queue's thread compresses and writes. Thread-safe.
class OutputChain {
 public:
  // Time after which Close gives up on an output that accepts no bytes.
  static constexpr absl::Duration kStuck = absl::Seconds(5);

  // Repairs the files of an earlier run, logs the repairs, and opens the output. Unless the output
  // is a pipe, InDirectory must have set `settings.files.directory`. This directory is created if
  // it does not exist. `on_status` is OutputQueueOptions::on_status.
  static absl::StatusOr<std::unique_ptr<OutputChain>> Open(
      const SessionSettings& settings, std::function<void(const absl::Status& status)> on_status);

  // Returns the sink that the session writes to. Must be called only once.
  std::unique_ptr<nettrace::Sink> MakeSink();

  // Returns what the files of an earlier run state about the rings of services
  // (tools/trace/ring_positions.h), and removes it from this object.
  trace::RecordedRings TakeRecordedRings() { return std::move(recorded_rings_); }

  // Requests a new file, which begins with the next section. `done` is called when the current file
  // is complete. Fails with FailedPrecondition if the session does not write files.
  absl::Status Rotate(output::FileSetControl::Done done);
  // Writes a snapshot and returns its path. Waits up to `patience` for the latest events. Fails
  // with FailedPrecondition if the session is not a flight recorder, and like
  // FlightRecorder::WriteSnapshot.
  absl::StatusOr<std::string> WriteSnapshot(absl::Duration patience);
  // Sets the members of `status` that describe the output. Replaces `status->error` only if the
  // output has a newer error.
  void FillIn(control::SessionStatus* status) const;
  // Returns whether writing to the destination currently fails, so that no data is written.
  bool is_failing() const { return !queue_->stats().status.ok(); }

  // Waits until all data is written, and then closes the output. Stops waiting if `hurry` becomes
  // true, or if no data was written for kStuck. Fails with DataLoss, and states how many bytes are
  // missing, if data remained.
  absl::Status Close(const std::atomic<bool>& hurry);

 private:
  OutputChain() = default;

  // Creates the files, pipe or flight recorder. If the output is a pipe, sets `*cancel` to a
  // function that aborts a blocked write.
  absl::StatusOr<std::unique_ptr<nettrace::Sink>> MakeDestination(const SessionSettings& settings,
                                                                  std::function<void()>* cancel);

  std::shared_ptr<output::OutputQueue> queue_;
  // Exactly one of these three is set.
  std::shared_ptr<output::FileSetControl> files_;
  std::shared_ptr<const output::PipeState> pipe_;
  std::shared_ptr<output::FlightRecorder> flight_;
  std::size_t queue_limit_ = 0;
  trace::RecordedRings recorded_rings_;
};

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_OUTPUT_CHAIN_H_
