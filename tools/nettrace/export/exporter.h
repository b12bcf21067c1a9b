// The interface of export formats. `nettrace export` passes events and losses in the order of the
// file's intervals, and in order of time within each interval.
#ifndef TOOLS_NETTRACE_EXPORT_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_EXPORTER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"

namespace tools::exporting {

// An event and its properties. All pointers and views are valid only during the call of OnEvent.
struct ExportedEvent {
  const nettrace::Event* event = nullptr;
  absl::Time time;
  std::string_view process;  // name of the event's process; empty if unknown
  // Formats the payload as `nettrace dump --json` does, or as `dump --json --raw` for an export
  // with --raw.
  trace::PayloadJson* payloads = nullptr;
};

class Exporter {
 public:
  virtual ~Exporter() = default;
  // Returns whether the format represents the stacks of events.
  virtual bool keeps_stacks() const { return false; }
  // Writes an event. Fails with Unimplemented if the format cannot represent the contents of the
  // file; all other errors are errors of the output. No function may be called after an error.
  virtual absl::Status OnEvent(const ExportedEvent& event) = 0;
  // Receives an event that the filter does not select. Some exporters need it, for example because
  // it describes a loss or the code that a process runs. The event is valid only during the call.
  virtual void OnOtherEvent(const nettrace::Event& /*event*/) {}
  // Writes a loss. Fails like OnEvent.
  virtual absl::Status OnLoss(const trace::Loss& loss) = 0;
  // Must be called when the metadata rows of all previous events become invalid. With
  // `threads_too`, later events may reuse thread indices for other threads.
  virtual void OnRowsEnd(bool threads_too) = 0;
  // Completes the output after the last event.
  virtual absl::Status Finish() = 0;
  // Returns text for the user that states what the exporter has changed or left out, because the
  // format cannot represent it; "" if there is nothing to report.
  virtual std::string Remark() const { return ""; }
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_EXPORTER_H_
