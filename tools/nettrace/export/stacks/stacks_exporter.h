// Exports the stacks of events as sums: folded stacks, and the files of speedscope and pprof.
#ifndef TOOLS_NETTRACE_EXPORT_STACKS_STACKS_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_STACKS_STACKS_EXPORTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/stacks/profile.h"
#include "tools/trace/code_map.h"

namespace tools::stacks {

enum class Format : std::uint8_t { kFolded, kSpeedscope, kPprof };

// Writes nothing before Finish. Memory is bounded by the number of different stacks, at most
// StackTree::kMaxNodes. Events whose stacks would exceed this limit are left out, and counted.
class StacksExporter : public exporting::Exporter {
 public:
  // `field` is the field of Weight::kField. `reader` and `sink` must outlive this object.
  StacksExporter(const nettrace::Reader& reader, Format format, Weight weight, std::string field,
                 nettrace::Sink* sink);

  bool keeps_stacks() const override { return true; }
  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  void OnOtherEvent(const nettrace::Event& event) override { code_.OnEvent(event); }
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool /*threads_too*/) override {}
  // Fails with Unimplemented if no event is in the sums, for example because no event has a stack.
  absl::Status Finish() override;
  std::string Remark() const override;

 private:
  // The names of the process, of the thread and of the kind of event, each as its number in names_;
  // then the ids of the process and of the thread.
  using GroupKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t,
                              std::optional<std::uint64_t>, std::optional<std::uint64_t>>;

  // Return the number of the event's group or kind; nullopt if there are too many.
  std::optional<std::uint32_t> GroupOf(const exporting::ExportedEvent& event);
  std::optional<std::uint32_t> KindOf(const nettrace::Event& event);
  // Returns the number that the event adds to the sums; nullopt if the field that should hold the
  // number is missing or has no number.
  std::optional<std::uint64_t> WeightOf(const nettrace::Event& event) const;
  absl::Status CheckStacks() const;

  const nettrace::Reader& reader_;
  const Format format_;
  nettrace::Sink* const sink_;
  trace::CodeMap code_;
  Profile profile_;
  trace::NameTable names_;  // names of processes, threads and kinds of events
  absl::flat_hash_map<GroupKey, std::uint32_t> groups_;
  absl::flat_hash_map<std::uint32_t, std::uint32_t> kinds_;  // by the number of the name in names_
  // Numbers of events that are not in the sums, by reason.
  std::uint64_t without_stack_ = 0;
  std::uint64_t without_weight_ = 0;
  std::uint64_t over_limit_ = 0;
  // Number of events in the sums whose stacks are not complete.
  std::uint64_t cut_ = 0;
};

}  // namespace tools::stacks

#endif  // TOOLS_NETTRACE_EXPORT_STACKS_STACKS_EXPORTER_H_
