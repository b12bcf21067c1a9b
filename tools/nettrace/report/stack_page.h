// Writes the parts of the page of `nettrace report` that are about stacks.
#ifndef TOOLS_NETTRACE_REPORT_STACK_PAGE_H_
#define TOOLS_NETTRACE_REPORT_STACK_PAGE_H_

#include <string>
#include <vector>

#include "tools/base/json_text.h"
#include "tools/nettrace/report/flame_graph.h"
#include "tools/nettrace/report/report_model.h"

namespace tools::report {

// Returns sentences, as HTML, about events that the sums do not contain and about missing names.
std::string StackNotes(const FlameGraph& graph);
// Returns a table of functions for each view, as HTML.
std::string StackTables(const FlameGraph& graph, const std::vector<Kind>& kinds);
// Writes the graph as JSON; null if it has no view.
void PutStacks(const FlameGraph& graph, const std::vector<Kind>& kinds, base::JsonWriter* json);

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_STACK_PAGE_H_
