#include "tools/nettrace/report/flame_graph.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/nettrace/report/html.h"
#include "tools/nettrace/report/report_model.h"
#include "tools/trace/stack_weight.h"

namespace tools::report {
namespace {

using trace::StackTree;

// The tables of functions may use 1 / kTableShare of the bytes of the graph.
constexpr std::size_t kTableShare = 4;
// Maximum bytes of a row of a table of functions, without the name of the function.
constexpr std::size_t kBytesOfFunctionRow = 192;

std::size_t Digits(std::uint64_t number) {
  std::size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

std::size_t BytesInJson(std::string_view text) {
  return ForScript(base::Printable(base::JsonString(text))).size();
}

FlameGraph::What WhatOf(const nettrace::EventMetadata& metadata) {
  if (trace::IsCpuSample(metadata)) return FlameGraph::What::kCpu;
  return trace::IsOffCpu(metadata) ? FlameGraph::What::kOffCpu : FlameGraph::What::kEvents;
}

}  // namespace

std::size_t BytesOf(const FlameGraph& graph) {
  constexpr std::size_t kPunctuation = 8;
  std::size_t bytes = 0;
  for (const FlameGraph::Function& function : graph.functions) {
    bytes += BytesInJson(function.text) + kPunctuation;
  }
  for (const FlameGraph::Node& node : graph.nodes) {
    bytes += Digits(node.parent) + Digits(node.function) + 2;
  }
  for (const FlameGraph::View& view : graph.views) {
    for (const auto* sums : {&view.self, &view.below}) {
      for (const FlameGraph::Sum& sum : *sums) {
        // The 5 bytes are three commas, and quotation marks if the weight is a large number.
        bytes += Digits(sum.node) + Digits(sum.thread) + Digits(sum.weight) + 5;
      }
    }
  }
  return bytes;
}

void StackSums::Add(const nettrace::Event& event, std::int32_t pointer_size, std::size_t kind,
                    std::size_t thread) {
  if (event.stack.empty()) return;
  const std::optional<std::uint64_t> weight = trace::StackWeight(event);
  if (!weight) {
    ++without_weight_;
    return;
  }
  const Group group = {WhatOf(*event.metadata), kind, thread};
  const GroupKey key(group.what, kind, thread);
  auto known = group_index_.find(key);
  if (known == group_index_.end() && groups_.size() < StackTree::kMaxNodes) {
    known = group_index_.emplace(key, static_cast<std::uint32_t>(groups_.size())).first;
    groups_.push_back(group);
  }
  const std::optional<std::uint32_t> node =
      known == group_index_.end() ? std::nullopt : tree_.Add(event, pointer_size, code_);
  if (!node || !tree_.Count(*node, known->second, *weight)) {
    ++over_limit_;
    return;
  }
  if (trace::IsStackCut(event)) ++cut_;
}

// Selects the nodes that a page shows.
class StackSums::Selection {
 public:
  Selection(const StackTree& tree, const std::vector<Group>& groups, std::vector<std::string> texts)
      : tree_(tree), groups_(groups), texts_(std::move(texts)) {
    FindViews();
    FindOrder();
  }

  FlameGraph Select(std::size_t max_bytes);

 private:
  using View = FlameGraph::View;

  void FindViews();
  void FindOrder();
  // Returns the total of each node: the sum of the view's events that have the node on their stack.
  std::vector<std::uint64_t> TotalsOf(std::size_t view) const;
  // Returns the functions of a view with the largest `self`, in descending order, and at most
  // kMaxFunctionRows. Sets `all` to the number of all functions of the view. `is_first` is the
  // result of FindFirst.
  std::vector<FlameGraph::FunctionRow> FunctionsOf(std::size_t view,
                                                   const std::vector<bool>& is_first,
                                                   std::size_t* all) const;
  // Returns, for each node, whether no node above it has the same function.
  std::vector<bool> FindFirst() const;
  bool IsUnnamed(std::uint32_t frame) const { return tree_.frames()[frame].function == 0; }
  void CountEvents(FlameGraph* graph) const;
  void AddTables(std::size_t max_bytes, FlameGraph* graph) const;
  FlameGraph::Function FunctionOf(std::uint32_t frame) const;
  // Sets the functions, nodes and sums of a graph that has the first `count` nodes of order_.
  void Keep(std::size_t count, FlameGraph* graph) const;

  const StackTree& tree_;
  const std::vector<Group>& groups_;
  const std::vector<std::string> texts_;  // texts of the tree's frames, by index
  std::vector<View> views_;
  std::vector<std::optional<std::size_t>> view_of_group_;
  std::vector<std::uint32_t> order_;  // nodes that can be kept, callers first
};

void StackSums::Selection::FindViews() {
  using Key = std::pair<FlameGraph::What, std::size_t>;
  std::map<Key, View> views;
  for (const StackTree::Sample& sample : tree_.samples()) {
    const Group& group = groups_[sample.group];
    View& view = views[Key(group.what, group.kind)];
    view.what = group.what;
    view.kind = group.kind;
    view.events += sample.count;
    view.total = trace::CappedSum(view.total, sample.weight);
  }
  views_.reserve(views.size());
  for (const auto& [key, view] : views) views_.push_back(view);
  std::stable_sort(views_.begin(), views_.end(), [](const View& a, const View& b) {
    return a.what != b.what ? a.what < b.what : a.events > b.events;
  });
  if (views_.size() > kMaxViews) views_.resize(kMaxViews);
  std::map<Key, std::size_t> index;
  for (std::size_t i = 0; i < views_.size(); ++i) {
    index.emplace(Key(views_[i].what, views_[i].kind), i);
  }
  view_of_group_.reserve(groups_.size());
  for (const Group& group : groups_) {
    const auto found = index.find(Key(group.what, group.kind));
    view_of_group_.push_back(found == index.end() ? std::nullopt : std::optional(found->second));
  }
}

std::vector<std::uint64_t> StackSums::Selection::TotalsOf(std::size_t view) const {
  std::vector<std::uint64_t> totals(tree_.nodes().size());
  for (const StackTree::Sample& sample : tree_.samples()) {
    if (view_of_group_[sample.group] == view) {
      totals[sample.node] = trace::CappedSum(totals[sample.node], sample.weight);
    }
  }
  for (std::size_t i = totals.size(); i-- > 1;) {
    std::uint64_t& parent = totals[tree_.nodes()[i].parent];
    parent = trace::CappedSum(parent, totals[i]);
  }
  return totals;
}

// Sorts the nodes by their largest share of a view. A caller has at least the share of each
// function that it calls, so it precedes these functions.
void StackSums::Selection::FindOrder() {
  const std::vector<StackTree::Node>& nodes = tree_.nodes();
  std::vector<double> shares(nodes.size());
  for (std::size_t view = 0; view < views_.size(); ++view) {
    const std::vector<std::uint64_t> totals = TotalsOf(view);
    const double all = std::max(1.0, static_cast<double>(views_[view].total));
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      shares[i] = std::max(shares[i], static_cast<double>(totals[i]) / all);
    }
  }
  std::vector<std::size_t> depths(nodes.size());
  for (std::uint32_t i = 1; i < nodes.size(); ++i) {
    depths[i] = depths[nodes[i].parent] + 1;
    if (shares[i] > 0 && depths[i] <= kMaxStackDepth) order_.push_back(i);
  }
  std::stable_sort(order_.begin(), order_.end(),
                   [&shares](std::uint32_t a, std::uint32_t b) { return shares[a] > shares[b]; });
}

std::vector<bool> StackSums::Selection::FindFirst() const {
  const std::vector<StackTree::Node>& nodes = tree_.nodes();
  // The children of node i are at begins[i] to begins[i + 1] - 1 of `children`.
  std::vector<std::uint32_t> begins(nodes.size() + 1);
  for (std::size_t i = 1; i < nodes.size(); ++i) ++begins[nodes[i].parent + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> children(nodes.size());
  std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
  for (std::uint32_t i = 1; i < nodes.size(); ++i) children[next[nodes[i].parent]++] = i;
  std::vector<bool> is_first(nodes.size());
  std::vector<bool> is_above(tree_.frames().size());  // whether the path has the function
  std::vector<std::uint32_t> path = {StackTree::kRoot};
  next.assign(begins.begin(), begins.end() - 1);
  while (!path.empty()) {
    const std::uint32_t node = path.back();
    if (next[node] != begins[node + 1]) {
      const std::uint32_t child = children[next[node]++];
      is_first[child] = !is_above[nodes[child].frame];
      is_above[nodes[child].frame] = true;
      path.push_back(child);
      continue;
    }
    if (is_first[node]) is_above[nodes[node].frame] = false;
    path.pop_back();
  }
  return is_first;
}

std::vector<FlameGraph::FunctionRow> StackSums::Selection::FunctionsOf(
    std::size_t view, const std::vector<bool>& is_first, std::size_t* all) const {
  struct Sums {
    std::uint64_t self = 0;
    std::uint64_t total = 0;
  };
  const std::vector<StackTree::Node>& nodes = tree_.nodes();
  std::vector<Sums> sums(tree_.frames().size());
  for (const StackTree::Sample& sample : tree_.samples()) {
    if (view_of_group_[sample.group] != view || sample.node == StackTree::kRoot) continue;
    std::uint64_t& self = sums[nodes[sample.node].frame].self;
    self = trace::CappedSum(self, sample.weight);
  }
  const std::vector<std::uint64_t> totals = TotalsOf(view);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    std::uint64_t& total = sums[nodes[i].frame].total;
    if (is_first[i]) total = trace::CappedSum(total, totals[i]);
  }
  std::vector<std::uint32_t> frames;
  for (std::uint32_t i = 1; i < sums.size(); ++i) {
    if (sums[i].total != 0) frames.push_back(i);
  }
  std::stable_sort(frames.begin(), frames.end(), [&sums](std::uint32_t a, std::uint32_t b) {
    return std::pair(sums[a].self, sums[a].total) > std::pair(sums[b].self, sums[b].total);
  });
  *all = frames.size();
  if (frames.size() > kMaxFunctionRows) frames.resize(kMaxFunctionRows);
  std::vector<FlameGraph::FunctionRow> rows;
  rows.reserve(frames.size());
  for (const std::uint32_t frame : frames) {
    rows.push_back({ShortName(texts_[frame]), sums[frame].self, sums[frame].total});
  }
  return rows;
}

void StackSums::Selection::AddTables(std::size_t max_bytes, FlameGraph* graph) const {
  const std::vector<bool> is_first = FindFirst();
  for (std::size_t i = 0; i < views_.size(); ++i) {
    View& view = graph->views[i];
    std::size_t bytes = max_bytes / kTableShare / views_.size();
    for (FlameGraph::FunctionRow& row : FunctionsOf(i, is_first, &view.all_functions)) {
      const std::size_t size = HtmlText(row.text).size() + kBytesOfFunctionRow;
      if (size > bytes) break;
      bytes -= size;
      view.functions.push_back(std::move(row));
    }
  }
}

void StackSums::Selection::CountEvents(FlameGraph* graph) const {
  const std::vector<StackTree::Node>& nodes = tree_.nodes();
  std::vector<bool> has_unnamed(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    has_unnamed[i] = has_unnamed[nodes[i].parent] || IsUnnamed(nodes[i].frame);
  }
  for (const StackTree::Sample& sample : tree_.samples()) {
    graph->events += sample.count;
    if (has_unnamed[sample.node]) graph->unnamed += sample.count;
    if (!view_of_group_[sample.group]) graph->events_of_no_view += sample.count;
  }
}

FlameGraph::Function StackSums::Selection::FunctionOf(std::uint32_t frame) const {
  constexpr unsigned kKernelBit = 63;  // set in the addresses of the kernel
  FlameGraph::Function function;
  function.text = ShortName(texts_[frame]);
  if (tree_.frames()[frame].file != 0) {
    const bool is_kernel = tree_.frames()[frame].address >> kKernelBit != 0;
    function.code = is_kernel ? FlameGraph::Code::kKernel : FlameGraph::Code::kUser;
  }
  return function;
}

void StackSums::Selection::Keep(std::size_t count, FlameGraph* graph) const {
  const std::vector<StackTree::Node>& nodes = tree_.nodes();
  std::vector<bool> is_kept(nodes.size());
  is_kept[StackTree::kRoot] = true;
  for (std::size_t i = 0; i < count; ++i) is_kept[order_[i]] = true;
  // For each node, the index in graph->nodes of the node itself, or of the nearest kept node above
  // it.
  std::vector<std::uint32_t> moved(nodes.size());
  // Indices in graph->functions, by frame.
  absl::flat_hash_map<std::uint32_t, std::uint32_t> functions;
  graph->functions.clear();
  graph->nodes = {FlameGraph::Node()};
  for (std::uint32_t i = 1; i < nodes.size(); ++i) {
    moved[i] = moved[nodes[i].parent];
    if (!is_kept[i]) continue;
    const auto [known, is_new] =
        functions.try_emplace(nodes[i].frame, static_cast<std::uint32_t>(graph->functions.size()));
    if (is_new) graph->functions.push_back(FunctionOf(nodes[i].frame));
    graph->nodes.push_back({moved[i], known->second});
    moved[i] = static_cast<std::uint32_t>(graph->nodes.size() - 1);
  }
  using Key = std::tuple<std::size_t, bool, std::uint32_t, std::uint32_t>;
  absl::flat_hash_map<Key, std::size_t> index;  // indices in the sums of a view
  for (std::size_t i = 0; i < views_.size(); ++i) {
    graph->views[i].self.clear();
    graph->views[i].below.clear();
    graph->views[i].left_out = 0;
  }
  for (const StackTree::Sample& sample : tree_.samples()) {
    const std::optional<std::size_t>& number = view_of_group_[sample.group];
    if (!number || sample.weight == 0) continue;
    View& view = graph->views[*number];
    const auto thread =
        graph->has_threads ? static_cast<std::uint32_t>(groups_[sample.group].thread) : 0;
    const std::uint32_t node = moved[sample.node];
    std::vector<FlameGraph::Sum>& sums = is_kept[sample.node] ? view.self : view.below;
    const auto [known, is_new] =
        index.try_emplace(Key(*number, is_kept[sample.node], node, thread), sums.size());
    if (is_new) sums.push_back({node, thread, 0});
    std::uint64_t& weight = sums[known->second].weight;
    weight = trace::CappedSum(weight, sample.weight);
    if (!is_kept[sample.node]) view.left_out = trace::CappedSum(view.left_out, sample.weight);
  }
}

FlameGraph StackSums::Selection::Select(std::size_t max_bytes) {
  FlameGraph graph;
  graph.views = views_;
  graph.all_nodes = tree_.nodes().size() - 1;
  CountEvents(&graph);
  if (views_.empty()) return graph;
  AddTables(max_bytes, &graph);
  const std::size_t room = max_bytes - max_bytes / kTableShare;
  const auto fits = [&](std::size_t count) {
    Keep(count, &graph);
    return BytesOf(graph) <= room;
  };
  constexpr std::size_t kBytesOfNode = 4;  // the smallest possible node
  const std::size_t most = std::min(order_.size(), room / kBytesOfNode);
  if (fits(most)) return graph;
  // If the sums by thread do not fit even without functions, has_threads becomes false. Then, each
  // node has at most two sums for each view.
  graph.has_threads = fits(0);
  std::size_t few = 0;
  std::size_t many = most;
  while (many - few > few / 16 + 1) {
    const std::size_t middle = few + (many - few) / 2;
    (fits(middle) ? few : many) = middle;
  }
  Keep(few, &graph);
  return graph;
}

FlameGraph StackSums::Finish(std::size_t max_bytes) {
  tree_.NameFunctions(code_);
  code_ = trace::CodeMap();
  std::vector<std::string> texts = tree_.MergeByText();
  FlameGraph graph = Selection(tree_, groups_, std::move(texts)).Select(max_bytes);
  graph.cut = cut_;
  graph.without_weight = without_weight_;
  graph.over_limit = over_limit_;
  tree_ = trace::StackTree();
  groups_.clear();
  group_index_.clear();
  return graph;
}

}  // namespace tools::report
