// Writes the trace-event format, JSON that chrome://tracing and Perfetto read:
// {"traceEvents":[...]}.
//
// An event becomes an instant on its thread, with the payload among its arguments. An event with
// the opcode start and an activity id begins a slice with this id instead. An event with the opcode
// stop and this id ends the slice. The stop gets the name and category of the start, by which
// readers match them. Readers add the arguments of the stop to the arguments of the start, so the
// object `stop` contains the arguments of the stop. A stop without a start is an instant, because
// readers would drop it. Lost events become an instant and a counter.
//
// Speedscope does not show instants, counters and slices with an id. In an output for speedscope,
// each completed slice becomes a call on the thread that began it. All other events are left out.
// Losses are written, but not shown.
//
// Times are in microseconds with three decimals, since the time at which the file's clock was 0.
// Times since 1970 would be rounded, because readers store times as doubles.
#ifndef TOOLS_NETTRACE_EXPORT_JSON_TRACE_EVENT_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_JSON_TRACE_EVENT_EXPORTER_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/base/json_text.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/trace/timeline.h"

namespace tools::json {

enum class Profile : std::uint8_t { kPlain, kSpeedscope };

class TraceEventExporter : public exporting::Exporter {
 public:
  // `sink` must outlive this object.
  TraceEventExporter(const nettrace::Reader& reader, Profile profile, nettrace::Sink* sink);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool /*threads_too*/) override {}
  absl::Status Finish() override;

 private:
  // Begins an object and writes the common members. `phase` is the format's letter for the kind of
  // event.
  void Begin(std::string_view name, const char* phase, absl::Time time, const trace::Ids& ids);
  absl::Status End();
  // Returns the text before the next object: the head of the file for the first one, else a comma.
  std::string_view TakeSeparator();
  // Writes the name of a process (`kind` is process_name) or thread (thread_name).
  absl::Status PutName(const char* kind, const trace::Ids& ids, std::string_view name);
  absl::Status PutEvent(const exporting::ExportedEvent& event, const trace::Ids& ids);
  absl::Status PutCall(const exporting::ExportedEvent& event, const trace::Ids& ids);
  // Writes an arrow from the beginning of the slice to the event. `to_ids` are the ids of the
  // event's process and thread.
  absl::Status PutArrow(const trace::OpenSlices::Slice& from, const trace::Ids& to_ids,
                        const exporting::ExportedEvent& to);
  void PutTime(const char* key, absl::Duration duration);

  const absl::Time clock_start_;
  const Profile profile_;
  base::TextOutput output_;
  rapidjson::StringBuffer buffer_;
  base::JsonWriter json_;
  bool is_first_ = true;
  trace::HostIds host_ids_;
  trace::KnownNames names_;
  trace::OpenSlices slices_;
  std::uint64_t arrows_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace tools::json

#endif  // TOOLS_NETTRACE_EXPORT_JSON_TRACE_EVENT_EXPORTER_H_
