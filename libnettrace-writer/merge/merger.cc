#include "nettrace/merger.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "libnettrace-writer/core/traceevent.h"
#include "libnettrace-writer/merge/clock.h"
#include "libnettrace-writer/merge/metadata_copies.h"
#include "libnettrace-writer/merge/stream_copier.h"

namespace nettrace {
namespace {

using internal::ClockedTrace;
using internal::MetadataCopies;
using internal::StreamCopier;
using Step = TimeOrderedReader::Step;

// Maximum number of events between two sequence points, which readers must sort together.
constexpr std::uint64_t kIntervalEvents = 1 << 20;

// Returns options whose only limit is that on threads, so that the writer accepts each event of an
// input, even an event that TraceEvent cannot decode. The readers of the inputs already limit the
// memory.
WriterOptions CopyOptions() {
  WriterOptions options;
  options.max_labels = options.max_stacks = options.max_metadata =
      std::numeric_limits<std::int32_t>::max();
  options.max_label_bytes = options.max_stack_bytes = std::numeric_limits<std::size_t>::max() / 2;
  options.max_interval_events = options.max_interval_bytes =
      std::numeric_limits<std::uint64_t>::max() / 2;
  options.first_thread_index = ThreadIndex{internal::traceevent::kMinRemovableThreadIndex};
  options.traceevent_compatible = false;
  return options;
}

// Returns whether the key describes one recording, so that a merged file has no value for it if the
// inputs have different values.
bool IsOfOneSource(std::string_view key) {
  return key == kKeyProcessId || key == kKeyHostName || key == kKeyBootId;
}

// Adds the key/values of another input. Of two values of HardwareThreadCount, keeps the larger one:
// readers size tables by it, so it must be above the CPU numbers of all inputs. If a key for which
// IsOfOneSource is true has two values, replaces them by "", so that CommonTrace removes the key.
void AddKeyValues(const KeyValues& more, KeyValues* to) {
  for (const auto& [key, value] : more) {
    const auto same = [&key = key](const auto& entry) { return entry.first == key; };
    const auto found = std::find_if(to->begin(), to->end(), same);
    std::uint64_t ours = 0;
    std::uint64_t theirs = 0;
    if (found == to->end()) {
      to->emplace_back(key, value);
    } else if (key == kKeyHardwareThreadCount && absl::SimpleAtoi(value, &theirs) &&
               (!absl::SimpleAtoi(found->second, &ours) || theirs > ours)) {
      found->second = value;
    } else if (IsOfOneSource(key) && found->second != value) {
      found->second.clear();
    }
  }
}

// Returns the keys that identify the host of a trace and its boot, with values of bounded length.
KeyValues HostKeys(const TraceInfo& trace) {
  constexpr std::size_t kMaxValue = 256;
  KeyValues keys;
  for (const char* const key : {kKeyHostName, kKeyBootId}) {
    const auto found = std::find_if(trace.key_values.begin(), trace.key_values.end(),
                                    [key](const auto& entry) { return entry.first == key; });
    if (found == trace.key_values.end() || found->second.empty()) continue;
    keys.emplace_back(key, found->second.substr(0, kMaxValue));
  }
  return keys;
}

// Returns the Trace block for a copy of all `traces`, at least one.
TraceInfo CommonTrace(const std::vector<ClockedTrace>& traces) {
  TraceInfo common = internal::CommonClock(traces);
  for (const ClockedTrace& trace : traces) {
    // Uses the largest pointer size: stacks of 8-byte pointers do not fit in a trace of 4-byte
    // pointers.
    common.pointer_size = std::max(common.pointer_size, trace.info.pointer_size);
    if (&trace != &traces.front()) AddKeyValues(trace.info.key_values, &common.key_values);
  }
  std::erase_if(common.key_values, [](const auto& entry) {
    return IsOfOneSource(entry.first) && entry.second.empty();
  });
  return common;
}

// Passes bytes to another sink, and records whether that sink has failed, so that Run() does not
// attribute its error to an input.
class WatchedSink : public Sink {
 public:
  WatchedSink(std::unique_ptr<Sink> sink, bool* failed) : sink_(std::move(sink)), failed_(failed) {}
  absl::Status Append(std::span<const std::byte> bytes, std::size_t* taken) override {
    return Watch(sink_->Append(bytes, taken));
  }
  absl::Status Flush() override { return Watch(sink_->Flush()); }
  absl::Status Sync() override { return Watch(sink_->Sync()); }
  absl::Status Finish() override { return Watch(sink_->Finish()); }
  std::uint64_t Undelivered() const override { return sink_->Undelivered(); }

 private:
  absl::Status Watch(absl::Status status) {
    if (!status.ok()) *failed_ = true;
    return status;
  }
  std::unique_ptr<Sink> sink_;
  bool* failed_;
};

using NotAsItWas = Merger::NotAsItWas;

struct Input {
  std::unique_ptr<TimeOrderedReader> reader = nullptr;  // null while the input is not open
  Merger::OpenReader open = nullptr;                    // null for an input that stays open
  // Trace block of the input; ReadFirst replaces a sync_time that is not a date.
  TraceInfo trace = {};
  KeyValues thread_keys = {};  // keys that the input's thread rows get
  std::unique_ptr<StreamCopier> copier = nullptr;
  Step first = Step::kEnd;  // first step of the input, which ReadFirst reads for its time
  bool has_first = false;   // true until `first` is copied
  bool has_event = false;
  std::uint64_t timestamp = 0;  // time of the current event, in the output's clock
  // A lower bound of the timestamps of an input that is not open yet, in the output's clock.
  std::uint64_t start = 0;
  absl::Status status = absl::OkStatus();  // status of the reader; set at the end of the input
  NotAsItWas not_as_it_was = {};           // set at the end of the input
  std::vector<AddedEvent> added = {};      // the events of add_at_end; set at the end of the input
};

// Returns the time of the input's first step, in the input's clock; no value if the step has no
// time. No event of the input is earlier than this time.
std::optional<std::uint64_t> FirstTimestamp(const Input& input) {
  if (input.first == Step::kEvent) return input.reader->event().timestamp;
  if (input.first == Step::kSequencePoint) return input.reader->sequence_point().timestamp;
  return std::nullopt;
}

}  // namespace

struct Merger::Impl {
  explicit Impl(MergerOptions merger_options) : options(std::move(merger_options)) {}

  absl::Status Run(std::unique_ptr<Sink> sink);
  absl::Status Start(std::unique_ptr<Sink> sink);
  absl::StatusOr<TraceInfo> ReadFirst();
  void FindThreadKeys() const;
  absl::Status CopyAll();
  absl::Status AddAtEnd(std::uint64_t timestamp, bool* added);
  absl::Status Finish();
  absl::Status Open(Input* input) const;
  absl::Status OpenNext();
  bool MustOpenNext() const;
  Step Next(Input* input);
  absl::Status End(Input* input);
  absl::Status Advance(Input* input);
  absl::Status CopyEvent(Input* input);
  // Writes the events of MergerOptions::add_after that follow the input's event.
  absl::Status AddAfter(Input* input);
  absl::Status CopySequencePoint(Input* input);
  absl::Status WritePendingPoint(std::uint64_t next_timestamp);
  absl::Status WriteSequencePoint(std::uint64_t timestamp);
  Input* Earliest();

  const MergerOptions options;
  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<std::size_t> with_event;  // indices of the inputs with a current event, ascending
  std::vector<std::size_t> later;       // indices of the inputs to open later, the next one last
  std::unique_ptr<Writer> writer;
  std::unique_ptr<MetadataCopies> metadata;
  bool sink_failed = false;
  std::optional<std::size_t> current_input;
  std::uint64_t last_timestamp = 0;
  // Time of the last sequence point that was read, if it is not written yet. WritePendingPoint
  // writes it when the next event is known.
  std::optional<std::uint64_t> pending_point;
  std::uint64_t last_point = 0;
  std::uint64_t lost_at_point = 0;
  std::uint64_t events_since_point = 0;
};

absl::Status Merger::Impl::Run(std::unique_ptr<Sink> sink) {
  if (inputs.empty()) return absl::InvalidArgumentError("there is no input; add one with AddInput");
  absl::Status status = Start(std::move(sink));
  if (status.ok()) status = CopyAll();
  if (status.ok()) status = Finish();
  if (sink_failed) current_input.reset();
  return status;
}

// Reads the first step of each input, and returns the output's Trace block.
absl::StatusOr<TraceInfo> Merger::Impl::ReadFirst() {
  std::vector<ClockedTrace> traces;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    current_input = i;
    Input* const input = inputs[i].get();
    if (absl::Status status = Open(input); !status.ok()) return status;
    input->trace = input->reader->reader().trace();
    if (!internal::IsDate(input->trace.sync_time)) {
      if (inputs.size() > 1) {
        return absl::InvalidArgumentError(
            "the Trace block has no valid date; 'nettrace repair' adds one");
      }
      input->trace.sync_time = absl::UnixEpoch();
    }
    input->first = input->reader->Next();
    input->has_first = !input->open;
    traces.push_back({input->trace, FirstTimestamp(*input)});
    if (input->open) input->reader.reset();
  }
  current_input.reset();
  FindThreadKeys();
  const TraceInfo common = CommonTrace(traces);
  for (std::size_t i = inputs.size(); i-- > 0;) {
    if (!inputs[i]->open) continue;
    const std::optional<std::uint64_t> first = traces[i].first_timestamp;
    inputs[i]->start =
        first ? internal::ConvertTimestamp(*first, inputs[i]->trace, common) : kMaxTimestamp;
    later.push_back(i);
  }
  std::stable_sort(later.begin(), later.end(), [this](std::size_t a, std::size_t b) {
    return inputs[a]->start > inputs[b]->start;
  });
  return common;
}

// Sets the keys that thread rows of each input get: its host and boot if the inputs differ in them,
// else none.
void Merger::Impl::FindThreadKeys() const {
  bool is_same = true;
  for (const auto& input : inputs) {
    input->thread_keys = HostKeys(input->trace);
    is_same = is_same && input->thread_keys == inputs.front()->thread_keys;
  }
  if (!is_same) return;
  for (const auto& input : inputs) input->thread_keys.clear();
}

// Opens the input, unless it is open.
absl::Status Merger::Impl::Open(Input* input) const {
  if (input->reader != nullptr) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Reader>> reader = input->open();
  if (!reader.ok()) return reader.status();
  input->reader = std::make_unique<TimeOrderedReader>(*std::move(reader), options.time_order);
  return absl::OkStatus();
}

absl::Status Merger::Impl::Start(std::unique_ptr<Sink> sink) {
  const absl::StatusOr<TraceInfo> trace = ReadFirst();
  if (!trace.ok()) return trace.status();
  auto created = Writer::Create(std::make_unique<WatchedSink>(std::move(sink), &sink_failed),
                                *trace, CopyOptions());
  if (!created.ok()) return created.status();
  writer = *std::move(created);
  metadata = std::make_unique<MetadataCopies>(writer.get());
  const std::uint64_t start_time =
      options.start ? internal::TimestampAt(*options.start, *trace) : 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i]->copier = std::make_unique<StreamCopier>(
        inputs[i]->trace, *trace, start_time, inputs[i]->thread_keys,
        internal::CodeIds(i, inputs.size()), writer.get(), metadata.get());
  }
  return absl::OkStatus();
}

absl::Status Merger::Impl::CopyAll() {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->open) continue;
    current_input = i;
    if (absl::Status status = Advance(inputs[i].get()); !status.ok()) return status;
    if (inputs[i]->has_event) with_event.push_back(i);
  }
  while (true) {
    Input* const input = Earliest();
    if (MustOpenNext()) {
      if (absl::Status status = OpenNext(); !status.ok()) return status;
      continue;
    }
    if (input == nullptr) break;
    if (absl::Status status = CopyEvent(input); !status.ok()) return status;
    if (absl::Status status = Advance(input); !status.ok()) return status;
    if (!input->has_event) std::erase(with_event, *current_input);
  }
  current_input.reset();
  return absl::OkStatus();
}

// Returns the input with the earliest event, and stores its index in current_input. Returns nullptr
// if all open inputs are at their ends.
Input* Merger::Impl::Earliest() {
  Input* earliest = nullptr;
  for (const std::size_t i : with_event) {
    Input* const input = inputs[i].get();
    if (earliest == nullptr || input->timestamp < earliest->timestamp) {
      earliest = input;
      current_input = i;
    }
  }
  return earliest;
}

// Returns whether the next input must be opened, because it may have an event that is no later than
// the current event. Must be called after Earliest().
bool Merger::Impl::MustOpenNext() const {
  if (later.empty()) return false;
  return with_event.empty() || inputs[later.back()]->start <= inputs[*current_input]->timestamp;
}

absl::Status Merger::Impl::OpenNext() {
  const std::size_t index = later.back();
  later.pop_back();
  current_input = index;
  Input* const input = inputs[index].get();
  if (absl::Status status = Open(input); !status.ok()) return status;
  if (absl::Status status = Advance(input); !status.ok()) return status;
  if (input->has_event) {
    with_event.insert(std::upper_bound(with_event.begin(), with_event.end(), index), index);
  }
  return absl::OkStatus();
}

absl::Status Merger::Impl::AddAtEnd(std::uint64_t timestamp, bool* added) {
  // If an input's times reach the end of the format's range, no timestamp is left for the events of
  // add_at_end. They are not written then.
  if (!options.add_at_end || timestamp > internal::traceevent::kMaxEventTimestamp) {
    return absl::OkStatus();
  }
  for (const auto& input : inputs) {
    if (!input->open) input->added = options.add_at_end(input->reader->reader());
    for (const AddedEvent& event : input->added) {
      const absl::StatusOr<MetadataId> row_id =
          metadata->IdOf(event.metadata, PayloadEncoding::kV6);
      if (!row_id.ok()) return row_id.status();
      ThreadInfo info;
      info.name = event.thread;
      const absl::StatusOr<ThreadIndex> thread = writer->AddThread(info);
      if (!thread.ok()) return thread.status();
      EventRow row;
      row.metadata_id = *row_id;
      row.capture_thread = row.thread = *thread;
      row.processor = kNoProcessor;
      row.timestamp = timestamp;
      if (absl::Status status = writer->WriteEvent(row, event.payload); !status.ok()) return status;
      *added = true;
    }
  }
  return absl::OkStatus();
}

// Writes the events of add_at_end and the last sequence point, and finishes the stream. The
// sequence point contains the last sequence number of each capture thread, which shows losses after
// the last event.
absl::Status Merger::Impl::Finish() {
  std::uint64_t end = std::max(last_timestamp, pending_point.value_or(0));
  bool added = false;
  if (absl::Status status = AddAtEnd(end, &added); !status.ok()) return status;
  if ((added || writer->stats().lost > lost_at_point) && last_point < kMaxTimestamp) {
    end = std::max(end, last_point + 1);
  }
  if (absl::Status status = WriteSequencePoint(end); !status.ok()) return status;
  return writer->Finish();
}

Step Merger::Impl::Next(Input* input) {
  return std::exchange(input->has_first, false) ? input->first : input->reader->Next();
}

// Moves to the input's next event. Copies the sequence points and removed threads before it.
absl::Status Merger::Impl::Advance(Input* input) {
  input->has_event = false;
  while (true) {
    absl::Status status;
    switch (Next(input)) {
      case Step::kEvent:
        input->has_event = true;
        input->timestamp = input->copier->Convert(input->reader->event().timestamp);
        return absl::OkStatus();
      case Step::kSequencePoint:
        status = CopySequencePoint(input);
        break;
      case Step::kRemovedThread:
        status = input->copier->CopyRemovedThread(input->reader->removed_thread());
        break;
      case Step::kEnd:
        return End(input);
    }
    if (!status.ok()) return status;
  }
}

// Ends an input that was read to its end. If Run() has opened the input, stores its results and
// closes it. Returns the error of the temporary file for sorting, or OK.
absl::Status Merger::Impl::End(Input* input) {
  absl::Status status = input->reader->sort_status();
  if (!input->open) return status;
  input->status = input->reader->reader().status();
  if (options.add_at_end) input->added = options.add_at_end(input->reader->reader());
  const StreamCopier& copier = *input->copier;
  input->not_as_it_was = {copier.moved(), copier.not_kept(), copier.why_not_kept()};
  input->copier.reset();
  input->reader.reset();
  return status;
}

absl::Status Merger::Impl::CopyEvent(Input* input) {
  const Event& event = input->reader->event();
  if (absl::Status status = WritePendingPoint(input->timestamp); !status.ok()) return status;
  last_timestamp = std::max(last_timestamp, input->timestamp);
  if (options.filter && !options.filter(input->reader->reader(), event)) {
    return input->copier->SkipEvent(event);
  }
  if (events_since_point >= kIntervalEvents) {
    if (absl::Status status = WriteSequencePoint(last_timestamp); !status.ok()) return status;
  }
  ++events_since_point;
  if (absl::Status status = input->copier->CopyEvent(event, last_point); !status.ok()) {
    return status;
  }
  return options.add_after ? AddAfter(input) : absl::OkStatus();
}

absl::Status Merger::Impl::AddAfter(Input* input) {
  const Event& event = input->reader->event();
  for (const AddedEvent& added : options.add_after(input->reader->reader(), event)) {
    const absl::StatusOr<MetadataId> row_id = metadata->IdOf(added.metadata, PayloadEncoding::kV6);
    if (!row_id.ok()) return row_id.status();
    absl::Status status = input->copier->AddAfter(event, last_point, *row_id, added.payload);
    if (!status.ok()) return status;
    ++events_since_point;
  }
  return absl::OkStatus();
}

absl::Status Merger::Impl::CopySequencePoint(Input* input) {
  const SequencePoint& point = input->reader->sequence_point();
  if (absl::Status status = input->copier->CopySequencePoint(point); !status.ok()) return status;
  // The output has the sequence points of a single input. Those of several inputs do not match each
  // other, so the output gets one at the time of the last event that was copied.
  const std::uint64_t time =
      inputs.size() == 1 ? input->copier->Convert(point.timestamp) : last_timestamp;
  pending_point = std::max(time, last_timestamp);
  return absl::OkStatus();
}

// Writes the pending sequence point, if there is one. `next_timestamp` is the time of the next
// event. In an invalid file, the point may be later than the next event. The point is then written
// at the time of the last event before the point. If the next event is also earlier than that time,
// no point is written. Readers then sort the events before and after the point together.
absl::Status Merger::Impl::WritePendingPoint(std::uint64_t next_timestamp) {
  if (!pending_point) return absl::OkStatus();
  std::uint64_t time = *std::exchange(pending_point, std::nullopt);
  if (next_timestamp < time) time = last_timestamp;
  return next_timestamp < time ? absl::OkStatus() : WriteSequencePoint(time);
}

// Writes a sequence point if it is later than the previous one.
absl::Status Merger::Impl::WriteSequencePoint(std::uint64_t timestamp) {
  if (timestamp <= last_point) return absl::OkStatus();
  last_point = timestamp;
  lost_at_point = writer->stats().lost;
  last_timestamp = std::max(last_timestamp, timestamp);
  events_since_point = 0;
  return writer->WriteSequencePoint(timestamp);
}

Merger::Merger(MergerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Merger::~Merger() = default;

void Merger::AddInput(std::unique_ptr<Reader> input) {
  impl_->inputs.push_back(std::make_unique<Input>());
  impl_->inputs.back()->reader =
      std::make_unique<TimeOrderedReader>(std::move(input), impl_->options.time_order);
}

void Merger::AddInput(OpenReader open) {
  impl_->inputs.push_back(std::make_unique<Input>());
  impl_->inputs.back()->open = std::move(open);
}

absl::Status Merger::Run(std::unique_ptr<Sink> sink) { return impl_->Run(std::move(sink)); }

const Reader& Merger::input(std::size_t index) const {
  return impl_->inputs[index]->reader->reader();
}

const absl::Status& Merger::status(std::size_t index) const {
  const Input& input = *impl_->inputs[index];
  return input.open ? input.status : input.reader->reader().status();
}

bool Merger::has_date(std::size_t index) const {
  const Input& input = *impl_->inputs[index];
  return internal::IsDate((input.open ? input.trace : input.reader->reader().trace()).sync_time);
}

Merger::NotAsItWas Merger::not_as_it_was(std::size_t index) const {
  const auto& copier = impl_->inputs[index]->copier;
  if (copier == nullptr) return impl_->inputs[index]->not_as_it_was;
  return {copier->moved(), copier->not_kept(), copier->why_not_kept()};
}

std::optional<std::size_t> Merger::failed_input() const { return impl_->current_input; }

const Writer::Stats& Merger::stats() const {
  static const Writer::Stats kNone;
  return impl_->writer == nullptr ? kNone : impl_->writer->stats();
}

}  // namespace nettrace
