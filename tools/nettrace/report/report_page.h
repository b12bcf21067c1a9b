// The page of `nettrace report`: HTML that needs nothing but itself. Sums and tables are HTML
// already; its script draws the rest from JSON.
#ifndef TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_
#define TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "nettrace/sink.h"
#include "tools/common/account_summary.h"
#include "tools/nettrace/report/report_model.h"

namespace tools::report {

// What the page says beside the model.
struct ReportFacts {
  std::string name;    // of the file
  std::string chosen;  // how events were chosen, for people; empty: all were
  std::string damage;  // why reading stopped before the end; empty: it did not
  AccountSummary account;
  std::uint64_t process_events = 0;  // not among the model's, unless they were asked for
  std::uint64_t account_events = 0;
};

// Writes the page of what `reader` has read.
absl::Status WriteReportPage(const nettrace::Reader& reader, const ReportModel& model,
                             const ReportFacts& facts, nettrace::Sink* sink);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_
