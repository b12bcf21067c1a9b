// Writes the Fuchsia trace format, version "FxT", which Perfetto reads. It consists of records of
// little-endian 64-bit words.
//
// An event becomes an instant on its thread, with the provider as its category. An event that
// begins or ends a slice of an activity (timeline.h) becomes the begin or end of an asynchronous
// event instead. Readers drop an end without a begin, so this exporter writes an instant in its
// place. A related activity whose slice is open becomes a flow: an arrow from the beginning of this
// slice to the event. Lost events become an instant and a counter, in a separate process.
//
// The documentation of the format allows forms that Perfetto misreads. The output has only forms
// that Perfetto reads correctly: no large records, logs or userspace objects, and no flow outside
// of a duration.
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
#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/base/text_output.h"
#include "tools/nettrace/export/exporter.h"
#include "tools/nettrace/export/field_values.h"
#include "tools/nettrace/export/fxt/arguments.h"
#include "tools/nettrace/export/fxt/fxt_format.h"
#include "tools/nettrace/export/fxt/record_words.h"
#include "tools/trace/timeline.h"

namespace tools::fxt {

// Id of the process and thread on which losses are shown. The kernel does not assign this id.
inline constexpr std::uint64_t kLossesId = 0xFFFF'FFFF;
class FxtExporter : public exporting::Exporter {
 public:
  // `sink` must outlive this object.
  explicit FxtExporter(nettrace::Sink* sink);

  absl::Status OnEvent(const exporting::ExportedEvent& event) override;
  absl::Status OnLoss(const trace::Loss& loss) override;
  void OnRowsEnd(bool threads_too) override;
  absl::Status Finish() override;

  std::string Remark() const override;

 private:
  struct EventHead {
    EventType type = EventType::kInstant;
    absl::Time time;
    trace::Ids ids;
    std::string_view category;
    std::string_view name;
    // Last word of the record: the id of a counter, asynchronous event or flow. Other types of
    // events have no number.
    std::optional<std::uint64_t> number = std::nullopt;
    const trace::OpenSlices::Slice* ended = nullptr;  // the slice that the event ends
  };
  struct EventRefs {
    std::uint8_t thread = 0;
    std::uint16_t category = 0;
    std::uint16_t name = 0;
  };
  // Data that all events of a metadata row share, such as the references of their texts.
  struct Row {
    std::uint16_t category = 0;
    std::uint16_t name = 0;
    bool is_flat = false;  // whether PutFlatEvent may write the events
    // References of the names of fields, and of the same names with the prefix kOfStop. 0 means
    // that a reference is not known yet.
    std::array<std::vector<std::uint16_t>, 2> refs;
  };

  // The following four functions append records to the output. Before a record, they append the
  // records of the texts and threads that it refers to, except those that strings_ and threads_
  // already contain.
  void PutKernelObject(const trace::Ids& ids, std::string_view name);
  void PutEvent(const EventHead& head, const std::vector<Argument>& arguments = {});
  // Does the same as PutEvent with all arguments of the event, in a third of the time. Returns
  // false, and appends nothing, if this is not possible: for example because a field is a struct, a
  // text must be cut, or there are more than kMaxArguments arguments.
  bool PutFlatEvent(const EventHead& head, const exporting::ExportedEvent& event);
  // Appends an arrow from the beginning of the slice to the event. `to_ids` are the ids of the
  // event's process and thread.
  void PutArrow(const trace::OpenSlices::Slice& from, const trace::Ids& to_ids,
                const exporting::ExportedEvent& to);
  // Appends one record. `head` is the first word without type and size; `words` are the other
  // words.
  void PutRecord(RecordType type, std::uint64_t head, const RecordWords& words);
  // Appends the argument to words_. A text of more than `max_text` bytes is cut and counted.
  void PutArgument(const Argument& argument, std::size_t max_text);
  // Appends the arguments for the properties of the event to words_.
  void PutProperties(const EventHead& head, const nettrace::Event& event);
  // Appends the record of an event. words_ must contain the time and the arguments of the event.
  // `arguments` is the number of arguments.
  void EndEvent(const EventHead& head, const EventRefs& refs, std::size_t arguments);
  Row& RowOf(const nettrace::EventMetadata& metadata);

  void MakeRoomForStrings();
  // The following functions return the reference of a text or thread. If the text or thread is not
  // in its table, they add it to the table and append its record. The reference of "" is 0.
  std::uint16_t StringRef(std::string_view text);
  std::uint16_t FindOrAddString(std::string_view text);
  std::uint8_t ThreadRef(const trace::Ids& ids);
  // Returns `*reference`. If it is 0, first sets it to the reference of the text that joins
  // `prefix` and `text`.
  std::uint16_t KnownRef(std::string_view prefix, std::string_view text, std::uint16_t* reference);

  base::TextOutput output_;
  RecordWords words_;        // words of the record that is being built
  RecordWords other_words_;  // words of the strings and threads that this record refers to
  absl::flat_hash_map<std::string, std::uint16_t> strings_;
  std::size_t strings_size_ = 0;  // bytes of all texts in strings_
  // A recently used text of strings_ and its reference. A look-up in recent_ is faster than in
  // strings_.
  struct RecentRef {
    std::string text;
    std::uint16_t reference = 0;
  };
  std::array<RecentRef, 64> recent_;
  absl::node_hash_map<const nettrace::EventMetadata*, Row> rows_;
  // The last result of RowOf and its argument; null if there is none.
  const nettrace::EventMetadata* last_metadata_ = nullptr;
  Row* last_row_ = nullptr;
  // References of the names of properties, and of the same names with the prefix kOfStop. 0 means
  // that a reference is not known yet.
  std::array<std::array<std::uint16_t, 6>, 2> property_refs_ = {};
  absl::flat_hash_map<trace::Ids, std::uint8_t> threads_;
  // A recently used entry of threads_. A look-up in recent_threads_ is faster than in threads_.
  struct RecentThread {
    trace::Ids ids;
    std::uint8_t reference = 0;  // 0: none
  };
  std::array<RecentThread, 64> recent_threads_;
  exporting::FieldValues values_;  // fields of the event that PutFlatEvent has tried last
  std::string text_;
  trace::HostIds host_ids_;
  trace::KnownNames names_;
  trace::OpenSlices slices_;
  std::uint64_t arrows_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t texts_cut_ = 0;  // texts of arguments that were cut
};

}  // namespace tools::fxt

#endif  // TOOLS_NETTRACE_EXPORT_FXT_FXT_EXPORTER_H_
