// Collects the contents of `nettrace report` in bounded memory. The first pass over the file counts
// all selected events and finds the slowest activities and the losses. The second pass selects the
// single events, which are the events of a time window that the page shows one by one. It also
// collects the activities inside of the slowest and of typical activities.
#ifndef TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_
#define TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "tools/nettrace/report/activity_tree.h"
#include "tools/nettrace/report/even_sample.h"
#include "tools/nettrace/report/process_lives.h"
#include "tools/nettrace/report/single_events.h"
#include "tools/nettrace/report/statistics.h"
#include "tools/nettrace/report/time_buckets.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/duration_histogram.h"
#include "tools/trace/hosts.h"
#include "tools/trace/process_names.h"

namespace tools::report {

inline constexpr std::size_t kMaxProviders = 64;    // providers with separate counts over time
inline constexpr std::size_t kMaxDurations = 100;   // kinds of activities with separate durations
inline constexpr std::size_t kMaxName = 256;        // bytes; longer names are cut
inline constexpr std::size_t kBuckets = 1024;       // time buckets of over_time()
inline constexpr std::size_t kThreadBuckets = 256;  // time buckets of of_threads()
// Maximum bytes of a single event's JSON.
inline constexpr std::size_t kMaxEventBytes = std::size_t{64} << 10;
inline constexpr std::size_t kSlowest = 10;     // slowest activities of each kind
inline constexpr std::size_t kTypicalOf = 64;   // activities among which a typical one is chosen
inline constexpr std::size_t kLevels = 7;       // levels 0 to 5, and one for all higher levels
inline constexpr std::size_t kMaxPlaces = 200;  // places with losses that the page shows
inline constexpr std::size_t kMaxEnds = 128;    // starts and ends of findings; others are ignored
// Events that are shown on each side of a loss, and on each side of the start and the end of a
// finding.
inline constexpr std::size_t kNeighbors = 20;

// Limits of what a page contains besides single events.
struct Limits {
  // Maximum number of rows in each of three tables: kinds of events, processes, threads. One
  // additional row counts all events that belong to none of these rows.
  std::size_t rows = 2048;
  std::size_t activities = 5000;                  // activities besides those with a tree
  std::size_t tree_nodes = 5000;                  // activities in all trees
  std::size_t name_bytes = std::size_t{1} << 20;  // names of all rows in the page's JSON, in bytes
  std::size_t stack_bytes = std::size_t{10} << 17;  // flame graphs and their tables, in bytes
};
// Returns the limits of a page with `size` bytes.
Limits LimitsFor(std::uint64_t size);

// Time window in which single events are kept. A missing limit leaves that side open.
struct Window {
  std::optional<absl::Time> from;
  std::optional<absl::Time> until;  // exclusive
};

// Number of events, and times of the first and last event in ticks.
struct EventSums {
  std::uint64_t events = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;

  void Add(std::uint64_t ticks);
};

struct Kind : EventSums {
  std::string provider;
  std::string name;
  std::uint64_t payload_bytes = 0;
  std::array<std::uint64_t, kLevels> levels = {};  // events by level
  bool ends_activities = false;                    // whether an event of the kind ends an activity

  std::uint64_t errors() const { return levels[1] + levels[2]; }
};

struct Process : EventSums {
  std::optional<std::uint64_t> pid;
  std::size_t host = trace::Hosts::kNone;  // number in hosts()
  std::string name;                        // the last known name
};

struct Thread : EventSums {
  std::optional<std::size_t> process;  // row in processes(); none in the row of all other threads
  std::optional<std::uint64_t> tid;
  std::string name;
};

// The durations of the activities that one kind of events begins.
struct Durations {
  std::optional<std::size_t> kind;  // row of the kind; none in the row of all other kinds
  std::uint64_t begun = 0;
  trace::DurationHistogram histogram;  // durations of activities that ended
  DurationsOverTime over_time;         // durations, by the times at which the activities ended
  // Activities by the times at which they ended: all of them in series 0, and those with an error
  // in series 1.
  TimeBuckets outcomes{kShareBuckets};
  // The kSlowest slowest activities in the time window. They form a heap until EndTotals sorts them
  // in descending order of duration.
  std::vector<Activity> slowest;
  // A sample of all activities in the window, to find a typical one.
  EvenSample<Activity> sample{kTypicalOf, kTypicalOf};
};

// An activity that the page shows with the activities and events inside of it.
struct CompleteActivity {
  Activity activity;
  bool is_typical = false;  // whether it is a typical activity of its kind; else one of the slowest
  // The tree, root first, after EndSelection. Empty if all trees together have too many nodes.
  std::vector<TreeNode> nodes;
  std::uint64_t left_out = 0;  // activities inside that are not in `nodes`
  std::uint64_t events = 0;    // events inside
};

// The time from kNeighbors events before a loss to kNeighbors events after it, in ticks. Losses
// whose times overlap are one place.
struct Place {
  std::uint64_t from = 0;
  std::uint64_t until = 0;  // inclusive
  std::uint64_t lost = 0;   // lost events
};

struct Losses {
  std::string of;  // CPU or thread whose sequence numbers show the loss
  std::uint64_t count = 0;
};

// Returns `text`, cut to about kMaxName bytes and ended with "…" if it is longer.
std::string ShortName(std::string_view text);
// Escapes JSON for a script element of HTML, so that no text in the JSON ends the element. `json`
// must be a result of base::Printable. The value of the JSON does not change.
std::string ForScript(std::string_view json);

class ReportModel {
 public:
  // Formats an event as a JSON object, and passes it through base::Printable.
  using ToJson = std::function<std::string(const nettrace::Event&)>;

  // `reader` is the reader of the first pass, and must outlive this object.
  ReportModel(const nettrace::Reader& reader, const Window& window, const Limits& limits);

  // The following functions belong to the first pass.

  // Rows of an event in kinds() and threads().
  struct EventRows {
    std::size_t kind = 0;
    std::size_t thread = 0;
  };
  // Adds a selected event. `names` must already have processed this event and all earlier events.
  EventRows OnEvent(const nettrace::Event& event, const trace::ProcessNames& names);
  void OnLoss(const nettrace::ThreadInfo& capture_thread, std::uint64_t count, std::uint64_t ticks);
  // Adds an event that describes a process. `names` must already have processed the event.
  void OnProcessChange(const nettrace::Event& event, const trace::ProcessNames& names);
  // Ends the first pass.
  void EndTotals();
  // Adds a span of time, in ticks and inclusive. The second pass selects the kNeighbors events on
  // each side of both ends, and a separate sample of the events in this span if `is_sampled`. Must
  // be called after EndTotals.
  void AddInterest(std::uint64_t from, std::uint64_t until, bool is_sampled);
  // Starts the second pass, which selects single events with at most `max_bytes` bytes in total.
  void BeginSelection(std::size_t max_bytes, ToJson to_json);

  // The following two functions belong to the second pass.

  // Selects or rejects an event as a single event of the page. Must be called for the events of the
  // first pass, in the same order. The caller may end the second pass before the last event.
  void Select(const nettrace::Event& event, const trace::ProcessNames& names);
  // Ends the second pass.
  void EndSelection();

  // The following functions belong to both passes.

  // Forgets the rows of all threads, so that the next events look up the names of their processes
  // again. Must be called when the name of a process has changed.
  void OnProcessNamed() { threads_of_file_.clear(); }
  // Forgets the indices of the file's metadata rows and thread rows. Their keys are the addresses
  // of the rows, so this must be called when these rows become invalid: new rows may reuse the
  // addresses.
  void OnRowsEnd();

  const EventSums& all() const { return all_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t lost() const { return lost_; }
  // Return the earliest and the latest time of an event or a loss, in ticks; 0 if there is none.
  std::uint64_t start() const { return start_.value_or(0); }
  std::uint64_t end() const { return end_; }

  // In the following vectors, the last row may stand for all others. Its name is then "(others)".
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Losses>& losses() const { return losses_; }
  // Returns the hosts of all rows. Process::host is the number of a host in this result.
  const trace::Hosts& hosts() const { return hosts_; }
  // Returns the counts over time. Series 0 holds the lost events; the others hold the events of
  // providers().
  const TimeBuckets& over_time() const { return over_time_; }
  const std::vector<std::string>& providers() const { return providers_; }
  // Returns the counts over time, with a series for each row of threads().
  const TimeBuckets& of_threads() const { return of_threads_; }
  const std::vector<Durations>& durations() const { return durations_; }
  // Returns the number of selected events that end an activity whose start is not known.
  std::uint64_t ends_alone() const { return open_.unmatched(); }
  const SingleEvents& single_events() const { return single_events_; }
  // Returns a sample of the activities, without the slowest activities of durations().
  const EvenSample<Activity>& activities() const { return activities_; }
  // Returns the activities that the page shows with everything inside of them: first the slowest of
  // each kind, then a typical one of each kind, then the second slowest of each kind, and so on.
  // The rank of an activity is its index.
  const std::vector<CompleteActivity>& complete() const { return complete_; }
  // Returns an upper bound of the number of nodes of all trees.
  std::size_t NodesAtMost() const;
  // Returns the first kMaxPlaces places with losses.
  const std::vector<Place>& places() const { return places_; }
  std::uint64_t places_left_out() const { return places_left_out_; }
  const Statistics& statistics() const { return statistics_; }
  const ProcessLives& process_lives() const { return process_lives_; }
  std::size_t interests() const { return interests_.size(); }
  // Returns the number of different times at which the spans of AddInterest begin or end, at most
  // kMaxEnds.
  std::size_t ends() const { return ends_.size(); }
  const Window& window() const { return window_; }
  // Returns the number of selected events within the window. The second pass counts them.
  std::uint64_t in_window() const { return in_window_; }

 private:
  // An activity that has begun and has not ended yet.
  struct Open {
    std::uint64_t begin = 0;
    std::size_t durations = 0;
    std::size_t kind = 0;
    std::size_t thread = 0;
    std::optional<nettrace::Guid> related;
    bool has_error = false;  // whether an event of level 1 or 2 had the activity's id
  };
  // Indices in kinds() and providers() for a metadata row of the file.
  struct KindRows {
    std::size_t kind = 0;
    std::size_t provider = 0;
  };
  // Indices in threads() and processes() for a thread row of the file.
  struct ThreadRows {
    std::size_t thread = 0;
    std::size_t process = 0;
  };
  template <typename Key>
  using Indices = absl::flat_hash_map<Key, std::size_t>;
  using ThreadKey = std::tuple<std::size_t, std::optional<std::uint64_t>, std::string>;

  // An activity of complete() that has begun and not ended in the second pass, and its tree so far.
  struct Running {
    std::size_t rank = 0;
    ActivityTree tree;
  };

  KindRows KindOf(const nettrace::EventMetadata& metadata);
  ThreadRows ThreadOf(const nettrace::ThreadInfo& thread, const trace::ProcessNames& names);
  std::size_t DurationsOf(std::size_t kind);
  // Adds the bytes of a row's name to name_bytes_, and subtracts the bytes of its previous name
  // `old`. If the sum would exceed the limit, returns false, and no table gets further rows.
  bool TakeName(std::string_view name, std::string_view old = "");
  void AddTime(std::uint64_t ticks);
  void AddPlace(std::uint64_t ticks, std::uint64_t count);
  void BeginActivity(const nettrace::Event& event, std::size_t kind, std::size_t thread);
  void EndActivity(const nettrace::Event& event);
  bool IsInWindow(std::uint64_t ticks) const;
  void AddTypical(std::size_t durations);
  void StartRunning(std::uint64_t ticks);
  void StopRunning(Running* running);
  // Returns the lowest rank of the activities of complete() that the event is inside of; nullopt if
  // there is none.
  std::optional<std::size_t> RankOf(const nettrace::Event& event, std::size_t kind,
                                    std::size_t thread);
  // Returns the key of the place with losses that contains this time. Otherwise, if this event is
  // one of the kNeighbors events after the last end that PassEnds has passed, counts the event and
  // returns the key of this end. Returns nullopt if neither applies.
  std::optional<std::size_t> PlaceOf(std::uint64_t ticks);
  // Returns the key of the span of AddInterest that contains this time; nullopt if there is none.
  std::optional<std::size_t> InterestOf(std::uint64_t ticks) const;
  // Returns a time before `ticks`. At least kNeighbors events are between the two times, or all
  // events before `ticks` if there are fewer.
  std::uint64_t NeighborsFrom(std::uint64_t ticks) const;
  // Moves next_end_ past the ends that are earlier than `ticks`. Passes each event in waiting_ to
  // KeepFor as a neighbor of the first of these ends. Passes it to Sample if KeepFor refuses it.
  void PassEnds(std::uint64_t ticks);
  // Adds the event that `make` returns to single_events_, and returns true. Returns false if `key`
  // has no value, or if SingleEvents::Wants returns false.
  template <typename Make>
  bool KeepFor(Reason reason, std::optional<std::size_t> key, const Make& make);
  // Adds the event that `make` returns to a sample. Prefers the sample of a span of AddInterest
  // that contains `ticks`. If KeepFor does not add the event there, uses the sample of `kind`.
  template <typename Make>
  void Sample(std::uint64_t ticks, std::size_t kind, const Make& make);
  SingleEvent Single(const nettrace::Event& event, std::size_t kind, std::size_t thread) const;
  std::string TooLarge(const nettrace::Event& event, std::size_t size) const;

  const nettrace::Reader& reader_;
  const Window window_;
  const Limits limits_;
  ToJson to_json_;
  std::size_t name_bytes_ = 0;
  std::size_t max_kinds_;
  std::size_t max_processes_;
  std::size_t max_threads_;
  EventSums all_;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t lost_ = 0;
  std::optional<std::uint64_t> start_;
  std::uint64_t end_ = 0;
  std::vector<Kind> kinds_;
  Indices<std::pair<std::string, std::string>> kinds_by_name_;
  trace::Hosts hosts_;
  std::vector<Process> processes_;
  Indices<std::pair<std::size_t, std::optional<std::uint64_t>>> processes_by_pid_;
  std::vector<Thread> threads_;
  Indices<ThreadKey> threads_by_id_;
  std::vector<Losses> losses_;
  Indices<std::string> losses_by_name_;
  std::vector<std::string> providers_;
  Indices<std::string> providers_by_name_;
  TimeBuckets over_time_{kBuckets};
  TimeBuckets of_threads_{kThreadBuckets};
  Statistics statistics_;
  ProcessLives process_lives_;
  std::vector<Durations> durations_;
  Indices<std::size_t> durations_by_kind_;
  trace::ActivityMatcher<Open> open_;
  EvenSample<Activity> activities_;
  // Ring of the times of the last kNeighbors events, in ticks. Event number n, counted from 1, is
  // at index n % kNeighbors.
  std::array<std::uint64_t, kNeighbors> last_times_ = {};
  std::vector<Place> places_;
  std::uint64_t places_left_out_ = 0;
  std::size_t place_needs_ = 0;  // number of further events that belong to the last place
  SingleEvents single_events_{0};
  std::vector<CompleteActivity> complete_;
  std::vector<std::size_t> complete_by_begin_;  // ranks, in order of the activities' begin
  std::size_t next_complete_ = 0;               // index in complete_by_begin_ of the next activity
  std::vector<Running> running_;
  std::uint64_t in_window_ = 0;
  std::size_t tree_nodes_ = 0;  // in all trees of complete_
  std::size_t next_place_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> interests_;
  std::vector<std::uint64_t> ends_;  // ticks, in ascending order from BeginSelection on
  std::size_t next_end_ = 0;
  std::uint64_t next_end_from_ = 0;  // events from this time on may be neighbors of the next end
  std::size_t after_end_ = 0;        // further events that are neighbors of the previous end
  // The last events, at most kNeighbors, that are before the next end and not kept otherwise.
  std::deque<SingleEvent> waiting_;
  // Indices of known rows of the file, by their addresses. OnRowsEnd clears them.
  absl::flat_hash_map<const nettrace::EventMetadata*, KindRows> kinds_of_file_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, ThreadRows> threads_of_file_;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_
