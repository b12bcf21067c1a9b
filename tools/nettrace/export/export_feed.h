// Feeds the events of a reader to an exporter.
#ifndef TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_
#define TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/time_ordered_reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/trace/event_filter.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"

namespace tools {

// Passes the contents of a file to an exporter: losses, and the events that pass the filter, in
// order of time.
class ExportFeed {
 public:
  // `filter` must outlive this object.
  ExportFeed(const trace::EventFilter& filter, trace::PayloadStyle payloads,
             std::unique_ptr<nettrace::Reader> reader);

  // Returns the error of the exporter or of the temporary file for sorting. Returns Cancelled after
  // a signal (tools/cli/signals.h).
  absl::Status Run(exporting::Exporter* exporter);

  const nettrace::Reader& reader() const { return reader_; }
  bool sort_failed() const { return !ordered_.sort_status().ok(); }
  std::uint64_t events() const { return events_; }
  std::uint64_t lost() const { return lost_; }

 private:
  using Step = nettrace::Reader::Step;

  absl::Status OnEvent(const nettrace::Event& event, exporting::Exporter* exporter);
  absl::Status OnSequencePoint(const nettrace::SequencePoint& point, exporting::Exporter* exporter);
  // Passes losses by their time alone, because the lost events are unknown.
  absl::Status OnLoss(const exporting::Loss& loss, exporting::Exporter* exporter);

  const trace::EventFilter& filter_;
  trace::PayloadJson payloads_;
  nettrace::TimeOrderedReader ordered_;
  nettrace::Reader& reader_;
  trace::ProcessNames processes_;
  absl::Time now_ = absl::InfinitePast();  // time of the last step
  std::uint64_t events_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace tools

#endif  // TOOLS_NETTRACE_EXPORT_EXPORT_FEED_H_
