// Formats the output of `nettrace top --once`.
#ifndef TOOLS_NETTRACE_TOP_REPORT_H_
#define TOOLS_NETTRACE_TOP_REPORT_H_

#include <string>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"

namespace tools::top {

// Returns a table with all rows of one view, sorted by `column`, after two lines of totals. Ends
// with a line feed. Printable.
std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse);

// Returns an object with all views, on one line without a line feed. Printable.
std::string ReportJson(const Snapshot& snapshot, bool is_complete);

// Each returns a line that stands above the table, in the text report and on the screen.
std::string TotalsText(const Snapshot& snapshot);
std::string ActivitiesText(const Snapshot& snapshot);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_REPORT_H_
