// Writes the page of `nettrace report`, a single HTML file without external resources. Totals and
// tables are HTML. The page's script draws charts and lists from JSON in the page.
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
#include "tools/nettrace/report/flame_graph.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/trace/account_summary.h"

namespace tools::report {

// Holds what the page shows and ReportModel does not contain.
struct ReportFacts {
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::string damage;  // like ReportFacts::damage
  };
  std::string name;         // the title: the name of the file, or of several files
  std::vector<File> files;  // if there are several; else empty
  std::string chosen;       // the options that selected events; "" if all events are selected
  // The damage at which reading stopped; "" if the file was read to its end, or if there are
  // several files.
  std::string damage;
  bool is_complete = true;  // whether all files have their end block
  std::vector<Finding> findings;
  trace::AccountSummary account;
  FlameGraph stacks;
  // Events that describe processes, and events of the account. The model counts them only if an
  // option selects them.
  std::uint64_t process_events = 0;
  std::uint64_t account_events = 0;
};

// Returns how many bytes a page of at most `size` bytes has left for single events. Must be called
// between the two passes over the file. Fails if the page would be larger than `size` even without
// single events.
absl::StatusOr<std::size_t> BytesForEvents(const nettrace::Reader& reader, const ReportModel& model,
                                           const ReportFacts& facts, std::uint64_t size);

// Writes the page to `sink`. `reader` is the reader of the first pass, and has read the file.
absl::Status WriteReportPage(const nettrace::Reader& reader, const ReportModel& model,
                             const ReportFacts& facts, nettrace::Sink* sink);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_REPORT_PAGE_H_
