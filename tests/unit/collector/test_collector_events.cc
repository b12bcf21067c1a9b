// Tests the events that the collector writes about its own recording.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "nettrace/reader.h"
#include "nettrace/sink.h"
#include "tools/collector/convert/collector_events.h"

namespace collector {
namespace {

using trace::AccountEvent;
using AccountKind = AccountEvent::Kind;

// Nanoseconds since 1970 when the trace's clock is at 500.
constexpr std::int64_t kSyncTime = 1'700'000'000'000'000'000;
constexpr std::int64_t kSyncTicks = 500;
constexpr std::uint64_t Unix(std::uint64_t ticks) { return kSyncTime - kSyncTicks + ticks; }

class CollectorEventsTest : public ::testing::Test {
 protected:
  CollectorEventsTest() {
    nettrace::TraceInfo trace;
    trace.sync_time = absl::FromUnixNanos(kSyncTime);
    trace.sync_ticks = kSyncTicks;
    auto sink = std::make_unique<nettrace::MemorySink>();
    file_ = sink.get();
    auto writer = nettrace::Writer::Create(std::move(sink), trace);
    EXPECT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    events_.Open(writer_.get(), trace);
  }

  void EndInterval(std::uint64_t time, std::uint32_t flags = 0) {
    const absl::Status written = events_.Write(time);
    ASSERT_TRUE(written.ok()) << written;
    const absl::Status ended = writer_->WriteSequencePoint(time, flags);
    ASSERT_TRUE(ended.ok()) << ended;
    if ((flags & nettrace::kSequencePointFlushThreads) != 0) events_.ForgetThreads();
    if ((flags & nettrace::kSequencePointFlushMetadata) != 0) events_.ForgetMetadata();
  }

  struct Shown {
    std::uint64_t timestamp;
    AccountEvent event;
    friend bool operator==(const Shown&, const Shown&) = default;
  };
  std::vector<Shown> Finish() {
    EXPECT_TRUE(writer_->Finish().ok());
    const std::vector<std::byte> bytes(file_->bytes().begin(), file_->bytes().end());
    auto reader = nettrace::Reader::Open(std::make_unique<nettrace::MemorySource>(bytes));
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<Shown> shown;
    for (auto step = (*reader)->Next(); step != nettrace::Reader::Step::kEnd;
         step = (*reader)->Next()) {
      if (step != nettrace::Reader::Step::kEvent) continue;
      const nettrace::Event& event = (*reader)->event();
      EXPECT_EQ(event.processor, nettrace::kNoProcessor);
      EXPECT_EQ(event.thread->name, "collector");
      const std::optional<AccountEvent> account = trace::ParseAccount(event);
      EXPECT_TRUE(account.has_value()) << event.metadata->name;
      if (account) shown.push_back({event.timestamp, *account});
    }
    EXPECT_TRUE((*reader)->status().ok()) << (*reader)->status();
    EXPECT_EQ((*reader)->stats().lost, 0u);
    return shown;
  }

  std::unique_ptr<nettrace::Writer> writer_;
  CollectorEvents events_;
  const nettrace::MemorySink* file_ = nullptr;  // Owned by the writer.
};

TEST_F(CollectorEventsTest, EventsHaveTheirValuesAndTimesSince1970) {
  events_.EventsLost(3, "user_events:a_L4K1", 17, 900, 950);
  events_.CpuChanged(1, /*online=*/false, 900, 910, "");
  events_.CpuChanged(1, /*online=*/true, 910, 940, "");
  events_.CpuChanged(2, /*online=*/true, 945, 0, "why");
  events_.TracepointLeftOut("ftrace:function", "cannot be enabled", 930);
  EndInterval(1000);
  EXPECT_EQ(events_.written(), 5u);
  EXPECT_EQ(
      Finish(),
      (std::vector<Shown>{
          {910, {AccountKind::kCpuOffline, 1, 0, "", "", Unix(900), Unix(910)}},
          {930, {AccountKind::kTracepointLeftOut, 0, 0, "ftrace:function", "cannot be enabled"}},
          {940, {AccountKind::kCpuOnline, 1, 0, "", "", Unix(910), Unix(940)}},
          {945, {AccountKind::kCpuOnline, 2, 0, "", "why", Unix(945), 0}},
          {950, {AccountKind::kEventsLost, 3, 17, "user_events:a_L4K1", "", Unix(900), Unix(950)}},
      }));
}

TEST_F(CollectorEventsTest, EventsAreInTheIntervalInWhichTheyAreReported) {
  events_.EventsLost(0, "a:b", 1, 90, 130);  // Counted after the interval's end.
  EndInterval(100);
  events_.EventsLost(0, "a:b", 2, 50, 60);
  events_.EventsLost(1, "a:b", 3, 130, 260);
  EndInterval(200);
  std::vector<std::uint64_t> times;
  for (const Shown& shown : Finish()) times.push_back(shown.timestamp);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{100, 100, 200}));
}

// A tracepoint may be left out before the trace begins.
TEST_F(CollectorEventsTest, NoEventIsBeforeTheTrace) {
  events_.TracepointLeftOut("a:b", "why", 10);
  events_.Begin(50);
  events_.TracepointLeftOut("a:c", "why", 60);
  EndInterval(100);
  std::vector<std::uint64_t> times;
  for (const Shown& shown : Finish()) times.push_back(shown.timestamp);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{50, 60}));
}

TEST_F(CollectorEventsTest, RowsThatWereFlushedAreWrittenAgain) {
  events_.EventsLost(0, "a:b", 1, 10, 20);
  EndInterval(100, nettrace::kSequencePointFlushThreads | nettrace::kSequencePointFlushMetadata);
  events_.EventsLost(0, "a:b", 2, 110, 120);
  EndInterval(200, nettrace::kSequencePointFlushThreads);
  events_.EventsLost(0, "a:b", 3, 210, 220);
  EndInterval(300);
  EXPECT_EQ(Finish().size(), 3u);
}

// Any process may use the name of the provider of these events, NetTrace.Collector.
TEST_F(CollectorEventsTest, AcceptsAServiceWithTheProvidersName) {
  nettrace::EventMetadata other;
  other.provider = std::string(trace::kAccountProvider);
  for (std::uint32_t id = 1; id <= 10; ++id) {
    other.event_id = id;
    other.name = "Other" + std::to_string(id);
    ASSERT_TRUE(writer_->AddMetadata(other).ok());
  }
  events_.EventsLost(0, "a:b", 1, 10, 20);
  EndInterval(100);
  const std::vector<Shown> shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].event.count, 1u);
}

TEST_F(CollectorEventsTest, LossesBeyondTheBoundAreReportedByCpu) {
  constexpr int kMore = 500;
  for (int i = 0; i < static_cast<int>(CollectorEvents::kMaxLosses) + kMore; ++i) {
    events_.EventsLost(i % 2, "a:" + std::to_string(i), 1, 10, 20);
  }
  EndInterval(100);
  std::uint64_t lost = 0;
  std::uint64_t unnamed = 0;
  const std::vector<Shown> shown = Finish();
  for (const Shown& one : shown) {
    lost += one.event.count;
    if (one.event.tracepoint.empty()) unnamed += one.event.count;
  }
  EXPECT_EQ(shown.size(), CollectorEvents::kMaxLosses + 2);
  EXPECT_EQ(lost, CollectorEvents::kMaxLosses + kMore);
  EXPECT_EQ(unnamed, static_cast<std::uint64_t>(kMore));
  EXPECT_EQ(events_.summary().lost(), lost);
}

TEST_F(CollectorEventsTest, ReportsAtMostTheBoundOfSkippedTracepoints) {
  for (std::size_t i = 0; i < CollectorEvents::kMaxLeftOut + 100; ++i) {
    events_.TracepointLeftOut("a:" + std::to_string(i), "why", 10);
  }
  EndInterval(100);
  EXPECT_EQ(Finish().size(), CollectorEvents::kMaxLeftOut);
}

TEST_F(CollectorEventsTest, TextOfOthersIsCutAndMadeValid) {
  events_.TracepointLeftOut("a:\xFF", std::string(100'000, 'x'), 10);
  events_.TracepointLeftOut("a:b", "\xF0\x9F\x90\xA7", 20);
  EndInterval(100);
  const std::vector<Shown> shown = Finish();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].event.tracepoint, "a:\xEF\xBF\xBD");
  EXPECT_EQ(shown[0].event.reason, std::string(trace::kMaxAccountText, 'x'));
  EXPECT_EQ(shown[1].event.reason, "\xF0\x9F\x90\xA7");
}

TEST_F(CollectorEventsTest, AClockThatBeganBeforeTheSyncTimeCounts) {
  events_.EventsLost(0, "a:b", 1, 100, 200);  // Before kSyncTicks.
  EndInterval(300);
  const std::vector<Shown> shown = Finish();
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0].event.since, Unix(100));
}

}  // namespace
}  // namespace collector
