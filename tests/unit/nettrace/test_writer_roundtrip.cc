// Random traces: what is written is what the reader reads.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <random>

#include "nettrace/reader.h"
#include "nettrace/writer.h"
#include "writer_testing.h"

namespace nettrace {
namespace {

class Randomly {
 public:
  explicit Randomly(unsigned seed) : random_(seed) {}

  std::uint64_t Below(std::uint64_t end) { return random_() % end; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  // All magnitudes are as likely.
  std::uint64_t Number() { return random_() >> Below(64); }

  std::string Text() {
    static constexpr std::string_view kPieces[] = {
        "a", "Zz", "\xC3\xA9", "\xE2\x82\xAC", "\0", "\xF0\x9F\x98\x80"};
    std::string text;
    for (std::uint64_t n = Below(OneIn(10) ? 200 : 6); n > 0; --n) text += kPieces[Below(6)];
    return text;
  }

  std::array<std::byte, 16> Sixteen() {
    std::array<std::byte, 16> bytes;
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

  nettrace::KeyValues KeyValues() {
    nettrace::KeyValues key_values(OneIn(3) ? Below(4) : 0);
    for (auto& [key, value] : key_values) {
      key = Text();
      value = Text();
    }
    return key_values;
  }

  template <typename T, typename Make>
  void Maybe(std::optional<T>* value, Make make) {
    if (OneIn(2)) *value = static_cast<T>(make());
  }

  nettrace::Type Type(int depth) {
    static constexpr int kScalars[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,
                                       12, 13, 14, 17, 18, 20, 21, 23, 26};
    if (depth > 4 || !OneIn(3)) {
      return nettrace::Type::Simple(static_cast<TypeCode>(kScalars[Below(std::size(kScalars))]));
    }
    const auto scalar = nettrace::Type::Simple(static_cast<TypeCode>(kScalars[Below(12)]));
    switch (Below(5)) {
      case 0:
        return nettrace::Type::Array(Type(depth + 1));
      case 1:
        return nettrace::Type::FixedLengthArray(Type(depth + 1),
                                                static_cast<std::uint16_t>(Below(65536)));
      case 2:
        return nettrace::Type::RelLoc(scalar);
      case 3:
        return nettrace::Type::DataLoc(scalar);
      default:
        return nettrace::Type::Object(Fields(depth + 1));
    }
  }

  std::vector<Field> Fields(int depth) {
    std::vector<Field> fields(Below(6));
    for (Field& field : fields) field = {Text(), Type(depth)};
    return fields;
  }

  EventMetadata Metadata() {
    EventMetadata metadata;
    metadata.provider = Text();
    metadata.event_id = static_cast<std::uint32_t>(Number());
    metadata.name = Text();
    metadata.fields = Fields(1);
    Maybe(&metadata.opcode, [&] { return Number(); });
    Maybe(&metadata.keywords, [&] { return Number(); });
    Maybe(&metadata.level, [&] { return Number(); });
    Maybe(&metadata.version, [&] { return Number(); });
    Maybe(&metadata.message_template, [&] { return Text(); });
    Maybe(&metadata.description, [&] { return Text(); });
    Maybe(&metadata.provider_guid, [&] { return Sixteen(); });
    metadata.key_values = KeyValues();
    return metadata;
  }

  ThreadInfo Thread() {
    ThreadInfo thread;
    Maybe(&thread.name, [&] { return Text(); });
    Maybe(&thread.process_id, [&] { return Number(); });
    Maybe(&thread.thread_id, [&] { return Number(); });
    thread.key_values = KeyValues();
    return thread;
  }

  nettrace::Labels Labels() {
    nettrace::Labels labels;
    if (OneIn(3)) return labels;
    Maybe(&labels.activity_id, [&] { return Sixteen(); });
    Maybe(&labels.related_activity_id, [&] { return Sixteen(); });
    Maybe(&labels.trace_id, [&] { return Sixteen(); });
    Maybe(&labels.span_id, [&] { return Number(); });
    Maybe(&labels.opcode, [&] { return Number(); });
    Maybe(&labels.keywords, [&] { return Number(); });
    Maybe(&labels.level, [&] { return Below(6); });
    Maybe(&labels.version, [&] { return Number(); });
    labels.strings = KeyValues();
    labels.integers.resize(Below(3));
    for (auto& [key, value] : labels.integers) {
      key = Text();
      value = static_cast<std::int64_t>(OneIn(2) ? Number() : ~Number());
    }
    return labels;
  }

  std::vector<std::uint64_t> Stack() {
    std::vector<std::uint64_t> stack(OneIn(2) ? 0 : Below(30));
    for (std::uint64_t& frame : stack) frame = Number();
    return stack;
  }

  std::vector<std::byte> Bytes() {
    std::vector<std::byte> bytes(Below(OneIn(20) ? 5000 : 60));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
    return bytes;
  }

 private:
  std::mt19937_64 random_;
};

// An event as it was given to the writer.
struct Written {
  EventRow row;
  EventMetadata metadata;
  ThreadInfo thread;
  ThreadInfo capture_thread;
  Labels labels;
  std::vector<std::uint64_t> stack;
  std::vector<std::byte> payload;
};

// Writes a trace of whatever, and keeps what it wrote, for each capture thread in order.
class RandomTrace {
 public:
  RandomTrace(unsigned seed, Randomly* random) : random_(random) {
    info_.sync_time = absl::FromUnixMillis(static_cast<std::int64_t>(seed) * 1'234'567'891);
    info_.sync_ticks = static_cast<std::int64_t>(random->Number() >> 1);
    info_.ticks_per_second = 1 + static_cast<std::int64_t>(random->Number() >> 1);
    info_.key_values = random->KeyValues();
    WriterOptions options;
    options.reference_reader_strict = false;
    options.event_block_size = 1 + random->Below(random->OneIn(2) ? 300 : 20000);
    options.max_buffer_bytes = 1 + random->Below(200'000);
    options.first_thread_index = 1 + random->Number() / 2;
    out_ = std::make_unique<testing::WriterToString>(options, info_);
  }

  void Write(int steps) {
    while (steps-- > 0) Step();
    EXPECT_TRUE(out_->writer->Finish().ok());
  }

  std::map<std::uint64_t, std::deque<Written>> events;
  std::uint64_t lost = 0;  // that a reader can know of
  const TraceInfo& info() const { return info_; }
  const std::string& bytes() const { return *out_->written; }
  const Writer::Stats& stats() const { return out_->writer->stats(); }

 private:
  Writer& writer() { return *out_->writer; }

  template <typename Map>
  auto AnyOf(const Map& map) {
    return *std::next(map.begin(), static_cast<std::ptrdiff_t>(random_->Below(map.size())));
  }

  void Step() {
    if (metadata_.empty() || random_->OneIn(50)) AddMetadata();
    if (threads_.empty() || random_->OneIn(50)) AddThread();
    if (random_->OneIn(100)) RemoveThread();
    if (random_->OneIn(100)) SequencePoint();
    if (random_->OneIn(200)) {
      EXPECT_TRUE(writer().Flush().ok());
    }
    if (random_->OneIn(50)) AddLost();
    if (!threads_.empty() && !metadata_.empty()) WriteEvents();
  }

  void AddMetadata() {
    const EventMetadata metadata = random_->Metadata();
    const auto id = writer().AddMetadata(metadata);
    ASSERT_TRUE(id.ok()) << id.status();
    metadata_[*id] = metadata;
  }

  void AddThread() {
    const ThreadInfo thread = random_->Thread();
    const auto index = writer().AddThread(thread);
    ASSERT_TRUE(index.ok()) << index.status();
    threads_[*index] = thread;
  }

  void RemoveThread() {
    const std::uint64_t index = AnyOf(threads_).first;
    ASSERT_TRUE(writer().RemoveThread(index).ok());
    threads_.erase(index);
    lost += pending_lost_[index];
    pending_lost_.erase(index);
  }

  void SequencePoint() {
    const auto flags = static_cast<std::uint32_t>(random_->OneIn(2) ? 0 : random_->Below(4));
    now_ += 1 + (random_->Number() >> 12);
    ASSERT_TRUE(writer().WriteSequencePoint(now_, flags).ok());
    if ((flags & kSequencePointFlushThreads) != 0) threads_.clear();
    if ((flags & kSequencePointFlushMetadata) != 0) metadata_.clear();
    for (const auto& [thread, count] : pending_lost_) lost += count;
    pending_lost_.clear();
  }

  void AddLost() {
    if (threads_.empty()) return;
    const std::uint64_t index = AnyOf(threads_).first;
    const std::uint64_t count = random_->Number() >> 34;
    ASSERT_TRUE(writer().AddLost(index, count).ok());
    pending_lost_[index] += count;
  }

  void WriteEvents() {
    Written event;
    const auto capture = AnyOf(threads_);
    event.capture_thread = capture.second;
    event.row.capture_thread = capture.first;
    do {
      if (event.row.thread == 0 || random_->OneIn(4)) {
        const auto thread = AnyOf(threads_);
        event.row.thread = thread.first;
        event.thread = thread.second;
        const auto metadata = AnyOf(metadata_);
        event.row.metadata_id = metadata.first;
        event.metadata = metadata.second;
        event.row.processor = static_cast<std::uint32_t>(random_->Number());
        event.labels = random_->Labels();
        event.row.label_list_id = *writer().InternLabels(event.labels);
        event.stack = random_->Stack();
        event.row.stack_id = *writer().InternStack(event.stack);
        event.payload = random_->Bytes();
      }
      now_ += random_->OneIn(4) ? random_->Number() >> 20 : random_->Below(3);
      event.row.timestamp = now_;
      const absl::Status status = writer().WriteEvent(event.row, event.payload);
      ASSERT_TRUE(status.ok()) << status;
      events[event.row.capture_thread].push_back(event);
      lost += pending_lost_[event.row.capture_thread];
      pending_lost_.erase(event.row.capture_thread);
    } while (!random_->OneIn(6));
  }

  Randomly* random_;
  TraceInfo info_;
  std::unique_ptr<testing::WriterToString> out_;
  std::map<std::uint32_t, EventMetadata> metadata_;
  std::map<std::uint64_t, ThreadInfo> threads_;
  std::map<std::uint64_t, std::uint64_t> pending_lost_;
  std::uint64_t now_ = 0;
};

class WriterRoundTrip : public ::testing::TestWithParam<unsigned> {};

TEST_P(WriterRoundTrip, WhatIsWrittenIsRead) {
  Randomly random(GetParam());
  RandomTrace trace(GetParam(), &random);
  trace.Write(1000);
  if (HasFatalFailure()) return;

  auto reader = Reader::Open(std::make_unique<MemorySource>(testing::Span(trace.bytes())));
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->trace().sync_time, trace.info().sync_time);
  EXPECT_EQ((*reader)->trace().sync_ticks, trace.info().sync_ticks);
  EXPECT_EQ((*reader)->trace().ticks_per_second, trace.info().ticks_per_second);
  EXPECT_EQ((*reader)->trace().key_values, trace.info().key_values);

  Event event;
  absl::StatusOr<bool> more = true;
  while ((more = (*reader)->Next(&event)).ok() && *more) {
    std::deque<Written>& expected_events = trace.events[event.capture_thread_index];
    ASSERT_FALSE(expected_events.empty());
    const Written& expected = expected_events.front();
    EXPECT_EQ(*event.metadata, expected.metadata);
    EXPECT_EQ(event.metadata_id, expected.row.metadata_id);
    EXPECT_EQ(*event.thread, expected.thread);
    EXPECT_EQ(*event.capture_thread, expected.capture_thread);
    EXPECT_EQ(event.thread_index, expected.row.thread);
    EXPECT_EQ(event.processor, expected.row.processor);
    EXPECT_EQ(event.timestamp, expected.row.timestamp);
    EXPECT_EQ(*event.labels, expected.labels);
    const auto stack = std::as_bytes(std::span(expected.stack));
    EXPECT_TRUE(std::equal(event.stack.begin(), event.stack.end(), stack.begin(), stack.end()));
    EXPECT_TRUE(std::equal(event.payload.begin(), event.payload.end(), expected.payload.begin(),
                           expected.payload.end()));
    expected_events.pop_front();
  }
  ASSERT_TRUE(more.ok()) << more.status();
  for (const auto& [thread, rest] : trace.events) EXPECT_TRUE(rest.empty()) << thread;
  const Reader::Stats& stats = (*reader)->stats();
  EXPECT_TRUE(stats.complete);
  EXPECT_EQ(stats.events, trace.stats().events);
  EXPECT_EQ(stats.lost, trace.lost);
  EXPECT_EQ(stats.threads, trace.stats().threads);
  EXPECT_EQ(stats.metadata, trace.stats().metadata);
  EXPECT_EQ(stats.sequence_points, trace.stats().sequence_points);
  EXPECT_EQ(stats.bytes, trace.stats().bytes);
}

INSTANTIATE_TEST_SUITE_P(Seeds, WriterRoundTrip, ::testing::Range(1U, 101U));

}  // namespace
}  // namespace nettrace
