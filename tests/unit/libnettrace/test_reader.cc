#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/support/source_root.h"
#include "tests/unit/libnettrace/annotated_bytes.h"
#include "tests/unit/libnettrace/trace_files.h"

namespace nettrace {
namespace {

using testing::OpenBytes;
using Step = Reader::Step;

void ReadAll(Reader* reader) {
  while (reader->Next() != Step::kEnd) {
  }
}

// Reads all of `stream`, expects it to be complete, and returns its statistics.
Reader::Stats StatsOf(const Bytes& stream) {
  auto reader = OpenBytes(stream.span());
  ReadAll(reader.get());
  EXPECT_TRUE(reader->status().ok()) << reader->status();
  return reader->stats();
}

std::string ReasonOf(const Bytes& stream) {
  auto reader = OpenBytes(stream.span());
  ReadAll(reader.get());
  EXPECT_FALSE(reader->status().ok());
  return reader->damage() ? reader->damage()->reason : "";
}

// Returns the beginning of a stream, with the rows that an event needs.
Bytes Prologue() { return Start().Append(MetadataBlock({{}})).Append(ThreadBlock({1, 2})); }

TEST(Reader, GivesEveryColumnOfAnEvent) {
  const Bytes stream = GoodStream();
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent);
  const Event& event = reader->event();
  EXPECT_EQ(event.metadata->provider, "Provider");
  EXPECT_EQ(event.metadata->name, "Event");
  EXPECT_EQ(event.metadata->event_id, 7u);
  EXPECT_EQ(event.sequence_number, 1u);
  EXPECT_EQ(event.timestamp, 2000u);
  EXPECT_EQ(event.thread->process_id, 4242u);
  EXPECT_EQ(event.thread->thread_id, 4243u);
  EXPECT_EQ(event.thread->name, "worker");
  EXPECT_EQ(event.labels->activity_id->front(), std::byte{0x11});
  EXPECT_EQ(event.level(), 2) << "the label overrides the metadata's 4";
  EXPECT_EQ(event.payload.size(), 4u);
  ASSERT_EQ(reader->Next(), Step::kEvent);
  EXPECT_EQ(reader->event().stack.size(), 16u);
  EXPECT_EQ(reader->event().level(), 4);
  EXPECT_FALSE(reader->event().labels->activity_id.has_value());
}

TEST(Reader, ThreadsWithoutAProcessBelongToThatOfTheTrace) {
  const auto start = [](std::string_view process) {
    Bytes content = TraceContent();
    const std::size_t count_at = content.size() - std::string("HardwareThreadCount_4_").size() - 4;
    Bytes with_process = Bytes().Raw(
        std::string_view(reinterpret_cast<const char*>(content.span().data()), count_at));
    with_process.U32(1).String("ProcessId").String(process);
    return StreamHeader().Append(Block(BlockKind::kTrace, with_process));
  };
  const auto process_of = [](Bytes stream, std::uint64_t thread) {
    Bytes threads;
    threads.Row(ThreadRowBytes(1, 4242, 1)).Row(Bytes().Var(2).U8(3).Var(77));
    stream.Append(MetadataBlock({{}})).Append(Block(BlockKind::kThread, threads));
    stream.Append(EventBlock({{.thread = thread}})).Append(End());
    auto reader = OpenBytes(stream.span());
    EXPECT_EQ(reader->Next(), Step::kEvent);
    return reader->event().thread->process_id;
  };
  EXPECT_EQ(process_of(start("555"), 2), 555u);
  EXPECT_EQ(process_of(start("555"), 1), 4242u);
  EXPECT_EQ(process_of(start("none"), 2), std::nullopt);
  EXPECT_EQ(process_of(Start(), 2), std::nullopt);
}

TEST(Reader, CountsTheContentsOfAStream) {
  const Reader::Stats stats = StatsOf(GoodStream());
  EXPECT_EQ(stats.events, 5u);
  EXPECT_EQ(stats.lost, 0u);
  EXPECT_EQ(stats.sequence_points, 2u);
  EXPECT_EQ(stats.threads, 2u);
  EXPECT_EQ(stats.metadata, 2u);
  EXPECT_EQ(stats.first_timestamp, 2000u);
  EXPECT_EQ(stats.last_timestamp, 2020u);
  EXPECT_EQ(stats.blocks[static_cast<int>(BlockKind::kEvent)], 4u);
  EXPECT_TRUE(stats.complete);
}

// Returns a complete stream. It has `blocks` event blocks of 100 numbered events each, and a
// sequence point after each block.
Bytes NumberedStream(std::uint32_t blocks) {
  Bytes stream = Prologue();
  std::uint32_t number = 0;
  for (std::uint32_t block = 0; block < blocks; ++block) {
    std::vector<EventFields> events;
    for (int i = 0; i < 100; ++i) {
      ++number;
      events.push_back({.sequence = number,
                        .timestamp = 2000 + std::uint64_t{number},
                        .payload = Bytes().U32(number).U64(0)});
    }
    stream.Append(EventBlock(events)).Append(SequencePointBlock(2000 + number, 0, {{1, number}}));
  }
  return stream.Append(End());
}

TEST(ReaderThatSkipsDamage, ReadsTheRestAndCountsTheLosses) {
  constexpr std::uint64_t kEvents = 4000;
  const Bytes whole = NumberedStream(40);
  const std::size_t first = Prologue().size();
  const std::size_t size = whole.size() - 4 - first;
  const std::size_t last = whole.size() - 4 - SequencePointBlock(0, 0, {{1, kEvents}}).size();
  std::uint64_t missing = 0;
  constexpr int kPlaces = 200;
  for (int place = 0; place < kPlaces; ++place) {
    std::vector<std::byte> bytes(whole.span().begin(), whole.span().end());
    const std::size_t at = first + size * static_cast<std::size_t>(place) / kPlaces;
    for (std::size_t i = 0; i < 64 && at + i < bytes.size() - 4; ++i) {
      bytes[at + i] = static_cast<std::byte>(0x55 + 37 * i);
    }
    auto reader = OpenBytes(bytes, {.skip_damage = true});
    ReadAll(reader.get());
    const Reader::Stats& stats = reader->stats();
    EXPECT_TRUE(reader->status().ok()) << at << " " << reader->status();
    // If the last sequence point is damaged, the file does not count as complete: the zeros of the
    // EndOfStream block could also be those of a cut file.
    EXPECT_EQ(stats.complete, at + 64 <= last) << at;
    // At most two blocks are lost, or some events whose payload alone is damaged.
    EXPECT_GE(stats.events, kEvents - 200) << at;
    // If the size of a payload is damaged, a few rows are read as part of this payload. Only a gap
    // in the numbers shows that they are missing.
    if (kEvents - stats.events < 10) continue;
    ASSERT_FALSE(reader->skipped().empty()) << at;
    std::uint64_t skipped = 0;
    for (const SkippedPart& part : reader->skipped()) skipped += part.events;
    EXPECT_NEAR(static_cast<double>(skipped), static_cast<double>(kEvents - stats.events), 100)
        << at << " " << reader->skipped().front().reason;
    missing += kEvents - stats.events;
  }
  EXPECT_GT(missing, 0U);
  EXPECT_LT(missing, 100U * kPlaces);
}

TEST(ReaderThatSkipsDamage, FindsNoEndInAFileThatWasCut) {
  constexpr std::uint64_t kEvents = 300;
  const Bytes whole = NumberedStream(3);
  for (std::size_t size = Prologue().size(); size < whole.size(); ++size) {
    auto reader = OpenBytes(whole.span().first(size), {.skip_damage = true});
    ReadAll(reader.get());
    EXPECT_FALSE(reader->stats().complete) << size;
    EXPECT_LE(reader->stats().events, kEvents);
  }
}

TEST(ReaderThatSkipsDamage, KeepsEventsWithUnreadableLabels) {
  const Bytes unknown_kind =
      Block(BlockKind::kLabelList, Bytes().U32(1).U32(1).U8(30 | 0x80).U8(2));
  const Bytes stream = Prologue()
                           .Append(unknown_kind)
                           .Append(EventBlock({{.label_list_id = 1}}))
                           .Append(SequencePointBlock(2001, 0, {{1, 1}}))
                           .Append(End());
  auto reader = OpenBytes(stream.span(), {.skip_damage = true});
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  EXPECT_FALSE(reader->event().labels->activity_id.has_value());
  ReadAll(reader.get());
  EXPECT_TRUE(reader->stats().complete);
  ASSERT_EQ(reader->skipped().size(), 1U);
  EXPECT_EQ(reader->skipped()[0].reason, "a kind of label is unknown");
  EXPECT_EQ(reader->skipped()[0].events, 0U);
}

TEST(ReaderThatSkipsDamage, TakesTheLaterOfTwoDefinitions) {
  const Bytes level_3 = Block(BlockKind::kLabelList, Bytes().U32(1).U32(1).U8(9 | 0x80).U8(3));
  const Bytes stream = Prologue()
                           .Append(LabelBlock(1))
                           .Append(EventBlock({{.label_list_id = 1}}))
                           .Append(level_3)
                           .Append(EventBlock({{.sequence = 2, .label_list_id = 1}}))
                           .Append(End());
  auto reader = OpenBytes(stream.span(), {.skip_damage = true});
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  const Labels* const first = reader->event().labels;
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  EXPECT_EQ(reader->event().level(), 3);
  EXPECT_EQ(first->level, 2) << "it is valid up to the step after the next sequence point";
  ReadAll(reader.get());
  EXPECT_TRUE(reader->stats().complete);
  ASSERT_EQ(reader->skipped().size(), 1U);
  EXPECT_EQ(reader->skipped()[0].reason, "label list 1 is defined twice");
}

TEST(ReaderThatSkipsDamage, SkipsOnlyEventsWithoutMetadata) {
  Bytes bad_row;
  bad_row.U16(0).Row(MetadataRowBytes({.id = 2})).Row(Bytes().Var(3).U8(200));
  const Bytes stream =
      Prologue()
          .Append(Block(BlockKind::kMetadata, bad_row))
          .Append(EventBlock({{}, {.metadata_id = 3, .sequence = 2}, {.sequence = 3}}))
          .Append(SequencePointBlock(2001, 0, {{1, 3}}))
          .Append(End());
  auto reader = OpenBytes(stream.span(), {.skip_damage = true});
  ReadAll(reader.get());
  EXPECT_TRUE(reader->stats().complete) << reader->status();
  EXPECT_EQ(reader->stats().events, 2U);
  ASSERT_EQ(reader->skipped().size(), 1U);
  EXPECT_EQ(reader->skipped()[0].events, 1U);
}

TEST(ReaderThatSkipsDamage, DoesNotTakeAZeroedEndForTheTrueEnd) {
  const Bytes whole = NumberedStream(10);
  std::vector<std::byte> bytes(whole.span().begin(), whole.span().end());
  std::fill(bytes.end() - 1000, bytes.end(), std::byte{});
  auto reader = OpenBytes(bytes, {.skip_damage = true});
  ReadAll(reader.get());
  EXPECT_FALSE(reader->stats().complete);
  EXPECT_GE(reader->stats().events, 900U);
}

TEST(Reader, ConvertsTicksByTheSyncTime) {
  const Bytes stream = Start({.sync_ticks = 10, .frequency = 3}).Append(End());
  auto reader = OpenBytes(stream.span());
  const absl::Time sync = reader->trace().sync_time;
  EXPECT_EQ(reader->TimeOf(10), sync);
  EXPECT_EQ(reader->TimeOf(14), sync + absl::Seconds(1) + absl::Nanoseconds(333333333));
  EXPECT_EQ(reader->TimeOf(7), sync - absl::Seconds(1));
}

TEST(Reader, ConvertsTicksOfAnySize) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 62;
  for (const std::int64_t sync_ticks : {std::int64_t{0}, std::int64_t{-5}, std::int64_t{1} << 62}) {
    for (const std::int64_t frequency : {std::int64_t{1'000'000'000}, std::int64_t{1} << 33,
                                         (std::int64_t{1} << 33) + 1, std::int64_t{1} << 62}) {
      const Bytes stream = Start({.sync_ticks = sync_ticks, .frequency = frequency}).Append(End());
      auto reader = OpenBytes(stream.span());
      for (const std::uint64_t ticks : {std::uint64_t{3}, kHalf - 1, kHalf, ~std::uint64_t{0}}) {
        const absl::int128 since = absl::int128(ticks) - sync_ticks;
        const auto seconds = static_cast<std::int64_t>(since / frequency);
        const auto nanoseconds =
            static_cast<std::int64_t>(since % frequency * 1'000'000'000 / frequency);
        EXPECT_EQ(reader->TimeOf(ticks), reader->trace().sync_time + absl::Seconds(seconds) +
                                             absl::Nanoseconds(nanoseconds))
            << ticks << " ticks, " << sync_ticks << " at the sync time, frequency " << frequency;
      }
    }
  }
}

TEST(Reader, FillsInOmittedValuesOfCompressedRows) {
  Bytes content = EventHeader(2000, 2007);
  content.U8(1 | 2 | 4 | 128).Var(1).Var(0).Var(1).Var(3).Var(2).Var(2000).Var(0);
  content.U8(0).Var(7);  // Only the time.
  const Bytes stream = Prologue().Append(Block(BlockKind::kEvent, content)).Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent);
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  const Event& event = reader->event();
  EXPECT_EQ(event.sequence_number, 2u);
  EXPECT_EQ(event.capture_thread_index, ThreadIndex{1});
  EXPECT_EQ(event.thread_index, ThreadIndex{2});
  EXPECT_EQ(event.processor, 3u);
  EXPECT_EQ(event.timestamp, 2007u);
  EXPECT_EQ(event.lost_before, 0u);
}

// Each number in turn has every possible length; the others are long or short at random.
TEST(Reader, ReadsCompressedRowsWithNumbersOfEveryLength) {
  const std::vector<std::uint64_t> numbers = {0,
                                              1,
                                              0x7F,
                                              0x80,
                                              0x3FFF,
                                              0x4000,
                                              0x1FFFFF,
                                              0x200000,
                                              0xFFFFFFF,
                                              0x10000000,
                                              1u << 31,
                                              std::uint64_t{1} << 35,
                                              std::uint64_t{1} << 56};
  constexpr std::uint64_t kMaxId = 0xFFFFFFFF;
  constexpr std::uint64_t kMaxPayload = 0x4000;
  Bytes stream = Start().Append(ThreadBlock({1}));
  for (const std::uint64_t id : numbers) {
    if (id <= kMaxId) stream.Append(MetadataBlock({{.id = id, .event_id = id + 1}}));
  }
  Bytes content = EventHeader(2000, 2000);
  content.U8(1 | 2 | 4 | 128).Var(1).Var(0).Var(1).Var(3).Var(1).Var(2000).Var(0);
  std::vector<EventFields> expected;
  std::uint64_t timestamp = 2000;
  std::uint64_t id = 1;
  std::uint64_t payload_size = 0;
  for (const std::uint64_t number : numbers) {
    for (const unsigned flags : {0, 1, 128, 1 | 128, 64, 1 | 64 | 128}) {
      content.U8(flags);
      if ((flags & 1) != 0) content.Var(id = number <= kMaxId ? number : kMaxId >> 31);
      content.Var(number);
      if ((flags & 128) != 0) content.Var(payload_size = std::min(number, kMaxPayload));
      const Bytes payload = Bytes().Raw(
          std::string(static_cast<std::size_t>(payload_size), static_cast<char>(flags)));
      content.Append(payload);
      expected.push_back({.metadata_id = static_cast<std::uint32_t>(id),
                          .timestamp = timestamp += number,
                          .sorted = (flags & 64) != 0,
                          .payload = payload});
    }
  }
  stream.Append(Block(BlockKind::kEvent, content)).Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  std::uint32_t sequence = 1;
  for (const EventFields& fields : expected) {
    ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
    const Event& event = reader->event();
    EXPECT_EQ(event.metadata_id, MetadataId{fields.metadata_id});
    EXPECT_EQ(event.metadata->event_id, fields.metadata_id + 1);
    EXPECT_EQ(event.sequence_number, ++sequence);
    EXPECT_EQ(event.timestamp, fields.timestamp);
    EXPECT_EQ(event.is_sorted, fields.sorted);
    EXPECT_EQ(event.processor, 3u);
    EXPECT_TRUE(std::ranges::equal(event.payload, fields.payload.span()));
  }
  EXPECT_EQ(reader->Next(), Step::kEnd);
  EXPECT_EQ(reader->stats().last_timestamp, timestamp);
  EXPECT_EQ(reader->stats().lost, 0u);
}

TEST(Reader, ReturnsTheLeastTimeIfTimesOverflow) {
  Bytes content = EventHeader(2, 2);
  content.U8(1 | 2 | 4).Var(1).Var(0).Var(1).Var(3).Var(1).Var(~std::uint64_t{0});
  for (int i = 0; i < 20; ++i) content.U8(0).Var(3);
  const Reader::Stats stats =
      StatsOf(Prologue().Append(Block(BlockKind::kEvent, content)).Append(End()));
  EXPECT_EQ(stats.events, 21u);
  EXPECT_EQ(stats.first_timestamp, 2u);
  EXPECT_EQ(stats.last_timestamp, ~std::uint64_t{0});
}

// The ids are consecutive, as most writers choose them, and then arbitrary.
TEST(Reader, FindsMetadataRowsOfAnyIds) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t id = 7; id < 1000; ++id) ids.push_back(id);
  for (const std::uint32_t id : {5u, 0u, 0xFFFFFFFFu, 1001u, 1000u}) ids.push_back(id);
  Bytes stream = Start().Append(ThreadBlock({1}));
  std::vector<EventFields> events;
  for (const std::uint32_t id : ids) {
    events.push_back(
        {.metadata_id = id, .sequence = static_cast<std::uint32_t>(events.size() + 1)});
    stream.Append(MetadataBlock({{.id = id, .event_id = std::uint64_t{id} ^ 1}}));
  }
  stream.Append(EventBlock(events));
  for (const std::uint32_t id : {7u, 999u, 0u, 1000u, 1001u}) {
    const Bytes twice = Bytes().Append(stream).Append(MetadataBlock({{.id = id}})).Append(End());
    EXPECT_EQ(ReasonOf(twice), absl::StrCat("metadata id ", id, " is defined twice"));
  }
  stream.Append(End());
  auto reader = OpenBytes(stream.span());
  for (const std::uint32_t id : ids) {
    ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
    EXPECT_EQ(reader->event().metadata->event_id, id ^ 1);
  }
}

TEST(Reader, ReadsUncompressedRowsWithTheHighBitMeaningNotSorted) {
  Bytes row;
  row.U32(1u | 0x80000000u).U32(1).U64(2).U64(1).U32(3).U32(0).U64(2000).U32(0).U32(2).U16(0xABCD);
  Bytes content = EventHeader(2000, 2000, 0).U32(row.size()).Append(row);
  const Bytes stream = Prologue().Append(Block(BlockKind::kEvent, content)).Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent) << reader->status();
  EXPECT_FALSE(reader->event().is_sorted);
  EXPECT_EQ(reader->event().thread_index, ThreadIndex{2});
  EXPECT_EQ(reader->event().capture_thread_index, ThreadIndex{1});
  EXPECT_EQ(reader->event().payload.size(), 2u);
}

TEST(ReaderLoss, AGapIsCountedWhereItIs) {
  const Bytes stream =
      Prologue().Append(EventBlock({{.sequence = 3}, {.sequence = 10}})).Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent);
  EXPECT_EQ(reader->event().lost_before, 2u) << "the first event of a thread is number 1";
  ASSERT_EQ(reader->Next(), Step::kEvent);
  EXPECT_EQ(reader->event().lost_before, 6u);
  EXPECT_EQ(reader->stats().lost, 8u);
}

TEST(ReaderLoss, SequencePointShowsLossesAtTheEnd) {
  const Bytes stream = Prologue()
                           .Append(EventBlock({{}}))
                           .Append(SequencePointBlock(3000, 0, {{1, 5}, {2, 100}}))
                           .Append(EventBlock({{.sequence = 6, .timestamp = 3001}}))
                           .Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent);
  ASSERT_EQ(reader->Next(), Step::kSequencePoint);
  ASSERT_EQ(reader->sequence_point().losses.size(), 2u);
  EXPECT_EQ(reader->sequence_point().losses[0].count, 4u);
  EXPECT_EQ(reader->sequence_point().losses[1].count, 100u) << "of a thread without an event";
  ReadAll(reader.get());
  EXPECT_EQ(reader->stats().lost, 104u);
}

TEST(ReaderLoss, RemovedThreadHasItsLastNumber) {
  const Bytes removed = Block(BlockKind::kRemoveThread, Bytes().Var(1).Var(4).Var(2).Var(0));
  const Bytes stream = Prologue().Append(EventBlock({{}})).Append(removed).Append(End());
  auto reader = OpenBytes(stream.span());
  ASSERT_EQ(reader->Next(), Step::kEvent);
  ASSERT_EQ(reader->Next(), Step::kRemovedThread);
  EXPECT_EQ(reader->removed_thread().thread_index, ThreadIndex{1});
  EXPECT_EQ(reader->removed_thread().lost, 3u);
  ASSERT_EQ(reader->Next(), Step::kRemovedThread);
  EXPECT_EQ(reader->removed_thread().lost, 0u);
  EXPECT_EQ(reader->Next(), Step::kEnd);
  EXPECT_TRUE(reader->status().ok());
}

TEST(ReaderLoss, NumbersWrapAround) {
  const Bytes stream = Prologue()
                           .Append(EventBlock({{.sequence = 0x70000000}}))
                           .Append(EventBlock({{.sequence = 0xE0000000}}))
                           .Append(EventBlock({{.sequence = 0xFFFFFFFF}}))
                           .Append(EventBlock({{.sequence = 0}, {.sequence = 2}}))
                           .Append(End());
  EXPECT_EQ(StatsOf(stream).lost, 0xFFFFFFFFu - 3 + 1);
}

TEST(ReaderLoss, StepBackCountsAsInTheReferenceReader) {
  const Bytes stream =
      Prologue().Append(EventBlock({{.sequence = 1}, {.sequence = 1}})).Append(End());
  EXPECT_EQ(StatsOf(stream).lost, 0x7FFFFFFFu);
}

TEST(ReaderLoss, NumberingRestartsBehindAFlushOfThreads) {
  const Bytes stream = Prologue()
                           .Append(EventBlock({{}}))
                           .Append(SequencePointBlock(2000, kSequencePointFlushThreads, {{1, 1}}))
                           .Append(ThreadBlock({1}))
                           .Append(EventBlock({{.sequence = 1}}))
                           .Append(End());
  EXPECT_EQ(StatsOf(stream).lost, 0u);
}

TEST(Reader, SkipsBlocksOfAnUnknownKind) {
  const Bytes stream = Prologue()
                           .Append(Block(static_cast<BlockKind>(99), Bytes().U64(1)))
                           .Append(EventBlock({{}}))
                           .Append(End());
  const Reader::Stats stats = StatsOf(stream);
  EXPECT_EQ(stats.events, 1u);
  EXPECT_EQ(stats.blocks[99], 1u);
}

TEST(ReaderDamage, NamesAnUndefinedReference) {
  EXPECT_EQ(ReasonOf(Prologue().Append(EventBlock({{.metadata_id = 9}})).Append(End())),
            "an event refers to metadata 9, which is not defined");
  EXPECT_EQ(ReasonOf(Prologue().Append(EventBlock({{.thread = 9}})).Append(End())),
            "an event refers to thread 9, which is not defined");
  EXPECT_EQ(ReasonOf(Prologue().Append(EventBlock({{.label_list_id = 9}})).Append(End())),
            "an event refers to label list 9, which is not defined");
}

TEST(ReaderDamage, AnUndefinedReferenceOfACompressedRowIsWhereThatBegins) {
  Bytes before = EventHeader(2000, 2000);
  before.U8(1 | 2 | 4 | 128).Var(1).Var(0).Var(1).Var(3).Var(1).Var(2000).Var(0);
  Bytes content = Bytes(before).U8(1).Var(9).Var(5);
  for (int i = 0; i < 20; ++i) content.U8(0).Var(1);
  const Bytes stream = Prologue().Append(Block(BlockKind::kEvent, content)).Append(End());
  auto reader = OpenBytes(stream.span());
  EXPECT_EQ(reader->Next(), Step::kEvent);
  EXPECT_EQ(reader->Next(), Step::kEnd);
  ASSERT_TRUE(reader->damage().has_value());
  EXPECT_EQ(reader->damage()->reason, "an event refers to metadata 9, which is not defined");
  EXPECT_EQ(reader->damage()->offset, Prologue().size() + 4 + before.size());
  EXPECT_EQ(reader->Next(), Step::kEnd);
  EXPECT_EQ(reader->stats().events, 1u);
}

TEST(ReaderDamage, SequencePointRemovesLabelsAndFlushedRows) {
  const Bytes before = Prologue().Append(LabelBlock(1));
  EXPECT_TRUE(absl::StrContains(
      ReasonOf(
          Bytes(before).Append(SequencePointBlock(1)).Append(EventBlock({{.label_list_id = 1}}))),
      "label list 1"));
  EXPECT_TRUE(
      absl::StrContains(ReasonOf(Bytes(before)
                                     .Append(SequencePointBlock(1, kSequencePointFlushMetadata))
                                     .Append(EventBlock({{}}))),
                        "metadata 1"));
  EXPECT_TRUE(
      absl::StrContains(ReasonOf(Bytes(before)
                                     .Append(SequencePointBlock(1, kSequencePointFlushThreads))
                                     .Append(EventBlock({{}}))),
                        "thread 1"));
}

TEST(ReaderDamage, DeepTypesAreALimitOfTheReader) {
  Bytes type;
  for (int i = 0; i < kMaxTypeDepth + 1; ++i) type.Append(Code(TypeCode::kArray));
  type.Append(Code(TypeCode::kInt32));
  const Bytes stream =
      Start().Append(MetadataBlock({{.fields = {FieldRow("deep", type)}}})).Append(End());
  EXPECT_EQ(
      ReasonOf(stream),
      "types are nested deeper than 32 levels, the limit of this reader; the file is not damaged");
}

TEST(ReaderDamage, ReportsWhereItStoppedAndTheRemainingSize) {
  const Bytes before = Prologue();
  const Bytes stream = Bytes(before)
                           .Append(EventBlock({{}}))
                           .Append(ThreadBlock({1}))  // The index is in use.
                           .Append(EventBlock({{.sequence = 2}}))
                           .Append(End());
  auto reader = OpenBytes(stream.span());
  ReadAll(reader.get());
  EXPECT_EQ(reader->stats().events, 1u);
  const std::size_t bad_block = before.size() + EventBlock({{}}).size();
  ASSERT_TRUE(reader->damage().has_value());
  EXPECT_EQ(reader->damage()->offset, bad_block + 4);
  EXPECT_EQ(reader->damage()->bytes_left, stream.size() - bad_block);
  EXPECT_EQ(reader->status().code(), absl::StatusCode::kDataLoss);
}

TEST(ReaderDamage, TablesAreBounded) {
  Bytes threads;
  for (unsigned i = 1; i < 1000; ++i) threads.Row(Bytes().Var(i));
  const Bytes stream = Start().Append(Block(BlockKind::kThread, threads)).Append(End());
  auto reader = OpenBytes(stream.span(), {.max_table_bytes = 10000});
  ReadAll(reader.get());
  ASSERT_TRUE(reader->damage().has_value());
  EXPECT_TRUE(absl::StrContains(reader->damage()->reason, "10000 bytes"));
}

// Expects that a reader delivers all events of the complete blocks before a cut, and reports the
// rest.
void ExpectCutsDeliverWholeBlocks(std::span<const std::byte> stream) {
  // Number of events delivered up to the end of each block when everything is read.
  std::vector<std::pair<std::size_t, std::uint64_t>> events_by_end;
  {
    auto reader = OpenBytes(stream);
    Step step = Step::kEnd;
    do {
      step = reader->Next();
      events_by_end.emplace_back(reader->stats().bytes, reader->stats().events);
    } while (step != Step::kEnd);
    ASSERT_TRUE(reader->status().ok()) << reader->status();
  }
  for (std::size_t cut = 0; cut < stream.size(); ++cut) {
    std::uint64_t expected = 0;
    for (const auto& [end, events] : events_by_end) {
      if (end <= cut) expected = events;
    }
    auto reader = OpenBytes(stream.first(cut));
    ASSERT_NE(reader, nullptr) << "cut at " << cut;
    ReadAll(reader.get());
    EXPECT_EQ(reader->stats().events, expected) << "cut at " << cut;
    EXPECT_FALSE(reader->stats().complete) << "cut at " << cut;
    ASSERT_TRUE(reader->damage().has_value()) << "cut at " << cut;
    EXPECT_EQ(reader->damage()->offset + reader->damage()->bytes_left, cut);
  }
}

TEST(ReaderDamage, EveryCutDeliversAllWholeBlocksBeforeIt) {
  ExpectCutsDeliverWholeBlocks(GoodStream().span());
}

// Files of the fuzzers' corpus in the formats of earlier versions.
class Legacy : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::ifstream file(testing::CorpusFile(GetParam()), std::ios::binary);
    ASSERT_TRUE(file.is_open());
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

 private:
  std::string bytes_;
};

TEST_P(Legacy, EveryCutDeliversAllWholeBlocksBeforeIt) { ExpectCutsDeliverWholeBlocks(bytes()); }

// Returns pieces of a few bytes. Before each piece, one call fails with Unavailable, as if no bytes
// had arrived yet.
class LateSource : public Source {
 public:
  LateSource(std::span<const std::byte> bytes, std::size_t piece) : rest_(bytes), piece_(piece) {}
  absl::StatusOr<std::size_t> Read(std::span<std::byte> buffer) override {
    is_late_ = !is_late_;
    if (is_late_) return absl::UnavailableError("later");
    const std::size_t size = std::min({buffer.size(), rest_.size(), piece_});
    std::copy_n(rest_.begin(), size, buffer.begin());
    rest_ = rest_.subspan(size);
    return size;
  }

 private:
  std::span<const std::byte> rest_;
  std::size_t piece_;
  bool is_late_ = false;
};

// Reads all of the stream. Returns the name, time, losses, size of the stack and payload of each
// event.
std::string EventsOf(Reader* reader) {
  std::string text;
  do {
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const Event& event = reader->event();
      absl::StrAppend(&text, event.metadata->name, " ", event.timestamp, " ", event.lost_before,
                      " ", event.stack.size(), " ");
      for (const std::byte byte : event.payload) text += static_cast<char>(byte);
    }
  } while (reader->is_waiting());
  return text;
}

void ExpectSameIfLate(std::span<const std::byte> stream) {
  auto whole = OpenBytes(stream);
  ReadAll(whole.get());
  for (const std::size_t piece : {1, 7, 100, 4096}) {
    auto late = Reader::Open(std::make_unique<LateSource>(stream, piece), {.waits = true});
    ASSERT_TRUE(late.ok()) << late.status();
    EXPECT_EQ(EventsOf(late->get()), EventsOf(OpenBytes(stream).get())) << piece;
    EXPECT_TRUE((*late)->status().ok()) << (*late)->status();
    EXPECT_TRUE((*late)->stats().complete);
    EXPECT_EQ((*late)->stats().events, whole->stats().events);
    EXPECT_EQ((*late)->stats().blocks, whole->stats().blocks);
    EXPECT_EQ((*late)->stats().bytes, whole->stats().bytes);
    EXPECT_EQ((*late)->trace().sync_ticks, whole->trace().sync_ticks);
  }
}

TEST_P(Legacy, ReadsTheSameFromASourceThatMustBeWaitedFor) { ExpectSameIfLate(bytes()); }

TEST(Reader, ReadsTheSameFromASourceThatMustBeWaitedFor) { ExpectSameIfLate(GoodStream().span()); }

TEST_P(Legacy, ReportsACutOfASourceThatMustBeWaitedFor) {
  for (std::size_t cut = 0; cut < bytes().size(); ++cut) {
    auto whole = OpenBytes(bytes().first(cut));
    ReadAll(whole.get());
    auto late = Reader::Open(std::make_unique<LateSource>(bytes().first(cut), 50), {.waits = true});
    ASSERT_TRUE(late.ok()) << late.status();
    EventsOf(late->get());
    EXPECT_EQ((*late)->stats().events, whole->stats().events) << "cut at " << cut;
    EXPECT_FALSE((*late)->status().ok()) << "cut at " << cut;
  }
}

TEST(Reader, ReportsAnotherFormatOfASourceThatMustBeWaitedFor) {
  const std::string bytes(200, 'x');
  auto late = Reader::Open(std::make_unique<LateSource>(std::as_bytes(std::span(bytes)), 3),
                           {.waits = true});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_EQ(EventsOf(late->get()), "");
  EXPECT_TRUE(absl::IsInvalidArgument((*late)->status())) << (*late)->status();
}

INSTANTIATE_TEST_SUITE_P(Versions, Legacy, ::testing::Values("v4", "v5"),
                         [](const auto& test) { return std::string(test.param); });

// Each of these files breaks one rule. TraceEvent refuses the whole file, but this reader reads it.
TEST(Reader, ReportsWhyTraceEventRefusesAStream) {
  std::set<std::string> refused;
  for (const auto& entry : std::filesystem::directory_iterator(testing::BrokenFolder())) {
    const std::string bytes = testing::Bytes(testing::TextOfFile(entry.path()));
    auto reader = Reader::Open(std::make_unique<MemorySource>(std::as_bytes(std::span(bytes))));
    if (!reader.ok()) continue;
    ReadAll(reader->get());
    if (!(*reader)->traceevent_refusal().empty()) refused.insert(entry.path().stem());
  }
  EXPECT_EQ(refused, (std::set<std::string>{"event-block-empty", "event-name-unique",
                                            "fixed-array-size.bytes", "fixed-array-size.int32",
                                            "location-element.array", "location-element.object",
                                            "location-element.string", "location-element.varint"}));
  const Bytes good = GoodStream();
  auto reader = OpenBytes(good.span());
  ReadAll(reader.get());
  EXPECT_EQ(reader->traceevent_refusal(), "");
}

TEST(ReaderVersions, RefusesOtherVersionsByName) {
  const auto status = [](const Bytes& stream) {
    return Reader::Open(std::make_unique<MemorySource>(stream.span())).status();
  };
  const absl::Status v3 = status(Bytes().U32(20).Raw("!FastSerialization.1").Raw("rest"));
  EXPECT_EQ(v3.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(v3.message(), "NetPerf")) << v3;
  const absl::Status v7 = status(Bytes().Raw("Nettrace").U32(0).U32(7).U32(0));
  EXPECT_EQ(v7.code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(absl::StrContains(v7.message(), "V7")) << v7;
  EXPECT_EQ(status(Bytes().Raw("PERFILE2 and more")).code(), absl::StatusCode::kInvalidArgument);
}

// Files that the .NET runtime wrote.
class Vectors : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* shared = std::getenv("SHARED_DIR");
    const std::filesystem::path vectors =
        (shared != nullptr ? std::filesystem::path(shared) : tests::SourcePath("../shared")) /
        "vectors";
    zip_ = vectors / (std::string(GetParam()) + ".zip");
    if (!std::filesystem::exists(zip_)) GTEST_SKIP() << "no test vectors at " << vectors;
    FILE* unzip = popen(("unzip -p '" + zip_.string() + "'").c_str(), "r");
    ASSERT_NE(unzip, nullptr);
    std::byte buffer[65536];
    for (std::size_t n = 0; (n = fread(buffer, 1, sizeof buffer, unzip)) > 0;) {
      bytes_.insert(bytes_.end(), buffer, buffer + n);
    }
    ASSERT_EQ(pclose(unzip), 0);
  }

  std::filesystem::path zip_;
  std::vector<std::byte> bytes_;
};

TEST_P(Vectors, AreReadToTheLastByteWithTheirCounts) {
  const bool arrays = bytes_.size() == 486814;
  ASSERT_TRUE(arrays || bytes_.size() == 582);
  auto reader = OpenBytes(bytes_);
  std::uint64_t payload_bytes = 0;
  std::uint64_t stacks = 0;
  std::uint64_t sorted = 0;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    payload_bytes += reader->event().payload.size();
    stacks += !reader->event().stack.empty();
    sorted += reader->event().is_sorted;
    EXPECT_EQ(reader->event().processor, 4294967295u);
  }
  EXPECT_TRUE(reader->status().ok()) << reader->status();
  const Reader::Stats& stats = reader->stats();
  EXPECT_EQ(reader->major_version(), 4u);
  EXPECT_EQ(stats.bytes, bytes_.size());
  EXPECT_EQ(stats.events, arrays ? 1970u : 3u);
  EXPECT_EQ(payload_bytes, arrays ? 475450u : 114u);
  EXPECT_EQ(stacks, arrays ? 3u : 0u);
  EXPECT_EQ(sorted, arrays ? 4u : 1u);
  EXPECT_EQ(stats.lost, 0u);
  EXPECT_EQ(stats.metadata, arrays ? 13u : 1u);
  EXPECT_EQ(stats.threads, arrays ? 2u : 1u);
  EXPECT_EQ(stats.sequence_points, 1u);
  EXPECT_EQ(stats.first_timestamp, arrays ? 5106014350295u : 11111943296237u);
  EXPECT_EQ(stats.last_timestamp, arrays ? 5106017527156u : 11111943296514u);
  EXPECT_EQ(stats.blocks[static_cast<int>(BlockKind::kMetadata)], arrays ? 3u : 1u);
  EXPECT_EQ(stats.blocks[static_cast<int>(BlockKind::kEvent)], arrays ? 7u : 1u);
  EXPECT_EQ(stats.blocks[static_cast<int>(BlockKind::kStack)], 1u);
}

TEST_P(Vectors, EveryCutIsReported) {
  // Every offset of the small file; in the large one, every offset of the first blocks, and some of
  // the rest.
  for (std::size_t cut = 0; cut < bytes_.size(); cut += cut < 3000 ? 1 : 9973) {
    auto reader = OpenBytes(std::span<const std::byte>(bytes_).first(cut));
    ASSERT_NE(reader, nullptr);
    ReadAll(reader.get());
    EXPECT_FALSE(reader->status().ok());
    ASSERT_TRUE(reader->damage().has_value());
    EXPECT_LE(reader->damage()->bytes_left, cut);
  }
}

INSTANTIATE_TEST_SUITE_P(
    DotNet, Vectors,
    ::testing::Values("eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace",
                      "eventpipe-dotnetcore6.0-win-x64-executioncheckpoints.nettrace"),
    [](const auto& param) { return param.index == 0 ? "ArrayTypes" : "ExecutionCheckpoints"; });

}  // namespace
}  // namespace nettrace
