#include "tools/nettrace/report/stack_page.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/quantities.h"
#include "tools/base/text.h"
#include "tools/nettrace/report/html.h"

namespace tools::report {
namespace {

std::string NameOf(const FlameGraph::View& view, const std::vector<Kind>& kinds) {
  if (view.what == FlameGraph::What::kCpu) return "CPU samples";
  if (view.what == FlameGraph::What::kOffCpu) return "Time off the CPU";
  const Kind& kind = kinds[view.kind];
  return absl::StrCat(kind.name, " (", kind.provider, ")");
}

// Returns a sum of the view with its unit.
std::string SumText(const FlameGraph::View& view, std::uint64_t sum) {
  if (view.what == FlameGraph::What::kOffCpu) return base::FormatDuration(sum);
  return base::Counted(sum, view.what == FlameGraph::What::kCpu ? "sample" : "event");
}

std::string Percent(std::uint64_t part, std::uint64_t whole) {
  constexpr double kPercent = 100;
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f %%",
                         kPercent * static_cast<double>(part) / static_cast<double>(whole));
}

// Writes three numbers for each sum: its node, its thread and its weight.
void PutSums(const char* key, const std::vector<FlameGraph::Sum>& sums, base::JsonWriter* json) {
  json->Key(key);
  json->StartArray();
  for (const FlameGraph::Sum& sum : sums) {
    base::PutInteger(json, std::uint64_t{sum.node});
    base::PutInteger(json, std::uint64_t{sum.thread});
    base::PutInteger(json, sum.weight);
  }
  json->EndArray();
}

}  // namespace

std::string StackNotes(const FlameGraph& graph) {
  std::string html;
  const auto add = [&html](std::uint64_t events, std::string_view text) {
    if (events == 0) return;
    const char* const verb = events == 1 ? " has " : " have ";
    absl::StrAppend(&html, "<p class=\"note\">", base::Counted(events, "event"), verb,
                    HtmlText(text), "</p>\n");
  };
  add(graph.unnamed,
      absl::StrCat("functions without a name on the stack, of ",
                   base::Counted(graph.events, "event"),
                   " with stacks. They are shown as module+offset, or as an address. 'nettrace "
                   "symbolize FILE' looks up the names."));
  add(graph.cut,
      "an incomplete stack, because the stack has more functions than were recorded "
      "(--stacks=max), or because its part in user space came too late.");
  add(graph.over_limit,
      "a stack that is not in the sums, because there are too many different stacks. Select events "
      "with the filters of nettrace report.");
  add(graph.events_of_no_view,
      absl::StrCat("a stack that is not shown, because only the ", kMaxViews,
                   " kinds with the most events are shown. Select other kinds with --event."));
  add(graph.without_weight,
      "a stack that is not in the sums, because the event does not state its time off the CPU.");
  return html;
}

std::string StackTables(const FlameGraph& graph, const std::vector<Kind>& kinds) {
  std::string html;
  for (std::size_t i = 0; i < graph.views.size(); ++i) {
    const FlameGraph::View& view = graph.views[i];
    std::string caption =
        absl::StrCat("Functions by self: ", NameOf(view, kinds), ", ", SumText(view, view.total));
    if (view.functions.size() < view.all_functions) {
      absl::StrAppend(&caption, ": the largest ", view.functions.size(), " of ",
                      base::FormatGrouped(view.all_functions));
    }
    HtmlTable table(absl::StrCat("functions-", i), caption,
                    {{"Function"},
                     {"Self", HtmlTable::Column::kNumber},
                     {"Share", HtmlTable::Column::kNumber},
                     {"With callees", HtmlTable::Column::kNumber},
                     {"Share", HtmlTable::Column::kNumber}});
    for (const FlameGraph::FunctionRow& row : view.functions) {
      table.Text(row.text);
      for (const std::uint64_t sum : {row.self, row.total}) {
        if (view.what == FlameGraph::What::kOffCpu) {
          table.Duration(sum);
        } else {
          table.Number(sum);
        }
        table.Number(sum, Percent(sum, view.total));
      }
    }
    html += std::move(table).Finish();
  }
  return html;
}

void PutStacks(const FlameGraph& graph, const std::vector<Kind>& kinds, base::JsonWriter* json) {
  if (graph.views.empty()) {
    json->Null();
    return;
  }
  json->StartObject();
  json->Key("hasThreads");
  json->Bool(graph.has_threads);
  json->Key("functions");
  json->StartArray();
  for (const FlameGraph::Function& function : graph.functions) {
    json->StartArray();
    base::PutString(json, function.text);
    base::PutInteger(json, std::uint64_t{static_cast<std::uint8_t>(function.code)});
    json->EndArray();
  }
  json->EndArray();
  // Writes two numbers for each node except the root: the indices of its parent and of its
  // function.
  json->Key("nodes");
  json->StartArray();
  for (std::size_t i = 1; i < graph.nodes.size(); ++i) {
    base::PutInteger(json, std::uint64_t{graph.nodes[i].parent});
    base::PutInteger(json, std::uint64_t{graph.nodes[i].function});
  }
  json->EndArray();
  json->Key("views");
  json->StartArray();
  for (const FlameGraph::View& view : graph.views) {
    json->StartObject();
    base::PutText(json, "name", NameOf(view, kinds));
    base::PutText(json, "unit",
                  view.what == FlameGraph::What::kOffCpu ? "ns"
                  : view.what == FlameGraph::What::kCpu  ? "sample"
                                                         : "event");
    base::PutNumber(json, "events", view.events);
    base::PutNumber(json, "total", view.total);
    base::PutNumber(json, "leftOut", view.left_out);
    PutSums("self", view.self, json);
    PutSums("below", view.below, json);
    json->EndObject();
  }
  json->EndArray();
  json->EndObject();
}

}  // namespace tools::report
