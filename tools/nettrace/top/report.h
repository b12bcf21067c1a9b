// Formats the output of `nettrace top --once`.
#ifndef TOOLS_NETTRACE_TOP_REPORT_H_
#define TOOLS_NETTRACE_TOP_REPORT_H_

#include <string>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"

namespace tools::top {

// Returns two lines of totals, and a table with all rows of one view, sorted by `column`. The text
// ends with a line feed. Control characters from the stream are escaped.
std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse);

// Returns a JSON object with all views, on one line without a line feed. Control characters from
// the stream are escaped.
std::string ReportJson(const Snapshot& snapshot, bool is_complete);

// Each returns a line that stands above the table, in the text report and on the screen.
std::string TotalsText(const Snapshot& snapshot);
std::string ActivitiesText(const Snapshot& snapshot);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_REPORT_H_
