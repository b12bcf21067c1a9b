// Sums the stacks of a file for the page of `nettrace report`, and selects the functions that the
// page has room for.
#ifndef TOOLS_NETTRACE_REPORT_FLAME_GRAPH_H_
#define TOOLS_NETTRACE_REPORT_FLAME_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"
#include "tools/trace/code_map.h"
#include "tools/trace/stack_tree.h"

namespace tools::report {

inline constexpr std::size_t kMaxViews = 16;         // kinds of events with a view
inline constexpr std::size_t kMaxFunctionRows = 50;  // rows in the table of a view
inline constexpr std::size_t kMaxStackDepth = 256;   // depth of the graph, in functions

// The functions on the stacks of a file, and the sums of the events by function. A page shows both
// as a flame graph.
struct FlameGraph {
  enum class Code : std::uint8_t { kUnknown, kUser, kKernel };
  enum class What : std::uint8_t { kCpu, kOffCpu, kEvents };
  struct Function {
    std::string text;  // module!function, or an address; cut by ShortName
    Code code = Code::kUnknown;
  };
  struct Node {
    std::uint32_t parent = 0;    // index of a node; less than that of this node
    std::uint32_t function = 0;  // index in `functions`
  };
  // The sum of the events of one thread at a node.
  struct Sum {
    std::uint32_t node = 0;
    std::uint32_t thread = 0;  // row in ReportModel::threads()
    std::uint64_t weight = 0;
  };
  struct FunctionRow {
    std::string text;
    std::uint64_t self = 0;   // sum over the events whose stack ends in the function
    std::uint64_t total = 0;  // sum over the events that have the function on their stack
  };
  // The sums of a kind of events: ns for kOffCpu, else numbers of events.
  struct View {
    What what = What::kEvents;
    std::size_t kind = 0;  // row in ReportModel::kinds()
    std::uint64_t events = 0;
    std::uint64_t total = 0;
    std::uint64_t left_out = 0;  // sum over events whose stacks end in functions that are left out
    std::vector<Sum> self;       // sums over the events whose stack ends at a node
    std::vector<Sum> below;      // parts of left_out, at the callers of the functions left out
    std::vector<FunctionRow> functions;  // those with the largest `self`, in descending order
    std::size_t all_functions = 0;
  };

  std::vector<Function> functions;
  std::vector<Node> nodes;    // node 0 is the root, which has no function
  std::vector<View> views;    // in order: CPU samples, times without a CPU, other kinds of events
  std::size_t all_nodes = 0;  // number of nodes, with those that the page leaves out
  std::uint64_t events = 0;   // events in the sums
  std::uint64_t unnamed = 0;  // events in the sums that have a function without a name
  std::uint64_t cut = 0;      // events in the sums whose outermost callers were not recorded
  std::uint64_t without_weight = 0;     // events with a stack and without the number to sum
  std::uint64_t over_limit = 0;         // events beyond the limits of StackTree
  std::uint64_t events_of_no_view = 0;  // events of kinds beyond kMaxViews
  bool has_threads = true;              // whether the sums are by thread
};

// Returns the maximum number of bytes that the functions, nodes and sums of the graph add to the
// JSON of a page.
std::size_t BytesOf(const FlameGraph& graph);

// Sums the stacks of events into a FlameGraph. Not thread-safe. Memory is bounded by StackTree and
// CodeMap.
class StackSums {
 public:
  // Must be called with every event of the file, in order of time.
  void OnEvent(const nettrace::Event& event) { code_.OnEvent(event); }
  // Adds the stack of an event. Must be called after OnEvent was called for the event. `kind` and
  // `thread` are row numbers in ReportModel. Does nothing if the event has no stack.
  void Add(const nettrace::Event& event, std::int32_t pointer_size, std::size_t kind,
           std::size_t thread);
  // Returns a graph of the functions with the largest shares of a view. The graph (see BytesOf) and
  // its tables of functions need at most `max_bytes` in total, unless even a graph without
  // functions needs more. Must be called last.
  FlameGraph Finish(std::size_t max_bytes);

 private:
  struct Group {
    FlameGraph::What what = FlameGraph::What::kEvents;
    std::size_t kind = 0;
    std::size_t thread = 0;
  };
  using GroupKey = std::tuple<FlameGraph::What, std::size_t, std::size_t>;
  class Selection;

  trace::CodeMap code_;
  trace::StackTree tree_;
  std::vector<Group> groups_;  // groups of the tree's samples
  absl::flat_hash_map<GroupKey, std::uint32_t> group_index_;
  std::uint64_t cut_ = 0;
  std::uint64_t without_weight_ = 0;
  std::uint64_t over_limit_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_FLAME_GRAPH_H_
