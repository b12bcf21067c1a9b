#include "tools/nettrace/top/model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "eventheader/tracepoint_name.h"
#include "tools/base/text.h"
#include "tools/trace/account.h"
#include "tools/trace/common_schema.h"
#include "tools/trace/event_json.h"
#include "tools/trace/event_name.h"
#include "tools/trace/levels.h"

namespace tools::top {
namespace {

// Maximum bytes of a payload that is kept as it was read until the interval of its event ends.
// Events with larger payloads become text at once.
constexpr std::size_t kMaxRawPayload = 4096;

std::string Shortened(std::string_view name) {
  return std::string(name.substr(0, RowName::kMaxName));
}

// Returns the more severe of two levels. Level 0 is unknown, and the least severe.
std::uint8_t MoreSevere(std::uint8_t a, std::uint8_t b) {
  if (a == 0 || b == 0) return std::max(a, b);
  return std::min(a, b);
}

MinuteNumbers ToMinuteNumbers(const trace::DurationHistogram& durations) {
  return {durations.count(), durations.Percentile(50), durations.Percentile(99)};
}

// Returns the text of a function: `module!function`, `module!?` if the function is unknown, or `?`.
std::string FunctionText(const trace::CodeMap::Code& code) {
  if (!code.is_known) return "?";
  const std::string name = code.function.empty() ? "?" : std::string(code.function);
  return Shortened(std::string(trace::ModuleName(code.path)) + '!' + name);
}

std::string KeyOf(const std::optional<std::uint64_t>& id) { return id ? absl::StrCat(*id) : "?"; }

}  // namespace

struct Model::KeptEvent {
  nettrace::Event event;
  nettrace::Labels labels;  // copy of the labels, if the file is V4 or V5
  std::vector<std::byte> payload;
  bool is_raw = true;
  std::string text;
};

void Model::Counts::AddEvent(std::uint8_t event_level, std::size_t event_bytes) {
  const std::uint64_t new_errors = trace::IsError(event_level) ? 1 : 0;
  ++events;
  ++recent;
  errors += new_errors;
  recent_errors += new_errors;
  bytes += event_bytes;
  level = MoreSevere(level, event_level);
}

void Model::Counts::Add(const Counts& other, RecentDurations::Budget* budget) {
  events += other.events;
  errors += other.errors;
  bytes += other.bytes;
  lost += other.lost;
  self += other.self;
  recent += other.recent;
  recent_errors += other.recent_errors;
  rate += other.rate;
  error_rate += other.error_rate;
  level = MoreSevere(level, other.level);
  durations.Merge(other.durations);
  recent_durations.Merge(other.recent_durations, budget);
}

RowNumbers Model::Counts::ToNumbers(StepNumber now) const {
  RowNumbers numbers;
  numbers.events = events;
  numbers.errors = errors;
  numbers.bytes = bytes;
  numbers.level = level;
  numbers.lost = lost;
  numbers.self = self;
  numbers.rate = rate;
  numbers.error_rate = error_rate;
  numbers.durations = durations.count();
  numbers.p50 = durations.Percentile(50);
  numbers.p99 = durations.Percentile(99);
  numbers.max = durations.max();
  const Minutes minutes = recent_durations.At(now);
  numbers.minute = ToMinuteNumbers(minutes.last);
  numbers.minute_before = ToMinuteNumbers(minutes.before);
  return numbers;
}

Model::Model(const ModelOptions& options, const trace::ProcessNames& names)
    : options_(options), names_(names) {}

Model::~Model() = default;

template <typename Function>
void Model::ForAllCounts(const Function& function) {
  function(&total_);
  for (Table& table : tables_) {
    function(&table.others);
    for (const auto& [key, row] : table.rows) function(&row->counts);
  }
}

void Model::OnEvent(const nettrace::Reader& reader, const nettrace::Event& event) {
  const absl::Time time = reader.TimeOf(event.timestamp);
  const RowsOfEvent rows = RowsOf(event);
  const std::uint8_t level = event.level();
  total_.AddEvent(level, event.payload.size());
  recent_bytes_ += event.payload.size();
  for (Row* row : rows) {
    row->counts.AddEvent(level, event.payload.size());
    row->last_event = total_.events;
  }
  first_ = std::min(first_.value_or(time), time);
  last_ = std::max(last_.value_or(time), time);
  now_ = std::max(now_, time);
  if (!period_start_) period_start_ = time;
  CountDuration(event, rows, time);
  CountStack(reader, event);
  if (options_.keeps_events) Keep(reader, event, rows);
}

void Model::OnSequencePoint(const nettrace::Reader& reader, absl::Time time) {
  RenderAllKept(reader);
  ForgetFound();
  now_ = std::max(now_, time);
  if (!period_start_) return;
  const absl::Duration length = time - *period_start_;
  if (length < options_.interval) return;
  EndPeriod(length);
  period_start_ = time;
}

void Model::Finish(const nettrace::Reader& reader) {
  RenderAllKept(reader);
  ForgetFound();
  is_finished_ = true;
  now_ = last_.value_or(now_);
  period_start_.reset();
  period_ = first_ ? *last_ - *first_ : absl::ZeroDuration();
  const double seconds = absl::ToDoubleSeconds(period_);
  const auto average = [seconds](std::uint64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0;
  };
  ForAllCounts([&](Counts* counts) {
    counts->rate = average(counts->events);
    counts->error_rate = average(counts->errors);
  });
  byte_rate_ = average(total_.bytes);
}

void Model::BeIdle() {
  if (is_finished_) return;
  ForAllCounts([](Counts* counts) {
    counts->rate = counts->error_rate = 0;
    counts->recent = counts->recent_errors = 0;
  });
  byte_rate_ = 0;
  recent_bytes_ = 0;
  period_start_.reset();
}

Snapshot Model::TakeSnapshot() const {
  Snapshot snapshot;
  const StepNumber now = StepAt(now_);
  snapshot.total = total_.ToNumbers(now);
  snapshot.byte_rate = byte_rate_;
  snapshot.open = open_.open();
  snapshot.unmatched = open_.unmatched();
  snapshot.forgotten = open_.forgotten();
  snapshot.first = first_;
  snapshot.last = last_;
  snapshot.is_finished = is_finished_;
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    SnapshotView& view = snapshot.views[i];
    view.rows.reserve(table.rows.size());
    std::uint64_t lost = table.others.lost;
    for (const auto& [key, row] : table.rows) {
      view.rows.push_back({key, row->name, row->counts.ToNumbers(now)});
      // The text depends on which other hosts exist, and these may appear later than the row.
      view.rows.back().name.host = Shortened(hosts_.TextOf(row->host));
      lost += row->counts.lost;
    }
    view.other_rows = table.evicted;
    view.others = table.others.ToNumbers(now);
    // If the stream is a part of the recording, the account may report more losses than the stream,
    // so `lost` may exceed total_.lost.
    view.lost_unknown = total_.lost - std::min(total_.lost, lost);
  }
  return snapshot;
}

std::vector<std::string> Model::LastEvents(View view, const std::string& key) const {
  std::vector<std::string> events;
  const auto& rows = tables_[static_cast<std::size_t>(view)].rows;
  const auto found = rows.find(key);
  if (found == rows.end()) return events;
  for (const auto& kept : found->second->last) {
    if (!kept->is_raw) events.push_back(kept->text);
  }
  return events;
}

Model::Row* Model::FindRow(View view, const std::string& key) {
  Table& table = TableOf(view);
  if (const auto found = table.rows.find(key); found != table.rows.end()) {
    return found->second.get();
  }
  if (table.rows.size() >= options_.max_rows) EvictRows(&table);
  RowPointer& row = table.rows[key];
  row = std::make_shared<Row>();
  return row.get();
}

// Merges the quarter of the rows with the fewest events into `others`. Merges this many rows at
// once, so that the search for them is rare.
void Model::EvictRows(Table* table) {
  const auto is_before = [](const auto& a, const auto& b) {
    return std::pair(a->second->counts.events, a->second->last_event) <
           std::pair(b->second->counts.events, b->second->last_event);
  };
  std::vector<decltype(table->rows)::iterator> rows;
  for (auto row = table->rows.begin(); row != table->rows.end(); ++row) rows.push_back(row);
  const std::size_t count = std::min(rows.size() / 4 + 1, rows.size());
  std::nth_element(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count) - 1, rows.end(),
                   is_before);
  rows.resize(count);
  for (const auto& row : rows) {
    // An open activity may still refer to the row. The duration of the activity then counts in
    // `others`.
    Row& evicted = *row->second;
    table->others.Add(evicted.counts, &budget_);
    evicted.is_evicted = true;
    evicted.counts = {};
    evicted.last.clear();
    table->rows.erase(row);
  }
  table->evicted += count;
  ForgetFound();
}

Model::RowsOfEvent Model::RowsOf(const nettrace::Event& event) {
  // Finding a row may evict rows, but only rows of the same view. The pointers that were found
  // before therefore stay valid.
  const MetadataRows metadata = FindMetadata(event);
  const ThreadRows thread = FindThread(*event.thread);
  return {metadata.provider,
          metadata.event,
          thread.process,
          thread.thread,
          FindCpu(*event.capture_thread),
          FindLevel(event.level())};
}

Model::MetadataRows Model::FindMetadata(const nettrace::Event& event) {
  const nettrace::EventMetadata& metadata = *event.metadata;
  const auto found = found_metadata_.find(&metadata);
  if (found != found_metadata_.end()) return found->second;
  const std::string provider = Shortened(metadata.provider);
  const std::optional<trace::LogRecord> record = trace::ReadLogRecord(event, &payloads_);
  const bool is_named = record && !record->name.empty();
  const std::string name = Shortened(is_named ? record->name : trace::EventName(metadata));
  const MetadataRows rows = {FindRow(View::kProvider, provider),
                             FindRow(View::kEvent, provider + '\0' + name)};
  rows.provider->name.provider = provider;
  rows.event->name.provider = provider;
  rows.event->name.name = name;
  // Log records with the same metadata row may have different names, so their rows are not cached.
  if (!payloads_.NotesOf(metadata).has_common_schema) found_metadata_[&metadata] = rows;
  return rows;
}

Model::ThreadRows Model::FindThread(const nettrace::ThreadInfo& thread) {
  const auto found = found_threads_.find(&thread);
  if (found != found_threads_.end()) return found->second;
  const std::string name = Shortened(thread.name.value_or(""));
  const std::size_t host = hosts_.Add(thread);
  const std::string process_key = absl::StrCat(host, ":", KeyOf(thread.process_id));
  std::string key = absl::StrCat(process_key, "/", KeyOf(thread.thread_id));
  // Threads without an id are distinguished by their names.
  if (!thread.thread_id) absl::StrAppend(&key, "/", name);
  const ThreadRows rows = {FindRow(View::kProcess, process_key), FindRow(View::kThread, key)};
  rows.process->name.pid = rows.thread->name.pid = thread.process_id;
  rows.process->host = rows.thread->host = host;
  rows.thread->name.tid = thread.thread_id;
  if (!name.empty()) rows.thread->name.name = name;
  if (const std::string_view process = names_.NameOf(thread); !process.empty()) {
    rows.process->name.name = Shortened(process);
  } else if (rows.process->name.name.empty() && thread.process_id == thread.thread_id) {
    rows.process->name.name = name;
  }
  rows.thread->name.process = rows.process->name.name;
  found_threads_[&thread] = rows;
  return rows;
}

Model::Row* Model::FindCpu(const nettrace::ThreadInfo& thread) {
  const auto found = found_cpus_.find(&thread);
  if (found != found_cpus_.end()) return found->second;
  const std::string name = Shortened(thread.name.value_or(""));
  const std::size_t host = hosts_.Add(thread);
  Row* const row = FindRow(View::kCpu, absl::StrCat(host, ":", KeyOf(thread.process_id), "/",
                                                    KeyOf(thread.thread_id), "/", name));
  row->host = host;
  row->name.name = name;
  row->name.pid = thread.process_id;
  row->name.tid = thread.thread_id;
  found_cpus_[&thread] = row;
  return row;
}

Model::Row* Model::FindLevel(std::uint8_t level) {
  const std::string name = trace::LevelName(level);
  Row* const row = FindRow(View::kLevel, name);
  row->name.name = name;
  return row;
}

const Model::StackRows& Model::FindStack(const nettrace::Reader& reader,
                                         const nettrace::Event& event) {
  // Maximum number of stacks whose rows are kept.
  constexpr std::size_t kMaxStacks = 4096;
  const std::uint64_t version = code_.VersionOf(*event.thread);
  std::string key(reinterpret_cast<const char*>(&version), sizeof version);
  key.append(reinterpret_cast<const char*>(event.stack.data()), event.stack.size());
  if (const auto found = found_stacks_.find(key); found != found_stacks_.end()) {
    return found->second;
  }
  const std::vector<std::uint64_t> stack =
      trace::StackAddresses(event, reader.trace().pointer_size);
  stack_rows_.clear();
  for (std::size_t i = 0; i < stack.size(); ++i) {
    const std::string name =
        FunctionText(code_.Find(*event.thread, stack[i], trace::IsReturnAddress(stack, i)));
    Row* const row = FindRow(View::kFunction, name);
    row->name.name = name;
    // A later call of FindRow for this stack may evict the row, so the shared pointer keeps it.
    RowPointer pointer = row->shared_from_this();
    if (std::find(stack_rows_.begin(), stack_rows_.end(), pointer) == stack_rows_.end()) {
      stack_rows_.push_back(std::move(pointer));
    }
  }
  if (found_stacks_.size() < kMaxStacks) found_stacks_.emplace(std::move(key), stack_rows_);
  return stack_rows_;
}

void Model::CountStack(const nettrace::Reader& reader, const nettrace::Event& event) {
  if (event.stack.empty()) return;
  const StackRows& rows = FindStack(reader, event);
  for (const RowPointer& row : rows) {
    Counts* const counts = CountsOf(View::kFunction, row.get());
    counts->AddEvent(event.level(), event.payload.size());
    if (row == rows.front()) ++counts->self;
    row->last_event = total_.events;
  }
}

Model::Counts* Model::CountsOf(View view, Row* row) {
  return row->is_evicted ? &TableOf(view).others : &row->counts;
}

void Model::OnLoss(const trace::Loss& loss) {
  const nettrace::ThreadInfo& capture_thread = *loss.capture_thread;
  total_.lost += loss.count;
  FindCpu(capture_thread)->counts.lost += loss.count;
  // If the capture thread stands for a CPU, the thread of the lost events is unknown.
  if (!capture_thread.process_id && !capture_thread.thread_id) return;
  const ThreadRows rows = FindThread(capture_thread);
  rows.process->counts.lost += loss.count;
  rows.thread->counts.lost += loss.count;
}

void Model::OnAccount(const nettrace::Event& event) {
  const std::optional<trace::AccountEvent> loss = trace::ParseAccount(event);
  if (!loss || loss->kind != trace::AccountEvent::Kind::kEventsLost) return;
  const std::size_t colon = loss->tracepoint.find(':');
  if (colon == std::string::npos) return;
  // A loss of a ring in user space names the thread ("ring:PID/TID"), because its event is unknown.
  if (loss->cpu == trace::kRingCpu && loss->tracepoint.starts_with("ring:")) return;
  std::string provider = Shortened(std::string_view(loss->tracepoint).substr(0, colon));
  const std::string name = Shortened(std::string_view(loss->tracepoint).substr(colon + 1));
  if (const auto parts = eh::ParseTracepointName(name); parts && provider == "user_events") {
    // A tracepoint of user_events has events of several names, so only their provider is known.
    provider = std::string(parts->provider);
  } else {
    Row* const row = FindRow(View::kEvent, provider + '\0' + name);
    row->name.provider = provider;
    row->name.name = name;
    row->counts.lost += loss->count;
  }
  Row* const row = FindRow(View::kProvider, provider);
  row->name.provider = provider;
  row->counts.lost += loss->count;
}

void Model::CountDuration(const nettrace::Event& event, const RowsOfEvent& rows, absl::Time time) {
  if (trace::BeginsActivity(event)) {
    OpenActivity open;
    for (std::size_t i = 0; i < rows.size(); ++i) open.rows[i] = rows[i]->shared_from_this();
    open.start = time;
    open_.Add(event, std::move(open));
    return;
  }
  if (!trace::EndsActivity(event)) return;
  const std::optional<OpenActivity> open = open_.Take(event);
  if (!open) return;
  // The duration is negative if the stream is not in order and the stop precedes its start.
  const auto nanoseconds = static_cast<std::uint64_t>(
      std::max<std::int64_t>(absl::ToInt64Nanoseconds(time - open->start), 0));
  const StepNumber step = StepAt(time);
  ForgetOldDurations(step);
  const auto add = [&](Counts* counts) {
    counts->durations.Add(nanoseconds);
    counts->recent_durations.Add(step, nanoseconds, &budget_);
  };
  add(&total_);
  for (std::size_t i = 0; i < kSingleViews; ++i) {
    add(CountsOf(kViews[i], open->rows[i].get()));
  }
}

void Model::ForgetOldDurations(StepNumber now) {
  if (budget_.used < RecentDurations::Budget::kMaxEntries || forgotten_at_ == now) return;
  forgotten_at_ = now;
  budget_.used = 0;
  ForAllCounts([&](Counts* counts) {
    counts->recent_durations.Forget(now);
    budget_.used += counts->recent_durations.CountEntries();
  });
}

void Model::Keep(const nettrace::Reader& reader, const nettrace::Event& event,
                 const RowsOfEvent& rows) {
  const auto kept = std::make_shared<KeptEvent>();
  kept->event = event;
  kept->event.stack = {};
  if (event.payload.size() > kMaxRawPayload) {
    RenderKept(reader, kept.get());
  } else {
    kept->payload.assign(event.payload.begin(), event.payload.end());
    kept->event.payload = kept->payload;
    if (event.payload_encoding != nettrace::PayloadEncoding::kV6) {
      kept->labels = *event.labels;
      kept->event.labels = &kept->labels;
    }
  }
  const auto keep = [&kept](Row* row) {
    if (row->last.size() >= kKeptEvents) row->last.pop_front();
    row->last.push_back(kept);
    row->has_raw_events |= kept->is_raw;
  };
  for (Row* row : rows) keep(row);
  if (event.stack.empty()) return;
  for (const RowPointer& row : FindStack(reader, event)) {
    if (!row->is_evicted) keep(row.get());
  }
}

void Model::RenderKept(const nettrace::Reader& reader, KeptEvent* kept) {
  kept->text = trace::EventToText(reader, kept->event, /*verbose=*/false, &payloads_);
  if (kept->text.size() > kMaxEventText) {
    // If the text is cut within a character, Printable replaces the rest of it with U+FFFD.
    kept->text.resize(kMaxEventText);
    kept->text = base::Printable(kept->text);
  }
  kept->text.shrink_to_fit();
  kept->is_raw = false;
  kept->event = {};
  kept->labels = {};
  kept->payload = {};
}

// Formats all kept events that are not text yet. Must be called before the rows of the stream that
// they refer to become invalid.
void Model::RenderAllKept(const nettrace::Reader& reader) {
  if (!options_.keeps_events) return;
  for (Table& table : tables_) {
    for (const auto& [key, row] : table.rows) {
      if (!row->has_raw_events) continue;
      row->has_raw_events = false;
      for (const auto& kept : row->last) {
        if (kept->is_raw) RenderKept(reader, kept.get());
      }
    }
  }
}

void Model::ForgetFound() {
  found_metadata_.clear();
  found_stacks_.clear();
  found_threads_.clear();
  found_cpus_.clear();
  payloads_.ForgetRows();
}

void Model::EndPeriod(absl::Duration length) {
  const double seconds = absl::ToDoubleSeconds(length);
  ForAllCounts([seconds](Counts* counts) {
    counts->rate = static_cast<double>(counts->recent) / seconds;
    counts->error_rate = static_cast<double>(counts->recent_errors) / seconds;
    counts->recent = counts->recent_errors = 0;
  });
  byte_rate_ = static_cast<double>(recent_bytes_) / seconds;
  recent_bytes_ = 0;
  period_ = length;
}

}  // namespace tools::top
