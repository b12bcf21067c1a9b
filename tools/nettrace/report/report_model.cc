#include "tools/nettrace/report/report_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/json_text.h"
#include "tools/base/text.h"
#include "tools/trace/event_name.h"

namespace tools::report {
namespace {

constexpr char kOthers[] = "(others)";

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
  // Does not cut within a character.
  while (size > kMaxName - 4 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return absl::StrCat(std::string(text.substr(0, size)), "…");
}

std::string ForScript(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  // The escaped characters occur only within JSON strings. Printable has escaped U+2028 and U+2029.
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

ReportModel::ReportModel(const nettrace::Reader& reader, const Window& window, ToJson to_json)
    : reader_(reader), window_(window), to_json_(std::move(to_json)) {
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

void ReportModel::OnEvent(const nettrace::Event& event, const trace::ProcessNames& names) {
  const std::uint64_t ticks = event.timestamp;
  AddTime(ticks);
  all_.Add(ticks);
  payload_bytes_ += event.payload.size();
  const auto [kind, provider] = KindOf(*event.metadata);
  kinds_[kind].Add(ticks);
  kinds_[kind].payload_bytes += event.payload.size();
  const auto [thread, process] = ThreadOf(*event.thread, names);
  threads_[thread].Add(ticks);
  processes_[process].Add(ticks);
  over_time_.Add(1 + provider, ticks, 1);
  of_threads_.Add(thread, ticks, 1);
  if (trace::BeginsActivity(event)) BeginActivity(event, kind, thread);
  if (trace::EndsActivity(event)) EndActivity(event);
  KeepSingle(event, kind, thread);
}

void ReportModel::OnLoss(const nettrace::ThreadInfo& capture_thread, std::uint64_t count,
                         std::uint64_t ticks) {
  if (count == 0) return;
  AddTime(ticks);
  lost_ += count;
  over_time_.Add(0, ticks, count);
  std::string name = "?";
  if (capture_thread.name) {
    name = ShortName(*capture_thread.name);
  } else if (capture_thread.thread_id) {
    name = absl::StrCat("thread ", *capture_thread.thread_id);
  }
  const std::size_t index = IndexOf(&losses_by_name_, kMaxRows, name);
  if (AddRow(&losses_, index)) losses_[index].of = index == kMaxRows ? kOthers : name;
  losses_[index].count += count;
}

ReportModel::KindRows ReportModel::KindOf(const nettrace::EventMetadata& metadata) {
  const auto known = kinds_of_file_.find(&metadata);
  if (known != kinds_of_file_.end()) return known->second;
  KindRows rows;
  const std::pair<std::string, std::string> name = {ShortName(metadata.provider),
                                                    ShortName(trace::EventName(metadata))};
  rows.kind = IndexOf(&kinds_by_name_, kMaxRows, name);
  if (AddRow(&kinds_, rows.kind)) {
    kinds_[rows.kind].provider = rows.kind == kMaxRows ? kOthers : name.first;
    kinds_[rows.kind].name = rows.kind == kMaxRows ? kOthers : name.second;
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
  const std::size_t process = IndexOf(&processes_by_pid_, kMaxRows, thread.process_id);
  const std::string process_name = ShortName(names.NameOf(thread));
  if (AddRow(&processes_, process) && process != kMaxRows) {
    processes_[process].pid = thread.process_id;
  }
  if (process == kMaxRows) {
    processes_[process].name = kOthers;
  } else if (!process_name.empty()) {
    processes_[process].name = process_name;
  }
  const std::string name = thread.name ? ShortName(*thread.name) : "";
  const ThreadKey key = {process, thread.thread_id, thread.thread_id ? "" : name};
  const std::size_t index = IndexOf(&threads_by_id_, kMaxRows, key);
  if (AddRow(&threads_, index)) {
    of_threads_.AddSeries();
    if (index == kMaxRows) {
      threads_[index].name = kOthers;
    } else {
      threads_[index].tid = thread.thread_id;
      threads_[index].process = process;
    }
  }
  if (index != kMaxRows && !name.empty()) threads_[index].name = name;
  return threads_of_file_.emplace(&thread, ThreadRows{index, process}).first->second;
}

std::size_t ReportModel::DurationsOf(std::size_t kind) {
  const std::size_t index = IndexOf(&durations_by_kind_, kMaxDurations, kind);
  if (AddRow(&durations_, index) && index != kMaxDurations) durations_[index].kind = kind;
  return index;
}

void ReportModel::BeginActivity(const nettrace::Event& event, std::size_t kind,
                                std::size_t thread) {
  const std::size_t durations = DurationsOf(kind);
  ++durations_[durations].begun;
  open_.Add(event, {event.timestamp, durations, kind, thread, event.labels->related_activity_id});
}

void ReportModel::EndActivity(const nettrace::Event& event) {
  const std::optional<Open> open = open_.Take(event);
  if (!open) return;
  const absl::Time begin = reader_.TimeOf(open->begin);
  const absl::Time end = reader_.TimeOf(event.timestamp);
  durations_[open->durations].histogram.Add(end - begin);
  if ((window_.from && end < *window_.from) || (window_.until && begin >= *window_.until)) return;
  if (!activities_.Next()) return;
  activities_.Add({open->begin, std::max(open->begin, event.timestamp), open->kind, open->thread,
                   *event.labels->activity_id, open->related},
                  1);
}

void ReportModel::KeepSingle(const nettrace::Event& event, std::size_t kind, std::size_t thread) {
  if (window_.from || window_.until) {
    const absl::Time time = reader_.TimeOf(event.timestamp);
    if ((window_.from && time < *window_.from) || (window_.until && time >= *window_.until)) return;
  }
  if (!single_events_.Next()) return;
  std::string json = ForScript(to_json_(event));
  if (json.size() > kMaxEventBytes) json = TooLarge(event, json.size());
  const std::size_t size = json.size() + sizeof(SingleEvent);
  single_events_.Add({event.timestamp, kind, thread, std::move(json)}, size);
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
