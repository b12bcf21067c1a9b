// Process events into NetTrace events of the provider Universal.System, from which TraceEvent takes
// the names of processes, their beginning and their end: ids 0 ExistingProcess, 1 ProcessCreate and
// 2 ProcessExit. Their capture thread has no other events; their thread is the process's main one.
#ifndef TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_
#define TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/payload_encoder.h"
#include "nettrace/writer.h"
#include "tools/collector/identity/task_tracker.h"

namespace collector {

// Not thread-safe.
class ProcessWriter {
 public:
  // Both outlive this object.
  ProcessWriter(nettrace::Writer* writer, TaskTracker* tasks);
  // The encoder refers to the fields.
  ProcessWriter(const ProcessWriter&) = delete;
  ProcessWriter& operator=(const ProcessWriter&) = delete;

  // Writes what has happened up to `limit`. To be called before a sequence point of that time: what
  // becomes known of an earlier time afterwards is written with a later one.
  absl::Status Write(std::uint64_t limit);
  // The trace's thread rows were flushed.
  void ForgetRows() { capture_thread_ = nettrace::kNoThread; }

  // Events written so far.
  std::uint64_t written() const { return written_; }

 private:
  absl::StatusOr<nettrace::MetadataId> MetadataRow(ProcessEvent::Kind kind);
  absl::Status WriteOne(const ProcessEvent& event);

  nettrace::Writer* writer_;
  TaskTracker* tasks_;
  nettrace::ThreadIndex capture_thread_ = nettrace::kNoThread;
  std::array<nettrace::MetadataId, 3> rows_ = {};  // by kind; kNoMetadata until it is needed
  std::vector<nettrace::Field> fields_;            // of ids 0 and 1
  nettrace::PayloadEncoder payload_;
  std::uint64_t earliest_ = 0;  // no later event may be before it
  std::uint64_t written_ = 0;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONVERT_PROCESS_WRITER_H_
