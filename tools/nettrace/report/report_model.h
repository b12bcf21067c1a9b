// What `nettrace report` shows of a file, gathered in one pass in bounded memory: sums over all
// events that are chosen, and single events and activities of a span of time.
#ifndef TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_
#define TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_

#include <cstddef>
#include <cstdint>
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
#include "tools/common/duration_histogram.h"
#include "tools/nettrace/export/process_names.h"
#include "tools/nettrace/report/even_sample.h"
#include "tools/nettrace/report/time_buckets.h"

namespace tools::report {

// Events, processes and threads beyond kMaxRows of each, by when they came, share one more row.
inline constexpr std::size_t kMaxRows = 2048;
inline constexpr std::size_t kMaxProviders = 64;    // with counts over time of their own
inline constexpr std::size_t kMaxDurations = 100;   // kinds of activities
inline constexpr std::size_t kMaxOpen = 65536;      // activities; beyond it all are forgotten
inline constexpr std::size_t kMaxName = 256;        // bytes; the rest of a name is not shown
inline constexpr std::size_t kBuckets = 1024;       // of the whole file
inline constexpr std::size_t kThreadBuckets = 256;  // of each thread
inline constexpr std::size_t kMaxSingleEvents = 20000;
inline constexpr std::size_t kMaxSingleBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxEventBytes = std::size_t{64} << 10;  // of one of them
inline constexpr std::size_t kMaxActivities = 5000;

// The span of time whose single events are kept; without an end it is open there.
struct Window {
  std::optional<absl::Time> from;
  std::optional<absl::Time> until;  // not included
};

// Times are ticks.
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
};

struct Process : EventSums {
  std::optional<std::uint64_t> pid;
  std::string name;  // the last one that is known
};

struct Thread : EventSums {
  std::optional<std::size_t> process;  // its row; of the row of all others none
  std::optional<std::uint64_t> tid;
  std::string name;
};

struct Durations {
  std::optional<std::size_t> kind;  // of the events that begin them; of the row of all others none
  std::uint64_t begun = 0;
  DurationHistogram histogram;  // of those that ended
};

struct SingleEvent {
  std::uint64_t ticks = 0;
  std::size_t kind = 0;
  std::size_t thread = 0;
  std::string json;  // as ForScript makes it
};

struct Activity {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t kind = 0;
  std::size_t thread = 0;  // that began it
  nettrace::Guid id = {};
  std::optional<nettrace::Guid> related;
};

struct Losses {
  std::string of;  // what numbered the events
  std::uint64_t count = 0;
};

// The part of a text that a report shows.
std::string ShortName(std::string_view text);
// JSON text as it can stand in a script element: nothing in it ends that, and it is the same JSON.
std::string ForScript(std::string_view json);

class ReportModel {
 public:
  // Returns an event as a JSON object, which is Printable.
  using ToJson = std::function<std::string(const nettrace::Event&)>;

  // `reader` must live as long.
  ReportModel(const nettrace::Reader& reader, const Window& window, ToJson to_json);

  // An event that is chosen. `names` has seen it, and all before it.
  void OnEvent(const nettrace::Event& event, const exporting::ProcessNames& names);
  void OnLoss(const nettrace::ThreadInfo& capture_thread, std::uint64_t count, std::uint64_t ticks);
  // The name of some process has come.
  void OnProcessNamed() { threads_of_file_.clear(); }
  // Rows of metadata and threads so far become invalid.
  void OnRowsEnd();

  const EventSums& all() const { return all_; }
  std::uint64_t payload_bytes() const { return payload_bytes_; }
  std::uint64_t lost() const { return lost_; }
  // The earliest time of an event or a loss.
  std::uint64_t start() const { return start_.value_or(0); }
  std::uint64_t end() const { return end_; }

  // If there are more than kMaxRows, the last row has all the others.
  const std::vector<Kind>& kinds() const { return kinds_; }
  const std::vector<Process>& processes() const { return processes_; }
  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<Losses>& losses() const { return losses_; }
  // Series 0 is what was lost; the others have the events of providers().
  const TimeBuckets& over_time() const { return over_time_; }
  const std::vector<std::string>& providers() const { return providers_; }
  // A series for each row of threads().
  const TimeBuckets& of_threads() const { return of_threads_; }
  const std::vector<Durations>& durations() const { return durations_; }
  std::uint64_t ends_alone() const { return ends_alone_; }  // of activities that did not begin
  const EvenSample<SingleEvent>& single_events() const { return single_events_; }
  const EvenSample<Activity>& activities() const { return activities_; }
  const Window& window() const { return window_; }

 private:
  struct Open {
    std::uint64_t begin = 0;
    std::size_t durations = 0;
    std::size_t kind = 0;
    std::size_t thread = 0;
    std::optional<nettrace::Guid> related;
  };
  // The rows of a metadata row.
  struct KindRows {
    std::size_t kind = 0;
    std::size_t provider = 0;
  };
  // The rows of a thread row.
  struct ThreadRows {
    std::size_t thread = 0;
    std::size_t process = 0;
  };
  template <typename Key>
  using Indices = absl::flat_hash_map<Key, std::size_t>;
  using ThreadKey = std::tuple<std::size_t, std::optional<std::uint64_t>, std::string>;

  KindRows KindOf(const nettrace::EventMetadata& metadata);
  ThreadRows ThreadOf(const nettrace::ThreadInfo& thread, const exporting::ProcessNames& names);
  std::size_t DurationsOf(std::size_t kind);
  void AddTime(std::uint64_t ticks);
  void BeginActivity(const nettrace::Event& event, std::size_t kind, std::size_t thread);
  void EndActivity(const nettrace::Event& event);
  void KeepSingle(const nettrace::Event& event, std::size_t kind, std::size_t thread);
  std::string TooLarge(const nettrace::Event& event, std::size_t size) const;

  const nettrace::Reader& reader_;
  const Window window_;
  const ToJson to_json_;
  EventSums all_;
  std::uint64_t payload_bytes_ = 0;
  std::uint64_t lost_ = 0;
  std::optional<std::uint64_t> start_;
  std::uint64_t end_ = 0;
  std::vector<Kind> kinds_;
  Indices<std::pair<std::string, std::string>> kinds_by_name_;
  std::vector<Process> processes_;
  Indices<std::optional<std::uint64_t>> processes_by_pid_;
  std::vector<Thread> threads_;
  Indices<ThreadKey> threads_by_id_;
  std::vector<Losses> losses_;
  Indices<std::string> losses_by_name_;
  std::vector<std::string> providers_;
  Indices<std::string> providers_by_name_;
  TimeBuckets over_time_{kBuckets};
  TimeBuckets of_threads_{kThreadBuckets};
  std::vector<Durations> durations_;
  Indices<std::size_t> durations_by_kind_;
  absl::flat_hash_map<nettrace::Guid, std::vector<Open>> open_;
  std::size_t open_count_ = 0;
  std::uint64_t ends_alone_ = 0;
  EvenSample<SingleEvent> single_events_{kMaxSingleEvents, kMaxSingleBytes};
  EvenSample<Activity> activities_{kMaxActivities, kMaxActivities};
  // Until the file's rows end.
  absl::flat_hash_map<const nettrace::EventMetadata*, KindRows> kinds_of_file_;
  absl::flat_hash_map<const nettrace::ThreadInfo*, ThreadRows> threads_of_file_;
};

}  // namespace tools::report

#endif  // TOOLS_NETTRACE_REPORT_REPORT_MODEL_H_
