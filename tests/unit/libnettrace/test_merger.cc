// Tests that the output of a Merger has all intact events of its inputs, and that Verify finds
// nothing in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "libnettrace-writer/core/event_ids.h"
#include "nettrace/merger.h"
#include "nettrace/verifier.h"
#include "tests/support/nettrace/open_bytes.h"
#include "tests/support/nettrace/stream_builder.h"
#include "tests/support/nettrace/writer_to_string.h"
#include "tests/unit/libnettrace/trace_files.h"

namespace nettrace {
namespace {

using testing::OpenBytes;
using Step = Reader::Step;

Reader::Stats StatsAtEnd(std::span<const std::byte> stream) {
  const auto reader = OpenBytes(stream);
  while (reader->Next() != Step::kEnd) {
  }
  return reader->stats();
}

// Merges the inputs, and reads the output.
class Merged {
 public:
  explicit Merged(const std::vector<std::span<const std::byte>>& inputs, MergerOptions options = {})
      : merger_(std::move(options)) {
    for (const auto input : inputs) merger_.AddInput(OpenBytes(input));
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
  std::unique_ptr<Reader> Read() const { return OpenBytes(bytes_); }
  Reader::Stats Stats() const { return StatsAtEnd(bytes_); }
  // Expects an output without findings; returns its statistics.
  Reader::Stats CleanStats() const {
    const auto report = Verify(std::make_unique<MemorySource>(bytes_));
    EXPECT_TRUE(report.ok()) << report.status();
    for (const Finding& finding : report->findings) {
      ADD_FAILURE() << finding.rule->name << ": " << finding.explanation;
    }
    const Reader::Stats stats = StatsAtEnd(bytes_);
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
    const Reader::Stats expected = StatsAtEnd(bytes);
    EXPECT_EQ(stats.events, expected.events);
    EXPECT_EQ(stats.lost, expected.lost);
    EXPECT_EQ(merged.merger().input(0).status().ok(), expected.complete);
  }
}

TEST(Merger, IntactPartOfEveryCutIsACleanStream) {
  ExpectTheWholePartOfEveryCut(GoodStream().span());
}

TEST(Merger, IntactPartOfEveryCutOfV4AndV5IsACleanV6Stream) {
  for (const char* version : {"v4", "v5"}) {
    std::ifstream file(testing::CorpusFile(version), std::ios::binary);
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

// V6 has a DateTime of 16 bytes; only TraceEvent does not support it.
TEST(Merger, DateTimeIsCopiedUnchanged) {
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

// The merger and the verifier must agree on whether a type has a fixed size.
TEST(Merger, CopiesStreamsWithoutVerifyErrors) {
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
    const Merged merged(stream);
    const Merger::NotAsItWas events = merged.merger().not_as_it_was(0);
    EXPECT_EQ(events.not_kept, report->errors == 0 ? 0u : 1u) << "type code " << code;
    EXPECT_EQ(merged.Stats().lost, events.not_kept);
    if (events.not_kept > 0) {
      EXPECT_NE(events.why_not_kept.find("field 'f'"), std::string::npos) << events.why_not_kept;
    }
    ++(report->errors == 0 ? copied : refused);
  }
  EXPECT_EQ(refused, 3) << "NullTerminatedUTF16String, VarInt and VarUInt";
  EXPECT_EQ(copied, 20);
}

// The output has no events, so no gap in the numbers of events shows these losses.
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

// Returns the times of the events in the file's order.
std::vector<std::uint64_t> Times(const Merged& merged) {
  std::vector<std::uint64_t> times;
  const auto reader = merged.Read();
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step == Step::kEvent) times.push_back(reader->event().timestamp);
  }
  return times;
}

Bytes EventsAround(std::uint64_t point, const std::vector<EventFields>& before,
                   const std::vector<EventFields>& after) {
  return Start()
      .Append(MetadataBlock({{}}))
      .Append(ThreadBlock({1, 2}))
      .Append(EventBlock(before))
      .Append(SequencePointBlock(point))
      .Append(EventBlock(after));
}

void ExpectAllKept(const Merged& merged, const std::vector<std::uint64_t>& times) {
  EXPECT_EQ(Times(merged), times);
  EXPECT_EQ(merged.CleanStats().lost, 0u);
  EXPECT_EQ(merged.merger().not_as_it_was(0).moved, 0u);
  EXPECT_EQ(merged.merger().not_as_it_was(0).not_kept, 0u);
}

TEST(Merger, AllEventsBehindALateSequencePointAreKept) {
  std::vector<EventFields> after;
  for (std::uint32_t i = 0; i < 135; ++i) after.push_back({.sequence = 2 + i, .timestamp = 2500});
  std::vector<std::uint64_t> times(136, 2500);
  times[0] = 2000;
  ExpectAllKept(Merged(EventsAround(1'000'000, {{}}, after).Append(End())), times);
}

TEST(Merger, EventsLaterThanTheSequencePointAfterThemAreKept) {
  ExpectAllKept(Merged(EventsAround(1500, {{}}, {{.sequence = 2, .timestamp = 2500}})
                           .Append(SequencePointBlock(1600))
                           .Append(EventBlock({{.sequence = 3, .timestamp = 2600}}))
                           .Append(End())),
                {2000, 2500, 2600});
}

// The events are sorted across the sequence point, which is not in the output. The capture thread
// of the first two events becomes two threads, because the times of a thread must not decrease.
TEST(Merger, KeepsEventsEarlierThanEventsBeforeTheSequencePoint) {
  const Merged merged(
      EventsAround(3000, {{.timestamp = 2900}},
                   {{.sequence = 2, .timestamp = 2500}, {.sequence = 3, .timestamp = 3100}})
          .Append(End()));
  const std::vector<std::uint64_t> times = Times(merged);
  EXPECT_EQ(std::multiset(times.begin(), times.end()),
            (std::multiset<std::uint64_t>{2500, 2900, 3100}));
  TimeOrderedReader in_order(merged.Read());
  std::vector<std::uint64_t> ordered;
  for (Step step = in_order.Next(); step != Step::kEnd; step = in_order.Next()) {
    if (step != Step::kEvent) continue;
    ordered.push_back(in_order.event().timestamp);
    EXPECT_EQ(in_order.event().capture_thread->thread_id, 4243u);
  }
  EXPECT_EQ(ordered, (std::vector<std::uint64_t>{2500, 2900, 3100}));
  EXPECT_EQ(merged.CleanStats().lost, 0u);
  EXPECT_EQ(merged.merger().not_as_it_was(0).moved, 0u);
}

TEST(Merger, MovesLateEventsBehindTheSequencePoint) {
  const Merged merged(EventsAround(3000, {{}}, {{.sequence = 2, .timestamp = 3500}})
                          .Append(SequencePointBlock(4000))
                          .Append(EventBlock({{.sequence = 3, .timestamp = 2500}}))
                          .Append(End()));
  EXPECT_EQ(Times(merged), (std::vector<std::uint64_t>{2000, 3500, 3000}));
  EXPECT_EQ(merged.CleanStats().lost, 0u);
  EXPECT_EQ(merged.merger().not_as_it_was(0).moved, 1u);
  const auto reader = merged.Read();
  std::vector<std::pair<std::string, std::int64_t>> labels;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    const auto& integers = reader->event().labels->integers;
    labels.insert(labels.end(), integers.begin(), integers.end());
  }
  EXPECT_EQ(labels,
            (std::vector<std::pair<std::string, std::int64_t>>{{kLabelOriginalTimestamp, 2500}}));
}

TEST(Merger, ATraceBlockWithAnImpossibleYearGetsADateThatExists) {
  for (const unsigned year : {0u, 10'000u, 30'000u, 0xFFFFu}) {
    const Merged merged(Start({.year = year})
                            .Append(MetadataBlock({{}}))
                            .Append(ThreadBlock({1}))
                            .Append(EventBlock({{.timestamp = 2000}}))
                            .Append(End()));
    EXPECT_FALSE(merged.merger().has_date(0));
    EXPECT_EQ(merged.CleanStats().events, 1u);
    EXPECT_EQ(merged.Read()->trace().sync_time, absl::UnixEpoch());
    EXPECT_EQ(Times(merged), std::vector<std::uint64_t>{2000});
  }
  EXPECT_TRUE(Merged(GoodStream()).merger().has_date(0));
}

class FinishedSink : public MemorySink {
 public:
  explicit FinishedSink(int* finished) : finished_(finished) {}
  absl::Status Finish() override {
    ++*finished_;
    return absl::OkStatus();
  }

 private:
  int* finished_;
};

TEST(Merger, FinishesTheSink) {
  const Bytes good = GoodStream();
  Merger merger;
  merger.AddInput(OpenBytes(good.span()));
  int finished = 0;
  EXPECT_EQ(merger.Run(std::make_unique<FinishedSink>(&finished)), absl::OkStatus());
  EXPECT_EQ(finished, 1);
}

TEST(Merger, ErrorsNameTheInput) {
  const Bytes good = GoodStream();
  const Bytes bad = Start({.year = 0}).Append(End());
  Merger merger;
  merger.AddInput(OpenBytes(good.span()));
  merger.AddInput(OpenBytes(bad.span()));
  EXPECT_TRUE(absl::IsInvalidArgument(merger.Run(std::make_unique<MemorySink>())));
  EXPECT_EQ(merger.failed_input(), 1u);
  EXPECT_EQ(Merged(GoodStream()).merger().failed_input(), std::nullopt);
}

// TraceEvent shows events before the sync time at 0 ms.
TEST(Merger, TheSyncTimeIsNoLaterThanTheFirstEvent) {
  const auto stream = [](std::int64_t sync, std::int64_t frequency,
                         const std::vector<std::uint64_t>& times) {
    std::vector<EventFields> events;
    events.reserve(times.size());
    for (const std::uint64_t time : times) {
      events.push_back(
          {.sequence = static_cast<std::uint32_t>(events.size()) + 1, .timestamp = time});
    }
    return Start({.sync_ticks = sync, .frequency = frequency})
        .Append(MetadataBlock({{}}))
        .Append(ThreadBlock({1}))
        .Append(EventBlock(events))
        .Append(End());
  };
  const auto sync = [](const Merged& merged) {
    merged.CleanStats();
    const auto reader = merged.Read();
    return std::pair(reader->trace().sync_time - absl::FromUnixMillis(1'795'255'200'500),
                     reader->trace().sync_ticks);
  };
  const auto expected = [](int milliseconds, std::int64_t ticks) {
    return std::pair(absl::Milliseconds(milliseconds), ticks);
  };
  const Bytes after = stream(5'000'000'000, 1'000'000'000, {5'000'000'000});
  const Bytes before = stream(5'000'000'000, 1'000'000'000, {4'999'999'999, 6'000'000'000});
  EXPECT_EQ(sync(Merged(after)), expected(0, 5'000'000'000));
  EXPECT_EQ(sync(Merged(before)), expected(-1, 4'999'000'000));
  // The clock does not have a whole number of ticks in a millisecond.
  EXPECT_EQ(sync(Merged(stream(50'000, 10'001, {49'999}))), expected(-1000, 39'999));
  EXPECT_EQ(sync(Merged({after.span(), before.span()})), expected(-1, 4'999'000'000));
  EXPECT_EQ(sync(Merged({before.span(), after.span()})), expected(-1, 4'999'000'000));
  // The event of `old` is 0.5 s before the sync time, so on the clock of `young` it has a negative
  // time. The clock of the output therefore begins at this event.
  const Bytes young = stream(100, 1'000'000'000, {200});
  const Bytes old = stream(900'000'000, 1'000'000'000, {400'000'000});
  const Merged merged({young.span(), old.span()});
  EXPECT_EQ(sync(merged), expected(-500, 0));
  EXPECT_EQ(Times(merged), (std::vector<std::uint64_t>{0, 500'000'100}));
}

TEST(Merger, RowsOfOneIdThatAgreeKeepIt) {
  const auto level = [](unsigned value) { return Bytes().U8(8).U8(value); };
  const Bytes stream =
      Start()
          .Append(MetadataBlock({{.id = 1, .event_id = 0, .name = "Sample"},
                                 {.id = 2, .event_id = 0, .name = "Sample", .optional = level(5)},
                                 {.id = 3, .event_id = 0, .name = "Other"}}))
          .Append(ThreadBlock({1}))
          .Append(EventBlock({{.metadata_id = 1},
                              {.metadata_id = 2, .sequence = 2},
                              {.metadata_id = 3, .sequence = 3}}))
          .Append(End());
  const Merged merged(stream);
  EXPECT_EQ(merged.CleanStats().metadata, 3u);
  const auto reader = merged.Read();
  std::vector<std::uint32_t> ids;
  while (reader->Next() == Step::kEvent) ids.push_back(reader->event().metadata->event_id);
  const std::uint32_t given = internal::HashedEventId("Other", {}, 0);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{0, 0, given}));
}

std::vector<std::pair<std::uint32_t, std::string>> IdsAndNames(const Merged& merged) {
  std::vector<std::pair<std::uint32_t, std::string>> rows;
  const auto reader = merged.Read();
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    const EventMetadata& row = *reader->event().metadata;
    rows.emplace_back(row.event_id, row.provider + "/" + row.name);
  }
  return rows;
}

Bytes OneEvent(const MetadataFields& metadata, std::uint64_t time = 2000) {
  return Start()
      .Append(MetadataBlock({metadata}))
      .Append(ThreadBlock({1}))
      .Append(EventBlock({{.timestamp = time}}))
      .Append(End());
}

TEST(Merger, ProvidersThatTraceEventTakesForOneGetDifferentIds) {
  const Bytes upper = OneEvent({.provider = "PROVIDER"});
  const Bytes lower = OneEvent({.provider = "provider"}, 2001);
  const auto rows = IdsAndNames(Merged({upper.span(), lower.span()}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0], std::pair(7u, std::string("PROVIDER/Event")));
  EXPECT_EQ(rows[1].second, "provider/Event");
  EXPECT_NE(rows[1].first, 7u);
}

// TraceEvent identifies events of Universal.System by id, those of Universal.Events by name.
TEST(Merger, UniversalProvidersKeepTheIdsOrNamesThatTraceEventUses) {
  const Bytes one = OneEvent({.provider = "Universal.System", .event_id = 0, .name = "A"});
  const Bytes other = OneEvent({.provider = "Universal.System", .event_id = 0, .name = "B"}, 2001);
  const auto system = IdsAndNames(Merged({one.span(), other.span()}));
  ASSERT_EQ(system.size(), 2u);
  EXPECT_EQ(system[0].first, 0u);
  EXPECT_EQ(system[1].first, 0u);

  const Bytes disk1 = OneEvent({.provider = "Universal.Events", .event_id = 1, .name = "disk"});
  const Bytes disk2 =
      OneEvent({.provider = "Universal.Events", .event_id = 2, .name = "disk"}, 2001);
  const Merged disk({disk1.span(), disk2.span()});
  EXPECT_EQ(disk.CleanStats().events, 2u);
  EXPECT_EQ(IdsAndNames(disk), (std::vector<std::pair<std::uint32_t, std::string>>{
                                   {1, "Universal.Events/disk"}, {1, "Universal.Events/disk"}}));
}

// TraceEvent cannot open a file with two rows that have the same name and different fields, in
// either order.
TEST(Merger, RowsOfUniversalEventsThatCannotShareAnIdLoseOnlyTheirEvents) {
  const Bytes field = FieldRow("Value", Code(TypeCode::kVarUInt));
  const auto disk = [&](std::uint64_t id, std::vector<Bytes> fields, std::uint64_t time) {
    return OneEvent({.provider = "Universal.Events",
                     .event_id = id,
                     .name = "disk",
                     .fields = std::move(fields)},
                    time);
  };
  const Bytes first = disk(1, {}, 2000);
  for (const std::uint64_t id : {1, 2}) {
    const Bytes second = disk(id, {field}, 2001);
    const Merged merged({first.span(), second.span()});
    EXPECT_EQ(merged.CleanStats().events, 1u);
    EXPECT_EQ(merged.Stats().lost, 1u);
    EXPECT_EQ(merged.merger().not_as_it_was(0).not_kept, 0u);
    EXPECT_EQ(merged.merger().not_as_it_was(1).not_kept, 1u);
    EXPECT_EQ(merged.merger().not_as_it_was(1).why_not_kept.find("Universal.Events/disk: another"),
              0u);
  }
}

TEST(Merger, RowsOfUniversalEventsKeepTheirNamesWhereTheirIdsAreSwapped) {
  const auto row = [](std::uint64_t id, std::string name) {
    return MetadataFields{.provider = "Universal.Events", .event_id = id, .name = std::move(name)};
  };
  const Bytes first = OneEvent(row(1, "disk"));
  const Bytes second = OneEvent(row(2, "net"), 2001);
  const Bytes third = OneEvent(row(1, "net"), 2002);
  const Merged merged({first.span(), second.span(), third.span()});
  merged.CleanStats();
  EXPECT_EQ(
      IdsAndNames(merged),
      (std::vector<std::pair<std::uint32_t, std::string>>{
          {1, "Universal.Events/disk"}, {2, "Universal.Events/net"}, {2, "Universal.Events/net"}}));
}

// Returns the stream of the corpus, with the only field of its event changed to a DateTime.
std::string V5WithDateTime() {
  std::ifstream file(testing::CorpusFile("v5"), std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  const std::string_view array("\x13\0\0\0\x09\0\0\0", 8);
  const std::size_t at = bytes.find(array);
  EXPECT_NE(at, std::string::npos);
  if (at != std::string::npos) bytes[at] = static_cast<char>(TypeCode::kDateTime);
  return bytes;
}

// A DateTime has 8 bytes in V5, 16 in V6.
TEST(Merger, RowsThatDifferOnlyInPayloadEncodingStaySeparate) {
  const std::string v5 = V5WithDateTime();
  const auto v5_reader = OpenBytes(std::as_bytes(std::span(v5)));
  ASSERT_EQ(v5_reader->Next(), Step::kEvent);
  const EventMetadata row = *v5_reader->event().metadata;
  const Bytes v6 =
      Start()
          .Append(MetadataBlock({{.provider = row.provider,
                                  .event_id = row.event_id,
                                  .name = row.name,
                                  .fields = {FieldRow("a", Code(TypeCode::kDateTime))},
                                  .optional = Bytes().U8(8).U8(row.level.value_or(0))}}))
          .Append(ThreadBlock({1}))
          .Append(EventBlock({{}}))
          .Append(End());
  const auto v6_reader = OpenBytes(v6.span());
  ASSERT_EQ(v6_reader->Next(), Step::kEvent);
  ASSERT_EQ(v6_reader->event().metadata->fields, row.fields);

  const std::span<const std::byte> v5_bytes = std::as_bytes(std::span(v5));
  for (const auto& inputs :
       {std::vector{v5_bytes, v6.span(), v5_bytes}, std::vector{v6.span(), v5_bytes, v6.span()}}) {
    const Merged merged(inputs);
    EXPECT_EQ(merged.Stats().metadata, 2u);
    std::map<TypeCode, std::set<std::uint32_t>> ids;
    const auto reader = merged.Read();
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const EventMetadata& copy = *reader->event().metadata;
      ids[copy.fields.at(0).type.code].insert(copy.event_id);
    }
    ASSERT_EQ(ids.size(), 2u);
    EXPECT_EQ(ids[TypeCode::kUInt64].size(), 1u);
    EXPECT_EQ(ids[TypeCode::kDateTime].size(), 1u);
    EXPECT_NE(ids[TypeCode::kUInt64], ids[TypeCode::kDateTime]);
  }
}

TEST(Merger, EventsBeforeTheStartHaveTheFirstTimestampThatIsNotBeforeIt) {
  // The clock has 10 ticks in a second.
  const Bytes stream = Start({.sync_ticks = 5, .frequency = 10})
                           .Append(MetadataBlock({{}}))
                           .Append(ThreadBlock({1}))
                           .Append(EventBlock({{.timestamp = 6}, {.sequence = 2, .timestamp = 20}}))
                           .Append(End());
  const absl::Time sync = OpenBytes(stream.span())->trace().sync_time;
  const auto first = [&](absl::Time start) {
    const Merged merged(stream, {.start = start});
    EXPECT_EQ(merged.merger().not_as_it_was(0).moved, 0u);
    return merged.CleanStats().first_timestamp;
  };
  EXPECT_EQ(first(sync + absl::Milliseconds(1000)), 15u);
  EXPECT_EQ(first(sync + absl::Milliseconds(1000) + absl::Nanoseconds(1)), 16u);
  EXPECT_EQ(first(sync + absl::Milliseconds(1001)), 16u);
  EXPECT_EQ(first(sync - absl::Milliseconds(1)), 6u);
  EXPECT_EQ(first(absl::InfinitePast()), 6u);
  EXPECT_GT(first(absl::InfiniteFuture()), 1'000'000'000'000u);
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

TEST(Merger, ReusedThreadIndexStaysTwoThreads) {
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

TEST(Merger, EventsThatAreAddedAtTheEndFollowEveryCut) {
  MergerOptions options;
  bool complete = false;
  options.add_at_end = [&](const Reader& input) {
    complete = input.stats().complete;
    AddedEvent event;
    event.metadata.provider = "Added";
    event.metadata.name = "AtEnd";
    event.metadata.fields = {{"Byte", Type::Simple(TypeCode::kByte)}};
    event.payload = {std::byte{42}};
    event.thread = "adder";
    return std::vector<AddedEvent>{event, event};
  };
  const Bytes whole = GoodStream();
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    SCOPED_TRACE(cut);
    const auto bytes = whole.span().first(cut);
    const Merged merged({bytes}, options);
    const Reader::Stats expected = StatsAtEnd(bytes);
    EXPECT_EQ(complete, expected.complete);
    const Reader::Stats stats = merged.CleanStats();
    EXPECT_EQ(stats.events, expected.events + 2);
    EXPECT_EQ(stats.lost, expected.lost);
    const auto reader = merged.Read();
    std::vector<std::uint64_t> added;
    std::uint64_t last = 0;
    while (reader->Next() != Step::kEnd) {
      if (reader->stats().events == 0 || reader->event().metadata == nullptr) continue;
      const Event& event = reader->event();
      if (event.metadata->provider != "Added") {
        last = std::max(last, event.timestamp);
        continue;
      }
      EXPECT_EQ(event.thread->name, "adder");
      EXPECT_EQ(event.processor, kNoProcessor);
      ASSERT_EQ(event.payload.size(), 1u);
      EXPECT_EQ(event.payload[0], std::byte{42});
      added.push_back(event.timestamp);
      if (added.size() == 2) break;
    }
    ASSERT_EQ(added.size(), 2u);
    EXPECT_GE(added[0], last);
  }
}

TEST(Merger, InputThatEndsAtTheMaximumTimeLeavesNoTimeForAnAddedEvent) {
  MergerOptions options;
  options.add_at_end = [](const Reader&) {
    AddedEvent event;
    event.metadata.provider = "Added";
    event.metadata.name = "AtEnd";
    return std::vector<AddedEvent>{event};
  };
  const Bytes input = Start({})
                          .Append(MetadataBlock({{}}))
                          .Append(ThreadBlock({1}))
                          .Append(EventBlock({{}}))
                          .Append(SequencePointBlock(kMaxTimestamp))
                          .Append(End());
  const Merged merged(input, options);
  EXPECT_EQ(merged.CleanStats().events, 1u);
}

TEST(Merger, TheClocksOfInputsAreBroughtTogether) {
  const auto one_event = [](std::int64_t sync, std::int64_t frequency, std::uint64_t time) {
    return Start({.sync_ticks = sync, .frequency = frequency})
        .Append(MetadataBlock({{}}))
        .Append(ThreadBlock({1}))
        .Append(EventBlock({{.timestamp = time}}))
        .Append(End());
  };
  // The events are 2 seconds and 1 second after the same sync time, on clocks of other frequencies.
  const Bytes later = one_event(1000, 1'000'000'000, 2'000'001'000);
  const Bytes earlier = one_event(5, 10, 15);
  const Reader::Stats stats = Merged({later.span(), earlier.span()}).CleanStats();
  EXPECT_EQ(stats.events, 2u);
  EXPECT_EQ(stats.metadata, 1u) << "the rows of both inputs are the same";
  EXPECT_EQ(stats.first_timestamp, 1'000'001'000u);
  EXPECT_EQ(stats.last_timestamp, 2'000'001'000u);
}

// Returns a stream with events at these times.
Bytes EventsAt(const std::vector<std::uint64_t>& times) {
  Bytes stream = Start({.sync_ticks = 0, .frequency = 1'000'000'000});
  stream.Append(MetadataBlock({{}})).Append(ThreadBlock({1}));
  std::uint32_t number = 0;
  for (const std::uint64_t time : times) {
    stream.Append(EventBlock({{.sequence = ++number, .timestamp = time}}));
  }
  return stream.Append(End());
}

// Counts the readers of an input: those that exist, the most at any time, and all since the start.
struct OpenCounts {
  int open = 0;
  int most = 0;
  int total = 0;
};

class CountedSource : public MemorySource {
 public:
  CountedSource(std::span<const std::byte> bytes, OpenCounts* counts)
      : MemorySource(bytes), counts_(*counts) {
    ++counts_.total;
    counts_.most = std::max(counts_.most, ++counts_.open);
  }
  ~CountedSource() override { --counts_.open; }

 private:
  OpenCounts& counts_;
};

TEST(Merger, InputsThatAreOpenedLaterGiveTheSameOutputAndAreClosed) {
  const std::vector<Bytes> streams = {EventsAt({500, 600}), EventsAt({100, 200}), EventsAt({}),
                                      EventsAt({300, 400}), EventsAt({700, 800})};
  std::vector<std::span<const std::byte>> spans;
  OpenCounts counts;
  Merger later;
  for (const Bytes& stream : streams) {
    spans.push_back(stream.span());
    later.AddInput([span = stream.span(), &counts] {
      return Reader::Open(std::make_unique<CountedSource>(span, &counts));
    });
  }
  std::vector<std::byte> bytes;
  const auto keep = [&bytes](std::span<const std::byte> piece, std::size_t* taken) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    *taken = piece.size();
    return absl::OkStatus();
  };
  ASSERT_EQ(later.Run(std::make_unique<CallbackSink>(keep)), absl::OkStatus());
  EXPECT_EQ(counts.open, 0);
  EXPECT_EQ(counts.most, 1) << "no two inputs have events at the same time";
  EXPECT_EQ(counts.total, 10);
  const auto reader = OpenBytes(bytes);
  const Merged merged(spans);
  const auto expected = merged.Read();
  std::vector<std::uint64_t> times;
  std::vector<std::uint64_t> expected_times;
  while (reader->Next() != Step::kEnd) times.push_back(reader->stats().last_timestamp.value_or(0));
  while (expected->Next() != Step::kEnd) {
    expected_times.push_back(expected->stats().last_timestamp.value_or(0));
  }
  EXPECT_EQ(times, expected_times);
  EXPECT_EQ(reader->stats().events, 8u);
  for (std::size_t i = 0; i < streams.size(); ++i) EXPECT_EQ(later.status(i), absl::OkStatus());
}

TEST(Merger, AnInputThatCannotBeOpenedLaterIsNamed) {
  const Bytes good = GoodStream();
  int opened = 0;
  Merger merger;
  merger.AddInput([&good] { return Reader::Open(std::make_unique<MemorySource>(good.span())); });
  merger.AddInput([&]() -> absl::StatusOr<std::unique_ptr<Reader>> {
    if (++opened == 2) return absl::NotFoundError("is gone");
    return Reader::Open(std::make_unique<MemorySource>(good.span()));
  });
  EXPECT_TRUE(absl::IsNotFound(merger.Run(std::make_unique<MemorySink>())));
  EXPECT_EQ(merger.failed_input(), 1u);
}

TEST(Merger, TheOutputHasTheKeyValuesOfAllInputs) {
  const auto stream = [](std::string cpus, std::string pid, std::string key, std::string value) {
    testing::WriterToString out({}, {.sync_time = absl::FromUnixSeconds(1'700'000'000),
                                     .key_values = {{"HardwareThreadCount", std::move(cpus)},
                                                    {"ProcessId", pid},
                                                    {"HostName", "host"},
                                                    {"BootId", std::move(pid)},
                                                    {std::move(key), std::move(value)}}});
    EXPECT_TRUE(out.writer->Finish().ok());
    return *out.written;
  };
  const std::string streams[] = {stream("2", "7", "A", "a"), stream("64", "7", "B", "b"),
                                 stream("8", "9", "A", "c")};
  std::vector<std::span<const std::byte>> inputs;
  for (const std::string& bytes : streams) inputs.push_back(testing::Span(bytes));
  EXPECT_EQ(
      Merged(inputs).Read()->trace().key_values,
      (KeyValues{{"HardwareThreadCount", "64"}, {"HostName", "host"}, {"A", "a"}, {"B", "b"}}));
}

TEST(Merger, ThreadsOfDifferentHostsAndBootsHaveTheirHost) {
  const auto stream = [](std::string host, std::string boot, KeyValues thread_keys) {
    testing::WriterToString out({}, {.sync_time = absl::FromUnixSeconds(1'700'000'000),
                                     .key_values = {{"HostName", host}, {"BootId", boot}}});
    ThreadInfo thread;
    thread.process_id = 7;
    thread.key_values = std::move(thread_keys);
    const auto index = *out.writer->AddThread(thread);
    const auto metadata = *out.writer->AddMetadata(testing::SmallMetadata(1));
    EventRow row;
    row.metadata_id = metadata;
    row.capture_thread = row.thread = index;
    EXPECT_TRUE(out.writer->WriteEvent(row, {}).ok());
    EXPECT_TRUE(out.writer->Finish().ok());
    return *out.written;
  };
  const auto keys = [](const std::vector<std::string>& streams) {
    std::vector<std::span<const std::byte>> inputs;
    inputs.reserve(streams.size());
    for (const std::string& bytes : streams) inputs.push_back(testing::Span(bytes));
    const Merged merged(inputs);
    merged.CleanStats();
    const auto reader = merged.Read();
    std::vector<KeyValues> all;
    while (reader->Next() == Step::kEvent) all.push_back(reader->event().thread->key_values);
    return all;
  };
  const std::string a = stream("a", "1", {{"Unit", "shop"}});
  const std::string b = stream("b", "2", {});
  const std::string a_again = stream("a", "3", {});
  // The result of an earlier merge.
  const std::string c = stream("", "", {{"HostName", "c"}, {"BootId", "4"}});
  EXPECT_EQ(keys({a, a}), std::vector<KeyValues>(2, {{"Unit", "shop"}}));
  EXPECT_EQ(keys({a, b}),
            (std::vector<KeyValues>{{{"Unit", "shop"}, {"HostName", "a"}, {"BootId", "1"}},
                                    {{"HostName", "b"}, {"BootId", "2"}}}));
  EXPECT_EQ(keys({a_again, a, c}),
            (std::vector<KeyValues>{{{"HostName", "a"}, {"BootId", "3"}},
                                    {{"Unit", "shop"}, {"HostName", "a"}, {"BootId", "1"}},
                                    {{"HostName", "c"}, {"BootId", "4"}}}));
  // A name that would make each thread row large is cut.
  EXPECT_EQ(keys({b, stream(std::string(60'000, 'h'), "1", {})})[1][0].second.size(), 256u);
}

TEST(Merger, EventsAreAddedAtTheEndForInputsThatAreOpenedLater) {
  const Bytes good = GoodStream();
  MergerOptions options;
  std::vector<bool> complete;
  options.add_at_end = [&complete](const Reader& input) {
    complete.push_back(input.stats().complete);
    AddedEvent event;
    event.metadata.provider = "Added";
    event.metadata.name = "AtEnd";
    return std::vector<AddedEvent>{event};
  };
  Merger merger(std::move(options));
  for (const std::size_t size : {good.size(), good.size() - 1}) {
    merger.AddInput([bytes = good.span().first(size)] {
      return Reader::Open(std::make_unique<MemorySource>(bytes));
    });
  }
  ASSERT_EQ(merger.Run(std::make_unique<MemorySink>()), absl::OkStatus());
  EXPECT_EQ(complete.size(), 2u);
  EXPECT_EQ(std::count(complete.begin(), complete.end(), true), 1);
  EXPECT_EQ(merger.stats().events, 2 * StatsAtEnd(good.span()).events + 2);
}

// The order of the inputs must not matter, even if the first one's clock began after the events of
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
  merger.AddInput(OpenBytes(stream.span()));
  const absl::Status status = merger.Run(std::make_unique<MemorySink>());
  EXPECT_NE(status.message().find("/nowhere/at/all"), std::string::npos) << status;
}

TEST(Merger, ReturnsErrorsOfTheSink) {
  const Bytes stream = GoodStream();
  Merger merger;
  merger.AddInput(OpenBytes(stream.span()));
  const auto refuse = [](std::span<const std::byte>, std::size_t*) {
    return absl::ResourceExhaustedError("full");
  };
  EXPECT_TRUE(absl::IsResourceExhausted(merger.Run(std::make_unique<CallbackSink>(refuse))));
}

TEST(Merger, NoInputIsAnError) {
  Merger merger;
  EXPECT_TRUE(absl::IsInvalidArgument(merger.Run(std::make_unique<MemorySink>())));
}

// Returns a stream with two events that describe code: a mapping with the id 7 and the metadata id
// `metadata`, and a function in this mapping. `rest` follows the values of the function.
Bytes CodeStream(std::uint64_t metadata, const Bytes& rest) {
  const auto number = [](const char* field) { return FieldRow(field, Code(TypeCode::kVarUInt)); };
  const Bytes text = FieldRow("Name", Code(TypeCode::kArray).Append(Code(TypeCode::kUtf8CodeUnit)));
  const auto name = [](std::string_view value) {
    return Bytes().U16(static_cast<unsigned>(value.size())).Raw(value);
  };
  const Bytes mapping = Bytes().Var(7).Var(0x1000).Var(0x1fff).Append(name("a")).Var(metadata);
  const Bytes function = Bytes().Var(9).Var(7).Append(name("main")).Append(rest);
  return Start()
      .Append(MetadataBlock(
          {{1,
            "Universal.System",
            3,
            "ProcessMapping",
            {number("Id"), number("StartAddress"), number("EndAddress"), text,
             number("MetadataId")}},
           {2, "Universal.System", 4, "ProcessSymbol", {number("Id"), number("MappingId"), text}}}))
      .Append(ThreadBlock({1}))
      .Append(
          EventBlock({{.payload = mapping},
                      {.metadata_id = 2, .sequence = 2, .timestamp = 2010, .payload = function}}))
      .Append(End());
}

std::multiset<std::string> PayloadsOf(Reader* reader) {
  std::multiset<std::string> payloads;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent) continue;
    const auto payload = reader->event().payload;
    payloads.emplace(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  return payloads;
}

TEST(Merger, CodeOfEachInputHasOtherIds) {
  const Bytes first = CodeStream(0, Bytes());
  const Bytes second = CodeStream(5, Bytes().Raw("more"));
  const Merged merged({first.span(), second.span()});
  const std::string range = std::string("\x80\x20\xff\x3f\x01\0a", 7);
  const std::string main("\x04\0main", 6);
  EXPECT_EQ(
      PayloadsOf(merged.Read().get()),
      (std::multiset<std::string>{"\x0e" + range + std::string(1, '\0'), "\x0f" + range + "\x0b",
                                  "\x12\x0e" + main, "\x13\x0f" + main + "more"}));
}

TEST(Merger, CodeOfASingleInputKeepsItsIds) {
  const Bytes stream = CodeStream(5, Bytes().Raw("more"));
  EXPECT_EQ(PayloadsOf(Merged(stream).Read().get()), PayloadsOf(OpenBytes(stream.span()).get()));
}

TEST(Merger, CodeWithIdsThatAreTooLargeIsCopiedUnchanged) {
  const Bytes stream = CodeStream(~std::uint64_t{0}, Bytes());
  const Merged merged({stream.span(), GoodStream().span()});
  const std::multiset<std::string> payloads = PayloadsOf(merged.Read().get());
  EXPECT_EQ(std::count_if(payloads.begin(), payloads.end(),
                          [](const std::string& each) { return each.starts_with("\x07\x80\x20"); }),
            1);
}

}  // namespace
}  // namespace nettrace
