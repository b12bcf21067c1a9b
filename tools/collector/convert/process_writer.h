// Writes process events as NetTrace events of the provider Universal.System. TraceEvent takes the
// name, start and end of processes from them: ids 0 ExistingProcess, 1 ProcessCreate and 2
// ProcessExit.
//
// No other row has one of these ids with this provider: the provider names of services have no dot,
// and the rows of kernel tracepoints have far larger ids. The events have their own capture thread.
// The thread of each event is the main thread of its process.
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

// Writes the process events of one trace. Not thread-safe.
class ProcessWriter {
 public:
  // `writer` must outlive this object. Events are written with times no earlier than `start`.
  ProcessWriter(nettrace::Writer* writer, std::uint64_t start);
  // Not copyable, because payload_ refers to fields_.
  ProcessWriter(const ProcessWriter&) = delete;
  ProcessWriter& operator=(const ProcessWriter&) = delete;

  // Writes an event; `thread` is the row of the process's main thread. The caller should pass
  // events in the order of time, and before it calls EndInterval() for their interval. An event
  // that is earlier than the previous event or the last EndInterval() gets the later of these two
  // times.
  absl::Status Write(const ProcessEvent& event, nettrace::ThreadIndex thread);
  // Must be called before the trace writes a sequence point at `timestamp`.
  void EndInterval(std::uint64_t timestamp) { earliest_ = std::max(earliest_, timestamp); }
  // Forgets the row of the capture thread. Must be called when the trace's thread rows have been
  // flushed.
  void ForgetRows() { capture_thread_ = nettrace::kNoThread; }
  // Forgets the metadata rows of these events. Must be called when the trace's metadata rows have
  // been flushed.
  void ForgetMetadata() { rows_ = {}; }

  // Number of events written so far.
  std::uint64_t written() const { return written_; }

 private:
  absl::StatusOr<nettrace::MetadataId> MetadataRow(ProcessEvent::Kind kind);

  nettrace::Writer* writer_;
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  std::array<nettrace::MetadataId, 3> rows_ = {};  // by kind; kNoMetadata until needed
  std::vector<nettrace::Field> fields_;            // fields of ids 0 and 1
  nettrace::PayloadEncoder payload_;
  const std::uint64_t start_;
  std::uint64_t earliest_;  // ns; minimum time of the next event
  std::uint64_t written_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_
