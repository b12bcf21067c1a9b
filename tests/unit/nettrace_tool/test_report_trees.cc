// Tests the trees of activities of `nettrace report`: the events and activities inside, self time,
// waiting time and the critical path.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "nettrace/reader.h"
#include "tools/nettrace/report/activity_tree.h"

namespace tools::report {
namespace {

constexpr std::uint8_t kStart = 1;
constexpr std::uint8_t kStop = 2;

nettrace::Guid IdOf(std::uint64_t number) {
  nettrace::Guid id = {};
  for (std::size_t i = 0; i < sizeof number; ++i) id[i] = static_cast<std::byte>(number >> (8 * i));
  return id;
}

TreeNode NodeOf(std::uint64_t begin, std::uint64_t end, std::size_t thread, std::size_t parent) {
  TreeNode node;
  node.activity.begin = begin;
  node.activity.end = end;
  node.activity.thread = thread;
  node.parent = parent;
  node.has_ended = true;
  return node;
}

TEST(ActivityTreeTest, SelfTimeExcludesTheUnionOfChildren) {
  // Two children overlap from 20 to 30, and the second one lasts longer than its parent.
  std::vector<TreeNode> nodes = {NodeOf(0, 100, 1, 0), NodeOf(10, 30, 1, 0), NodeOf(20, 120, 1, 0)};
  ComputeTimes(&nodes);
  EXPECT_EQ(nodes[0].self, 10u);
  EXPECT_EQ(nodes[0].waiting, 0u);
  EXPECT_EQ(nodes[1].self, 20u);
  EXPECT_EQ(nodes[2].self, 100u);
}

TEST(ActivityTreeTest, WaitingTimeIsThatOfChildrenOnOtherThreadsOnly) {
  // Another thread works from 10 to 60, and the root's thread works, too, from 40 to 50.
  std::vector<TreeNode> nodes = {NodeOf(0, 100, 1, 0), NodeOf(10, 60, 2, 0), NodeOf(40, 50, 1, 0)};
  ComputeTimes(&nodes);
  EXPECT_EQ(nodes[0].self, 50u);
  EXPECT_EQ(nodes[0].waiting, 40u);
}

TEST(ActivityTreeTest, CriticalPathIsTheLastChildEachTime) {
  // 1 and 2 run at the same time, and 2 ends later. 3 follows, with a child. 4 outlives the root.
  std::vector<TreeNode> nodes = {NodeOf(0, 100, 1, 0), NodeOf(5, 30, 2, 0),   NodeOf(6, 40, 3, 0),
                                 NodeOf(50, 90, 2, 0), NodeOf(60, 120, 4, 0), NodeOf(60, 80, 3, 3)};
  ComputeTimes(&nodes);
  std::vector<std::size_t> critical;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].is_critical) critical.push_back(i);
  }
  EXPECT_EQ(critical, (std::vector<std::size_t>{0, 2, 3, 5}));
  EXPECT_EQ(nodes[0].critical, 6u + 10u + 10u);
  EXPECT_EQ(nodes[2].critical, 34u);
  EXPECT_EQ(nodes[3].critical, 20u);
  EXPECT_EQ(nodes[5].critical, 20u);
}

TEST(ActivityTreeTest, PartsOfTimesAddUpInRandomTrees) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<TreeNode> nodes = {NodeOf(0, 1000, 0, 0)};
    std::uint64_t begin = 0;
    for (std::size_t i = 1; i < 40; ++i) {
      begin += random() % 20;
      const std::size_t parent = random() % i;
      nodes.push_back(NodeOf(begin, begin + random() % 300, random() % 3, parent));
    }
    ComputeTimes(&nodes);
    std::uint64_t critical = 0;
    for (const TreeNode& node : nodes) {
      EXPECT_LE(node.self + node.waiting, node.activity.ticks());
      EXPECT_LE(node.critical, node.activity.ticks());
      EXPECT_TRUE(node.is_critical || node.critical == 0);
      EXPECT_TRUE(!node.is_critical || nodes[node.parent].is_critical);
      critical += node.critical;
    }
    EXPECT_EQ(critical, 1000u);
  }
}

// Passes events to a tree. The root is activity 1, from 0 to 1000 on thread 1.
class GrowingTreeTest : public ::testing::Test {
 protected:
  GrowingTreeTest() { Add(0, kStart, 1, 1); }

  bool Add(std::uint64_t ticks, std::uint8_t opcode, std::size_t thread, std::uint64_t id,
           std::uint64_t related = 0) {
    nettrace::EventMetadata metadata;
    metadata.opcode = opcode;
    nettrace::Labels labels;
    if (id != 0) labels.activity_id = IdOf(id);
    if (related != 0) labels.related_activity_id = IdOf(related);
    nettrace::Event event;
    event.metadata = &metadata;
    event.labels = &labels;
    event.timestamp = ticks;
    return tree_.Add(event, 0, thread);
  }
  // Returns the nodes as "id<parent's id from..until", with "?" for a node that has not ended.
  std::vector<std::string> Nodes() {
    std::vector<std::string> texts;
    nodes_ = tree_.TakeNodes();
    for (const TreeNode& node : nodes_) {
      const auto number = [this](std::size_t index) {
        return std::to_string(static_cast<unsigned>(nodes_[index].activity.id[0]));
      };
      texts.push_back(number(texts.size()) + "<" + number(node.parent) + " " +
                      std::to_string(node.activity.begin) + ".." +
                      (node.has_ended ? std::to_string(node.activity.end) : "?"));
    }
    return texts;
  }

  static Activity Root() {
    Activity root;
    root.end = 1000;
    root.thread = 1;
    root.id = IdOf(1);
    return root;
  }
  ActivityTree tree_{Root()};
  std::vector<TreeNode> nodes_;
};

TEST_F(GrowingTreeTest, RelatedActivitiesAreChildrenOnAllThreads) {
  EXPECT_TRUE(Add(10, kStart, 2, 2, 1));
  EXPECT_TRUE(Add(20, kStart, 3, 3, 2));
  EXPECT_FALSE(Add(25, kStart, 1, 9));  // 9 only shares a thread with 1
  EXPECT_FALSE(Add(26, 0, 1, 9));
  EXPECT_TRUE(Add(30, 0, 3, 3));
  EXPECT_TRUE(Add(40, kStop, 3, 3));
  EXPECT_TRUE(Add(50, kStop, 4, 2));  // stops on another thread
  EXPECT_TRUE(Add(60, kStart, 2, 4, 1));
  EXPECT_TRUE(Add(1000, kStop, 1, 1));
  EXPECT_EQ(tree_.events(), 8u);
  EXPECT_EQ(Nodes(),
            (std::vector<std::string>{"1<1 0..1000", "2<1 10..50", "3<2 20..40", "4<1 60..?"}));
  EXPECT_EQ(nodes_[0].self, 20u);
}

TEST_F(GrowingTreeTest, EventsWithoutAnIdBelongToTheRunningActivitiesOfTheirThread) {
  EXPECT_TRUE(Add(1, 0, 1, 0));
  EXPECT_FALSE(Add(5, 0, 2, 0));
  Add(10, kStart, 2, 2, 1);
  EXPECT_TRUE(Add(11, 0, 2, 0));
  Add(20, kStop, 2, 2);
  EXPECT_FALSE(Add(21, 0, 2, 0));
  EXPECT_TRUE(Add(22, 0, 1, 0));
}

TEST_F(GrowingTreeTest, StartsOfOneIdAreNestedOrFollowEachOther) {
  Add(10, kStart, 1, 1);
  Add(20, kStop, 1, 1);
  Add(30, kStart, 2, 2, 1);
  Add(40, kStart, 2, 2, 1);
  Add(50, kStop, 2, 2);
  Add(60, kStop, 2, 2);
  Add(70, kStart, 2, 2);
  Add(80, kStop, 2, 2);
  EXPECT_TRUE(Add(85, kStop, 2, 2));  // a stop without a start
  EXPECT_EQ(Nodes(), (std::vector<std::string>{"1<1 0..1000", "1<1 10..20", "2<1 30..60",
                                               "2<2 40..50", "2<1 70..80"}));
}

TEST_F(GrowingTreeTest, AnEventWithoutStartConnectsItsActivity) {
  EXPECT_TRUE(Add(10, 0, 2, 2, 1));
  EXPECT_TRUE(Add(11, 0, 2, 2));
  EXPECT_TRUE(Add(12, kStart, 3, 3, 2));
  EXPECT_TRUE(Add(13, kStop, 3, 3));
  EXPECT_EQ(Nodes(), (std::vector<std::string>{"1<1 0..1000", "3<1 12..13"}));
}

TEST_F(GrowingTreeTest, NumberDepthAndIdsAreBounded) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(Add(10 + i, kStart, 1, 2 + i, 1 + i));  // each inside the previous activity
  }
  EXPECT_EQ(tree_.left_out(), 100 - (kMaxTreeDepth - 1));
  for (std::uint64_t i = 0; i < 2000; ++i) Add(500, kStart, 1, 1000 + i, 1);
  EXPECT_FALSE(Add(501, 0, 1, 2999));
  const std::uint64_t left_out = tree_.left_out();
  const std::size_t nodes = Nodes().size();
  EXPECT_EQ(nodes, kMaxTreeNodes);
  EXPECT_EQ(nodes + left_out, kMaxTreeIds);
  for (const TreeNode& node : nodes_) EXPECT_LT(node.depth, kMaxTreeDepth);
}

}  // namespace
}  // namespace tools::report
