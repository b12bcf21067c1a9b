// Writes the two formats that list the names of the frames of each stack: folded stacks, and the
// JSON of speedscope.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/stacks/profile.h"

namespace tools::stacks {
namespace {

using trace::StackTree;

// Assigns a number to each text in Group::process.
class Processes {
 public:
  explicit Processes(const std::vector<Group>& groups) {
    for (const Group& group : groups) {
      const auto [known, is_new] =
          numbers_.try_emplace(group.process, static_cast<std::uint32_t>(names_.size()));
      if (is_new) names_.push_back(group.process);
      of_group_.push_back(known->second);
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  std::uint32_t NumberOf(const StackTree::Sample& sample) const { return of_group_[sample.group]; }

 private:
  std::vector<std::string> names_;
  std::vector<std::uint32_t> of_group_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
};

// A stack of a process, with the sum of the weights of its events.
struct Line {
  std::uint32_t process = 0;
  std::uint32_t node = 0;
  std::uint64_t weight = 0;
};

// Returns the stacks of the events of `kind`, or of all events if `kind` has no value. The stacks
// are in the order of their first events.
std::vector<Line> LinesOf(const Profile& profile, const Processes& processes,
                          std::optional<std::uint32_t> kind) {
  std::vector<Line> lines;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> index;
  for (const StackTree::Sample& sample : profile.tree.samples()) {
    if (kind && profile.groups[sample.group].kind != *kind) continue;
    const std::uint32_t process = processes.NumberOf(sample);
    const auto [known, is_new] = index.try_emplace({process, sample.node}, lines.size());
    if (is_new) lines.push_back({process, sample.node});
    std::uint64_t& weight = lines[known->second].weight;
    weight = trace::CappedSum(weight, sample.weight);
  }
  return lines;
}

// Returns the text without the characters that separate frames and stacks in the file. ":" replaces
// ";", and control characters, such as line feeds, are escaped.
std::string FoldedText(std::string_view text) {
  std::string folded = base::Printable(text);
  for (char& c : folded) {
    if (c == ';') c = ':';
  }
  return folded;
}

bool HasSeveralUnits(const Profile& profile) {
  bool has_time = false;
  bool has_events = false;
  for (const StackTree::Sample& sample : profile.tree.samples()) {
    (profile.IsTime(sample) ? has_time : has_events) = true;
  }
  return has_time && has_events;
}

}  // namespace

absl::Status WriteFolded(Profile* profile, nettrace::Sink* sink) {
  if (HasSeveralUnits(*profile)) {
    return absl::UnimplementedError(
        "the weights of events cswitch are times off the CPU, and the weights of other events are "
        "counts, which cannot be added up; select one kind with --event, or count each event as 1 "
        "with --weight events");
  }
  std::vector<std::string> texts = profile->tree.MergeByText();
  for (std::string& text : texts) text = FoldedText(text);
  const Processes processes(profile->groups);
  base::TextOutput output(sink);
  for (const Line& line : LinesOf(*profile, processes, std::nullopt)) {
    if (line.weight == 0) continue;
    std::string& out = *output.text();
    out += FoldedText(processes.names()[line.process]);
    for (const std::uint32_t frame : profile->tree.FramesTo(line.node)) {
      absl::StrAppend(&out, ";", texts[frame]);
    }
    absl::StrAppend(&out, " ", line.weight, "\n");
    RETURN_IF_ERROR(output.Appended());
  }
  return output.Flush();
}

namespace {

// Writes the parts of a file of speedscope.
class SpeedscopeFile {
 public:
  SpeedscopeFile(Profile* profile, nettrace::Sink* sink)
      : texts_(profile->tree.MergeByText()),
        profile_(*profile),
        processes_(profile->groups),
        output_(sink),
        json_(buffer_) {}

  absl::Status Write() {
    json_.StartObject();
    base::PutText(&json_, "$schema", "https://www.speedscope.app/file-format-schema.json");
    base::PutText(&json_, "exporter", "nettrace");
    json_.PlainKey("shared");
    json_.StartObject();
    RETURN_IF_ERROR(PutFrames());
    json_.EndObject();
    json_.PlainKey("profiles");
    json_.StartArray();
    for (std::uint32_t kind = 0; kind < profile_.kinds.size(); ++kind) {
      RETURN_IF_ERROR(PutProfile(kind));
    }
    json_.EndArray();
    json_.EndObject();
    RETURN_IF_ERROR(Take());
    RETURN_IF_ERROR(output_.Write("\n"));
    return output_.Flush();
  }

 private:
  // Writes the JSON in buffer_ to the output, and empties buffer_.
  absl::Status Take() {
    absl::Status status = output_.Write(std::string_view(buffer_.GetString(), buffer_.GetSize()));
    buffer_.Clear();
    return status;
  }

  // Writes the frames: first a frame for each process, then the frames of the tree, except the
  // frame of the root.
  absl::Status PutFrames() {
    json_.PlainKey("frames");
    json_.StartArray();
    for (const std::string& process : processes_.names()) RETURN_IF_ERROR(PutFrame(process, ""));
    for (std::size_t i = 1; i < texts_.size(); ++i) {
      const StackTree::File& file = profile_.tree.files()[profile_.tree.frames()[i].file];
      RETURN_IF_ERROR(PutFrame(texts_[i], profile_.tree.names()[file.path]));
    }
    json_.EndArray();
    return absl::OkStatus();
  }
  absl::Status PutFrame(std::string_view name, std::string_view file) {
    json_.StartObject();
    base::PutText(&json_, "name", name);
    if (!file.empty()) base::PutText(&json_, "file", file);
    json_.EndObject();
    return Take();
  }

  absl::Status PutProfile(std::uint32_t kind) {
    const std::vector<Line> lines = LinesOf(profile_, processes_, kind);
    if (lines.empty()) return absl::OkStatus();
    std::uint64_t sum = 0;
    json_.StartObject();
    base::PutText(&json_, "type", "sampled");
    base::PutText(&json_, "name", profile_.kinds[kind].name);
    base::PutText(&json_, "unit", profile_.kinds[kind].is_time ? "nanoseconds" : "none");
    json_.PlainKey("samples");
    json_.StartArray();
    for (const Line& line : lines) {
      sum = trace::CappedSum(sum, line.weight);
      json_.StartArray();
      json_.Uint(line.process);
      for (const std::uint32_t frame : profile_.tree.FramesTo(line.node)) {
        json_.Uint(static_cast<unsigned>(processes_.names().size()) + frame - 1);
      }
      json_.EndArray();
      RETURN_IF_ERROR(Take());
    }
    json_.EndArray();
    json_.PlainKey("weights");
    json_.StartArray();
    for (const Line& line : lines) {
      json_.Uint64(line.weight);
      RETURN_IF_ERROR(Take());
    }
    json_.EndArray();
    json_.PlainKey("startValue");
    json_.Uint64(0);
    json_.PlainKey("endValue");
    json_.Uint64(sum);
    json_.EndObject();
    return Take();
  }

  const std::vector<std::string> texts_;  // texts of the tree's frames, by index
  const Profile& profile_;
  const Processes processes_;
  base::TextOutput output_;
  rapidjson::StringBuffer buffer_;
  base::JsonWriter json_;
};

}  // namespace

absl::Status WriteSpeedscope(Profile* profile, nettrace::Sink* sink) {
  return SpeedscopeFile(profile, sink).Write();
}

}  // namespace tools::stacks
