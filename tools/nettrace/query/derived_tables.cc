#include "tools/nettrace/query/derived_tables.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"
#include "tools/nettrace/query/event_tables.h"
#include "tools/nettrace/query/inputs.h"
#include "tools/nettrace/query/sql_values.h"
#include "tools/trace/activity_matcher.h"
#include "tools/trace/event_name.h"
#include "tools/trace/hosts.h"

namespace tools::query {
namespace {

// Reads the whole input after each call of Start. Keeps complete rows until SQLite has read them.
template <typename Row>
class RowCursor : public Cursor {
 public:
  using Step = Inputs::Reading::Step;

  explicit RowCursor(Inputs* inputs) : inputs_(*inputs) {}

  absl::Status Start(const Conditions& /*conditions*/) override {
    Forget();
    rows_.clear();
    row_ = 0;
    // Ends the previous reading first, because Open fails if there are kMaxReaders readings.
    reading_.reset();
    ASSIGN_OR_RETURN(reading_, inputs_.Open());
    is_read_to_end_ = false;
    return ReadRow();
  }
  absl::Status Next() override {
    rows_.pop_front();
    ++row_;
    return ReadRow();
  }
  bool is_at_end() const override { return rows_.empty(); }
  // The number of a row identifies it: each reading has the same rows, because this cursor ignores
  // the conditions.
  std::int64_t row_id() const override { return row_; }

 protected:
  // Adds the rows that are ready after this step.
  virtual void OnStep(Step step) = 0;
  // Adds the remaining rows, after the last step.
  virtual void OnEnd() = 0;
  // Clears the state of the previous reading.
  virtual void Forget() = 0;

  void Add(Row row) { rows_.push_back(std::move(row)); }
  const Row& row() const { return rows_.front(); }
  Inputs& inputs() { return inputs_; }
  Inputs::Reading& reading() { return *reading_; }

 private:
  absl::Status ReadRow() {
    while (rows_.empty() && !is_read_to_end_) {
      const Step step = reading_->Next();
      if (step != Step::kEnd) {
        OnStep(step);
        continue;
      }
      is_read_to_end_ = true;
      RETURN_IF_ERROR(reading_->status());
      OnEnd();
    }
    return absl::OkStatus();
  }

  Inputs& inputs_;
  std::unique_ptr<Inputs::Reading> reading_;
  std::deque<Row> rows_;
  bool is_read_to_end_ = false;
  std::int64_t row_ = 0;
};

template <typename T>
std::unique_ptr<Cursor> OpenDerived(Inputs* inputs) {
  return std::make_unique<T>(inputs);
}

// ---- activities

struct Activity {
  nettrace::Guid id = {};
  std::optional<nettrace::Guid> parent;
  std::optional<std::string_view> provider;
  std::optional<std::string_view> name;
  absl::Time start;
  std::optional<absl::Time> stop;
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> tid;
  std::optional<std::string_view> process;
  std::optional<std::string_view> thread;
  std::optional<std::string_view> host;
  std::uint64_t number = 0;  // number of the event that starts the activity
  std::optional<FieldValue> status;
};

enum ActivityColumn : int {
  kActivityId,
  kActivityParent,
  kActivityProvider,
  kActivityName,
  kActivityStart,
  kActivityStop,
  kActivityDuration,
  kActivityPid,
  kActivityTid,
  kActivityProcess,
  kActivityThread,
  kActivityHost,
  kActivityStatus,
  kActivityNumber,
};
constexpr ColumnFacts kActivityColumns[] = {
    {"id TEXT"},       {"parent TEXT"},    {"provider TEXT"},    {"name TEXT"},
    {"start INTEGER"}, {"stop INTEGER"},   {"duration INTEGER"}, {"pid INTEGER"},
    {"tid INTEGER"},   {"process TEXT"},   {"thread TEXT"},      {"host TEXT"},
    {"status"},        {"number INTEGER"},
};

bool IsStatus(const std::string& field) { return sqlite3_stricmp(field.c_str(), "status") == 0; }

class ActivityCursor : public RowCursor<Activity> {
 public:
  using RowCursor::RowCursor;
  void Put(int column, sqlite3_context* to) override;

 private:
  void OnStep(Step step) override {
    if (step != Step::kEvent) return;
    const nettrace::Event& event = reading().event();
    if (trace::BeginsActivity(event)) open_.Add(event, Begin(event));
    if (!trace::EndsActivity(event)) return;
    std::optional<Activity> activity = open_.Take(event);
    if (!activity) return;
    activity->stop = reading().time();
    activity->status = StatusOf(event);
    Add(*std::move(activity));
  }
  void OnEnd() override {
    std::vector<Activity> open = open_.TakeAll();
    std::sort(open.begin(), open.end(),
              [](const Activity& a, const Activity& b) { return a.number < b.number; });
    for (Activity& activity : open) Add(std::move(activity));
    if (open_.forgotten() == 0) return;
    inputs().AddRemark(absl::StrCat(
        "more than ", trace::kMaxOpenActivities,
        " activities were open at a time; the table 'activities' lacks ", open_.forgotten(),
        " of them; select fewer events with --provider or --event"));
  }
  void Forget() override {
    open_ = {};
    names_ = {};
  }

  Activity Begin(const nettrace::Event& event) {
    const nettrace::ThreadInfo& thread = *event.thread;
    const std::string_view process = reading().processes().NameOf(thread);
    const std::string_view host = trace::HostNameOf(thread);
    return {.id = *event.labels->activity_id,
            .parent = event.labels->related_activity_id,
            .provider = names_.Add(event.metadata->provider),
            .name = names_.Add(trace::EventName(*event.metadata)),
            .start = reading().time(),
            .stop = std::nullopt,
            .pid = thread.process_id,
            .tid = thread.thread_id,
            .process = process.empty() ? std::nullopt : names_.Add(process),
            .thread = thread.name ? names_.Add(*thread.name) : std::nullopt,
            .host = host.empty() ? std::nullopt : names_.Add(host),
            .number = reading().number(),
            .status = std::nullopt};
  }
  // Returns the event's field with the name `status` in upper or lower case; nullopt if there is
  // none.
  std::optional<FieldValue> StatusOf(const nettrace::Event& event) {
    const std::vector<nettrace::Field>& fields = event.metadata->fields;
    if (std::none_of(fields.begin(), fields.end(),
                     [](const nettrace::Field& field) { return IsStatus(field.name); })) {
      return std::nullopt;
    }
    trace::PayloadJson* const payloads = reading().payloads();
    payloads->Put(event, payloads->StartJson()).IgnoreError();
    for (FieldValue& field : FieldsOf(payloads->json())) {
      if (IsStatus(field.path)) return std::move(field);
    }
    return std::nullopt;
  }

  trace::ActivityMatcher<Activity> open_;
  NamePool names_;
};

void PutOptionalName(sqlite3_context* to, const std::optional<std::string_view>& name) {
  name ? PutText(to, *name) : sqlite3_result_null(to);
}

void PutOptionalTime(sqlite3_context* to, const std::optional<absl::Time>& time) {
  time ? PutTime(to, *time) : sqlite3_result_null(to);
}

void ActivityCursor::Put(int column, sqlite3_context* to) {
  const Activity& activity = row();
  switch (column) {
    case kActivityId:
      return PutGuid(to, activity.id);
    case kActivityParent:
      return PutGuid(to, activity.parent);
    case kActivityProvider:
      return PutOptionalName(to, activity.provider);
    case kActivityName:
      return PutOptionalName(to, activity.name);
    case kActivityStart:
      return PutTime(to, activity.start);
    case kActivityStop:
      return PutOptionalTime(to, activity.stop);
    case kActivityDuration:
      return activity.stop
                 ? PutSigned(to, absl::ToInt64Nanoseconds(*activity.stop - activity.start))
                 : sqlite3_result_null(to);
    case kActivityPid:
      return PutOptional(to, activity.pid);
    case kActivityTid:
      return PutOptional(to, activity.tid);
    case kActivityProcess:
      return PutOptionalName(to, activity.process);
    case kActivityThread:
      return PutOptionalName(to, activity.thread);
    case kActivityHost:
      return PutOptionalName(to, activity.host);
    case kActivityStatus:
      return activity.status ? PutFieldValue(to, *activity.status) : sqlite3_result_null(to);
    case kActivityNumber:
      return PutInteger(to, activity.number);
    default:
      return sqlite3_result_null(to);
  }
}

// ---- processes

struct Process {
  std::uint64_t pid = 0;
  std::optional<std::string_view> name;
  std::optional<std::string_view> host;
  std::optional<absl::Time> start;  // no value if the process began before the recording
  std::optional<absl::Time> stop;
  std::optional<absl::Time> first;  // time of the process's first event
  std::optional<absl::Time> last;
  std::uint64_t events = 0;
  std::uint64_t order = 0;
};

enum ProcessColumn : int {
  kProcessPid,
  kProcessName,
  kProcessStart,
  kProcessStop,
  kProcessFirst,
  kProcessLast,
  kProcessEvents,
  kProcessHost,
};
constexpr ColumnFacts kProcessColumns[] = {
    {"pid INTEGER"},   {"name TEXT"},    {"start INTEGER"},  {"stop INTEGER"},
    {"first INTEGER"}, {"last INTEGER"}, {"events INTEGER"}, {"host TEXT"},
};

class ProcessCursor : public RowCursor<Process> {
 public:
  // Maximum number of processes in processes_. Events of further processes are not counted.
  static constexpr std::size_t kMaxProcesses = 65536;

  using RowCursor::RowCursor;
  void Put(int column, sqlite3_context* to) override;

 private:
  using Key = std::pair<std::size_t, std::uint64_t>;  // number in hosts_, and pid

  void OnStep(Step step) override {
    if (step != Step::kEvent && step != Step::kOtherEvent) return;
    const nettrace::Event& event = reading().event();
    if (!event.thread->process_id) return;
    if (trace::DescribesProcess(event)) OnDescription(event);
    if (step != Step::kEvent) return;
    Process* const process = Find(*event.thread);
    if (process == nullptr) return;
    ++process->events;
    process->last = reading().time();
    if (!process->first) process->first = process->last;
  }
  void OnDescription(const nettrace::Event& event) {
    const bool is_created = event.metadata->name == "ProcessCreate";
    const auto known = processes_.find(KeyOf(*event.thread));
    if (is_created && known != processes_.end()) {
      if (known->second.stop) --ended_;
      Add(known->second);
      processes_.erase(known);
    }
    Process* const process = Find(*event.thread);
    if (process == nullptr) return;
    if (event.metadata->name == "ProcessExit") {
      if (!process->stop) ++ended_;
      process->stop = reading().time();
      return;
    }
    if (is_created) process->start = reading().time();
    const std::string_view name = reading().processes().NameOf(*event.thread);
    if (!name.empty()) process->name = names_.Add(name);
  }
  // The thread must have a process id.
  Key KeyOf(const nettrace::ThreadInfo& thread) { return {hosts_.Add(thread), *thread.process_id}; }
  // Returns the process of the thread, and adds the process if it is new. Returns null if there are
  // too many processes.
  Process* Find(const nettrace::ThreadInfo& thread) {
    const Key key = KeyOf(thread);
    const auto known = processes_.find(key);
    if (known != processes_.end()) return &known->second;
    if (processes_.size() >= kMaxProcesses) RemoveEnded();
    if (processes_.size() >= kMaxProcesses) {
      inputs().AddRemark(
          absl::StrCat("more than ", kMaxProcesses,
                       " processes ran at a time; the table 'processes' lacks some"));
      return nullptr;
    }
    Process& process = processes_[key];
    process.pid = key.second;
    if (key.first != trace::Hosts::kNone) process.host = names_.Add(trace::HostNameOf(thread));
    process.order = next_++;
    return &process;
  }
  // Moves all processes that have ended from processes_ to the rows of the table.
  void RemoveEnded() {
    if (ended_ == 0) return;
    ended_ = 0;
    absl::erase_if(processes_, [this](auto& entry) {
      if (!entry.second.stop) return false;
      Add(entry.second);
      return true;
    });
  }
  void OnEnd() override {
    std::vector<Process> rest;
    rest.reserve(processes_.size());
    for (const auto& [key, process] : processes_) rest.push_back(process);
    processes_.clear();
    std::sort(rest.begin(), rest.end(),
              [](const Process& a, const Process& b) { return a.order < b.order; });
    for (const Process& process : rest) Add(process);
  }
  void Forget() override {
    processes_.clear();
    names_ = {};
    hosts_ = {};
    next_ = 0;
    ended_ = 0;
  }

  absl::flat_hash_map<Key, Process> processes_;
  NamePool names_;
  trace::Hosts hosts_;
  std::uint64_t next_ = 0;  // order of the next process
  std::size_t ended_ = 0;   // number of processes in processes_ that have ended
};

void ProcessCursor::Put(int column, sqlite3_context* to) {
  const Process& process = row();
  switch (column) {
    case kProcessPid:
      return PutInteger(to, process.pid);
    case kProcessName:
      return PutOptionalName(to, process.name);
    case kProcessStart:
      return PutOptionalTime(to, process.start);
    case kProcessStop:
      return PutOptionalTime(to, process.stop);
    case kProcessFirst:
      return PutOptionalTime(to, process.first);
    case kProcessLast:
      return PutOptionalTime(to, process.last);
    case kProcessEvents:
      return PutInteger(to, process.events);
    case kProcessHost:
      return PutOptionalName(to, process.host);
    default:
      return sqlite3_result_null(to);
  }
}

// ---- losses

struct LossRow {
  absl::Time time;
  std::int64_t relative = 0;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> pid;
  std::optional<std::uint64_t> tid;
  std::optional<std::string> thread;
};

enum LossColumn : int {
  kLossTime,
  kLossRelative,
  kLossCount,
  kLossPid,
  kLossTid,
  kLossThread,
};
constexpr ColumnFacts kLossColumns[] = {
    {"time INTEGER"}, {"relative INTEGER"}, {"count INTEGER"},
    {"pid INTEGER"},  {"tid INTEGER"},      {"thread TEXT"},
};

class LossCursor : public RowCursor<LossRow> {
 public:
  using RowCursor::RowCursor;
  void Put(int column, sqlite3_context* to) override;

 private:
  void OnStep(Step step) override {
    if (step != Step::kLoss) return;
    const trace::Loss& loss = reading().loss();
    Add({loss.time, reading().relative(), loss.count, loss.capture_thread->process_id,
         loss.capture_thread->thread_id, loss.capture_thread->name});
  }
  void OnEnd() override {}
  void Forget() override {}
};

void LossCursor::Put(int column, sqlite3_context* to) {
  const LossRow& loss = row();
  switch (column) {
    case kLossTime:
      return PutTime(to, loss.time);
    case kLossRelative:
      return PutSigned(to, loss.relative);
    case kLossCount:
      return PutInteger(to, loss.count);
    case kLossPid:
      return PutOptional(to, loss.pid);
    case kLossTid:
      return PutOptional(to, loss.tid);
    case kLossThread:
      return loss.thread ? PutText(to, *loss.thread) : sqlite3_result_null(to);
    default:
      return sqlite3_result_null(to);
  }
}

}  // namespace

const Table kActivityTable = {"activity_rows", kActivityColumns, false,
                              OpenDerived<ActivityCursor>};
const Table kProcessTable = {"process_rows", kProcessColumns, false, OpenDerived<ProcessCursor>};
const Table kLossTable = {"loss_rows", kLossColumns, false, OpenDerived<LossCursor>};

}  // namespace tools::query
