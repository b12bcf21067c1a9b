// Writes the Fuchsia trace format, version "FxT", which Perfetto reads. It consists of records of
// little-endian 64-bit words.
//
// An event becomes an instant on its thread, with the provider as its category. An event that
// begins or ends a slice of an activity (timeline.h) becomes the begin or end of an asynchronous
// event instead. Readers drop an end without a begin, so that becomes an instant. A related activity becomes a flow: an arrow from the beginning of that activity's
// slice to the event. Lost events become an instant and a counter, in a separate process.
//
// Where the specification allows several forms, or forms that Perfetto misreads, the output has the
// form that Perfetto reads correctly: no large records, logs or userspace objects, and no flow
// outside of a duration.
#ifndef TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_
#define TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_

#include <array>
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
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/fxt/arguments.h"
#include "tools/nettrace/export/fxt/fxt_format.h"
#include "tools/trace/timeline.h"

namespace tools::fxt {

// Id of the process and thread on which losses are shown. The kernel does not assign this id.
inline constexpr std::uint64_t kLossesId = 0xFFFF'FFFF;
class FxtExporter : public exporting::Exporter {
 public:
  // `sink` must outlive this object.
  explicit FxtExporter(nettrace::Sink* sink);

  bool wants_payload_json() const override { return true; }
  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool /*threads_too*/) override {}
  absl::Status Finish() override;

  std::string Remark() const override;

 private:
  struct EventHead {
    EventType type = EventType::kInstant;
    absl::Time time;
    trace::Ids ids;
    std::string_view category;
    std::string_view name;
  };

  // The following functions append a record to pending_, after the records that it refers to.
  void PutKernelObject(const trace::Ids& ids, std::string_view name);
  // `number` is the last word of event types other than kInstant and durations.
  void PutEvent(const EventHead& head, const std::vector<Argument>& arguments = {},
                std::optional<std::uint64_t> number = std::nullopt);
  // Appends an arrow from the beginning of the slice to the event.
  void PutArrow(const trace::OpenSlices::Slice& from, const exporting::ExportedEvent& to);
  // `head` is the first word without type and size; `words` are the following words.
  void PutRecord(RecordType type, std::uint64_t head, std::string_view words);
  // Appends the argument's words to `words`. Text is cut after `max_text` bytes.
  void PutArgument(const Argument& argument, std::size_t max_text, std::string* words);

  void MakeRoomForStrings();
  // Both functions return the reference of a text or thread. If it is not in its table, they add it
  // and append its record.
  std::uint16_t StringRef(std::string_view text);
  std::uint16_t FindOrAddString(std::string_view text);
  std::uint8_t ThreadRef(const trace::Ids& ids);
  absl::Status WritePending();

  base::TextOutput output_;
  std::string pending_;  // complete records
  absl::flat_hash_map<std::string, std::uint16_t> strings_;
  std::size_t strings_size_ = 0;
  // Some texts of strings_, and their references. They are found faster than in strings_.
  struct RecentRef {
    std::string text;
    std::uint16_t reference = 0;
  };
  std::array<RecentRef, 64> recent_;
  absl::flat_hash_map<trace::Ids, std::uint8_t> threads_;
  trace::KnownNames names_;
  trace::OpenSlices slices_;
  std::uint64_t arrows_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t texts_cut_ = 0;  // texts cut because a record is too small
};

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_
