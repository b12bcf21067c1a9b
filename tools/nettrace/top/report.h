// Formats the output of `nettrace top --once`.
#ifndef TOOLS_NETTRACE_TOP_REPORT_H_
#define TOOLS_NETTRACE_TOP_REPORT_H_

#include <cstddef>
#include <string>

#include "tools/nettrace/top/model.h"
#include "tools/nettrace/top/numbers.h"
#include "tools/nettrace/top/table.h"

namespace tools::top {

struct TableStyle {
  std::size_t width = kAnyWidth;  // columns of the terminal
  bool has_colors = false;
};

// Returns two lines of totals, and a table with all rows of one view, sorted by `column`. The text
// ends with a line feed. Control characters from the stream are escaped.
std::string ReportText(const Snapshot& snapshot, View view, Column column, bool reverse,
                       const TableStyle& style = {});

// Returns a JSON object with all views, on one line without a line feed. Control characters from
// the stream are escaped.
std::string ReportJson(const Snapshot& snapshot, bool is_complete);

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_REPORT_H_
