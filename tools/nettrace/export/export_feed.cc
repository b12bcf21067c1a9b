#include "tools/nettrace/export/export_feed.h"

#include "tools/base/status_macros.h"
#include "tools/cli/signals.h"

namespace tools {

absl::Status ExportFeed::Run(exporting::Exporter* exporter) {
  using Step = trace::EventStream::Step;
  for (Step step = stream_.Next(); step != Step::kEnd; step = stream_.Next()) {
    if (cli::IsStopRequested()) return absl::CancelledError("stopped by a signal");
    if (step == Step::kEvent) {
      RETURN_IF_ERROR(OnEvent(stream_.event(), exporter));
    } else if (step == Step::kOtherEvent) {
      exporter->OnOtherEvent(stream_.event());
    } else if (step == Step::kLoss) {
      lost_ += stream_.loss().count;
      RETURN_IF_ERROR(exporter->OnLoss(stream_.loss()));
    } else if (step == Step::kSequencePoint) {
      payloads_.ForgetRows();
      exporter->OnRowsEnd((stream_.sequence_point().flags & nettrace::kSequencePointFlushThreads) !=
                          0);
    }
  }
  RETURN_IF_ERROR(stream_.sort_status());
  return exporter->Finish();
}

absl::Status ExportFeed::OnEvent(const nettrace::Event& event, exporting::Exporter* exporter) {
  ++events_;
  if (!event.stack.empty()) ++stacks_;
  exporting::ExportedEvent exported;
  exported.event = &event;
  exported.time = stream_.time();
  exported.process = processes_.NameOf(*event.thread);
  exported.payloads = &payloads_;
  return exporter->OnEvent(exported);
}

}  // namespace tools
