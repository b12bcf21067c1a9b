#include "tests/support/nettrace/random_trace.h"

#include <iterator>
#include <tuple>
#include <utility>

#include "libnettrace-writer/core/traceevent.h"
#include "tests/support/nettrace/random_values.h"

namespace nettrace::testing {
namespace {

template <typename Map>
auto AnyOf(const Map& map, Randomly* random) {
  return *std::next(map.begin(), static_cast<std::ptrdiff_t>(random->Below(map.size())));
}

WriterOptions RandomOptions(Randomly* random) {
  WriterOptions options;
  options.traceevent_compatible = random->for_traceevent();
  options.event_block_size = 1 + random->CountBelow(random->OneIn(2) ? 300 : 20000);
  options.max_buffer_bytes = 1 + random->CountBelow(200'000);
  options.first_thread_index = ThreadIndex{1 + random->Number() / 2};
  // TraceEvent needs this because threads are removed: see WriterOptions::first_thread_index.
  if (random->for_traceevent()) {
    options.first_thread_index =
        ThreadIndex{internal::traceevent::kMinRemovableThreadIndex + random->Below(100)};
  }
  return options;
}

TraceInfo RandomInfo(unsigned seed, Randomly* random) {
  TraceInfo info;
  info.sync_time = absl::FromUnixMillis(static_cast<std::int64_t>(seed) * 1'234'567'891);
  info.sync_ticks = static_cast<std::int64_t>(random->Number() >> 1);
  info.ticks_per_second = 1 + static_cast<std::int64_t>(random->Number() >> 1);
  if (random->for_traceevent()) {
    // TraceEvent computes times in ticks of 100 ns, which must not overflow.
    static constexpr std::int64_t kFrequencies[] = {1000, 10'000'000, 1'000'000'000, 2'893'201'000};
    info.sync_ticks >>= 8;
    info.ticks_per_second = kFrequencies[random->Below(std::size(kFrequencies))];
  }
  info.key_values = random->KeyValues();
  return info;
}

}  // namespace

RandomTrace::RandomTrace(unsigned seed, RandomFor whom) : random_(seed, whom) {
  info_ = RandomInfo(seed, &random_);
  out_ = std::make_unique<WriterToString>(RandomOptions(&random_), info_);
  if (random_.for_traceevent()) now_ = static_cast<std::uint64_t>(info_.sync_ticks);
}

bool RandomTrace::Check(const absl::Status& status) {
  status_.Update(status);
  return status.ok();
}

void RandomTrace::Write(int steps) {
  while (steps-- > 0 && status_.ok()) Step();
  Check(writer().WriteSequencePoint(++now_));
  for (const auto& [thread, count] : pending_lost_) lost_ += count;
  Check(writer().Finish());
}

void RandomTrace::Step() {
  if (metadata_.empty() || random_.OneIn(50)) AddMetadata();
  if (threads_.empty() || random_.OneIn(50)) AddThread();
  if (random_.OneIn(100)) RemoveThread();
  if (random_.OneIn(100)) SequencePoint();
  if (random_.OneIn(200)) Check(writer().Flush());
  if (random_.OneIn(50)) AddLost();
  if (!threads_.empty() && !metadata_.empty()) WriteEvents();
}

EventMetadata RandomTrace::NewMetadata() {
  EventMetadata metadata = random_.Metadata();
  if (!random_.for_traceevent()) return metadata;
  // For TraceEvent, each (provider, id) has one meaning, and there are few providers. Names must be
  // printable. The opcode is set, because TraceEvent would otherwise derive it from the name.
  static constexpr const char* kProviders[] = {"Random", "Random-größe", "R"};
  metadata.provider = kProviders[random_.Below(std::size(kProviders))];
  metadata.event_id = static_cast<std::uint32_t>(1 + schemas_.size() * 7);
  metadata.name.insert(0, "N");
  metadata.opcode = metadata.opcode.value_or(0);
  return metadata;
}

void RandomTrace::AddMetadata() {
  EventMetadata metadata = NewMetadata();
  if (random_.OneIn(2) && !schemas_.empty()) {
    // Adds a row that was written before, unless it is still defined.
    metadata = schemas_[random_.CountBelow(schemas_.size())];
    for (const auto& [id, defined] : metadata_) {
      if (defined == metadata) return;
    }
  } else {
    schemas_.push_back(metadata);
  }
  const auto id = writer().AddMetadata(metadata);
  if (Check(id.status())) metadata_[*id] = std::move(metadata);
}

void RandomTrace::AddThread() {
  const ThreadInfo thread = random_.Thread();
  const auto index = writer().AddThread(thread);
  if (Check(index.status())) threads_[*index] = thread;
}

void RandomTrace::RemoveThread() {
  if (threads_.empty()) return;
  const ThreadIndex index = AnyOf(threads_, &random_).first;
  Check(writer().RemoveThread(index));
  threads_.erase(index);
  lost_ += pending_lost_[index];
  pending_lost_.erase(index);
}

void RandomTrace::SequencePoint() {
  const auto flags = static_cast<std::uint32_t>(random_.OneIn(2) ? 0 : random_.Below(4));
  now_ += 1 + (random_.Number() >> (random_.for_traceevent() ? 40 : 12));
  Check(writer().WriteSequencePoint(now_, flags));
  if ((flags & kSequencePointFlushThreads) != 0) threads_.clear();
  if ((flags & kSequencePointFlushMetadata) != 0) metadata_.clear();
  for (const auto& [thread, count] : pending_lost_) lost_ += count;
  pending_lost_.clear();
}

void RandomTrace::AddLost() {
  if (threads_.empty()) return;
  const ThreadIndex index = AnyOf(threads_, &random_).first;
  // TraceEvent counts all lost events of a trace in a number of 31 bits.
  const std::uint64_t count = random_.Number() >> (random_.for_traceevent() ? 44 : 34);
  Check(writer().AddLost(index, count));
  pending_lost_[index] += count;
}

void RandomTrace::Vary(WrittenEvent* event) {
  std::tie(event->row.thread, event->thread) = AnyOf(threads_, &random_);
  std::tie(event->row.metadata_id, event->metadata) = AnyOf(metadata_, &random_);
  event->row.processor =
      static_cast<std::uint32_t>(random_.for_traceevent() ? random_.Below(256) : random_.Number());
  if (random_.OneIn(20)) event->row.processor = kNoProcessor;
  event->labels = random_.Labels();
  event->stack = random_.Stack();
  const auto labels = writer().InternLabels(event->labels);
  const auto stack = writer().InternStack(event->stack);
  if (Check(labels.status())) event->row.label_list_id = *labels;
  if (Check(stack.status())) event->row.stack_id = *stack;
  event->json.reset();
  if (random_.for_traceevent() || !random_.OneIn(4)) {
    if (auto values = RandomValues(&random_, event->metadata.fields)) {
      event->payload = std::move(values->bytes);
      event->json = std::move(values->json);
      return;
    }
  }
  event->payload = random_.Bytes();
}

void RandomTrace::WriteEvents() {
  WrittenEvent event;
  std::tie(event.row.capture_thread, event.capture_thread) = AnyOf(threads_, &random_);
  do {
    if (event.row.thread == kNoThread || random_.OneIn(4)) Vary(&event);
    if (random_.for_traceevent()) {
      now_ += 1 + random_.Below(random_.OneIn(4) ? 5000 : 3);
    } else {
      now_ += random_.OneIn(4) ? random_.Number() >> 20 : random_.Below(3);
    }
    event.row.timestamp = now_;
    if (!Check(writer().WriteEvent(event.row, event.payload))) return;
    events_[event.row.capture_thread].push_back(event);
    lost_ += pending_lost_[event.row.capture_thread];
    pending_lost_.erase(event.row.capture_thread);
  } while (!random_.OneIn(6));
}

}  // namespace nettrace::testing
