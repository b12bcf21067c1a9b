#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "nettrace/source.h"
#include "nettrace/writer.h"
#include "tools/trace/ring_positions.h"

namespace trace {
namespace {

RingWriterId WriterNumber(std::uint64_t ordinal) {
  RingWriterId writer;
  writer.region.fill(std::byte{0x5A});
  writer.ordinal = ordinal;
  return writer;
}

// Writes a file as a session does. Each event of a writer is recorded, and numbered from 0. Units
// are those of ring_positions.h: recorded events, and losses that the sequence numbers show.
class PositionsFile {
 public:
  PositionsFile() {
    auto sink = std::make_unique<nettrace::MemorySink>();
    sink_ = sink.get();
    nettrace::TraceInfo info;
    info.sync_time = absl::FromUnixSeconds(1'700'000'000);
    info.ticks_per_second = 1'000'000'000;
    writer_ = *nettrace::Writer::Create(std::move(sink), info);
    MakeRows();
  }

  void Write(std::uint64_t ordinal, int count = 1) {
    Source& source = FindSource(ordinal);
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(writer_
                      ->WriteEvent({.metadata_id = event_,
                                    .capture_thread = *source.row,
                                    .thread = *source.row,
                                    .timestamp = time_},
                                   {})
                      .ok());
      ++source.number;
    }
    source.pending = 0;
  }
  void Lose(std::uint64_t ordinal, std::uint64_t count) {
    Source& source = FindSource(ordinal);
    ASSERT_TRUE(writer_->AddLost(*source.row, count).ok());
    source.number += count;
    source.pending += count;
  }
  void Record(bool all = false) {
    RingRecord record;
    for (auto& [ordinal, source] : sources_) {
      if (!all && source.recorded == source.number) continue;
      source.recorded = source.number;
      record[WriterNumber(ordinal)] = {source.number, source.number + Base(ordinal), source.pending,
                                       0, 0};
    }
    Append(record);
  }
  void Append(const RingRecord& record) {
    ASSERT_TRUE(writer_->Flush().ok());
    for (const std::vector<std::byte>& payload : RingPositionsPayloads(record)) {
      ASSERT_TRUE(writer_
                      ->WriteEvent({.metadata_id = positions_,
                                    .capture_thread = collector_,
                                    .thread = collector_,
                                    .processor = nettrace::kNoProcessor,
                                    .timestamp = time_},
                                   payload)
                      .ok());
    }
    ASSERT_TRUE(writer_->Flush().ok());
  }
  void EndInterval() {
    ASSERT_TRUE(writer_->WriteSequencePoint(++time_).ok());
    for (auto& [ordinal, source] : sources_) source.pending = 0;
  }
  void BeginSection() {
    ASSERT_TRUE(writer_->StartSection(++time_).ok());
    for (auto& [ordinal, source] : sources_) {
      source.pending = 0;
      source.row.reset();
    }
    MakeRows();
    Record(/*all=*/true);
  }

  std::span<const std::byte> bytes() const { return sink_->bytes(); }

 private:
  struct Source {
    std::optional<nettrace::ThreadIndex> row;
    std::uint64_t number = 0;
    std::uint64_t recorded = 0;
    std::uint64_t pending = 0;
  };

  // Number of a writer's first unit.
  static std::uint64_t Base(std::uint64_t ordinal) { return 1000 * ordinal; }

  void MakeRows() {
    nettrace::EventMetadata metadata;
    metadata.provider = "Shop";
    metadata.event_id = 1;
    metadata.name = "Order";
    event_ = *writer_->AddMetadata(metadata);
    positions_ = *writer_->AddMetadata(RingPositionsMetadata());
    collector_ = *writer_->AddThread({});
  }
  Source& FindSource(std::uint64_t ordinal) {
    Source& source = sources_[ordinal];
    if (!source.row) {
      nettrace::ThreadInfo info;
      info.name = std::to_string(ordinal);
      info.key_values.emplace_back(
          kRingThreadKey, RingThreadValue(RingThreadSource(WriterNumber(ordinal)), source.number,
                                          source.number + Base(ordinal)));
      source.row = *writer_->AddThread(info);
    }
    return source;
  }

  nettrace::MemorySink* sink_ = nullptr;
  std::unique_ptr<nettrace::Writer> writer_;
  nettrace::MetadataId event_{};
  nettrace::MetadataId positions_{};
  nettrace::ThreadIndex collector_{};
  std::uint64_t time_ = 1;
  std::map<std::uint64_t, Source> sources_;
};

struct Result {
  bool has_positions = false;
  bool has_ended = false;
  RingPositions positions;
  std::map<std::uint64_t, std::uint64_t> units;  // units in the file, by ordinal of the writer
};

std::optional<Result> ReadFile(std::span<const std::byte> bytes) {
  auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
  if (!reader.ok()) return std::nullopt;
  RingPositionReader found;
  Result result;
  const auto add = [&](const nettrace::ThreadInfo* thread, std::uint64_t count) {
    if (thread->name) result.units[std::stoull(*thread->name)] += count;
  };
  for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
       step = (*reader)->Next()) {
    found.Add(**reader, step);
    if (step == nettrace::Reader::Step::kEvent) {
      add((*reader)->event().capture_thread, (*reader)->event().lost_before + 1);
    } else if (step == nettrace::Reader::Step::kSequencePoint) {
      for (const auto& loss : (*reader)->sequence_point().losses) add(loss.thread, loss.count);
    }
  }
  result.has_positions = found.HasPositions();
  result.has_ended = found.HasEnded();
  result.positions = found.Positions();
  return result;
}

TEST(RingPositions, AgreeWithTheEventsOfAFileThatIsCutAnywhere) {
  PositionsFile file;
  file.Record(/*all=*/true);
  file.Write(1, 3);
  file.Write(2);
  file.Record();
  file.Lose(1, 4);
  file.Lose(2, 2);
  file.Lose(3, 5);
  file.Record();
  file.Write(1);
  file.Record();
  file.EndInterval();
  file.Write(3, 2);
  file.Write(1, 2);
  file.BeginSection();
  file.Write(2, 2);
  file.Record();
  file.Lose(2, 1);
  file.Write(1, 5);
  file.EndInterval();
  file.Record();
  file.Write(4);
  file.EndInterval();
  for (std::size_t size = 0; size <= file.bytes().size(); ++size) {
    SCOPED_TRACE(size);
    const auto result = ReadFile(file.bytes().first(size));
    if (!result) continue;
    for (const auto& [ordinal, units] : result->units) {
      EXPECT_TRUE(result->positions.contains(WriterNumber(ordinal)));
    }
    for (const auto& [writer, position] : result->positions) {
      // A writer with only losses is not in `units` if the file is cut before the sequence point
      // that reports these losses.
      const auto units = result->units.find(writer.ordinal);
      EXPECT_EQ(position.number + position.skip - position.owed,
                units == result->units.end() ? 0 : units->second);
    }
  }
}

TEST(RingPositions, FileWithoutPositionsHasNone) {
  PositionsFile file;
  file.EndInterval();
  EXPECT_FALSE(ReadFile(file.bytes())->has_positions);
  file.Record(/*all=*/true);
  EXPECT_TRUE(ReadFile(file.bytes())->has_positions);
  EXPECT_TRUE(ReadFile(file.bytes())->positions.empty());
}

TEST(RingPositions, RecordThatARepairHasAddedCountsAllEvents) {
  PositionsFile file;
  file.Write(7, 5);
  const RingPositions positions = {{WriterNumber(7), {3, 2, 0}}, {WriterNumber(8), {6, 0, 4}}};
  file.Append(RecordOf({positions, RecordedRings::Ending::kInterrupted}));
  EXPECT_EQ(ReadFile(file.bytes())->positions, positions);
  EXPECT_FALSE(ReadFile(file.bytes())->has_ended);
  file.Append(RecordOf({positions, RecordedRings::Ending::kEnded}));
  EXPECT_EQ(ReadFile(file.bytes())->positions, positions);
  EXPECT_TRUE(ReadFile(file.bytes())->has_ended);
}

TEST(RingPositions, EndMarkChangesNoPosition) {
  PositionsFile file;
  file.Record(/*all=*/true);
  file.Write(1, 3);
  file.EndInterval();
  const auto before = ReadFile(file.bytes());
  file.Append(EndRecord());
  const auto after = ReadFile(file.bytes());
  EXPECT_FALSE(before->has_ended);
  EXPECT_TRUE(after->has_ended);
  EXPECT_EQ(after->positions, before->positions);
}

TEST(RingPositions, RecordOfManyWritersHoldsOnlyIfItIsWhole) {
  RingRecord record;
  for (std::uint64_t ordinal = 0; ordinal < 3000; ++ordinal) {
    RingWriterId writer = WriterNumber(ordinal);
    writer.region[0] = static_cast<std::byte>(ordinal / 1500);
    record[writer] = {ordinal * 2, kAllUnits, 0, 0, 0};
  }
  EXPECT_EQ(RingPositionsPayloads(record).size(), 4U);
  PositionsFile file;
  file.Append({});
  const std::size_t before = file.bytes().size();
  file.Append(record);
  EXPECT_EQ(ReadFile(file.bytes())->positions.size(), 3000U);
  for (std::size_t size = before; size < file.bytes().size(); size += 997) {
    EXPECT_TRUE(ReadFile(file.bytes().first(size))->positions.empty());
  }
}

TEST(RingPositions, NumberOfWritersIsBounded) {
  RingRecord record;
  for (std::uint64_t ordinal = 0; ordinal < kMaxRingPositions + 10; ++ordinal) {
    record[WriterNumber(ordinal)] = {};
  }
  PositionsFile file;
  file.Append(record);
  EXPECT_EQ(ReadFile(file.bytes())->positions.size(), kMaxRingPositions);
}

}  // namespace
}  // namespace trace
