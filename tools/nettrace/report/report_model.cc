#include "tools/nettrace/report/report_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"
#include "tools/trace/levels.h"

namespace tools::report {
namespace {

constexpr char kOthers[] = "(others)";
constexpr std::uint64_t kLeastTypical = 3;  // activities of a kind needed to show a typical one

// Returns the index of `key`. Adds the key if there are fewer than `max`, and returns `max`
// otherwise.
template <typename Indices, typename Key>
std::size_t IndexOf(Indices* indices, std::size_t max, const Key& key) {
  const auto known = indices->find(key);
  if (known != indices->end()) return known->second;
  if (indices->size() == max) return max;
  const std::size_t index = indices->size();
  indices->emplace(key, index);
  return index;
}

// Adds a row if there is none with this index. Returns whether one was added.
template <typename Row>
bool AddRow(std::vector<Row>* rows, std::size_t index) {
  if (index < rows->size()) return false;
  rows->emplace_back();
  return true;
}

}  // namespace

std::string ShortName(std::string_view text) {
  if (text.size() <= kMaxName) return std::string(text);
  std::size_t size = kMaxName;
  // Moves the cut to the beginning of a UTF-8 character that it would divide.
  while (size > kMaxName - 4 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return absl::StrCat(std::string(text.substr(0, size)), "…");
}

std::string ForScript(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  // In JSON, '<', '>' and '&' occur only within strings, where an escape has the same meaning.
  // Scripts also treat U+2028 and U+2029 specially, but Printable has already escaped them.
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

void EventSums::Add(std::uint64_t ticks) {
  first = events == 0 ? ticks : std::min(first, ticks);
  last = std::max(last, ticks);
  ++events;
}

Limits LimitsFor(std::uint64_t size) {
  constexpr Limits kMost;
  const auto part = [size](std::uint64_t bytes, std::size_t least, std::size_t most) {
    return static_cast<std::size_t>(
        std::clamp(size / bytes, std::uint64_t{least}, std::uint64_t{most}));
  };
  return {.rows = part(4096, 64, kMost.rows),
          .activities = part(2048, 100, kMost.activities),
          .tree_nodes = part(2048, 100, kMost.tree_nodes),
          .name_bytes = part(8, 0, kMost.name_bytes),
          .stack_bytes = static_cast<std::size_t>(size / 8)};
}

ReportModel::ReportModel(const nettrace::Reader& reader, const Window& window, const Limits& limits)
    : reader_(reader),
      window_(window),
      limits_(limits),
      max_kinds_(limits.rows),
      max_processes_(limits.rows),
      max_threads_(limits.rows),
      activities_(limits.activities, limits.activities) {
  over_time_.AddSeries();
}

void ReportModel::OnRowsEnd() {
  kinds_of_file_.clear();
  threads_of_file_.clear();
}

void ReportModel::AddTime(std::uint64_t ticks) {
  start_ = std::min(start_.value_or(ticks), ticks);
  end_ = std::max(end_, ticks);
}

ReportModel::EventRows ReportModel::OnEvent(const nettrace::Event& event,
                                            const trace::ProcessNames& names) {
  const std::uint64_t ticks = event.timestamp;
  AddTime(ticks);
  all_.Add(ticks);
  payload_bytes_ += event.payload.size();
  const auto [kind, provider] = KindOf(*event.metadata);
  kinds_[kind].Add(ticks);
  kinds_[kind].payload_bytes += event.payload.size();
  ++kinds_[kind].levels[std::min<std::size_t>(event.level(), kLevels - 1)];
  const auto [thread, process] = ThreadOf(*event.thread, names);
  threads_[thread].Add(ticks);
  processes_[process].Add(ticks);
  over_time_.Add(1 + provider, ticks, 1);
  of_threads_.Add(thread, ticks, 1);
  const bool is_error = trace::IsError(event.level());
  if (trace::BeginsActivity(event)) BeginActivity(event, kind, thread);
  if (is_error && event.labels->activity_id) {
    if (Open* const open = open_.Find(*event.labels->activity_id)) open->has_error = true;
  }
  if (trace::EndsActivity(event)) {
    kinds_[kind].ends_activities = true;
    EndActivity(event);
  }
  statistics_.OnEvent(kind, provider, process, ticks, is_error);
  last_times_[all_.events % kNeighbors] = ticks;
  if (place_needs_ != 0) {
    --place_needs_;
    places_.back().until = std::max(places_.back().until, ticks);
  }
  return {kind, thread};
}

void ReportModel::OnLoss(const nettrace::ThreadInfo& capture_thread, std::uint64_t count,
                         std::uint64_t ticks) {
  if (count == 0) return;
  AddTime(ticks);
  lost_ += count;
  over_time_.Add(0, ticks, count);
  AddPlace(ticks, count);
  std::string name = "?";
  if (capture_thread.name) {
    name = ShortName(*capture_thread.name);
  } else if (capture_thread.thread_id) {
    name = absl::StrCat("thread ", *capture_thread.thread_id);
  }
  const std::size_t host = hosts_.Add(capture_thread);
  if (host != trace::Hosts::kNone) {
    absl::StrAppend(&name, " of ", ShortName(hosts_.TextOf(host)));
  }
  const std::size_t index = IndexOf(&losses_by_name_, limits_.rows, name);
  if (AddRow(&losses_, index)) losses_[index].of = index == limits_.rows ? kOthers : name;
  losses_[index].count += count;
}

void ReportModel::AddPlace(std::uint64_t ticks, std::uint64_t count) {
  // Time of the oldest event in the ring last_times_. Until the ring is full, the oldest event is
  // event 1, at index 1. Afterwards, the next event will overwrite the oldest one.
  const std::uint64_t events = all_.events;
  const std::uint64_t oldest = events < kNeighbors ? last_times_[events == 0 ? 0 : 1]
                                                   : last_times_[(events + 1) % kNeighbors];
  const std::uint64_t from = events == 0 ? ticks : std::min(oldest, ticks);
  if (!places_.empty() && from <= places_.back().until) {
    places_.back().until = std::max(places_.back().until, ticks);
    places_.back().lost += count;
  } else if (places_.size() == kMaxPlaces) {
    ++places_left_out_;
    return;
  } else {
    places_.push_back({from, ticks, count});
  }
  place_needs_ = kNeighbors;
}

bool ReportModel::TakeName(std::string_view name, std::string_view old) {
  const auto size = [](std::string_view text) {
    return ForScript(base::Printable(std::string(text))).size();
  };
  const std::size_t bytes = name_bytes_ + size(name) - size(old);
  if (bytes <= limits_.name_bytes) {
    name_bytes_ = bytes;
    return true;
  }
  max_kinds_ = std::min(max_kinds_, kinds_by_name_.size());
  max_processes_ = std::min(max_processes_, processes_by_pid_.size());
  max_threads_ = std::min(max_threads_, threads_by_id_.size());
  return false;
}

ReportModel::KindRows ReportModel::KindOf(const nettrace::EventMetadata& metadata) {
  const auto known = kinds_of_file_.find(&metadata);
  if (known != kinds_of_file_.end()) return known->second;
  KindRows rows;
  const std::pair<std::string, std::string> name = {ShortName(metadata.provider),
                                                    ShortName(trace::EventName(metadata))};
  if (!kinds_by_name_.contains(name)) TakeName(absl::StrCat(name.first, name.second));
  rows.kind = IndexOf(&kinds_by_name_, max_kinds_, name);
  if (AddRow(&kinds_, rows.kind)) {
    kinds_[rows.kind].provider = rows.kind == max_kinds_ ? kOthers : name.first;
    kinds_[rows.kind].name = rows.kind == max_kinds_ ? kOthers : name.second;
  }
  rows.provider = IndexOf(&providers_by_name_, kMaxProviders, name.first);
  if (AddRow(&providers_, rows.provider)) {
    providers_[rows.provider] = rows.provider == kMaxProviders ? kOthers : name.first;
    over_time_.AddSeries();
  }
  kinds_of_file_.emplace(&metadata, rows);
  return rows;
}

ReportModel::ThreadRows ReportModel::ThreadOf(const nettrace::ThreadInfo& thread,
                                              const trace::ProcessNames& names) {
  const auto known = threads_of_file_.find(&thread);
  if (known != threads_of_file_.end()) return known->second;
  const std::size_t host = hosts_.Add(thread);
  const std::size_t process =
      IndexOf(&processes_by_pid_, max_processes_, std::pair(host, thread.process_id));
  const std::string process_name = ShortName(names.NameOf(thread));
  if (AddRow(&processes_, process)) {
    if (process == max_processes_) {
      processes_[process].name = kOthers;
    } else {
      processes_[process].pid = thread.process_id;
      processes_[process].host = host;
    }
  }
  if (process != max_processes_ && !process_name.empty() &&
      TakeName(process_name, processes_[process].name)) {
    processes_[process].name = process_name;
  }
  const std::string name = thread.name ? ShortName(*thread.name) : "";
  const ThreadKey key = {process, thread.thread_id, thread.thread_id ? "" : name};
  const std::size_t index = IndexOf(&threads_by_id_, max_threads_, key);
  if (AddRow(&threads_, index)) {
    of_threads_.AddSeries();
    if (index == max_threads_) {
      threads_[index].name = kOthers;
    } else {
      threads_[index].tid = thread.thread_id;
      threads_[index].process = process;
    }
  }
  if (index != max_threads_ && !name.empty() && TakeName(name, threads_[index].name)) {
    threads_[index].name = name;
  }
  return threads_of_file_.emplace(&thread, ThreadRows{index, process}).first->second;
}

std::size_t ReportModel::DurationsOf(std::size_t kind) {
  const std::size_t index = IndexOf(&durations_by_kind_, kMaxDurations, kind);
  if (!AddRow(&durations_, index)) return index;
  if (index != kMaxDurations) durations_[index].kind = kind;
  for (int series = 0; series < 2; ++series) durations_[index].outcomes.AddSeries();
  return index;
}

void ReportModel::BeginActivity(const nettrace::Event& event, std::size_t kind,
                                std::size_t thread) {
  const std::size_t durations = DurationsOf(kind);
  ++durations_[durations].begun;
  open_.Add(event, {.begin = event.timestamp,
                    .durations = durations,
                    .kind = kind,
                    .thread = thread,
                    .related = event.labels->related_activity_id});
}

void ReportModel::EndActivity(const nettrace::Event& event) {
  const std::optional<Open> open = open_.Take(event);
  if (!open) return;
  const absl::Time begin = reader_.TimeOf(open->begin);
  const absl::Time end = reader_.TimeOf(event.timestamp);
  Durations& row = durations_[open->durations];
  row.histogram.Add(end - begin);
  row.outcomes.Add(0, event.timestamp, 1);
  if (open->has_error) row.outcomes.Add(1, event.timestamp, 1);
  row.over_time.Add(event.timestamp, static_cast<std::uint64_t>(std::max<std::int64_t>(
                                         absl::ToInt64Nanoseconds(end - begin), 0)));
  if ((window_.from && end < *window_.from) || (window_.until && begin >= *window_.until)) return;
  Activity activity = {open->begin,
                       std::max(open->begin, event.timestamp),
                       open->kind,
                       open->thread,
                       *event.labels->activity_id,
                       open->related};
  if (row.sample.Next()) row.sample.Add(activity, 1);
  // `slowest` is a heap. Its first element has the shortest duration, and is removed first.
  const auto slower = [](const Activity& a, const Activity& b) { return a.ticks() > b.ticks(); };
  std::vector<Activity>& slowest = row.slowest;
  slowest.push_back(activity);
  std::push_heap(slowest.begin(), slowest.end(), slower);
  if (slowest.size() <= kSlowest) return;
  std::pop_heap(slowest.begin(), slowest.end(), slower);
  activity = slowest.back();
  slowest.pop_back();
  if (activities_.Next()) activities_.Add(activity, 1);
}

void ReportModel::OnProcessChange(const nettrace::Event& event, const trace::ProcessNames& names) {
  const std::optional<std::uint64_t> pid = event.thread->process_id;
  if (!pid) return;
  const std::size_t host = hosts_.Add(*event.thread);
  // Only processes with selected events have rows. A row has the last known name.
  const auto known = processes_by_pid_.find(std::pair(host, pid));
  const Process* const row =
      known == processes_by_pid_.end() ? nullptr : &processes_[known->second];
  const std::uint64_t events = row == nullptr ? 0 : row->events;
  const std::uint64_t ticks = event.timestamp;
  if (event.metadata->name == "ProcessExit") {
    // A process without a row has no selected events, unless there are too many processes for rows.
    // In that case, the number of its selected events is unknown, and 1 stands for it.
    const bool may_have_events = row == nullptr && processes_.size() > max_processes_;
    process_lives_.End(host, *pid, row == nullptr ? "" : row->name, ticks,
                       may_have_events ? 1 : events);
    return;
  }
  std::string name = ShortName(names.NameOf(*event.thread));
  if (event.metadata->name == "ProcessCreate") {
    process_lives_.Begin(host, *pid, std::move(name), ticks, events);
  } else if (event.metadata->name == "ExistingProcess") {
    process_lives_.Exists(host, *pid, std::move(name), ticks, events);
  }
}

void ReportModel::EndTotals() {
  OnRowsEnd();
  for (Durations& row : durations_) {
    std::stable_sort(row.slowest.begin(), row.slowest.end(),
                     [](const Activity& a, const Activity& b) { return a.ticks() > b.ticks(); });
  }
  for (std::size_t place = 0; place < kSlowest; ++place) {
    const std::size_t first = complete_.size();
    for (const Durations& row : durations_) {
      if (place < row.slowest.size()) complete_.emplace_back().activity = row.slowest[place];
    }
    std::stable_sort(complete_.begin() + static_cast<std::ptrdiff_t>(first), complete_.end(),
                     [](const CompleteActivity& a, const CompleteActivity& b) {
                       return a.activity.ticks() > b.activity.ticks();
                     });
    if (place != 0) continue;
    for (std::size_t i = 0; i < durations_.size(); ++i) AddTypical(i);
  }
  complete_by_begin_.resize(complete_.size());
  std::iota(complete_by_begin_.begin(), complete_by_begin_.end(), std::size_t{0});
  std::stable_sort(complete_by_begin_.begin(), complete_by_begin_.end(),
                   [this](std::size_t a, std::size_t b) {
                     return complete_[a].activity.begin < complete_[b].activity.begin;
                   });
}

void ReportModel::AddTypical(std::size_t durations) {
  Durations& row = durations_[durations];
  if (!row.kind || row.histogram.count() < kLeastTypical) return;
  const double ticks_per_second =
      static_cast<double>(std::max<std::int64_t>(1, reader_.trace().ticks_per_second));
  const double median = static_cast<double>(row.histogram.Percentile(50)) * ticks_per_second / 1e9;
  std::optional<Activity> nearest;
  const auto distance = [median](const Activity& activity) {
    return std::abs(static_cast<double>(activity.ticks()) - median);
  };
  row.sample.ForEach([&](const Activity& activity) {
    const auto is_same = [&activity](const Activity& other) {
      return other.begin == activity.begin && other.end == activity.end && other.id == activity.id;
    };
    // Skips the slowest activities, because complete_ already has them.
    if (std::any_of(row.slowest.begin(), row.slowest.end(), is_same)) return;
    if (!nearest || distance(activity) < distance(*nearest)) nearest = activity;
  });
  if (!nearest) return;
  CompleteActivity& typical = complete_.emplace_back();
  typical.activity = *nearest;
  typical.is_typical = true;
}

std::size_t ReportModel::NodesAtMost() const {
  std::uint64_t begun = 0;
  for (const Durations& row : durations_) begun += row.begun;
  const std::uint64_t most = complete_.size() * std::min<std::uint64_t>(begun, kMaxTreeNodes);
  return static_cast<std::size_t>(std::min<std::uint64_t>(most, limits_.tree_nodes));
}

void ReportModel::AddInterest(std::uint64_t from, std::uint64_t until, bool is_sampled) {
  if (is_sampled) interests_.emplace_back(from, until);
  for (const std::uint64_t end : {from, until}) {
    const bool is_known = std::find(ends_.begin(), ends_.end(), end) != ends_.end();
    if (!is_known && ends_.size() < kMaxEnds) ends_.push_back(end);
  }
}

void ReportModel::BeginSelection(std::size_t max_bytes, ToJson to_json) {
  to_json_ = std::move(to_json);
  single_events_ = SingleEvents(max_bytes);
  std::sort(ends_.begin(), ends_.end());
  if (!ends_.empty()) next_end_from_ = NeighborsFrom(ends_.front());
}

bool ReportModel::IsInWindow(std::uint64_t ticks) const {
  if (!window_.from && !window_.until) return true;
  const absl::Time time = reader_.TimeOf(ticks);
  return (!window_.from || time >= *window_.from) && (!window_.until || time < *window_.until);
}

void ReportModel::StartRunning(std::uint64_t ticks) {
  std::erase_if(running_, [&](Running& running) {
    if (complete_[running.rank].activity.end >= ticks) return false;
    StopRunning(&running);
    return true;
  });
  for (; next_complete_ < complete_by_begin_.size(); ++next_complete_) {
    const std::size_t rank = complete_by_begin_[next_complete_];
    if (complete_[rank].activity.begin > ticks) return;
    running_.push_back({rank, ActivityTree(complete_[rank].activity)});
  }
}

void ReportModel::StopRunning(Running* running) {
  CompleteActivity& complete = complete_[running->rank];
  complete.events = running->tree.events();
  complete.left_out = running->tree.left_out();
  complete.nodes = running->tree.TakeNodes();
  tree_nodes_ += complete.nodes.size();
  for (std::size_t rank = complete_.size(); tree_nodes_ > limits_.tree_nodes && rank-- != 0;) {
    std::vector<TreeNode>& nodes = complete_[rank].nodes;
    if (nodes.empty()) continue;
    tree_nodes_ -= nodes.size();
    complete_[rank].left_out += nodes.size() - 1;
    nodes = {};
  }
}

std::optional<std::size_t> ReportModel::RankOf(const nettrace::Event& event, std::size_t kind,
                                               std::size_t thread) {
  std::optional<std::size_t> rank;
  for (Running& running : running_) {
    if (running.tree.Add(event, kind, thread) && (!rank || running.rank < *rank)) {
      rank = running.rank;
    }
  }
  return rank;
}

void ReportModel::EndSelection() {
  PassEnds(std::numeric_limits<std::uint64_t>::max());
  for (Running& running : running_) StopRunning(&running);
  running_.clear();
}

std::uint64_t ReportModel::NeighborsFrom(std::uint64_t ticks) const {
  const std::uint64_t start = over_time_.start();
  if (over_time_.size() == 0 || ticks <= start) return 0;
  const std::uint64_t width = over_time_.width();
  std::uint64_t bucket = std::min<std::uint64_t>((ticks - start) / width, over_time_.size());
  for (std::uint64_t events = 0; bucket != 0 && events < kNeighbors;) {
    --bucket;
    for (std::size_t i = 1; i <= providers_.size(); ++i) events += over_time_.counts(i)[bucket];
  }
  return start + bucket * width;
}

void ReportModel::PassEnds(std::uint64_t ticks) {
  while (next_end_ < ends_.size() && ends_[next_end_] < ticks) {
    for (SingleEvent& event : waiting_) {
      const auto make = [&event] { return std::move(event); };
      if (!KeepFor(Reason::kNear, kMaxPlaces + next_end_, make)) {
        Sample(event.ticks, event.kind, make);
      }
    }
    waiting_.clear();
    after_end_ = kNeighbors;
    if (++next_end_ < ends_.size()) next_end_from_ = NeighborsFrom(ends_[next_end_]);
  }
}

std::optional<std::size_t> ReportModel::PlaceOf(std::uint64_t ticks) {
  while (next_place_ < places_.size() && places_[next_place_].until < ticks) ++next_place_;
  if (next_place_ < places_.size() && ticks >= places_[next_place_].from) return next_place_;
  if (after_end_ == 0) return std::nullopt;
  --after_end_;
  return kMaxPlaces + next_end_ - 1;
}

std::optional<std::size_t> ReportModel::InterestOf(std::uint64_t ticks) const {
  for (std::size_t i = 0; i < interests_.size(); ++i) {
    if (ticks >= interests_[i].first && ticks <= interests_[i].second) {
      return kMaxPlaces + kMaxEnds + i;
    }
  }
  return std::nullopt;
}

void ReportModel::Select(const nettrace::Event& event, const trace::ProcessNames& names) {
  const std::uint64_t ticks = event.timestamp;
  StartRunning(ticks);
  const std::size_t kind = KindOf(*event.metadata).kind;
  const std::size_t thread = ThreadOf(*event.thread, names).thread;
  const std::optional<std::size_t> rank =
      running_.empty() ? std::nullopt : RankOf(event, kind, thread);
  if (!IsInWindow(ticks)) return;
  ++in_window_;
  PassEnds(ticks);
  const auto make = [&] { return Single(event, kind, thread); };
  const bool is_error = trace::IsError(event.level());
  if (KeepFor(Reason::kError, is_error ? std::optional(kind) : std::nullopt, make) ||
      KeepFor(Reason::kActivity, rank, make) || KeepFor(Reason::kNear, PlaceOf(ticks), make)) {
    return;
  }
  if (next_end_ == ends_.size() || ticks < next_end_from_) return Sample(ticks, kind, make);
  // This event waits until it is known whether it is one of the last events before
  // ends_[next_end_].
  waiting_.push_back(make());
  if (waiting_.size() <= kNeighbors) return;
  SingleEvent first = std::move(waiting_.front());
  waiting_.pop_front();
  Sample(first.ticks, first.kind, [&first] { return std::move(first); });
}

template <typename Make>
bool ReportModel::KeepFor(Reason reason, std::optional<std::size_t> key, const Make& make) {
  if (!key || !single_events_.Wants(reason, *key)) return false;
  single_events_.Add(reason, *key, make());
  return true;
}

template <typename Make>
void ReportModel::Sample(std::uint64_t ticks, std::size_t kind, const Make& make) {
  if (!KeepFor(Reason::kNear, InterestOf(ticks), make)) KeepFor(Reason::kSample, kind, make);
}

SingleEvent ReportModel::Single(const nettrace::Event& event, std::size_t kind,
                                std::size_t thread) const {
  std::string json = ForScript(to_json_(event));
  if (json.size() > kMaxEventBytes) json = TooLarge(event, json.size());
  return {event.timestamp, kind, thread, trace::IsError(event.level()), std::move(json)};
}

std::string ReportModel::TooLarge(const nettrace::Event& event, std::size_t size) const {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutNumber(&json, "timestamp", event.timestamp);
  base::PutText(&json, "time", base::FormatUtc(reader_.TimeOf(event.timestamp)));
  base::PutText(&json, "provider", ShortName(event.metadata->provider));
  base::PutText(&json, "name", ShortName(trace::EventName(*event.metadata)));
  base::PutText(
      &json, "error",
      absl::StrCat("the ", size,
                   " bytes of JSON of this event are too large for this page; use nettrace "
                   "dump --json"));
  json.EndObject();
  return ForScript(base::Printable(std::string_view(buffer.GetString(), buffer.GetSize())));
}

}  // namespace tools::report
