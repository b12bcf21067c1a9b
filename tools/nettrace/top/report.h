// What `nettrace top --once` prints.
#ifndef TOOLS_NETTRACE_TOP_REPORT_H_
#define TOOLS_NETTRACE_TOP_REPORT_H_

#include <string>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"

namespace tools::top {

// A table of one view, all of its rows in the order of `column`, with two lines before it. Ends
// with a line feed; Printable.
std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse);

// An object of all views, in one line without its end; Printable.
std::string ReportJson(const Snapshot& snapshot, bool is_complete);

// The lines before the table, which the screen has, too.
std::string TotalsText(const Snapshot& snapshot);
std::string ActivitiesText(const Snapshot& snapshot);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_REPORT_H_
