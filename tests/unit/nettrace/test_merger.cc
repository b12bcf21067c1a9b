// The output of a Merger has all that is whole in its inputs, and Verify finds nothing in it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "nettrace/merger.h"
#include "nettrace/verifier.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/support/nettrace/writer_to_string.h"

namespace nettrace {
namespace {

using Step = Reader::Step;

std::unique_ptr<Reader> ReaderOf(std::span<const std::byte> stream) {
  auto reader = Reader::Open(std::make_unique<MemorySource>(stream));
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

Reader::Stats StatsOf(std::span<const std::byte> stream) {
  const auto reader = ReaderOf(stream);
  while (reader->Next() != Step::kEnd) {
  }
  return reader->stats();
}

// The merged streams, and what is in the output.
class Merged {
 public:
  explicit Merged(const std::vector<std::span<const std::byte>>& inputs, MergerOptions options = {})
      : merger_(std::move(options)) {
    for (const auto input : inputs) merger_.AddInput(ReaderOf(input));
    const auto keep = [this](std::span<const std::byte> bytes, std::size_t* taken) {
      bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
      *taken = bytes.size();
      return absl::OkStatus();
    };
    EXPECT_EQ(merger_.Run(std::make_unique<CallbackSink>(keep)), absl::OkStatus());
  }
  explicit Merged(const Bytes& input, MergerOptions options = {})
      : Merged(std::vector{input.span()}, std::move(options)) {}

  const Merger& merger() const { return merger_; }
  std::unique_ptr<Reader> Read() const { return ReaderOf(bytes_); }
  // Expects an output without a finding.
  Reader::Stats CleanStats() const {
    const auto report = Verify(std::make_unique<MemorySource>(bytes_));
    EXPECT_TRUE(report.ok()) << report.status();
    for (const Finding& finding : report->findings) {
      ADD_FAILURE() << finding.rule->name << ": " << finding.explanation;
    }
    const Reader::Stats stats = StatsOf(bytes_);
    EXPECT_TRUE(stats.complete);
    EXPECT_EQ(stats.events, merger_.stats().events);
    return stats;
  }

 private:
  Merger merger_;
  std::vector<std::byte> bytes_;
};

bool TakeNone(const Reader&, const Event&) { return false; }

void ExpectTheWholePartOfEveryCut(std::span<const std::byte> whole) {
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    SCOPED_TRACE(cut);
    const auto bytes = whole.first(cut);
    const Merged merged({bytes});
    const Reader::Stats stats = merged.CleanStats();
    const Reader::Stats expected = StatsOf(bytes);
    EXPECT_EQ(stats.events, expected.events);
    EXPECT_EQ(stats.lost, expected.lost);
    EXPECT_EQ(merged.merger().input(0).status().ok(), expected.complete);
  }
}

TEST(Merger, TheWholePartOfEveryCutIsACleanStream) {
  ExpectTheWholePartOfEveryCut(GoodStream().span());
}

TEST(Merger, TheWholePartOfEveryCutOfV4AndV5IsACleanV6Stream) {
  for (const char* version : {"v4", "v5"}) {
    std::ifstream file(std::filesystem::path(CORPUS_DIR) / version, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(bytes.empty()) << version;
    ExpectTheWholePartOfEveryCut(std::as_bytes(std::span(bytes)));
  }
}

TEST(Merger, LostEventsAreCounted) {
  const Merged merged(Start()
                          .Append(MetadataBlock({{}}))
                          .Append(ThreadBlock({1, 2}))
                          .Append(EventBlock({{.sequence = 4}, {.sequence = 10}}))
                          .Append(SequencePointBlock(3000, 0, {{1, 12}, {2, 7}})));
  const Reader::Stats stats = merged.CleanStats();
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 3u + 5 + 2 + 7);
}

TEST(Merger, LostEventsOfARemovedThreadWithoutEventsAreCounted) {
  const Merged merged(Start()
                          .Append(MetadataBlock({{}}))
                          .Append(ThreadBlock({1, 5'000'001}))
                          .Append(EventBlock({{}}))
                          .Append(Block(BlockKind::kRemoveThread, Bytes().Var(5'000'001).Var(11)))
                          .Append(End()));
  EXPECT_EQ(merged.CleanStats().lost, 11u);
}

// V6 has a DateTime of 16 bytes; only TraceEvent has not.
TEST(Merger, ADateTimeIsCopiedAsItIs) {
  const Merged merged(
      Start()
          .Append(MetadataBlock({{.fields = {FieldRow("f", Code(TypeCode::kDateTime))}}}))
          .Append(ThreadBlock({1}))
          .Append(EventBlock({{.payload = Bytes().Raw(std::string(16, '\1'))}}))
          .Append(End()));
  const auto reader = merged.Read();
  ASSERT_EQ(reader->Next(), Step::kEvent);
  EXPECT_EQ(reader->event().metadata->fields[0].type.code, TypeCode::kDateTime);
  EXPECT_EQ(reader->event().payload.size(), 16u);
}

// Whether a type has a fixed size is one question with one answer.
TEST(Merger, WhatVerifyFindsNoErrorInCanBeCopied) {
  const auto of_type = [](const Bytes& type) {
    return Start()
        .Append(MetadataBlock({{.fields = {FieldRow("f", type)}}}))
        .Append(ThreadBlock({1}))
        .Append(EventBlock({{.payload = Bytes().U32(0)}}))
        .Append(End());
  };
  int copied = 0;
  int refused = 0;
  for (unsigned code = 3; code <= static_cast<unsigned>(TypeCode::kBoolean8); ++code) {
    if (code == static_cast<unsigned>(TypeCode::kArray)) continue;
    Bytes element = Bytes().U8(code);
    if (code == static_cast<unsigned>(TypeCode::kRelLoc) ||
        code == static_cast<unsigned>(TypeCode::kDataLoc)) {
      element.Append(Code(TypeCode::kByte));
    }
    if (code == static_cast<unsigned>(TypeCode::kFixedLengthArray)) {
      element.Append(Code(TypeCode::kByte)).U16(2);
    }
    const Bytes stream = of_type(Code(TypeCode::kDataLoc).Append(element));
    const auto report = Verify(std::make_unique<MemorySource>(stream.span()));
    ASSERT_TRUE(report.ok());
    Merger merger;
    merger.AddInput(ReaderOf(stream.span()));
    EXPECT_EQ(merger.Run(std::make_unique<MemorySink>()).ok(), report->errors == 0)
        << "type code " << code;
    ++(report->errors == 0 ? copied : refused);
  }
  EXPECT_EQ(refused, 3) << "NullTerminatedUTF16String, VarInt and VarUInt";
  EXPECT_EQ(copied, 20);
}

// No event follows these losses that could tell of them.
TEST(Merger, LossesAtTheEndAreCountedThoughNoEventIsTaken) {
  const Merged merged(Start()
                          .Append(MetadataBlock({{}}))
                          .Append(ThreadBlock({1}))
                          .Append(EventBlock({{.sequence = 3}}))
                          .Append(SequencePointBlock(2000))
                          .Append(EventBlock({{.sequence = 8}}))
                          .Append(End()),
                      {.filter = TakeNone});
  const Reader::Stats stats = merged.CleanStats();
  EXPECT_EQ(stats.events, 0u);
  EXPECT_EQ(stats.lost, 2u + 4);
}

TEST(Merger, AnEventThatIsOutOfOrderIsLost) {
  const Merged merged(Start()
                          .Append(MetadataBlock({{}}))
                          .Append(ThreadBlock({1}))
                          .Append(EventBlock({{}}))
                          .Append(SequencePointBlock(3000))
                          .Append(EventBlock({{.sequence = 2, .timestamp = 2500}}))
                          .Append(End()));
  const Reader::Stats stats = merged.CleanStats();
  EXPECT_EQ(stats.events, 1u);
  EXPECT_EQ(stats.lost, 1u);
  EXPECT_EQ(merged.merger().out_of_order(0), 1u);
}

TEST(Merger, LossesThatTogetherAreMoreThanOneGapAreCounted) {
  constexpr std::uint32_t kGap = 1u << 30;
  const Merged merged(Start()
                          .Append(MetadataBlock({{}, {.id = 2, .event_id = 8}}))
                          .Append(ThreadBlock({1}))
                          .Append(EventBlock({{.metadata_id = 1},
                                              {.metadata_id = 2, .sequence = kGap + 2},
                                              {.metadata_id = 2, .sequence = 2 * kGap + 3},
                                              {.metadata_id = 1, .sequence = 3 * kGap + 4}}))
                          .Append(End()),
                      {.filter = TakeNone});
  const Reader::Stats stats = merged.CleanStats();
  EXPECT_EQ(stats.events, 0u);
  EXPECT_EQ(stats.lost, 3 * std::uint64_t{kGap});
}

TEST(Merger, AThreadIndexThatIsUsedAgainStaysTwoThreads) {
  constexpr std::uint64_t kIndex = 5'000'001;
  const auto thread = [](std::uint64_t pid, std::string_view name) {
    return Block(BlockKind::kThread, Bytes().Row(ThreadRowBytes(kIndex, pid, pid, name)));
  };
  const Merged merged(
      Start()
          .Append(MetadataBlock({{}}))
          .Append(thread(7, "first"))
          .Append(EventBlock({{.capture_thread = kIndex, .thread = kIndex}}))
          .Append(Block(BlockKind::kRemoveThread, Bytes().Var(kIndex).Var(1)))
          .Append(thread(8, "second"))
          .Append(EventBlock({{.capture_thread = kIndex, .thread = kIndex, .timestamp = 3000}}))
          .Append(End()));
  merged.CleanStats();
  const auto reader = merged.Read();
  std::vector<std::pair<std::string, std::uint64_t>> threads;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    const ThreadInfo& info = *reader->event().thread;
    threads.emplace_back(info.name.value_or(""), info.process_id.value_or(0));
  }
  EXPECT_EQ(threads,
            (std::vector<std::pair<std::string, std::uint64_t>>{{"first", 7}, {"second", 8}}));
}

TEST(Merger, EventsThatTheFilterLeavesOutAreNotLost) {
  const auto of_thread_2 = [](const Reader&, const Event& event) {
    return event.thread->thread_id == 4244;
  };
  const Reader::Stats stats = Merged(GoodStream(), {.filter = of_thread_2}).CleanStats();
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.lost, 0u);
}

TEST(Merger, TheClocksOfInputsAreBroughtTogether) {
  const auto one_event = [](std::int64_t sync, std::int64_t frequency, std::uint64_t time) {
    return Start({.sync_ticks = sync, .frequency = frequency})
        .Append(MetadataBlock({{}}))
        .Append(ThreadBlock({1}))
        .Append(EventBlock({{.timestamp = time}}))
        .Append(End());
  };
  // 2 seconds, and 1 second, after the same sync time.
  const Bytes later = one_event(1000, 1'000'000'000, 2'000'001'000);
  const Bytes earlier = one_event(5, 10, 15);
  const Reader::Stats stats = Merged({later.span(), earlier.span()}).CleanStats();
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.metadata, 1u) << "the rows of both inputs are the same";
  EXPECT_EQ(stats.first_timestamp, 1'000'001'000u);
  EXPECT_EQ(stats.last_timestamp, 2'000'001'000u);
}

TEST(Merger, TheOutputHasTheKeyValuesOfAllInputs) {
  const auto stream = [](std::string cpus, std::string pid, std::string key, std::string value) {
    testing::WriterToString out({}, {.sync_time = absl::FromUnixSeconds(1'700'000'000),
                                     .key_values = {{"HardwareThreadCount", std::move(cpus)},
                                                    {"ProcessId", std::move(pid)},
                                                    {std::move(key), std::move(value)}}});
    EXPECT_TRUE(out.writer->Finish().ok());
    return *out.written;
  };
  const std::string streams[] = {stream("2", "7", "A", "a"), stream("64", "7", "B", "b"),
                                 stream("8", "9", "A", "c")};
  std::vector<std::span<const std::byte>> inputs;
  for (const std::string& bytes : streams) inputs.push_back(testing::Span(bytes));
  EXPECT_EQ(Merged(inputs).Read()->trace().key_values,
            (KeyValues{{"HardwareThreadCount", "64"}, {"A", "a"}, {"B", "b"}}));
}

// The order of the inputs does not matter, even if the first one's clock began after the events of
// the other.
TEST(Merger, EventsFromBeforeTheFirstInputsClockKeepTheirTimes) {
  const auto two_events = [](int month, std::int64_t sync, std::uint64_t time) {
    return Start({.month = month, .sync_ticks = sync})
        .Append(MetadataBlock({{}}))
        .Append(ThreadBlock({1}))
        .Append(EventBlock({{.timestamp = time}, {.sequence = 2, .timestamp = time + 5}}))
        .Append(End());
  };
  const Bytes november = two_events(11, 1000, 2000);
  const Bytes october = two_events(10, 7'000'000, 7'000'500);
  for (const auto& inputs : {std::vector{november.span(), october.span()},
                             std::vector{october.span(), november.span()}}) {
    const Merged merged(inputs);
    merged.CleanStats();
    const auto reader = merged.Read();
    std::vector<absl::Duration> since_october;
    const absl::Time start =
        absl::FromCivil(absl::CivilSecond(2026, 10, 21, 10), absl::UTCTimeZone());
    while (reader->Next() == Step::kEvent) {
      since_october.push_back(reader->TimeOf(reader->event().timestamp) - start);
    }
    const absl::Duration half = absl::Milliseconds(500);
    const absl::Duration later = absl::Hours(24 * 31) + half;
    EXPECT_EQ(since_october,
              (std::vector{half + absl::Nanoseconds(500), half + absl::Nanoseconds(505),
                           later + absl::Nanoseconds(1000), later + absl::Nanoseconds(1005)}));
  }
}

TEST(Merger, NoEventOfAnIntervalThatDoesNotFitInMemoryIsLost) {
  Bytes one_interval = Start();
  one_interval.Append(MetadataBlock({{}})).Append(ThreadBlock({1, 2}));
  for (std::uint32_t thread : {1, 2}) {
    std::vector<EventFields> events;
    for (std::uint32_t i = 1; i <= 4; ++i) {
      events.push_back({.sequence = i,
                        .capture_thread = thread,
                        .thread = thread,
                        .timestamp = 2000 + 5 * i + thread});
    }
    one_interval.Append(EventBlock(events));
  }
  one_interval.Append(End());
  const Bytes other = GoodStream();
  const Reader::Stats stats =
      Merged({one_interval.span(), other.span()}, {.time_order = {.max_memory = 1}}).CleanStats();
  EXPECT_EQ(stats.events, 8u + 5);
  EXPECT_EQ(stats.lost, 0u);
}

TEST(Merger, EventsThatCannotBeSortedAreAnError) {
  const Bytes stream = GoodStream();
  Merger merger({.time_order = {.max_memory = 1, .temporary_directory = "/nowhere/at/all"}});
  merger.AddInput(ReaderOf(stream.span()));
  const absl::Status status = merger.Run(std::make_unique<MemorySink>());
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos) << status;
}

TEST(Merger, AnErrorOfTheSinkComesBack) {
  const Bytes stream = GoodStream();
  Merger merger;
  merger.AddInput(ReaderOf(stream.span()));
  const auto refuse = [](std::span<const std::byte>, std::size_t*) {
    return absl::ResourceExhaustedError("full");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(merger.Run(std::make_unique<CallbackSink>(refuse))));
}

TEST(Merger, NoInputIsAnError) {
  Merger merger;
  EXPECT_TRUE(absl::IsInvalidArgument(merger.Run(std::make_unique<MemorySink>())));
}

}  // namespace
}  // namespace nettrace
