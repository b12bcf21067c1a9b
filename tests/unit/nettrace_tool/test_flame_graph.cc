// Tests the sums of stacks of `nettrace report`: the views and their sums, and the counts of
// functions and events that are left out.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "nettrace/sink.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/unit/nettrace_tool/stacks_trace.h"
#include "tools/nettrace/report/flame_graph.h"
#include "tools/nettrace/report/stack_page.h"
#include "tools/trace/event_stream.h"

namespace tools::report {
namespace {

using nettrace::Bytes;
using stacks_trace::Cpu;
using stacks_trace::Function;
using stacks_trace::Mapping;
using stacks_trace::Sale;
using stacks_trace::StacksOf;
using stacks_trace::Switch;
using stacks_trace::TraceEvent;
using stacks_trace::WithCode;

constexpr std::size_t kEnough = std::size_t{1} << 20;

// Returns the graph of a trace. As row numbers of the report, it uses the event id for an event's
// kind, and 1 or 2 for the thread.
FlameGraph GraphOf(const Bytes& stream, std::size_t max_bytes = kEnough) {
  trace::EventStream events(nettrace::testing::OpenBytes(stream.span()));
  StackSums sums;
  using Step = trace::EventStream::Step;
  for (Step step = events.Next(); step != Step::kEnd; step = events.Next()) {
    if (step != Step::kEvent) continue;
    const nettrace::Event& event = events.event();
    sums.OnEvent(event);
    const std::uint64_t first_tid = 4242;
    sums.Add(event, events.reader().trace().pointer_size, event.metadata->event_id,
             *event.thread->thread_id - first_tid);
  }
  EXPECT_TRUE(events.reader().status().ok());
  return sums.Finish(max_bytes);
}

std::uint64_t SumOf(const std::vector<FlameGraph::Sum>& sums) {
  std::uint64_t all = 0;
  for (const FlameGraph::Sum& sum : sums) all += sum.weight;
  return all;
}

// Returns the functions above a node and its own, such as "main;Send".
std::string PathTo(const FlameGraph& graph, std::uint32_t node) {
  if (node == 0) return "";
  const std::string above = PathTo(graph, graph.nodes[node].parent);
  const std::string& own = graph.functions[graph.nodes[node].function].text;
  return above.empty() ? own : above + ";" + own;
}

// Returns the sum of all events whose stacks pass through each node, by the functions from the root
// to the node.
std::map<std::string, std::uint64_t> Totals(const FlameGraph& graph, const FlameGraph::View& view) {
  std::vector<std::uint64_t> totals(graph.nodes.size());
  for (const auto* sums : {&view.self, &view.below}) {
    for (const FlameGraph::Sum& sum : *sums) totals[sum.node] += sum.weight;
  }
  std::map<std::string, std::uint64_t> of_path;
  for (std::uint32_t i = static_cast<std::uint32_t>(totals.size()); i-- > 0;) {
    of_path[PathTo(graph, i)] = totals[i];
    if (i != 0) totals[graph.nodes[i].parent] += totals[i];
  }
  return of_path;
}

TEST(FlameGraph, HasAViewForEachKindWithStacks) {
  const FlameGraph graph = GraphOf(stacks_trace::Stream(
      WithCode({Sale(1), Sale(0), Switch(4, 700), Cpu(1), Cpu(2, 2), Cpu(4), Switch(1, 50)})));
  ASSERT_EQ(graph.views.size(), 3u);
  const auto& [cpu, off_cpu, sale] = std::tie(graph.views[0], graph.views[1], graph.views[2]);
  EXPECT_EQ(cpu.what, FlameGraph::What::kCpu);
  EXPECT_EQ(cpu.total, 3u);
  EXPECT_EQ(off_cpu.what, FlameGraph::What::kOffCpu);
  EXPECT_EQ(off_cpu.total, 750u);
  EXPECT_EQ(off_cpu.events, 2u);
  EXPECT_EQ(sale.what, FlameGraph::What::kEvents);
  EXPECT_EQ(sale.kind, 7u);
  EXPECT_EQ(sale.total, 1u);
  EXPECT_EQ(graph.events, 6u);
  EXPECT_EQ(graph.unnamed, 0u);
  EXPECT_EQ(Totals(graph, cpu),
            (std::map<std::string, std::uint64_t>{{"", 3},
                                                  {"shop!main", 3},
                                                  {"shop!main;shop!shop::Send()", 2},
                                                  {"shop!main;vmlinux!write", 1}}));
  // Each node has a separate sum for each thread.
  EXPECT_EQ(cpu.self.size(), 3u);
  ASSERT_EQ(cpu.functions.size(), 3u);
  EXPECT_EQ(cpu.functions[0].text, "shop!shop::Send()");
  EXPECT_EQ(cpu.functions[0].self, 2u);
  EXPECT_EQ(cpu.functions[2].text, "shop!main");
  EXPECT_EQ(cpu.functions[2].self, 0u);
  EXPECT_EQ(cpu.functions[2].total, 3u);
}

TEST(FlameGraph, CountsEventsWithFunctionsWithoutAName) {
  const FlameGraph graph = GraphOf(stacks_trace::Stream(WithCode({Cpu(1), Cpu(3), Sale(3)})));
  EXPECT_EQ(graph.events, 3u);
  EXPECT_EQ(graph.unnamed, 2u);
  EXPECT_NE(StackNotes(graph).find("&#39;nettrace symbolize FILE&#39;"), std::string::npos);
}

TEST(FlameGraph, CountsARecursiveFunctionOnce) {
  const FlameGraph graph = GraphOf(stacks_trace::Stream(
      WithCode({Cpu(1), Cpu(1)}), StacksOf({{0x1110, 0x1120, 0x1205, 0x1115, 0x1205}})));
  ASSERT_EQ(graph.views.size(), 1u);
  for (const FlameGraph::FunctionRow& row : graph.views[0].functions) EXPECT_EQ(row.total, 2u);
  EXPECT_EQ(graph.views[0].functions.size(), 2u);
}

TEST(FlameGraph, NoStackMakesNoView) {
  const FlameGraph graph = GraphOf(stacks_trace::Stream(WithCode({Sale(0)})));
  EXPECT_TRUE(graph.views.empty());
  EXPECT_EQ(StackNotes(graph), "");
  EXPECT_EQ(StackTables(graph, {}), "");
}

TEST(FlameGraph, DeepFunctionsAreLeftOut) {
  std::vector<std::uint64_t> stack;
  for (std::uint64_t i = 0; i < 2 * kMaxStackDepth; ++i) stack.push_back(0x100000 + i);
  const FlameGraph graph = GraphOf(stacks_trace::Stream({Cpu(1)}, StacksOf({stack})));
  EXPECT_EQ(graph.nodes.size(), kMaxStackDepth + 1);
  EXPECT_EQ(graph.views[0].left_out, 1u);
}

TEST(FlameGraph, EventsBeyondTheViewsAreCounted) {
  // A time without a CPU is not part of the sums if its event lacks the length of the time.
  TraceEvent broken = Switch(1, 1);
  broken.payload = Bytes();
  const FlameGraph graph = GraphOf(stacks_trace::Stream(WithCode({broken, Cpu(1)})));
  EXPECT_EQ(graph.without_weight, 1u);
  EXPECT_EQ(graph.events, 1u);
}

TEST(FlameGraph, FunctionsThatAreLeftOutAreCountedExactly) {
  std::mt19937_64 random(1);
  std::vector<std::vector<std::uint64_t>> stacks(2000);
  std::vector<TraceEvent> events = {Mapping(1, 0x1000, 0x1fff, "/lib/x")};
  for (std::uint64_t i = 0; i < 64; ++i) {
    events.push_back(Function(1, 0x1000 + i * 16, 0x100f + i * 16, "function" + std::to_string(i)));
  }
  for (std::uint32_t i = 0; i < stacks.size(); ++i) {
    stacks[i].resize(1 + random() % 12);
    for (std::uint64_t& frame : stacks[i]) frame = 0x1002 + random() % 64 * 16;
    for (std::uint64_t n = random() % 20; n-- > 0;) events.push_back(Cpu(i + 1, 1 + random() % 2));
    if (i % 3 == 0) events.push_back(Switch(i + 1, random() % 100'000));
  }
  const Bytes stream = stacks_trace::Stream(events, StacksOf(stacks));
  const FlameGraph whole = GraphOf(stream, std::size_t{16} << 20);
  ASSERT_EQ(whole.views.size(), 2u);
  EXPECT_EQ(whole.views[0].left_out, 0u);
  EXPECT_EQ(whole.nodes.size(), whole.all_nodes + 1);
  std::size_t nodes = whole.nodes.size();
  for (std::size_t max_bytes = 1 << 18; max_bytes >= 1 << 10; max_bytes /= 2) {
    const FlameGraph graph = GraphOf(stream, max_bytes);
    EXPECT_LE(BytesOf(graph), max_bytes);
    EXPECT_LE(graph.nodes.size(), nodes);
    nodes = graph.nodes.size();
    for (std::size_t i = 0; i < graph.views.size(); ++i) {
      const FlameGraph::View& view = graph.views[i];
      EXPECT_EQ(view.total, whole.views[i].total);
      EXPECT_EQ(view.left_out, SumOf(view.below));
      EXPECT_EQ(view.total, SumOf(view.self) + view.left_out);
      const std::map<std::string, std::uint64_t> exact = Totals(whole, whole.views[i]);
      for (const auto& [path, total] : Totals(graph, view))
        EXPECT_EQ(total, exact.at(path)) << path;
    }
  }
  EXPECT_LT(nodes, 200u);
}

TEST(FlameGraph, JsonHasAtMostTheBytesOfTheEstimate) {
  const FlameGraph graph =
      GraphOf(stacks_trace::Stream(WithCode({Cpu(1), Switch(4, ~std::uint64_t{0}), Sale(3)})));
  std::vector<Kind> kinds(16);
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  PutStacks(graph, kinds, &json);
  constexpr std::size_t kKeys = 128;  // bytes of the JSON keys of the graph, and of each view
  EXPECT_LE(buffer.GetSize(), BytesOf(graph) + kKeys * (1 + graph.views.size()));
}

}  // namespace
}  // namespace tools::report
