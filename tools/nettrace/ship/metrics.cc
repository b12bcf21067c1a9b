#include "tools/nettrace/ship/metrics.h"

#include <cstddef>
#include <memory>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "nettrace/sink.h"
#include "tools/base/open_metrics.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/output/atomic_file.h"

namespace tools::ship {

std::string FormatMetrics(const ShipMetrics& metrics) {
  std::string text;
  const auto count = [&](const char* name, const char* unit, const char* help,
                         std::uint64_t value) {
    const std::string family = absl::StrCat("nettrace_ship_", name);
    base::PutMetricFamily(&text, family, base::kCounter, unit, help);
    absl::StrAppend(&text, family, "_total ", value, "\n");
  };
  const auto gauge = [&](const char* name, const char* unit, const char* help, double value) {
    const std::string family = absl::StrCat("nettrace_ship_", name);
    base::PutMetricFamily(&text, family, base::kGauge, unit, help);
    absl::StrAppendFormat(&text, "%s %.15g\n", family, value);
  };
  const ShipTotals& totals = metrics.totals;
  count("accepted_records", "", "Log records that the receiver accepted.", totals.accepted);
  count("rejected_records", "", "Log records that the receiver rejected in a partial success.",
        totals.rejected);
  count("refused_records", "", "Log records in requests that the receiver refused.",
        totals.refused);
  count("accepted_spans", "", "Spans that the receiver accepted.", totals.spans);
  count("refused_spans", "", "Spans that the receiver rejected or refused.", totals.refused_spans);
  count("lost_files", "", "Files that were deleted before they were sent.", totals.lost_files);
  count("missing_sections", "", "Sections that were deleted before they were sent.",
        totals.missing_sections);
  count("missing_events", "", "Events of the missing sections that were not sent.",
        totals.missing_events);
  count("requests", "", "Requests of this run, including retries.", metrics.sent.requests);
  count("retries", "", "Requests of this run that were sent again.", metrics.sent.retries);
  count("sent_bytes", "bytes", "Bytes of the bodies of requests of this run.", metrics.sent.bytes);
  gauge("waiting_files", "", "Files that have not been sent completely yet.",
        static_cast<double>(metrics.waiting_files));
  gauge("behind_seconds", "seconds",
        "Age of the oldest file that has not been sent completely yet.",
        absl::ToDoubleSeconds(metrics.behind));
  gauge("failing", "", "1 if the last request must be sent again, else 0.",
        metrics.is_failing ? 1 : 0);
  return text + base::kMetricsEnd;
}

absl::Status WriteMetrics(const ShipMetrics& metrics, const std::string& path) {
  constexpr mode_t kReadableByAll = 0644;
  const std::string text = FormatMetrics(metrics);
  const auto write = [&]() -> absl::Status {
    output::AtomicFile file(path);
    output::FileAccess access;
    access.mode = kReadableByAll;
    ASSIGN_OR_RETURN(const std::unique_ptr<nettrace::FdSink> sink, file.Create(access));
    std::size_t taken = 0;
    RETURN_IF_ERROR(sink->Append(std::as_bytes(std::span(text)), &taken));
    return file.Keep();
  };
  absl::Status status = write();
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(base::Printable(path), ": ", status.message()));
}

}  // namespace tools::ship
