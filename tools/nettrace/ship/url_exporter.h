// Sends the records of `nettrace export --to otlp` to a receiver instead of a file.
#ifndef TOOLS_NETTRACE_SHIP_URL_EXPORTER_H_
#define TOOLS_NETTRACE_SHIP_URL_EXPORTER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/reader.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/export/otlp/otlp_exporter.h"
#include "tools/nettrace/ship/connection_options.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/http_client.h"

namespace tools::ship {

// Prints messages about retries and refused records. Not thread-safe.
class UrlExporter : public otlp::OtlpRecords {
 public:
  // Fails like HttpClient::Create. `trace` must outlive the result.
  static absl::StatusOr<std::unique_ptr<UrlExporter>> Create(const ConnectionOptions& options,
                                                             const std::string& url,
                                                             const otlp::OtlpForm& form,
                                                             const nettrace::TraceInfo& trace);

  const DeliveryCounts& delivered() const { return delivery_.counts(); }

 private:
  UrlExporter(const ConnectionOptions& options, const std::string& url, const otlp::OtlpForm& form,
              const nettrace::TraceInfo& trace, std::unique_ptr<HttpClient> client);

  const std::unique_ptr<HttpClient> client_;
  Delivery delivery_;
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_URL_EXPORTER_H_
