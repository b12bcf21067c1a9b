// Writes the Fuchsia trace format, version "FxT", which Perfetto reads: records of 64-bit words,
// little-endian.
//
// An event is an instant on its thread, with the provider as its category. One that begins or ends
// a slice of an activity (timeline.h) is the begin or end of an asynchronous one instead. A related
// activity is a flow: an arrow, from the beginning of that activity's slice to the event. Lost
// events are an instant and a counter, in a process of their own.
//
// Where the specification leaves a choice, or more than Perfetto reads right, it is as
// Perfetto wants it: no large records, logs or userspace objects; no flow outside of a duration.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/common/fxt_format.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/fxt/arguments.h"
#include "tools/nettrace/export/text_output.h"
#include "tools/nettrace/export/timeline.h"

namespace tools::fxt {

// The process, and its thread, on which losses are shown: no process of a kernel has this id.
inline constexpr std::uint64_t kLossesId = 0xFFFF'FFFF;
class FxtExporter : public exporting::Exporter {
 public:
  // `sink` must live as long.
  explicit FxtExporter(nettrace::Sink* sink);

  bool wants_payload_json() const override { return true; }
  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const exporting::Loss& loss) override;
  void OnRowsEnd(bool /*threads_too*/) override {}
  absl::Status Finish() override;

  std::string Remark() const override;

 private:
  using Ids = exporting::Ids;

  struct EventHead {
    EventType type = EventType::kInstant;
    absl::Time time;
    Ids ids;
    std::string_view category;
    std::string_view name;
  };

  // These append a record to pending_, after those that it needs.
  void PutKernelObject(const Ids& ids, std::string_view name);
  // `number` is what the types but kInstant and durations have at their end.
  void PutEvent(const EventHead& head, const std::vector<Argument>& arguments = {},
                std::optional<std::uint64_t> number = std::nullopt);
  // An arrow from the beginning of the slice to the event.
  void PutArrow(const exporting::OpenSlices::Slice& from, const exporting::ExportedEvent& to);
  // `head` is the first word without type and size; `words` are the others.
  void PutRecord(RecordType type, std::uint64_t head, std::string_view words);
  // Appends the argument's words to `words`; of its text, if it is one, at most so many bytes.
  void PutArgument(const Argument& argument, std::size_t max_text, std::string* words);

  void MakeRoomForStrings();
  // The reference of a text or thread in the tables, whose record is put first if it is not there.
  std::uint16_t StringRef(std::string_view text);
  std::uint8_t ThreadRef(const Ids& ids);
  absl::Status WritePending();

  exporting::TextOutput output_;
  std::string pending_;  // whole records
  absl::flat_hash_map<std::string, std::uint16_t> strings_;
  std::size_t strings_size_ = 0;
  absl::flat_hash_map<Ids, std::uint8_t> threads_;
  exporting::KnownNames names_;
  exporting::OpenSlices slices_;
  std::uint64_t arrows_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t texts_cut_ = 0;  // because records have no room for more
};

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_
