#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "tests/support/collector/numbered_stream.h"
#include "tools/output/flight_recorder.h"
#include "tools/output/zstd_sink.h"

namespace output {
namespace {

using collector::testing::AreNumbers;
using collector::testing::ExpectVerifies;
using collector::testing::FileContents;
using collector::testing::NumberedStream;
using collector::testing::PathsIn;
using collector::testing::ReadContents;
using collector::testing::TemporaryDirectory;

class FlightRecorderTest : public ::testing::Test {
 protected:
  FlightRecorderTest() {
    options_.files.directory = temporary_.path() + "/snapshots";
    options_.session = "flight";
    options_.keep_bytes = FlightRecorder::kMinKeepBytes;
  }
  void Open() {
    auto recorder = FlightRecorder::Create(options_);
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    recorder_ = *std::move(recorder);
    std::unique_ptr<nettrace::Sink> sink = std::make_unique<FlightSink>(recorder_);
    if (options_.compressed) sink = *ZstdSink::Create(std::move(sink), {*options_.compressed});
    stream_ = std::make_unique<NumberedStream>(std::move(sink));
  }
  // Writes events until the snapshot is complete.
  absl::StatusOr<FlightRecorder::Snapshot> TakeSnapshot() {
    auto snapshot = std::async(std::launch::async,
                               [this] { return recorder_->WriteSnapshot(absl::Seconds(60)); });
    while (snapshot.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
      stream_->Write(10);
    }
    return snapshot.get();
  }
  // Checks that the file is complete, and has at least `at_least` consecutive numbers.
  void ExpectLast(const FlightRecorder::Snapshot& snapshot, std::uint64_t at_least) {
    ExpectVerifies(snapshot.path);
    const FileContents contents = ReadContents(snapshot.path);
    EXPECT_TRUE(contents.complete);
    ASSERT_FALSE(contents.numbers.empty());
    const std::uint64_t first = contents.numbers.front();
    EXPECT_GE(contents.numbers.size(), at_least);
    EXPECT_TRUE(AreNumbers(contents.numbers, first, first + contents.numbers.size()));
    EXPECT_LE(snapshot.since, snapshot.until);
    EXPECT_LE(snapshot.until, absl::Now());
  }

  TemporaryDirectory temporary_;
  FlightRecorderOptions options_;
  std::shared_ptr<FlightRecorder> recorder_;
  std::unique_ptr<NumberedStream> stream_;
};

TEST_F(FlightRecorderTest, KeepsTheLatestEventsThatFitIntoItsMemory) {
  Open();
  std::uint64_t largest = 0;
  for (int i = 0; i < 2000; ++i) {
    stream_->Write(100);
    ASSERT_LE(recorder_->state().memory_bytes, options_.keep_bytes);
    largest = std::max(largest, recorder_->state().memory_bytes);
  }
  EXPECT_GT(largest, options_.keep_bytes * 3 / 4);
  const std::uint64_t before = stream_->written();
  const auto snapshot = TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ExpectLast(*snapshot, 20'000);
  const FileContents contents = ReadContents(snapshot->path);
  EXPECT_GE(contents.numbers.back() + 1, before) << "the end is missing";
  EXPECT_GT(contents.numbers.front(), 0u);
  EXPECT_EQ(recorder_->state().discarded, 0u);
  EXPECT_EQ(recorder_->state().snapshots, 1u);
  EXPECT_EQ(recorder_->state().files.files, 1u);
}

TEST_F(FlightRecorderTest, CompressedMemoryHoldsMoreAndTheFileIsUnchanged) {
  options_.compressed = 1;
  Open();
  for (int i = 0; i < 500; ++i) stream_->Write(100);
  const auto snapshot = TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(snapshot->path.ends_with(".nettrace.zst"));
  ExpectLast(*snapshot, 30'000);
  EXPECT_LE(recorder_->state().memory_bytes, options_.keep_bytes);
}

TEST_F(FlightRecorderTest, DropsOldEvents) {
  options_.keep_time = absl::Milliseconds(800);
  Open();
  stream_->Write(1000);
  stream_->Write(1);
  for (int i = 0; i < 60; ++i) {
    usleep(20'000);
    stream_->Write(1);
  }
  // This check is before TakeSnapshot, because each Write begins a section while a snapshot waits.
  EXPECT_LT(recorder_->state().sections, 50u);
  const auto snapshot = TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const FileContents contents = ReadContents(snapshot->path);
  ASSERT_FALSE(contents.numbers.empty());
  EXPECT_GT(contents.numbers.front(), 1000u);
  EXPECT_GE(snapshot->until - snapshot->since, absl::Milliseconds(600));
}

TEST_F(FlightRecorderTest, RecordsWhileSnapshotsAreWritten) {
  Open();
  std::atomic<bool> over = false;
  auto snapshots = std::async(std::launch::async, [&] {
    std::vector<absl::StatusOr<FlightRecorder::Snapshot>> written;
    written.reserve(10);
    for (int i = 0; i < 10; ++i) written.push_back(recorder_->WriteSnapshot(absl::Seconds(60)));
    over = true;
    return written;
  });
  while (!over) stream_->Write(200);
  for (const auto& snapshot : snapshots.get()) {
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    ExpectLast(*snapshot, 1);
  }
  EXPECT_EQ(PathsIn(options_.files.directory).size(), 10u);
  EXPECT_LE(recorder_->state().memory_bytes, options_.keep_bytes);
}

TEST_F(FlightRecorderTest, WithoutANewSectionTheOpenOneIsLeftOut) {
  Open();
  stream_->Write(10);
  EXPECT_TRUE(absl::IsFailedPrecondition(recorder_->WriteSnapshot(absl::Milliseconds(1)).status()));
  EXPECT_TRUE(PathsIn(options_.files.directory).empty());
  stream_->RequestSection();
  stream_->Write(10);
  stream_->Write(5);
  const auto snapshot = recorder_->WriteSnapshot(absl::Milliseconds(1));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_TRUE(AreNumbers(ReadContents(snapshot->path).numbers, 0, 20));
}

TEST_F(FlightRecorderTest, WritesASnapshotAfterTheStreamHasEnded) {
  Open();
  stream_->Write(10);
  ASSERT_TRUE(stream_->Finish().ok());
  stream_.reset();
  const auto snapshot = recorder_->WriteSnapshot(absl::Seconds(60));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ExpectVerifies(snapshot->path);
  EXPECT_TRUE(AreNumbers(ReadContents(snapshot->path).numbers, 0, 10));
}

TEST_F(FlightRecorderTest, SectionThatAloneIsTooLargeIsDiscardedAndCounted) {
  Open();
  struct Deaf : FlightSink {
    using FlightSink::FlightSink;
    bool WantsSection() const override { return false; }
  };
  stream_ = std::make_unique<NumberedStream>(std::make_unique<Deaf>(recorder_));
  for (int i = 0; i < 1000; ++i) {
    stream_->Write(100);
    ASSERT_LE(recorder_->state().memory_bytes, options_.keep_bytes);
  }
  EXPECT_GT(recorder_->state().discarded, 1'000'000u);
  stream_->RequestSection();
  stream_->Write(1);
  const std::uint64_t before = stream_->written();
  stream_->Write(10);
  stream_->RequestSection();
  stream_->Write(1);
  const auto snapshot = recorder_->WriteSnapshot(absl::ZeroDuration());
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ExpectVerifies(snapshot->path);
  EXPECT_TRUE(AreNumbers(ReadContents(snapshot->path).numbers, before, stream_->written()));
}

TEST_F(FlightRecorderTest, SnapshotsAreKeptWithinTheBoundsOfFiles) {
  options_.files.keep_files = 2;
  Open();
  for (int i = 0; i < 4; ++i) {
    stream_->Write(10);
    ASSERT_TRUE(TakeSnapshot().ok());
  }
  EXPECT_EQ(PathsIn(options_.files.directory).size(), 2u);
  options_.keep_bytes = 1000;
  EXPECT_TRUE(absl::IsInvalidArgument(FlightRecorder::Create(options_).status()));
}

}  // namespace
}  // namespace output
