#include "tools/nettrace/ship/url_exporter.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "tools/base/monotonic_clock.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/ship/wait.h"

namespace tools::ship {

absl::StatusOr<std::unique_ptr<UrlExporter>> UrlExporter::Create(const ConnectionOptions& options,
                                                                 const std::string& url,
                                                                 const otlp::OtlpForm& form,
                                                                 const nettrace::TraceInfo& trace) {
  ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client,
                   HttpClient::Create(HttpSettingsFor(options, url, form.encoding)));
  return std::unique_ptr<UrlExporter>(
      new UrlExporter(options, url, form, trace, std::move(client)));
}

UrlExporter::UrlExporter(const ConnectionOptions& options, const std::string& url,
                         const otlp::OtlpForm& form, const nettrace::TraceInfo& trace,
                         std::unique_ptr<HttpClient> client)
    : OtlpRecords(form, trace, {},
                  [this](const otlp::RequestBatch& batch, std::string_view request) {
                    return delivery_.Deliver(batch, request);
                  }),
      client_(std::move(client)),
      delivery_(DeliveryOptionsFor(options, url, /*once=*/true),
                {.post = [this](std::string_view body) { return client_->Post(body); },
                 .renew = [this] { return client_->ReadHeadersAgain(); },
                 .wait = Sleep,
                 .done = [](std::size_t, std::uint64_t) { return absl::OkStatus(); },
                 .report =
                     [](const std::string& message) {
                       absl::FPrintF(stderr, "nettrace export: %s\n", message);
                     },
                 .now = base::MonotonicNow}) {}

}  // namespace tools::ship
