// Feeds the events of a reader to an exporter.
#ifndef TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_
#define TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"

namespace tools {

// Passes the contents of a file to an exporter: losses, and the events that pass the filter, in
// order of time within each interval of the file.
class ExportFeed {
 public:
  // `filter` must outlive this object.
  ExportFeed(const trace::EventFilter& filter, trace::PayloadStyle payloads,
             std::unique_ptr<nettrace::Reader> reader)
      : payloads_(payloads),
        stream_(std::move(reader), {.filter = &filter, .names = &processes_}) {}

  // Passes the whole file to the exporter. Returns the first error of the exporter, or of the
  // temporary file in which events are sorted. Returns Cancelled after a signal
  // (tools/cli/signals.h). Damage of the file is no error: reader().status() reports it.
  absl::Status Run(exporting::Exporter* exporter);

  const nettrace::Reader& reader() const { return stream_.reader(); }
  bool sort_failed() const { return !stream_.sort_status().ok(); }
  std::uint64_t events() const { return events_; }
  std::uint64_t stacks() const { return stacks_; }  // events that have a stack
  std::uint64_t lost() const { return lost_; }

 private:
  absl::Status OnEvent(const nettrace::Event& event, exporting::Exporter* exporter);

  trace::PayloadJson payloads_;
  trace::ProcessNames processes_;
  trace::EventStream stream_;
  std::uint64_t events_ = 0;
  std::uint64_t stacks_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_
