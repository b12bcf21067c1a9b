// Sums the stacks of events. The code on the stacks forms a tree. Its root has the outermost
// callers as children, so stacks with the same callers share the nodes of these callers.
#ifndef TOOLS_TRACE_STACK_TREE_H_
#define TOOLS_TRACE_STACK_TREE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "nettrace/reader.h"
#include "tools/trace/code_map.h"

namespace trace {

// Returns a + b, or the greatest number if the sum is greater. Weights are fields of events, which
// may be hostile.
std::uint64_t CappedSum(std::uint64_t a, std::uint64_t b);

// Gives each text a number. Number 0 is "". Not thread-safe.
class NameTable {
 public:
  NameTable() { names_.emplace_back(); }

  // Returns the number of the text. Returns nullopt if the text is new, and the table would need
  // more than `max_bytes` bytes with it.
  std::optional<std::uint32_t> Add(std::string_view name, std::size_t max_bytes);
  const std::string& operator[](std::uint32_t number) const { return names_[number]; }
  std::size_t size() const { return names_.size(); }

 private:
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  std::size_t bytes_ = 0;
};

// A tree of code, with sums of the events whose stacks end at its nodes. Not thread-safe.
class StackTree {
 public:
  // Maximum number of nodes, and of samples, frames and files each. A node and a sample together
  // need about 150 bytes.
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 20;
  // Maximum bytes of the names of functions and files.
  static constexpr std::size_t kMaxNameBytes = std::size_t{64} << 20;

  // A function, or an address whose function is unknown.
  struct Frame {
    std::uint32_t file = 0;      // index in files(); 0 if no mapping has the address
    std::uint32_t function = 0;  // number of its name in names(); 0 if it is unknown
    // Offset in the file of the function's first byte, or of the address if the function is
    // unknown. If no mapping has the address, the address itself.
    std::uint64_t offset = 0;
    bool is_return = false;  // whether `offset` is that of a return address
    // Address of the function's first byte, or of the code if the function is unknown. Processes
    // may map a file at different addresses; this one is from the first stack with the frame.
    std::uint64_t address = 0;
    std::uint64_t mapping = 0;  // id of its mapping in CodeMap
  };
  struct File {
    std::uint32_t path = 0;      // number in names()
    std::uint32_t build_id = 0;  // number in names()
  };
  struct Node {
    std::uint32_t parent = 0;  // index of a node before this one; 0 for the root
    std::uint32_t frame = 0;   // index in frames()
  };
  // The events of one group that have the same stack. The caller numbers the groups.
  struct Sample {
    std::uint32_t node = 0;  // index of the node of the leaf
    std::uint32_t group = 0;
    std::uint64_t count = 0;   // events
    std::uint64_t weight = 0;  // sum of their weights
  };
  // Index of the root, which has no parent. It stands for no code, and refers to the empty frame 0.
  static constexpr std::uint32_t kRoot = 0;

  StackTree();

  // Adds the stack of an event. Returns the node of its leaf, or nullopt if a limit is reached.
  std::optional<std::uint32_t> Add(const nettrace::Event& event, std::int32_t pointer_size,
                                   const CodeMap& code);
  // Counts an event of the group whose stack ends at `node`. Returns false if a limit is reached.
  bool Count(std::uint32_t node, std::uint32_t group, std::uint64_t weight);

  // Gives names to frames without a function, if `code` now knows their functions. A trace may name
  // a function only after events that have it on their stacks. Merges stacks that become equal.
  void NameFunctions(const CodeMap& code);
  // Replaces frames[i] by frames[to[i]], and merges stacks that become equal.
  void MergeFrames(const std::vector<std::uint32_t>& to);
  // Merges frames that have the same text, and stacks that become equal. Returns the texts of all
  // frames, by index. The text of frame 0 is "".
  std::vector<std::string> MergeByText();
  // Returns the text of a frame: `module!function`, `module+0x1f` or `0x1f`, as CodeMap shows it.
  std::string FrameText(const Frame& frame) const;

  const NameTable& names() const { return names_; }
  const std::vector<File>& files() const { return files_; }
  const std::vector<Frame>& frames() const { return frames_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  // Returns the samples, in the order of the first event of each.
  const std::vector<Sample>& samples() const { return samples_; }
  // Returns the indices of the frames of the stack that ends at `node`, outermost caller first.
  std::vector<std::uint32_t> FramesTo(std::uint32_t node) const;

 private:
  // Maximum number of entries of known_, and maximum bytes of their keys. When either is reached,
  // known_ is emptied.
  static constexpr std::size_t kMaxKnown = std::size_t{1} << 16;
  static constexpr std::size_t kMaxKnownBytes = std::size_t{32} << 20;

  using FrameKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, bool>;
  using Pair = std::pair<std::uint32_t, std::uint32_t>;

  static FrameKey KeyOf(const Frame& frame);
  std::optional<std::uint32_t> AddFile(std::string_view path, std::string_view build_id);
  std::optional<std::uint32_t> AddFrame(const nettrace::ThreadInfo& thread, std::uint64_t address,
                                        bool is_return, const CodeMap& code);
  std::optional<std::uint32_t> AddChild(std::uint32_t parent, std::uint32_t frame);

  NameTable names_;
  std::vector<File> files_;
  std::vector<Frame> frames_;
  std::vector<Node> nodes_;
  std::vector<Sample> samples_;
  absl::flat_hash_map<Pair, std::uint32_t> file_index_;  // by path and build id
  absl::flat_hash_map<FrameKey, std::uint32_t> frame_index_;
  absl::flat_hash_map<Pair, std::uint32_t> node_index_;    // by parent and frame
  absl::flat_hash_map<Pair, std::uint32_t> sample_index_;  // by node and group
  // A cache of the results of Add(). The key is the result of CodeMap::VersionOf(), then the bytes
  // of the stack.
  absl::flat_hash_map<std::string, std::uint32_t> known_;
  std::size_t known_bytes_ = 0;
  std::string key_;  // key in known_ of the last stack; a member to save allocations
};

}  // namespace trace

#endif  // TOOLS_TRACE_STACK_TREE_H_
