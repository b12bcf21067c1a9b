// The data of `nettrace top`: counts the events of a stream by provider, event, process, thread,
// capturing CPU, level, and function on their stacks. It does not depend on a terminal.
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
#include "tools/nettrace/top/recent_durations.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/code_map.h"
#include "tools/trace/duration_histogram.h"
#include "tools/trace/event_stream.h"
#include "tools/trace/hosts.h"
#include "tools/trace/payload_json.h"
#include "tools/trace/process_names.h"

namespace tools::top {

// The property that events are grouped by. An event has one row of each view except kFunction. In
// kFunction, it has a row for each function on its stack.
enum class View : std::uint8_t { kProvider, kEvent, kProcess, kThread, kCpu, kLevel, kFunction };
inline constexpr std::array kViews = {View::kProvider, View::kEvent, View::kProcess, View::kThread,
                                      View::kCpu,      View::kLevel, View::kFunction};
// Number of views in which an event has one row. These are the first views of View.
inline constexpr std::size_t kSingleViews = 6;

struct ModelOptions {
  // Maximum number of rows of each view. When a further row is needed, the quarter of the rows that
  // has the fewest events is merged into `others`.
  std::size_t max_rows = 2000;
  // Whether the last events of each row are kept, as text.
  bool keeps_events = false;
  // Minimum time, on the trace's clock, over which a rate is computed.
  absl::Duration interval = absl::Seconds(1);
};

// The name of a row. Each text has at most kMaxName bytes, and may contain control characters.
struct RowName {
  static constexpr std::size_t kMaxName = 1024;
  std::string provider;  // for kProvider and kEvent
  // Name of the event, process, thread, CPU, level or function. May be empty except for events.
  std::string name;
  std::string process;  // for kThread, if known
  std::string host;     // for kProcess, kThread and kCpu, if the stream has several hosts
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> tid;
};

// The durations of the activities that stopped within a minute, in ns.
struct MinuteNumbers {
  std::uint64_t durations = 0;  // number of these activities
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
};

struct RowNumbers {
  std::uint64_t events = 0;
  std::uint64_t errors = 0;  // events that are errors (trace::IsError)
  std::uint64_t bytes = 0;   // bytes of payloads
  std::uint8_t level = 0;    // most severe level of the events; 0 if all have level 0
  // Lost events that the file attributes to this row.
  std::uint64_t lost = 0;
  std::uint64_t self = 0;  // events whose stack ends in the function; for kFunction
  double rate = 0;         // events per second
  double error_rate = 0;   // errors per second
  // Number of activities that have started in this row and stopped.
  std::uint64_t durations = 0;
  // Durations of these activities, in ns. p50 and p99 have an error of up to
  // DurationHistogram::kMaxError.
  std::uint64_t p50 = 0;
  std::uint64_t p99 = 0;
  std::uint64_t max = 0;
  // The last minute (Minutes::last) and the minute before it, with the same error.
  MinuteNumbers minute;
  MinuteNumbers minute_before;
};

struct SnapshotRow {
  std::string key;  // unique among the rows of a view
  RowName name;
  RowNumbers numbers;
};

struct SnapshotView {
  std::vector<SnapshotRow> rows;  // unordered
  std::uint64_t other_rows = 0;   // number of times that a row was merged into `others`
  RowNumbers others;
  std::uint64_t lost_unknown = 0;  // lost events that belong to no known row
};

struct Snapshot {
  RowNumbers total;
  double byte_rate = 0;             // bytes per second
  std::uint64_t open = 0;           // activities that have started and not stopped
  std::uint64_t unmatched = 0;      // stops without a known start
  std::uint64_t forgotten = 0;      // starts that were forgotten, because too many were open
  std::optional<absl::Time> first;  // earliest time of the events
  std::optional<absl::Time> last;   // latest time of the events
  bool is_finished = false;         // whether rates are averages over the whole stream
  std::array<SnapshotView, kViews.size()> views;

  const SnapshotView& of(View view) const { return views[static_cast<std::size_t>(view)]; }
};

// Counts events and losses. From one EventStream, the caller must pass to the model the selected
// events, and all losses, account events and sequence points. Memory is bounded by ModelOptions,
// kMaxOpenActivities and RecentDurations::Budget. Not thread-safe.
class Model {
 public:
  // Maximum number of last events kept for each row, and maximum bytes of the text of each event.
  static constexpr std::size_t kKeptEvents = 24;
  static constexpr std::size_t kMaxEventText = 1024;

  // `names` must outlive this object, and have processed each event before OnEvent.
  Model(const ModelOptions& options, const trace::ProcessNames& names);
  ~Model();

  // Reads an event that may describe code, such as a mapping or a function. Must be called with
  // every event of the stream, before OnEvent.
  void OnCode(const nettrace::Event& event) { code_.OnEvent(event); }
  // Counts a selected event.
  void OnEvent(const nettrace::Reader& reader, const nettrace::Event& event);
  void OnLoss(const trace::Loss& loss);
  // Counts the losses of a tracepoint, if `event` states them. It must be an event of the
  // recording's account (tools/trace/account.h).
  void OnAccount(const nettrace::Event& event);
  // Ends an interval of the stream. Updates the rates if ModelOptions::interval has passed since
  // the last update.
  void OnSequencePoint(const nettrace::Reader& reader, absl::Time time);
  // Must be called when the stream has ended. Sets the rates to those of the whole stream.
  void Finish(const nettrace::Reader& reader);
  // Sets the rates to 0, except after Finish. Must be called when the stream has had no sequence
  // point for a long time.
  void BeIdle();

  Snapshot TakeSnapshot() const;
  // Returns the last events of a row, as `nettrace dump` shows them, in order of time. Events of
  // the current interval are missing, except those with large payloads (see KeptEvent). Returns
  // none if the row does not exist or was merged into `others`. Control characters are escaped.
  std::vector<std::string> LastEvents(View view, const std::string& key) const;
  // Returns the time over which the current rates were computed.
  absl::Duration period() const { return period_; }

 private:
  struct Counts {
    std::uint64_t events = 0;
    std::uint64_t errors = 0;
    std::uint64_t bytes = 0;
    std::uint64_t lost = 0;
    std::uint64_t self = 0;
    std::uint64_t recent = 0;         // events since the period began
    std::uint64_t recent_errors = 0;  // errors since the period began
    double rate = 0;
    double error_rate = 0;
    std::uint8_t level = 0;
    trace::DurationHistogram durations;
    RecentDurations recent_durations;

    void AddEvent(std::uint8_t event_level, std::size_t event_bytes);
    void Add(const Counts& other, RecentDurations::Budget* budget);
    // `now` is the step in which the last minute ends.
    RowNumbers ToNumbers(StepNumber now) const;
  };
  // One of the last events of its rows. It is stored as it was read until its interval ends, and as
  // text afterwards. If its payload is large, it becomes text at once.
  struct KeptEvent;
  struct Row : std::enable_shared_from_this<Row> {
    RowName name;  // without `host`, which TakeSnapshot adds
    std::size_t host = trace::Hosts::kNone;
    Counts counts;
    std::uint64_t last_event = 0;  // number of its last event among all events
    bool is_evicted = false;       // later counts are added to `others`
    bool has_raw_events = false;   // whether an event in `last` is not text yet
    std::deque<std::shared_ptr<KeptEvent>> last;
  };
  using RowPointer = std::shared_ptr<Row>;
  struct Table {
    absl::flat_hash_map<std::string, RowPointer> rows;
    Counts others;
    std::uint64_t evicted = 0;
  };
  using RowsOfEvent = std::array<Row*, kSingleViews>;
  struct OpenActivity {
    std::array<RowPointer, kSingleViews> rows;
    absl::Time start;
  };
  // Rows for a metadata row of the stream; valid until ForgetFound.
  struct MetadataRows {
    Row* provider;
    Row* event;
  };
  struct ThreadRows {
    Row* process;
    Row* thread;
  };
  // Rows of the functions on a stack, each once. The row of the innermost function is first.
  using StackRows = std::vector<RowPointer>;

  Table& TableOf(View view) { return tables_[static_cast<std::size_t>(view)]; }
  // Returns the row with this key. If there is none, adds it, which may evict other rows of the
  // view.
  Row* FindRow(View view, const std::string& key);
  void EvictRows(Table* table);
  RowsOfEvent RowsOf(const nettrace::Event& event);
  // Returns the rows of the event's provider and name. The name of a log record of OpenTelemetry
  // (tools/trace/common_schema.h) is the name in the record, if the record has a name.
  MetadataRows FindMetadata(const nettrace::Event& event);
  ThreadRows FindThread(const nettrace::ThreadInfo& thread);
  Row* FindCpu(const nettrace::ThreadInfo& thread);
  Row* FindLevel(std::uint8_t level);
  // Returns the rows of the event's stack. They are valid until the next call.
  const StackRows& FindStack(const nettrace::Reader& reader, const nettrace::Event& event);
  // Counts the event for the functions on its stack. Does nothing if it has no stack.
  void CountStack(const nettrace::Reader& reader, const nettrace::Event& event);
  Counts* CountsOf(View view, Row* row);

  void CountDuration(const nettrace::Event& event, const RowsOfEvent& rows, absl::Time time);
  // Removes the durations that are older than two minutes, if too many are stored.
  void ForgetOldDurations(StepNumber now);
  // Keeps the event in `rows`, and in the rows of the functions on its stack.
  void Keep(const nettrace::Reader& reader, const nettrace::Event& event, const RowsOfEvent& rows);
  void RenderKept(const nettrace::Reader& reader, KeptEvent* kept);
  void RenderAllKept(const nettrace::Reader& reader);
  void ForgetFound();
  // Calls `function` for the counts of all rows, of all `others`, and the total.
  template <typename Function>
  void ForAllCounts(const Function& function);
  void EndPeriod(absl::Duration length);

  const ModelOptions options_;
  const trace::ProcessNames& names_;
  trace::PayloadJson payloads_{trace::PayloadStyle::kForPeople};
  trace::Hosts hosts_;
  std::array<Table, kViews.size()> tables_;
  absl::flat_hash_map<const nettrace::EventMetadata*, MetadataRows> found_metadata_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, ThreadRows> found_threads_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, Row*> found_cpus_;
  trace::CodeMap code_;
  // Rows of stacks, by CodeMap::VersionOf and the bytes of the stack.
  absl::flat_hash_map<std::string, StackRows> found_stacks_;
  StackRows stack_rows_;  // rows of the stack of the last event

  trace::ActivityMatcher<OpenActivity> open_;
  Counts total_;
  RecentDurations::Budget budget_;
  std::optional<StepNumber> forgotten_at_;  // step of the last ForgetOldDurations
  absl::Time now_ = absl::InfinitePast();   // latest time of the stream; the last minute ends then
  std::uint64_t recent_bytes_ = 0;
  double byte_rate_ = 0;
  std::optional<absl::Time> first_;
  std::optional<absl::Time> last_;
  std::optional<absl::Time> period_start_;
  absl::Duration period_;
  bool is_finished_ = false;
};

}  // namespace tools::top

#endif  // TOOLS_NETTRACE_TOP_MODEL_H_
