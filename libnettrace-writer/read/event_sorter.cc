#include "libnettrace-writer/read/event_sorter.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <type_traits>

namespace nettrace::internal {
namespace {

constexpr std::size_t kPageSize = 256 * 1024;
constexpr std::size_t kMinRunBuffer = 16 * 1024;
constexpr std::size_t kMaxRunBuffer = 128 * 1024;

// Records are copied bytewise to the file, and back into the same process, so pointers in them stay
// valid.
static_assert(std::is_trivially_copyable_v<Event>);

}  // namespace

EventSorter::EventSorter(std::size_t max_memory, std::string directory)
    : max_memory_(max_memory), file_(std::move(directory)) {}

absl::Status EventSorter::Add(const Event& event) {
  absl::Status spilled;
  if (record_bytes_ + keys_.size() * sizeof(Key) >= max_memory_ && !keys_.empty()) {
    spilled = Spill();
  }
  const bool legacy = event.payload_encoding == PayloadEncoding::kLegacy;
  const std::size_t header_size = sizeof(Event) + (legacy ? sizeof(LegacyIds) : 0);
  std::byte* const record = NewRecord(event.timestamp, header_size + event.payload.size());
  std::memcpy(record, &event, sizeof event);
  if (legacy) {
    const LegacyIds ids = {event.labels->activity_id, event.labels->related_activity_id};
    std::memcpy(record + sizeof event, &ids, sizeof ids);
  }
  if (!event.payload.empty()) {
    std::memcpy(record + header_size, event.payload.data(), event.payload.size());
  }
  return spilled;
}

std::byte* EventSorter::NewRecord(std::uint64_t timestamp, std::size_t size) {
  if (pages_.empty()) pages_.emplace_back();
  if (pages_[page_].size - page_used_ < size) {
    if (page_used_ != 0) {
      record_bytes_ += pages_[page_].size - page_used_;
      if (++page_ == pages_.size()) pages_.emplace_back();
    }
    page_used_ = 0;
    Page& page = pages_[page_];
    if (page.size < size) {
      page.size = std::max(size, kPageSize);
      page.bytes = std::make_unique_for_overwrite<std::byte[]>(page.size);
    }
  }
  const Key key = {timestamp, static_cast<std::uint32_t>(page_),
                   static_cast<std::uint32_t>(page_used_)};
  keys_sorted_ = keys_sorted_ && (keys_.empty() || keys_.back().timestamp <= timestamp);
  keys_.push_back(key);
  page_used_ += size;
  record_bytes_ += size;
  return pages_[key.page].bytes.get() + key.start;
}

void EventSorter::SortKeys() {
  if (!keys_sorted_) std::sort(keys_.begin(), keys_.end());
  keys_sorted_ = true;
}

std::span<const std::byte> EventSorter::RecordAt(const Key& key) const {
  const std::byte* const record = pages_[key.page].bytes.get() + key.start;
  Event event;
  std::memcpy(&event, record, sizeof event);
  const bool legacy = event.payload_encoding == PayloadEncoding::kLegacy;
  return {record, sizeof event + (legacy ? sizeof(LegacyIds) : 0) + event.payload.size()};
}

// Writes the events in memory as a run. After an error, they are still in memory.
absl::Status EventSorter::Spill() {
  SortKeys();
  const std::uint64_t start = file_.size();
  for (const Key& key : keys_) {
    if (absl::Status status = file_.Append(RecordAt(key)); !status.ok()) return status;
  }
  if (absl::Status status = file_.Flush(); !status.ok()) return status;
  runs_.push_back({start, file_.size(), {}, 0});
  spilled_bytes_ += file_.size() - start;
  keys_.clear();
  record_bytes_ = page_ = page_used_ = 0;
  // Frees the pages that were allocated for one event of more than kPageSize.
  std::erase_if(pages_, [](const Page& page) { return page.size > kPageSize; });
  return absl::OkStatus();
}

void EventSorter::Sort() {
  SortKeys();
  if (runs_.empty()) return;
  run_buffer_size_ = std::clamp(max_memory_ / 4 / runs_.size(), kMinRunBuffer, kMaxRunBuffer);
  for (std::size_t run = 0; run <= runs_.size(); ++run) {
    if (!PushHead(run)) return;
  }
}

// Reads from the file until `size` bytes are available at run->bytes[run->start]. The run must have
// that many bytes left, and `size` must not exceed run_buffer_size_. Returns false if the file
// cannot be read; status_ is then the error.
bool EventSorter::Load(Run* run, std::size_t size) {
  if (run->size() >= size) return true;
  const std::size_t kept = run->size();
  std::copy(run->bytes.begin() + static_cast<std::ptrdiff_t>(run->start), run->bytes.end(),
            run->bytes.begin());
  const auto more = static_cast<std::size_t>(
      std::min<std::uint64_t>(run->end - run->next, run_buffer_size_ - kept));
  run->start = 0;
  run->bytes.resize(kept + more);
  status_ = file_.Read(run->next, std::span(run->bytes).subspan(kept));
  run->next += more;
  return status_.ok();
}

// Adds the next event of run `index`, if there is one, to heads_. If `index` is runs_.size(), adds
// the next event in memory. Returns false after an error.
bool EventSorter::PushHead(std::size_t index) {
  Head head = {0, index};
  if (index == runs_.size()) {
    if (next_key_ == keys_.size()) return true;
    head.timestamp = keys_[next_key_].timestamp;
  } else {
    Run& run = runs_[index];
    if (run.size() == 0 && run.next == run.end) return true;
    if (!Load(&run, sizeof(Event))) return false;
    Event event;
    std::memcpy(&event, run.bytes.data() + run.start, sizeof event);
    head.timestamp = event.timestamp;
  }
  heads_.push_back(head);
  std::push_heap(heads_.begin(), heads_.end(), std::greater<>());
  return true;
}

// Copies the event of a record to `*event`, and in V4 and V5 its activity ids to legacy_labels_.
// The caller must set the location of the payload.
void EventSorter::TakeHeader(const std::byte* record, Event* event) {
  std::memcpy(event, record, sizeof *event);
  if (event->payload_encoding != PayloadEncoding::kLegacy) return;
  LegacyIds ids;
  std::memcpy(&ids, record + sizeof *event, sizeof ids);
  legacy_labels_.activity_id = ids.activity_id;
  legacy_labels_.related_activity_id = ids.related_activity_id;
  event->labels = &legacy_labels_;
}

// Takes the run's next record, whose Event part must be loaded. The payload is in the run's buffer
// until the next call. A payload larger than that buffer is in one buffer that all runs share, so
// that memory stays bounded for many runs with large payloads.
bool EventSorter::TakeFromRun(Run* run, Event* event) {
  std::memcpy(event, run->bytes.data() + run->start, sizeof *event);
  const bool legacy = event->payload_encoding == PayloadEncoding::kLegacy;
  const std::size_t header_size = sizeof *event + (legacy ? sizeof(LegacyIds) : 0);
  const std::size_t payload_size = event->payload.size();
  const bool is_large = header_size + payload_size > run_buffer_size_;
  if (!Load(run, is_large ? header_size : header_size + payload_size)) return false;
  TakeHeader(run->bytes.data() + run->start, event);
  run->start += header_size;
  if (!is_large) {
    event->payload = {run->bytes.data() + run->start, payload_size};
    run->start += payload_size;
    return true;
  }
  const std::uint64_t offset = run->next - run->size();
  large_payload_.resize(payload_size);
  status_ = file_.Read(offset, large_payload_);
  event->payload = large_payload_;
  run->bytes.clear();
  run->start = 0;
  run->next = offset + payload_size;
  return status_.ok();
}

bool EventSorter::Next(Event* event) {
  if (!status_.ok()) return false;
  if (!runs_.empty()) {
    if (taken_run_ && !PushHead(*taken_run_)) return false;
    taken_run_.reset();
    if (heads_.empty()) return false;
    std::pop_heap(heads_.begin(), heads_.end(), std::greater<>());
    const std::size_t run = heads_.back().run;
    heads_.pop_back();
    taken_run_ = run;
    if (run < runs_.size()) return TakeFromRun(&runs_[run], event);
  }
  if (next_key_ == keys_.size()) return false;
  const Key& key = keys_[next_key_++];
  const std::span<const std::byte> record = RecordAt(key);
  TakeHeader(record.data(), event);
  event->payload = record.last(event->payload.size());
  return true;
}

void EventSorter::Clear() {
  keys_.clear();
  next_key_ = record_bytes_ = page_ = page_used_ = 0;
  keys_sorted_ = true;
  std::erase_if(pages_, [](const Page& page) { return page.size > kPageSize; });
  heads_.clear();
  taken_run_.reset();
  large_payload_ = {};
  if (!runs_.empty()) {
    runs_.clear();
    file_.Clear();
  }
}

}  // namespace nettrace::internal
