#include "tools/trace/stack_tree.h"

#include <algorithm>
#include <limits>

#include "absl/strings/string_view.h"
#include "tools/base/text.h"

namespace trace {

std::uint64_t CappedSum(std::uint64_t a, std::uint64_t b) {
  return b > std::numeric_limits<std::uint64_t>::max() - a
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

std::optional<std::uint32_t> NameTable::Add(std::string_view name, std::size_t max_bytes) {
  if (name.empty()) return 0;
  const auto known = numbers_.find(absl::string_view(name.data(), name.size()));
  if (known != numbers_.end()) return known->second;
  // The name is stored twice: in names_ and in numbers_.
  const std::size_t bytes = 2 * (name.size() + sizeof(std::string));
  if (bytes_ + bytes > max_bytes) return std::nullopt;
  bytes_ += bytes;
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

StackTree::StackTree() {
  files_.emplace_back();
  frames_.emplace_back();
  nodes_.emplace_back();
}

StackTree::FrameKey StackTree::KeyOf(const Frame& frame) {
  if (frame.function != 0) return {frame.file, frame.function, 0, false};
  return {frame.file, 0, frame.offset, frame.is_return};
}

std::optional<std::uint32_t> StackTree::AddFile(std::string_view path, std::string_view build_id) {
  const std::optional<std::uint32_t> path_number = names_.Add(path, kMaxNameBytes);
  const std::optional<std::uint32_t> id_number = names_.Add(build_id, kMaxNameBytes);
  if (!path_number || !id_number) return std::nullopt;
  const auto known = file_index_.find({*path_number, *id_number});
  if (known != file_index_.end()) return known->second;
  if (files_.size() >= kMaxNodes) return std::nullopt;
  file_index_.emplace(Pair(*path_number, *id_number), static_cast<std::uint32_t>(files_.size()));
  files_.push_back({*path_number, *id_number});
  return static_cast<std::uint32_t>(files_.size() - 1);
}

std::optional<std::uint32_t> StackTree::AddFrame(const nettrace::ThreadInfo& thread,
                                                 std::uint64_t address, bool is_return,
                                                 const CodeMap& code) {
  const CodeMap::Code found = code.Find(thread, address, is_return);
  Frame frame;
  frame.offset = address;
  frame.is_return = is_return && address != 0;
  frame.address = frame.is_return ? address - 1 : address;
  if (found.is_known) {
    const std::optional<std::uint32_t> file = AddFile(found.path, found.build_id);
    const std::optional<std::uint32_t> function = names_.Add(found.function, kMaxNameBytes);
    if (!file || !function) return std::nullopt;
    frame.file = *file;
    frame.function = *function;
    frame.mapping = found.mapping;
    if (*function != 0) {
      frame.is_return = false;
      frame.address = found.function_start;
    }
    frame.offset =
        (*function != 0 ? found.function_start : address) - found.mapping_start + found.file_offset;
  }
  const auto known = frame_index_.find(KeyOf(frame));
  if (known != frame_index_.end()) return known->second;
  if (frames_.size() >= kMaxNodes) return std::nullopt;
  frame_index_.emplace(KeyOf(frame), static_cast<std::uint32_t>(frames_.size()));
  frames_.push_back(frame);
  return static_cast<std::uint32_t>(frames_.size() - 1);
}

std::optional<std::uint32_t> StackTree::AddChild(std::uint32_t parent, std::uint32_t frame) {
  const auto known = node_index_.find({parent, frame});
  if (known != node_index_.end()) return known->second;
  if (nodes_.size() >= kMaxNodes) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  node_index_.emplace(Pair(parent, frame), index);
  nodes_.push_back({parent, frame});
  return index;
}

std::optional<std::uint32_t> StackTree::Add(const nettrace::Event& event, std::int32_t pointer_size,
                                            const CodeMap& code) {
  const std::uint64_t version = code.VersionOf(*event.thread);
  key_.assign(reinterpret_cast<const char*>(&version), sizeof version);
  key_.append(reinterpret_cast<const char*>(event.stack.data()), event.stack.size());
  const auto known = known_.find(key_);
  if (known != known_.end()) return known->second;
  const std::vector<std::uint64_t> stack = StackAddresses(event, pointer_size);
  std::uint32_t node = kRoot;
  for (std::size_t i = stack.size(); i-- != 0;) {
    const std::optional<std::uint32_t> frame =
        AddFrame(*event.thread, stack[i], IsReturnAddress(stack, i), code);
    const std::optional<std::uint32_t> child = frame ? AddChild(node, *frame) : std::nullopt;
    if (!child) return std::nullopt;
    node = *child;
  }
  if (known_.size() >= kMaxKnown || known_bytes_ + key_.size() > kMaxKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += key_.size();
  known_.emplace(key_, node);
  return node;
}

bool StackTree::Count(std::uint32_t node, std::uint32_t group, std::uint64_t weight) {
  auto known = sample_index_.find({node, group});
  if (known == sample_index_.end()) {
    if (samples_.size() >= kMaxNodes) return false;
    known =
        sample_index_.emplace(Pair(node, group), static_cast<std::uint32_t>(samples_.size())).first;
    samples_.push_back({node, group});
  }
  Sample& sample = samples_[known->second];
  ++sample.count;
  sample.weight = CappedSum(sample.weight, weight);
  return true;
}

void StackTree::NameFunctions(const CodeMap& code) {
  std::vector<std::uint32_t> to(frames_.size());
  bool changes = false;
  for (std::uint32_t i = 0; i < frames_.size(); ++i) {
    to[i] = i;
    Frame& frame = frames_[i];
    if (frame.file == 0 || frame.function != 0) continue;
    const std::optional<CodeMap::Symbol> symbol = code.FindFunction(frame.mapping, frame.address);
    const std::optional<std::uint32_t> name =
        symbol ? names_.Add(symbol->name, kMaxNameBytes) : std::nullopt;
    if (!name || *name == 0) continue;
    changes = true;
    frame.function = *name;
    frame.offset -= frame.address + (frame.is_return ? 1 : 0) - symbol->start;
    frame.address = symbol->start;
    frame.is_return = false;
    to[i] = frame_index_.try_emplace(KeyOf(frame), i).first->second;
  }
  if (changes) MergeFrames(to);
}

void StackTree::MergeFrames(const std::vector<std::uint32_t>& to) {
  const std::vector<Node> nodes = std::exchange(nodes_, {Node()});
  const std::vector<Sample> samples = std::exchange(samples_, {});
  node_index_.clear();
  sample_index_.clear();
  known_.clear();
  known_bytes_ = 0;
  std::vector<std::uint32_t> moved(nodes.size(), kRoot);
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    moved[i] = *AddChild(moved[nodes[i].parent], to[nodes[i].frame]);
  }
  for (const Sample& sample : samples) {
    const Pair key(moved[sample.node], sample.group);
    const auto [known, is_new] =
        sample_index_.try_emplace(key, static_cast<std::uint32_t>(samples_.size()));
    if (is_new) samples_.push_back({key.first, sample.group});
    Sample& sum = samples_[known->second];
    sum.count += sample.count;
    sum.weight = CappedSum(sum.weight, sample.weight);
  }
}

std::vector<std::string> StackTree::MergeByText() {
  std::vector<std::string> texts;
  std::vector<std::uint32_t> to;
  texts.reserve(frames_.size());
  to.reserve(frames_.size());
  absl::flat_hash_map<std::string, std::uint32_t> known;
  for (const Frame& frame : frames_) {
    texts.push_back(to.empty() ? std::string() : FrameText(frame));
    to.push_back(
        known.try_emplace(texts.back(), static_cast<std::uint32_t>(to.size())).first->second);
  }
  MergeFrames(to);
  return texts;
}

std::string StackTree::FrameText(const Frame& frame) const {
  std::string text;
  if (frame.file != 0) {
    text = ModuleName(names_[files_[frame.file].path]);
    if (frame.function != 0) return text + '!' + names_[frame.function];
    text += '+';
  }
  base::AppendHexNumber(frame.offset, &text);
  return text;
}

std::vector<std::uint32_t> StackTree::FramesTo(std::uint32_t node) const {
  std::vector<std::uint32_t> frames;
  for (; node != kRoot; node = nodes_[node].parent) frames.push_back(nodes_[node].frame);
  std::reverse(frames.begin(), frames.end());
  return frames;
}

}  // namespace trace
