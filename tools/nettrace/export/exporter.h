// What `nettrace export` asks of a format: events in the order of the file's intervals and, in
// each, of time; what was lost between them; the end.
#ifndef TOOLS_NETTRACE_EXPORT_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_EXPORTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"

namespace tools::exporting {

// What a file says of an event. All of it is valid during the call only.
struct ExportedEvent {
  const nettrace::Event* event = nullptr;
  absl::Time time;
  std::string_view process;  // the name of its process; empty if the file does not say it
  // For exporters that want it: the payload as `nettrace dump --json` shows it, and why it does not
  // fit its fields, empty if it does.
  std::string_view payload_json;
  std::string_view payload_error;
};

struct Loss {
  nettrace::ThreadIndex capture_thread_index = nettrace::kNoThread;  // the one that lost the events
  const nettrace::ThreadInfo* capture_thread = nullptr;
  std::uint64_t count = 0;
  absl::Time time;                        // they are missing before it
  const nettrace::Event* next = nullptr;  // the event before which they are; null if none came
};

class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual bool wants_payload_json() const { return false; }
  // Unimplemented says that the format cannot have what the file has; all other errors are the
  // output's. After an error nothing more is to be called.
  virtual absl::Status OnEvent(const ExportedEvent& event) = 0;
  virtual absl::Status OnLoss(const Loss& loss) = 0;
  // The metadata of events so far becomes invalid; with `threads_too`, indices of threads may be
  // given to others.
  virtual void OnRowsEnd(bool threads_too) = 0;
  // All that was given is written.
  virtual absl::Status Finish() = 0;
  // What became another in the format; empty if nothing did.
  virtual std::string Remark() const { return ""; }
};

}  // namespace tools::exporting

#endif  // TOOLS_NETTRACE_EXPORT_EXPORTER_H_
