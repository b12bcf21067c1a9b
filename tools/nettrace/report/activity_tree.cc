#include "tools/nettrace/report/activity_tree.h"

#include <algorithm>
#include <utility>

#include "tools/trace/activity_matcher.h"

namespace tools::report {
namespace {

// The children of each node, in order of their begins.
using Children = std::vector<std::vector<std::size_t>>;

Children ChildrenOf(const std::vector<TreeNode>& nodes) {
  Children children(nodes.size());
  for (std::size_t i = 1; i < nodes.size(); ++i) children[nodes[i].parent].push_back(i);
  return children;
}

// Returns the length of the union of the children's times within the time of `parent`. The children
// are in order of their begins. Children for which `counts` returns false are ignored.
template <typename Counts>
std::uint64_t Covered(const std::vector<TreeNode>& nodes, const Activity& parent,
                      const std::vector<std::size_t>& children, const Counts& counts) {
  std::uint64_t sum = 0;
  std::uint64_t until = parent.begin;
  for (const std::size_t child : children) {
    const Activity& activity = nodes[child].activity;
    if (!counts(activity)) continue;
    const std::uint64_t begin = std::max(until, activity.begin);
    const std::uint64_t end = std::min(parent.end, activity.end);
    if (end > begin) sum += end - begin;
    until = std::max(until, end);
  }
  return sum;
}

void MarkCriticalPath(const Children& children, std::vector<TreeNode>* nodes) {
  std::vector<std::size_t> pending = {0};
  while (!pending.empty()) {
    TreeNode& node = (*nodes)[pending.back()];
    std::vector<std::size_t> by_end = children[pending.back()];
    pending.pop_back();
    node.is_critical = true;
    std::stable_sort(by_end.begin(), by_end.end(), [nodes](std::size_t a, std::size_t b) {
      return (*nodes)[a].activity.end > (*nodes)[b].activity.end;
    });
    std::uint64_t at = node.activity.end;
    for (const std::size_t index : by_end) {
      const TreeNode& child = (*nodes)[index];
      if (!child.has_ended || child.activity.end > at || child.activity.ticks() == 0) continue;
      node.critical += at - child.activity.end;
      at = std::max(child.activity.begin, node.activity.begin);
      pending.push_back(index);
    }
    node.critical += at - node.activity.begin;
  }
}

}  // namespace

void ComputeTimes(std::vector<TreeNode>* nodes) {
  const Children children = ChildrenOf(*nodes);
  for (std::size_t i = 0; i < nodes->size(); ++i) {
    TreeNode& node = (*nodes)[i];
    const std::uint64_t covered =
        Covered(*nodes, node.activity, children[i], [](const Activity&) { return true; });
    const std::uint64_t on_thread =
        Covered(*nodes, node.activity, children[i],
                [&node](const Activity& child) { return child.thread == node.activity.thread; });
    node.self = node.activity.ticks() - covered;
    node.waiting = covered - on_thread;
  }
  MarkCriticalPath(children, nodes);
}

ActivityTree::ActivityTree(const Activity& root) {
  TreeNode& node = nodes_.emplace_back();
  node.activity = root;
  node.has_ended = true;
  ids_[root.id].open = {0};
  ++threads_[root.thread];
}

ActivityTree::OfId* ActivityTree::Find(const nettrace::Labels& labels) {
  const auto known = ids_.find(*labels.activity_id);
  if (known != ids_.end()) return &known->second;
  if (!labels.related_activity_id || ids_.size() >= kMaxTreeIds) return nullptr;
  const auto related = ids_.find(*labels.related_activity_id);
  if (related == ids_.end()) return nullptr;
  const std::size_t parent = related->second.last;
  OfId& added = ids_[*labels.activity_id];
  added.last = parent;
  return &added;
}

void ActivityTree::Begin(const nettrace::Event& event, std::size_t kind, std::size_t thread,
                         OfId* of_id) {
  const nettrace::Labels& labels = *event.labels;
  std::size_t parent = of_id->last;
  if (of_id->open.empty()) {
    const auto related =
        labels.related_activity_id ? ids_.find(*labels.related_activity_id) : ids_.end();
    if (related != ids_.end()) {
      parent = related->second.last;
    } else if (nodes_[parent].activity.id == *labels.activity_id) {
      // The last activity with this id has ended. The new activity becomes its sibling.
      parent = nodes_[parent].parent;
    }
  }
  const std::size_t depth = nodes_[parent].depth + 1;
  if (nodes_.size() == kMaxTreeNodes || depth >= kMaxTreeDepth) {
    ++left_out_;
    return;
  }
  TreeNode& node = nodes_.emplace_back();
  node.activity = {event.timestamp, nodes_.front().activity.end, kind,
                   thread,          *labels.activity_id,         labels.related_activity_id};
  node.parent = parent;
  node.depth = depth;
  of_id->last = nodes_.size() - 1;
  of_id->open.push_back(of_id->last);
  ++threads_[thread];
}

void ActivityTree::End(std::uint64_t ticks, OfId* of_id) {
  // Does not end node 0, the root, because it ends with the tree.
  if (of_id->open.empty() || of_id->open.back() == 0) return;
  const std::size_t ended = of_id->open.back();
  of_id->open.pop_back();
  TreeNode& node = nodes_[ended];
  node.has_ended = true;
  node.activity.end = std::clamp(ticks, node.activity.begin, node.activity.end);
  of_id->last = of_id->open.empty() ? ended : of_id->open.back();
  const auto thread = threads_.find(node.activity.thread);
  if (--thread->second == 0) threads_.erase(thread);
}

bool ActivityTree::Add(const nettrace::Event& event, std::size_t kind, std::size_t thread) {
  const nettrace::Labels& labels = *event.labels;
  if (!labels.activity_id) {
    const bool is_inside = threads_.contains(thread);
    events_ += is_inside;
    return is_inside;
  }
  OfId* const of_id = Find(labels);
  if (of_id == nullptr) return false;
  ++events_;
  if (trace::BeginsActivity(event)) {
    const Activity& root = nodes_.front().activity;
    const bool is_root = !has_begun_ && event.timestamp == root.begin && kind == root.kind &&
                         *labels.activity_id == root.id;
    if (is_root) {
      has_begun_ = true;
    } else {
      Begin(event, kind, thread, of_id);
    }
  }
  if (trace::EndsActivity(event)) End(event.timestamp, of_id);
  return true;
}

std::vector<TreeNode> ActivityTree::TakeNodes() {
  ids_.clear();
  threads_.clear();
  ComputeTimes(&nodes_);
  return std::move(nodes_);
}

}  // namespace tools::report
