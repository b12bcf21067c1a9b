// Process events into NetTrace events of the provider Universal.System, from which TraceEvent takes
// the names of processes, their beginning and their end: ids 0 ExistingProcess, 1 ProcessCreate and
// 2 ProcessExit. No other row has one of these: what a service calls its provider has no dot, and
// rows of the kernel's tracepoints have ids far above. Their capture thread has no other events;
// their thread is the process's main one.
#ifndef TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/writer.h"
#include "tools/collector/identity/process_tracker.h"

namespace collector {

// Not thread-safe.
class ProcessWriter {
 public:
  // The writer outlives this object. No event is written with a time before `start`.
  ProcessWriter(nettrace::Writer* writer, std::uint64_t start);
  // The encoder refers to the fields.
  ProcessWriter(const ProcessWriter&) = delete;
  ProcessWriter& operator=(const ProcessWriter&) = delete;

  // Writes an event; `thread` is the row of the process's main thread. To be called in the order of
  // time, before a sequence point of that time: what becomes known of an earlier time afterwards is
  // written with a later one.
  absl::Status Write(const ProcessEvent& event, nettrace::ThreadIndex thread);
  // A sequence point follows at `timestamp`.
  void EndInterval(std::uint64_t timestamp) { earliest_ = std::max(earliest_, timestamp); }
  // The trace's thread rows were flushed.
  void ForgetRows() { capture_thread_ = nettrace::kNoThread; }
  // Its metadata rows were.
  void ForgetMetadata() { rows_ = {}; }

  // Events written so far.
  std::uint64_t written() const { return written_; }

 private:
  absl::StatusOr<nettrace::MetadataId> MetadataRow(ProcessEvent::Kind kind);

  nettrace::Writer* writer_;
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  std::array<nettrace::MetadataId, 3> rows_ = {};  // by kind; kNoMetadata until it is needed
  std::vector<nettrace::Field> fields_;            // of ids 0 and 1
  nettrace::PayloadEncoder payload_;
  const std::uint64_t start_;
  std::uint64_t earliest_;  // no later event may be before it
  std::uint64_t written_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_
