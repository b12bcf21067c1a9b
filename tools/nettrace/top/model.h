// What `nettrace top` counts: the events of a stream by provider, event, process, thread and the
// CPU that captured them. No part of it knows of a terminal.
#ifndef TOOLS_NETTRACE_TOP_MODEL_H_
#define TOOLS_NETTRACE_TOP_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/common/duration_histogram.h"
#include "tools/nettrace/event_filter.h"
#include "tools/nettrace/export/process_names.h"
#include "tools/nettrace/payload_json.h"

namespace tools::top {

// By what events are put together.
enum class View : std::uint8_t { kProvider, kEvent, kProcess, kThread, kCpu };
inline constexpr std::array kViews = {View::kProvider, View::kEvent, View::kProcess, View::kThread,
                                      View::kCpu};

struct ModelOptions {
  // Rows of each view. Beyond them, those with the fewest events become part of its `others`.
  std::size_t max_rows = 2000;
  // Activities that have started and not stopped. Beyond them all are forgotten.
  std::size_t max_open = 65536;
  // The last events of each row are kept, as text.
  bool keeps_events = false;
  // How much of the trace's time a rate is of, at least.
  absl::Duration interval = absl::Seconds(1);
};

// Who a row is about. Text is at most kMaxName bytes, and not Printable.
struct RowName {
  static constexpr std::size_t kMaxName = 1024;
  std::string provider;  // of kProvider and kEvent
  std::string name;      // of the event, process, thread or CPU; may be empty but of kEvent
  std::string process;   // of kThread, as far as it is known
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> tid;
};

struct RowNumbers {
  std::uint64_t events = 0;
  std::uint64_t bytes = 0;  // of payloads
  // Of this row, as far as the file says whose they were.
  std::uint64_t lost = 0;
  double rate = 0;  // events a second
  // From the start of an activity to its stop, counted where it started. ns
  std::uint64_t durations = 0;
  std::uint64_t p50 = 0;  // these two within DurationHistogram::kMaxError
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
};

struct SnapshotRow {
  std::string key;  // tells rows of a view apart
  RowName name;
  RowNumbers numbers;
};

struct SnapshotView {
  std::vector<SnapshotRow> rows;  // in no order
  std::uint64_t other_rows = 0;   // how often a row became part of `others`
  RowNumbers others;
  std::uint64_t lost_unknown = 0;  // events lost, of which it is not known whose they were
};

struct Snapshot {
  RowNumbers total;
  double byte_rate = 0;             // bytes a second
  std::uint64_t open = 0;           // activities that have started and not stopped
  std::uint64_t unmatched = 0;      // stops without a start
  std::uint64_t forgotten = 0;      // starts that were forgotten
  std::optional<absl::Time> first;  // of the events' times, the earliest and the latest
  std::optional<absl::Time> last;
  bool is_finished = false;  // rates are those of the whole stream
  std::array<SnapshotView, kViews.size()> views;

  const SnapshotView& of(View view) const { return views[static_cast<std::size_t>(view)]; }
};

// Not thread-safe. To be given all steps of a TimeOrderedReader. Memory is bounded by ModelOptions.
class Model {
 public:
  // The last events of a row; text of each.
  static constexpr std::size_t kKeptEvents = 24;
  static constexpr std::size_t kMaxEventText = 1024;

  Model(const ModelOptions& options, const EventFilter& filter);
  ~Model();

  void OnEvent(const nettrace::Reader& reader, const nettrace::Event& event);
  void OnSequencePoint(const nettrace::Reader& reader, const nettrace::SequencePoint& point);
  void OnRemovedThread(const nettrace::RemovedThread& removed);
  // The stream has ended. Rates become those of all of it.
  void Finish(const nettrace::Reader& reader);
  // Nothing has come for long: rates become 0.
  void BeIdle();

  Snapshot TakeSnapshot() const;
  // The last events of this row, as `nettrace dump` shows them, the latest at the end. Printable.
  std::vector<std::string> LastEvents(View view, const std::string& key) const;
  // The length of the last time that rates are of.
  absl::Duration period() const { return period_; }

 private:
  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t recent = 0;  // events since the period began
    double rate = 0;
    DurationHistogram durations;

    void Add(const Counts& other);
    RowNumbers ToNumbers() const;
  };
  // An event that may be shown: as it is until its interval ends, then as text.
  struct KeptEvent;
  struct Row : std::enable_shared_from_this<Row> {
    RowName name;
    Counts counts;
    std::uint64_t last_event = 0;  // by number
    bool is_evicted = false;       // what is added to it belongs to the others
    bool has_raw_events = false;
    std::deque<std::shared_ptr<KeptEvent>> last;
  };
  using RowPointer = std::shared_ptr<Row>;
  struct Table {
    absl::flat_hash_map<std::string, RowPointer> rows;
    Counts others;
    std::uint64_t evicted = 0;
  };
  using RowsOfEvent = std::array<Row*, kViews.size()>;
  struct OpenActivity {
    std::array<RowPointer, kViews.size()> rows;
    absl::Time start;
  };
  // What is known of a row of the stream until the interval ends.
  struct MetadataRows {
    Row* provider;
    Row* event;
  };
  struct ThreadRows {
    Row* process;
    Row* thread;
  };

  Table& TableOf(View view) { return tables_[static_cast<std::size_t>(view)]; }
  // The row of this key; it is added if there is none.
  Row* FindRow(View view, const std::string& key);
  void EvictRows(Table* table);
  RowsOfEvent RowsOf(const nettrace::Event& event);
  MetadataRows FindMetadata(const nettrace::EventMetadata& metadata);
  ThreadRows FindThread(const nettrace::ThreadInfo& thread);
  Row* FindCpu(const nettrace::ThreadInfo& thread);
  Counts* CountsOf(View view, Row* row);

  bool IsTimeChosen(absl::Time time) const;
  void CountLoss(const nettrace::ThreadInfo& capture_thread, std::uint64_t count, absl::Time time);
  // Counts a loss of which the recording's account says the tracepoint.
  void CountAccountedLoss(const nettrace::Event& event, absl::Time time);
  void CountDuration(const nettrace::Event& event, const RowsOfEvent& rows, absl::Time time);
  void Keep(const nettrace::Reader& reader, const nettrace::Event& event, const RowsOfEvent& rows);
  void RenderKept(const nettrace::Reader& reader, KeptEvent* kept);
  void RenderAllKept(const nettrace::Reader& reader);
  void ForgetFound();
  // Calls `function` with the counts of all rows, those of others, and the total.
  template <typename Function>
  void ForAllCounts(const Function& function);
  void EndPeriod(absl::Duration length);

  const ModelOptions options_;
  const EventFilter filter_;
  exporting::ProcessNames processes_;
  PayloadJson payloads_{PayloadStyle::kForPeople};
  std::array<Table, kViews.size()> tables_;
  absl::flat_hash_map<const nettrace::EventMetadata*, MetadataRows> found_metadata_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, ThreadRows> found_threads_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, Row*> found_cpus_;

  absl::flat_hash_map<nettrace::Guid, std::vector<OpenActivity>> open_;
  std::uint64_t open_count_ = 0;
  std::uint64_t unmatched_ = 0;
  std::uint64_t forgotten_ = 0;

  Counts total_;
  std::uint64_t recent_bytes_ = 0;
  double byte_rate_ = 0;
  std::optional<absl::Time> first_;
  std::optional<absl::Time> last_;
  absl::Time now_ = absl::InfinitePast();  // of the last step
  std::optional<absl::Time> period_start_;
  absl::Duration period_;
  bool is_finished_ = false;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_MODEL_H_
