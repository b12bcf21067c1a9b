#include "tools/nettrace/export/otlp/otlp_exporter.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"

namespace tools::otlp {

OtlpRecords::OtlpRecords(const OtlpForm& form, const nettrace::TraceInfo& trace,
                         const RequestLimits& limits, const RequestBatch::Send& send)
    : requests_(form.encoding, trace, limits, send) {
  if (form.signal == Signal::kLogs) return;
  SpanOptions spans;
  spans.all_providers = spans.without_logs = true;
  spans.send = send;
  requests_.MakeSpans(std::move(spans), limits);
}

std::string OtlpRecords::Remark() const {
  if (requests_.incomplete_spans() == 0) return "";
  return absl::StrCat(base::Counted(requests_.incomplete_spans(), "event"),
                      " without the other end of an activity (its start or stop); such a start is "
                      "a span without duration, with the attribute nettrace.span.incomplete");
}

OtlpExporter::OtlpExporter(const OtlpForm& form, const nettrace::TraceInfo& trace,
                           nettrace::Sink* sink, const RequestLimits& limits)
    : OtlpRecords(form, trace, limits,
                  [this](const RequestBatch&, std::string_view request) { return Write(request); }),
      encoding_(form.encoding),
      output_(sink) {}

absl::Status OtlpExporter::Finish() {
  RETURN_IF_ERROR(OtlpRecords::Finish());
  return output_.Flush();
}

absl::Status OtlpExporter::Write(std::string_view request) {
  std::string& out = *output_.text();
  if (encoding_ == Encoding::kJson) {
    out += request;
    out += '\n';
    return output_.Appended();
  }
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(request.size() >> shift);
  out += request;
  return output_.Appended();
}

}  // namespace tools::otlp
