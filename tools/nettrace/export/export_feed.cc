#include "tools/nettrace/export/export_feed.h"

#include <string>
#include <utility>

#include "tools/base/json_text.h"
#include "tools/cli/signals.h"

namespace tools {

ExportFeed::ExportFeed(const trace::EventFilter& filter, trace::PayloadStyle payloads,
                       std::unique_ptr<nettrace::Reader> reader)
    : filter_(filter),
      payloads_(payloads),
      ordered_(std::move(reader)),
      reader_(ordered_.reader()) {}

absl::Status ExportFeed::Run(exporting::Exporter* exporter) {
  for (Step step = ordered_.Next(); step != Step::kEnd; step = ordered_.Next()) {
    if (cli::IsStopRequested()) return absl::CancelledError("stopped by a signal");
    absl::Status status;
    if (step == Step::kEvent) {
      status = OnEvent(ordered_.event(), exporter);
    } else if (step == Step::kSequencePoint) {
      status = OnSequencePoint(ordered_.sequence_point(), exporter);
    } else {
      const nettrace::RemovedThread& removed = ordered_.removed_thread();
      status = OnLoss({removed.thread_index, removed.thread, removed.lost, now_}, exporter);
    }
    if (!status.ok()) return status;
  }
  return ordered_.sort_status().ok() ? exporter->Finish() : ordered_.sort_status();
}

absl::Status ExportFeed::OnEvent(const nettrace::Event& event, exporting::Exporter* exporter) {
  now_ = reader_.TimeOf(event.timestamp);
  const exporting::Loss loss = {event.capture_thread_index, event.capture_thread, event.lost_before,
                                now_, &event};
  if (absl::Status status = OnLoss(loss, exporter); !status.ok()) return status;
  processes_.OnEvent(event);
  if (!filter_.Passes(reader_, event)) return absl::OkStatus();
  ++events_;
  exporting::ExportedEvent exported;
  exported.event = &event;
  exported.time = now_;
  exported.process = processes_.NameOf(*event.thread);
  if (!exporter->wants_payload_json()) return exporter->OnEvent(exported);
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  const std::string error(payloads_.Put(event, &json).message());
  exported.payload_json = {buffer.GetString(), buffer.GetSize()};
  exported.payload_error = error;
  return exporter->OnEvent(exported);
}

absl::Status ExportFeed::OnSequencePoint(const nettrace::SequencePoint& point,
                                         exporting::Exporter* exporter) {
  now_ = reader_.TimeOf(point.timestamp);
  for (const nettrace::SequencePoint::Loss& lost : point.losses) {
    const exporting::Loss loss = {lost.thread_index, lost.thread, lost.count, now_};
    if (absl::Status status = OnLoss(loss, exporter); !status.ok()) return status;
  }
  payloads_.ForgetRows();
  exporter->OnRowsEnd((point.flags & nettrace::kSequencePointFlushThreads) != 0);
  return absl::OkStatus();
}

absl::Status ExportFeed::OnLoss(const exporting::Loss& loss, exporting::Exporter* exporter) {
  if (loss.count == 0) return absl::OkStatus();
  if ((filter_.from && loss.time < *filter_.from) || (filter_.to && loss.time >= *filter_.to)) {
    return absl::OkStatus();
  }
  lost_ += loss.count;
  return exporter->OnLoss(loss);
}

}  // namespace tools
