// Writes the page of `nettrace report`, a single HTML file without external resources. Totals and
// tables are HTML; a script draws the rest from JSON.
#ifndef TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_
#define TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nettrace/sink.h"
#include "tools/nettrace/report/findings.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/trace/account_summary.h"

namespace tools::report {

// Holds the facts on the page that are not in the model.
struct ReportFacts {
  std::string name;    // the file's name
  std::string chosen;  // the options that selected events; "" if all were
  std::string damage;  // why reading stopped early; "" if it did not
  std::vector<Finding> findings;
  trace::AccountSummary account;
  std::uint64_t process_events = 0;  // not in the model unless they were selected
  std::uint64_t account_events = 0;
};

// Returns the bytes that a page of `size` bytes has for single events. The first pass over the file
// must have ended, and no events may have been selected. Fails if the page would be larger even
// without single events.
absl::StatusOr<std::size_t> BytesForEvents(const nettrace::Reader& reader, const ReportModel& model,
                                           const ReportFacts& facts, std::uint64_t size);

// Writes the page for the events that `reader` has read.
absl::Status WriteReportPage(const nettrace::Reader& reader, const ReportModel& model,
                             const ReportFacts& facts, nettrace::Sink* sink);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_
