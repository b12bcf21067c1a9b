// The tree of an activity: the activities inside of it, across threads and processes. It states for
// each activity how long it ran itself, how long it waited for others, and its time on the critical
// path.
#ifndef TOOLS_NETTRACE_REPORT_ACTIVITY_TREE_H_
#define TOOLS_NETTRACE_REPORT_ACTIVITY_TREE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"

namespace tools::report {

inline constexpr std::size_t kMaxTreeNodes = 400;  // activities in a tree, with its root
inline constexpr std::size_t kMaxTreeDepth = 40;   // activities from the root to the deepest one
inline constexpr std::size_t kMaxTreeIds = 1000;   // activity ids that belong to a tree

// An activity that has begun and ended.
struct Activity {
  std::uint64_t begin = 0;  // ticks
  std::uint64_t end = 0;    // ticks
  std::size_t kind = 0;     // row in ReportModel::kinds() of the event that began the activity
  std::size_t thread = 0;   // row in ReportModel::threads() of the thread that began it
  nettrace::Guid id = {};
  std::optional<nettrace::Guid> related;  // related activity id of the event that began it

  std::uint64_t ticks() const { return end - begin; }
};

struct TreeNode {
  Activity activity;       // `end` is that of the root if the activity has not ended by then
  std::size_t parent = 0;  // index of a node before this one; 0 for the root
  std::size_t depth = 0;   // 0 for the root
  bool has_ended = false;
  std::uint64_t self = 0;      // ticks in which none of its children ran
  std::uint64_t waiting = 0;   // ticks in which only children on other threads ran
  bool is_critical = false;    // whether the critical path passes through it
  std::uint64_t critical = 0;  // ticks of the critical path in this activity and not in a child
};

// Computes `self`, `waiting`, `is_critical` and `critical` of all nodes. The first node is the
// root.
//
// The critical path is found backwards, from the end of the root. At each time, the parent was
// delayed by the child that ended last before this time. The path therefore enters this child at
// its end, and continues in the parent at the begin of the child. Children that have not ended are
// ignored.
void ComputeTimes(std::vector<TreeNode>* nodes);

// Finds the activities and events inside of an activity, the root. An event with an activity id is
// inside if its id belongs to the tree. The ids of the tree are the root's id, and the ids of
// events that name an id of the tree as their related activity. An event without an id is inside if
// an activity of the tree runs on its thread.
class ActivityTree {
 public:
  explicit ActivityTree(const Activity& root);

  // Returns whether the event is inside of the tree. If so, adds the activity that it begins, or
  // ends the activity that it ends. Must be called for all events from the begin to the end of the
  // root, in order of time. `kind` and `thread` are rows of ReportModel.
  bool Add(const nettrace::Event& event, std::size_t kind, std::size_t thread);
  // Computes the times of the activities, and returns the activities, the root first. No events may
  // be added afterwards.
  std::vector<TreeNode> TakeNodes();

  std::uint64_t left_out() const { return left_out_; }  // activities beyond the limits
  std::uint64_t events() const { return events_; }      // events inside

 private:
  // The nodes whose activities have the same id.
  struct OfId {
    std::size_t last = 0;           // the next activity of the id goes below or beside this node
    std::vector<std::size_t> open;  // nodes that have not ended
  };

  // Returns the nodes of the event's id, or null if the id does not belong to the tree. A new id is
  // added if the related id of the event belongs to the tree.
  OfId* Find(const nettrace::Labels& labels);
  void Begin(const nettrace::Event& event, std::size_t kind, std::size_t thread, OfId* of_id);
  void End(std::uint64_t ticks, OfId* of_id);

  std::vector<TreeNode> nodes_;
  absl::flat_hash_map<nettrace::Guid, OfId> ids_;
  // Number of running activities, by thread.
  absl::flat_hash_map<std::size_t, std::size_t> threads_;
  bool has_begun_ = false;  // whether the event that begins the root was added
  std::uint64_t left_out_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_ACTIVITY_TREE_H_
