#include "tools/nettrace/export/stacks/stacks_exporter.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"
#include "tools/trace/stack_weight.h"

namespace tools::stacks {
namespace {

// Maximum bytes of all names of processes, threads and kinds of events together.
constexpr std::size_t kMaxNameBytes = std::size_t{32} << 20;

// Returns a text for the process of an event: the last part of its name, or its id.
std::string ProcessText(const exporting::ExportedEvent& exported) {
  const std::string_view name = trace::ModuleName(exported.process);
  if (!name.empty()) return std::string(name);
  const std::optional<std::uint64_t>& pid = exported.event->thread->process_id;
  return pid ? absl::StrCat("pid ", *pid) : "unknown process";
}

}  // namespace

StacksExporter::StacksExporter(const nettrace::Reader& reader, Format format, Weight weight,
                               std::string field, nettrace::Sink* sink)
    : reader_(reader), format_(format), sink_(sink) {
  profile_.weight = weight;
  profile_.field = std::move(field);
}

std::optional<std::uint64_t> StacksExporter::WeightOf(const nettrace::Event& event) const {
  if (profile_.weight == Weight::kEvents) return 1;
  return profile_.weight == Weight::kField ? trace::NumberIn(event, profile_.field)
                                           : trace::StackWeight(event);
}

std::optional<std::uint32_t> StacksExporter::KindOf(const nettrace::Event& event) {
  const std::string name =
      event.metadata->provider + ':' + std::string(trace::EventName(*event.metadata));
  const std::optional<std::uint32_t> number = names_.Add(name, kMaxNameBytes);
  if (!number) return std::nullopt;
  const auto [known, is_new] =
      kinds_.try_emplace(*number, static_cast<std::uint32_t>(profile_.kinds.size()));
  if (is_new) {
    profile_.kinds.push_back(
        {name, profile_.weight == Weight::kAutomatic && trace::IsOffCpu(*event.metadata)});
  }
  return known->second;
}

std::optional<std::uint32_t> StacksExporter::GroupOf(const exporting::ExportedEvent& exported) {
  const nettrace::ThreadInfo& thread = *exported.event->thread;
  const std::string process = ProcessText(exported);
  const std::string_view thread_name =
      thread.name ? std::string_view(*thread.name) : std::string_view();
  const std::optional<std::uint32_t> process_number = names_.Add(process, kMaxNameBytes);
  const std::optional<std::uint32_t> thread_number = names_.Add(thread_name, kMaxNameBytes);
  const std::optional<std::uint32_t> kind = KindOf(*exported.event);
  if (!process_number || !thread_number || !kind) return std::nullopt;
  const GroupKey key(*process_number, *thread_number, *kind, thread.process_id, thread.thread_id);
  const auto known = groups_.find(key);
  if (known != groups_.end()) return known->second;
  if (groups_.size() >= trace::StackTree::kMaxNodes) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(groups_.size());
  groups_.emplace(key, number);
  profile_.groups.push_back(
      {process, std::string(thread_name), thread.process_id, thread.thread_id, *kind});
  return number;
}

absl::Status StacksExporter::OnEvent(const exporting::ExportedEvent& exported) {
  const nettrace::Event& event = *exported.event;
  code_.OnEvent(event);
  if (event.stack.empty()) {
    ++without_stack_;
    return absl::OkStatus();
  }
  const std::optional<std::uint64_t> weight = WeightOf(event);
  if (!weight) {
    ++without_weight_;
    return absl::OkStatus();
  }
  const std::optional<std::uint32_t> group = GroupOf(exported);
  const std::optional<std::uint32_t> node =
      group ? profile_.tree.Add(event, reader_.trace().pointer_size, code_) : std::nullopt;
  if (!node || !profile_.tree.Count(*node, *group, *weight)) {
    ++over_limit_;
    return absl::OkStatus();
  }
  if (trace::IsStackCut(event)) ++cut_;
  profile_.first = std::min(profile_.first, exported.time);
  profile_.last = std::max(profile_.last, exported.time);
  return absl::OkStatus();
}

absl::Status StacksExporter::OnLoss(const trace::Loss& loss) {
  profile_.lost += loss.count;
  return absl::OkStatus();
}

absl::Status StacksExporter::CheckStacks() const {
  if (!profile_.tree.samples().empty()) return absl::OkStatus();
  if (without_weight_ != 0) {
    return absl::UnimplementedError(absl::StrCat(
        "no event with a stack has a number in the field ",
        base::Printable(profile_.weight == Weight::kField ? std::string_view(profile_.field)
                                                          : trace::kOffCpuField),
        "; name another field with --weight, or count events with --weight events"));
  }
  return absl::UnimplementedError(
      absl::StrCat("none of ", base::Counted(without_stack_, "event"),
                   " has a stack; record stacks with 'nettrace record --stacks'"));
}

absl::Status StacksExporter::Finish() {
  RETURN_IF_ERROR(CheckStacks());
  profile_.tree.NameFunctions(code_);
  if (format_ == Format::kFolded) return WriteFolded(&profile_, sink_);
  if (format_ == Format::kSpeedscope) return WriteSpeedscope(&profile_, sink_);
  return WritePprof(profile_, sink_);
}

std::string StacksExporter::Remark() const {
  std::string text;
  const auto add = [&text](std::uint64_t events, const char* what) {
    if (events == 0) return;
    absl::StrAppend(&text, text.empty() ? "" : "; ", base::Counted(events, "event"), what);
  };
  add(without_stack_, " without a stack left out");
  add(without_weight_, " without a number to sum left out");
  add(over_limit_,
      " left out, because there are too many different stacks; select fewer events with the "
      "filters");
  add(cut_, " with a stack that lacks callers (label StackCut)");
  return text;
}

}  // namespace tools::stacks
