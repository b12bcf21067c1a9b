#include "tools/nettrace/export/otlp/otlp_exporter.h"

#include <cstdint>
#include <limits>

#include "tools/base/status_macros.h"

namespace tools::otlp {

OtlpExporter::OtlpExporter(Encoding encoding, trace::PayloadStyle payloads,
                           const nettrace::TraceInfo& trace, nettrace::Sink* sink,
                           const RequestLimits& limits)
    : encoding_(encoding),
      output_(sink),
      requests_(encoding, payloads, trace, limits,
                [this](std::string_view request) { return Write(request); }) {}

absl::Status OtlpExporter::Finish() {
  RETURN_IF_ERROR(requests_.Flush());
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
