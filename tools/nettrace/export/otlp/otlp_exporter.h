// Writes logs or spans of OTLP, the protocol of OpenTelemetry, to a file. The file has the form of
// the file exporter of the OpenTelemetry collector: requests in protobuf, each after its length in
// 4 bytes, big-endian; or requests in JSON, each on one line. See log_requests.h for the contents.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_OTLP_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_OTLP_EXPORTER_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/otlp/log_requests.h"

namespace tools::otlp {

struct OtlpForm {
  Encoding encoding = Encoding::kProtobuf;
  Signal signal = Signal::kLogs;
};

// Makes requests of OTLP from events, with log records or spans, and passes them to a function.
// With Signal::kSpans, the activities of all providers become spans.
class OtlpRecords : public exporting::Exporter {
 public:
  // `trace` must outlive this object.
  OtlpRecords(const OtlpForm& form, const nettrace::TraceInfo& trace, const RequestLimits& limits,
              const RequestBatch::Send& send);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override {
    return requests_.OnEvent(event);
  }
  void OnOtherEvent(const nettrace::Event& event) override { requests_.OnOtherEvent(event); }
  absl::Status OnLoss(const trace::Loss& loss) override { return requests_.OnLoss(loss); }
  void OnRowsEnd(bool /*threads_too*/) override { requests_.OnRowsEnd(); }
  absl::Status Finish() override { return requests_.Finish(); }
  // Reports starts without a stop, and stops without a start.
  std::string Remark() const override;

 private:
  LogRequests requests_;
};

class OtlpExporter : public OtlpRecords {
 public:
  // `trace` and `sink` must outlive this object.
  OtlpExporter(const OtlpForm& form, const nettrace::TraceInfo& trace, nettrace::Sink* sink,
               const RequestLimits& limits = {});

  absl::Status Finish() override;

 private:
  absl::Status Write(std::string_view request);

  const Encoding encoding_;
  base::TextOutput output_;
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_OTLP_EXPORTER_H_
