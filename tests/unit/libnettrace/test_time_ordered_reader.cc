#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nettrace/time_ordered_reader.h"
#include "tests/support/allocations.h"
#include "tests/support/nettrace/random_trace.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/unit/libnettrace/trace_files.h"

namespace nettrace {
namespace {

using Step = TimeOrderedReader::Step;

TimeOrderedReader Ordered(std::span<const std::byte> bytes, const TimeOrderOptions& options = {}) {
  auto reader = Reader::Open(std::make_unique<MemorySource>(bytes));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return TimeOrderedReader(*std::move(reader), options);
}

std::string Hex(std::span<const std::byte> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string GuidText(const std::optional<Guid>& guid) { return guid ? Hex(*guid) : "-"; }

// Returns everything in an event that a reader can see.
std::string DescribeEvent(const Event& event) {
  return absl::StrCat(event.timestamp, " @", event.offset, " ", event.metadata->provider, "/",
                      event.metadata->event_id, " thread ", event.thread->thread_id.value_or(0),
                      " capture ", event.capture_thread->thread_id.value_or(0), " #",
                      event.sequence_number, " lost ", event.lost_before, " cpu ", event.processor,
                      " labels ", GuidText(event.labels->activity_id), " ",
                      GuidText(event.labels->related_activity_id), " level ", event.level(),
                      " stack ", Hex(event.stack), " payload ", Hex(event.payload));
}

struct Steps {
  std::vector<std::string> steps;
  std::uint64_t spilled = 0;
};

Steps StepsOf(std::span<const std::byte> bytes, const TimeOrderOptions& options = {}) {
  TimeOrderedReader ordered = Ordered(bytes, options);
  Steps result;
  for (Step step = ordered.Next(); step != Step::kEnd; step = ordered.Next()) {
    switch (step) {
      case Step::kEvent:
        result.steps.push_back(DescribeEvent(ordered.event()));
        break;
      case Step::kRemovedThread:
        result.steps.push_back(absl::StrCat("removed ",
                                            ToNumber(ordered.removed_thread().thread_index),
                                            " lost ", ordered.removed_thread().lost));
        break;
      default:
        result.steps.push_back(absl::StrCat("point ", ordered.sequence_point().timestamp));
        break;
    }
  }
  EXPECT_TRUE(ordered.sort_status().ok()) << ordered.sort_status();
  result.spilled = ordered.spilled_bytes();
  return result;
}

// Returns one interval with the events of four threads, one thread after another. In each thread,
// every second event has the time of the event before. The events have stacks, labels and payloads.
Bytes LongInterval(std::uint32_t events_per_thread, std::size_t payload_size = 8) {
  Bytes stream = Start();
  stream.Append(MetadataBlock({{}})).Append(ThreadBlock({1, 2, 3, 4}));
  stream.Append(LabelBlock(1)).Append(StackBlock(1, {0x401000, 0x402000}));
  for (const std::uint32_t thread : {1, 2, 3, 4}) {
    std::vector<EventFields> events;
    for (std::uint32_t i = 1; i <= events_per_thread; ++i) {
      Bytes payload;
      for (std::size_t at = 0; at < payload_size; ++at) payload.U8((i + thread + at) & 0xFF);
      events.push_back({.sequence = i,
                        .capture_thread = thread,
                        .thread = thread,
                        .stack_id = i % 2,
                        .timestamp = 2000 + i / 2 * 10,
                        .label_list_id = i % 3 == 0 ? 1u : 0,
                        .payload = payload});
      if (events.size() == 1000 || i == events_per_thread) {
        stream.Append(EventBlock(events));
        events.clear();
      }
    }
  }
  return stream.Append(SequencePointBlock(1'000'000'000)).Append(End());
}

TEST(TimeOrderedReader, SortsWithinAnIntervalAndKeepsReferences) {
  const Bytes stream = GoodStream();
  TimeOrderedReader ordered = Ordered(stream.span());
  std::vector<std::uint64_t> times;
  std::vector<std::size_t> stacks;
  for (Step step = ordered.Next(); step != Step::kEnd; step = ordered.Next()) {
    if (step == Step::kSequencePoint) times.push_back(0);
    if (step != Step::kEvent) continue;
    times.push_back(ordered.event().timestamp);
    stacks.push_back(ordered.event().stack.size());
    EXPECT_EQ(ordered.event().thread->process_id, 4242u);
  }
  EXPECT_EQ(times, (std::vector<std::uint64_t>{2000, 2005, 2010, 0, 2015, 2020, 0}));
  EXPECT_EQ(stacks, (std::vector<std::size_t>{0, 0, 16, 0, 0}));
  EXPECT_EQ(ordered.spilled_bytes(), 0u);
}

TEST(TimeOrderedReader, EventsOfOneTimeComeInFileOrder) {
  const Bytes stream = LongInterval(100);
  TimeOrderedReader ordered = Ordered(stream.span());
  std::uint64_t time = 0;
  std::uint64_t offset = 0;
  while (ordered.Next() == Step::kEvent) {
    const Event& event = ordered.event();
    EXPECT_TRUE(event.timestamp > time || (event.timestamp == time && event.offset > offset));
    time = event.timestamp;
    offset = event.offset;
  }
}

TEST(TimeOrderedReader, EventsThatDoNotFitInMemoryHaveTheSameOrder) {
  const Bytes stream = LongInterval(3000);
  const Steps in_memory = StepsOf(stream.span());
  ASSERT_EQ(in_memory.steps.size(), 12001u);
  ASSERT_EQ(in_memory.spilled, 0u);
  for (const std::size_t max_memory : {1u, 50'000u, 1'000'000u}) {
    const Steps spilled = StepsOf(stream.span(), {.max_memory = max_memory});
    EXPECT_GT(spilled.spilled, 0u) << max_memory;
    EXPECT_EQ(spilled.steps, in_memory.steps) << max_memory;
  }
}

TEST(TimeOrderedReader, PayloadsLargerThanTheBuffersComeBackWhole) {
  const Bytes stream = LongInterval(40, 60'000);
  const Steps in_memory = StepsOf(stream.span());
  const Steps spilled = StepsOf(stream.span(), {.max_memory = 200'000});
  EXPECT_GT(spilled.spilled, 4'000'000u);
  EXPECT_EQ(spilled.steps, in_memory.steps);
}

TEST(TimeOrderedReader, RandomTracesComeInTheSameOrderWithAndWithoutAFile) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    testing::RandomTrace trace(seed, testing::RandomFor::kAnyReader);
    trace.Write(300);
    const auto bytes = std::as_bytes(std::span(trace.bytes()));
    EXPECT_EQ(StepsOf(bytes, {.max_memory = 2000}).steps, StepsOf(bytes).steps) << seed;
  }
}

TEST(TimeOrderedReader, LabelsOfOldVersionsComeBackFromTheFile) {
  std::ifstream file(testing::CorpusFile("v4"), std::ios::binary);
  ASSERT_TRUE(file.is_open());
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const auto bytes = std::as_bytes(std::span(text));
  const Steps in_memory = StepsOf(bytes);
  const Steps spilled = StepsOf(bytes, {.max_memory = 1});
  EXPECT_GT(spilled.spilled, 0u);
  EXPECT_NE(in_memory.steps[0].find("labels 000102"), std::string::npos) << in_memory.steps[0];
  EXPECT_EQ(spilled.steps, in_memory.steps);
}

// Returns the maximum memory that reading `stream` takes, in bytes.
std::size_t MemoryFor(const Bytes& stream, std::uint64_t* spilled) {
  tests::Allocations& all = tests::allocations;
  const std::size_t before = all.held;
  all.most_held = before;
  TimeOrderedReader ordered = Ordered(stream.span(), {.max_memory = 1 << 20});
  while (ordered.Next() != Step::kEnd) {
  }
  EXPECT_TRUE(ordered.reader().status().ok());
  *spilled = ordered.spilled_bytes();
  return all.most_held - before;
}

TEST(TimeOrderedReader, MemoryDoesNotGrowWithTheInterval) {
  if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "ThreadSanitizer does not let allocations be counted";
  std::uint64_t spilled = 0;
  const std::size_t small = MemoryFor(LongInterval(4'000), &spilled);
  EXPECT_GT(spilled, 1u << 20);
  const std::size_t large = MemoryFor(LongInterval(20'000), &spilled);
  EXPECT_GT(spilled, 10u << 20);
  EXPECT_LT(large, small + (1 << 20));
  EXPECT_LT(large, 4u << 20);
}

TEST(TimeOrderedReader, EventsBeforeDamageAreInOrder) {
  const Bytes stream = LongInterval(3000);
  const auto cut = stream.span().first(stream.size() - 1000);
  const Steps in_memory = StepsOf(cut);
  EXPECT_EQ(in_memory.steps.size(), 11000u);
  EXPECT_TRUE(std::is_sorted(
      in_memory.steps.begin(), in_memory.steps.end(),
      [](const std::string& a, const std::string& b) { return std::stoull(a) < std::stoull(b); }));
  EXPECT_EQ(StepsOf(cut, {.max_memory = 50'000}).steps, in_memory.steps);
}

TEST(TimeOrderedReader, TheTemporaryFileLeavesNoName) {
  char folder[] = "/tmp/time_order_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const Bytes stream = LongInterval(3000);
  TimeOrderedReader ordered =
      Ordered(stream.span(), {.max_memory = 50'000, .temporary_directory = folder});
  ASSERT_EQ(ordered.Next(), Step::kEvent);
  EXPECT_GT(ordered.spilled_bytes(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(rmdir(folder), 0);
}

TEST(TimeOrderedReader, NamesAMissingFolderInTheError) {
  const Bytes stream = LongInterval(3000);
  TimeOrderedReader ordered =
      Ordered(stream.span(), {.max_memory = 50'000, .temporary_directory = "/nowhere/at/all"});
  while (ordered.Next() != Step::kEnd) {
  }
  EXPECT_NE(ordered.sort_status().message().find("/nowhere/at/all"), std::string::npos)
      << ordered.sort_status();
  EXPECT_EQ(ordered.Next(), Step::kEnd);
}

// A limit on the size of files simulates a disk that is full when the temporary file has a few
// sorted parts of the interval.
TEST(TimeOrderedReader, FullDiskReturnsReadEventsInOrderAndThenTheError) {
  const Bytes stream = LongInterval(3000);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = 1'000'000;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limited), 0);
  TimeOrderedReader ordered = Ordered(stream.span(), {.max_memory = 300'000});
  std::uint64_t events = 0;
  std::uint64_t time = 0;
  Step step = ordered.Next();
  for (; step == Step::kEvent; step = ordered.Next()) {
    ++events;
    EXPECT_GE(ordered.event().timestamp, time);
    time = ordered.event().timestamp;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(step, Step::kEnd);
  EXPECT_FALSE(ordered.sort_status().ok());
  EXPECT_EQ(events, ordered.reader().stats().events);
  EXPECT_GT(events, 0u);
  EXPECT_LT(events, 12'000u);
}

}  // namespace
}  // namespace nettrace
