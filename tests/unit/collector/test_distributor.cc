// Tests several sessions on the samples of one ring: each has separate events, intervals and
// losses.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nettrace/reader.h"
#include "nettrace/source.h"
#include "nettrace/verifier.h"
#include "tests/support/collector/file_in_memory.h"
#include "tests/support/collector/memory_ring.h"
#include "tests/support/collector/tracepoint_format.h"
#include "tests/support/nettrace/sectioned_sink.h"
#include "tools/collector/perf/session_clock.h"
#include "tools/collector/session/distributor.h"
#include "tools/collector/session/session_writer.h"
#include "tools/trace/account.h"
#include "tools/trace/account_summary.h"

namespace collector {
namespace {

using namespace std::string_literals;

constexpr int kFirstTracepoint = 7;
constexpr int kSecondTracepoint = 8;

// Returns a tracepoint's record of an event named `name` with a text field, in an activity if
// `activity` is not 0.
std::string EventRecord(int id, const std::string& name, const std::string& text,
                        char activity = 0) {
  const std::string metadata = name + "\0s\0\x0A"s;
  std::string record = {static_cast<char>(id), '\0'};
  record += "\0\0\0\0\0\0\x07\0\0\0\0\0\0\x04"s;
  if (activity != 0) record += "\x10\0\x02\x80"s + std::string(16, activity);
  record += static_cast<char>(metadata.size());
  record += "\0\x01\0"s + metadata;
  record += static_cast<char>(text.size());
  return record + '\0' + text;
}

struct DeliveredEvent {
  std::string name;
  std::uint64_t timestamp;
  std::uint64_t thread;
  std::string payload;
  nettrace::Labels labels;
};

class DistributorTest : public ::testing::Test {
 protected:
  DistributorTest() : memory_(1 << 16), ring_(memory_.reader()), distributor_(&tasks_) {
    distributor_.AddCpu(0);
    for (const auto& [id, name] :
         {std::pair(kFirstTracepoint, "P_L4K1"), std::pair(kSecondTracepoint, "P_L4K2")}) {
      const absl::Status added =
          distributor_.AddTracepoint(id, "user_events", name, EventHeaderFormat(id, name));
      EXPECT_TRUE(added.ok()) << added;
    }
  }

  // Starts a session with the tracepoints `ids` at `start`.
  SessionWriter* Start(tests::FileInMemory* file, std::uint64_t start, const std::vector<int>& ids,
                       absl::Duration interval = absl::Seconds(1)) {
    return Start([file] { return file->MakeSink(); }, start, ids, interval);
  }
  SessionWriter* Start(const SinkFactory& make_sink, std::uint64_t start,
                       const std::vector<int>& ids, absl::Duration interval = absl::Seconds(1)) {
    SessionOptions options;
    options.interval = interval;
    return Start(make_sink, start, ids, std::move(options));
  }
  SessionWriter* Start(const SinkFactory& make_sink, std::uint64_t start,
                       const std::vector<int>& ids, SessionOptions options) {
    SessionWriter* const session =
        sessions_.emplace_back(std::make_unique<SessionWriter>(std::move(options))).get();
    const absl::Status opened = session->Open(make_sink, {});
    EXPECT_TRUE(opened.ok()) << opened;
    distributor_.Begin(session, start);
    for (const int id : ids) distributor_.Give(id, session);
    return session;
  }

  void Put(const std::string& record, std::uint64_t time, std::uint32_t tid = kSampleTid,
           std::uint32_t pid = kSamplePid) {
    memory_.Put(MemoryRing::Sample(pid, tid, time, std::as_bytes(std::span(record))));
  }

  // Drains the ring up to `limit`, and ends the intervals that are over then.
  void Drain(std::uint64_t limit) {
    distributor_.FollowSinks(drained_);
    drained_ = limit;
    ring_.Drain(limit, [this](const PerfRecord& record) {
      SampleRecord sample;
      ASSERT_TRUE(ParseSample(record, &sample));
      distributor_.Write(0, sample, record.timestamp);
    });
    distributor_.WriteProcessEvents(limit);
    for (const auto& session : sessions_) {
      if (session->IsIntervalOver(limit) && session->EndInterval(limit)) {
        distributor_.WriteProcesses(session.get(), limit);
      }
    }
  }

  SessionSummary Stop(SessionWriter* session, std::uint64_t time) {
    session->Finish(time);
    SessionSummary summary = session->Summarize();
    EXPECT_TRUE(summary.status.ok()) << summary.status;
    EXPECT_EQ(summary.account.lost(), summary.lost);
    unused_ = distributor_.Remove(session);
    std::erase_if(sessions_, [session](const auto& each) { return each.get() == session; });
    return summary;
  }

  // Returns the events of provider P in the file.
  std::vector<DeliveredEvent> Read(const tests::FileInMemory& file) {
    EXPECT_EQ(file.Verify(), "");
    const auto reader = file.Read();
    std::vector<DeliveredEvent> shown;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent || reader->event().metadata->provider != "P") continue;
      const nettrace::Event& event = reader->event();
      shown.push_back(
          {event.metadata->name, event.timestamp, event.thread->thread_id.value_or(0),
           std::string(reinterpret_cast<const char*>(event.payload.data()), event.payload.size()),
           *event.labels});
    }
    EXPECT_TRUE(reader->status().ok()) << reader->status();
    lost_ = reader->stats().lost;
    return shown;
  }

  static std::vector<std::uint64_t> Times(const std::vector<DeliveredEvent>& events) {
    std::vector<std::uint64_t> times;
    times.reserve(events.size());
    for (const DeliveredEvent& event : events) times.push_back(event.timestamp);
    return times;
  }
  using TimeList = std::vector<std::uint64_t>;

  MemoryRing memory_;
  PerfRing ring_;
  TaskTracker tasks_;
  Distributor distributor_;
  std::vector<std::unique_ptr<SessionWriter>> sessions_;
  std::vector<int> unused_;  // The result of the last Remove.
  std::uint64_t lost_ = 0;
  std::uint64_t drained_ = 0;
};

TEST_F(DistributorTest, TriggersFireAtTheEventsOfTheirSessionAlone) {
  tests::FileInMemory file;
  tests::FileInMemory other_file;
  std::vector<std::string> fired;
  SessionOptions options;
  options.triggers = {*ParseTrigger("P:a where s == \"now\""), *ParseTrigger("P:b:error"),
                      *ParseTrigger("P:c")};
  options.fire = [&fired](std::size_t trigger, std::uint64_t timestamp) {
    fired.push_back(absl::StrCat(trigger, " at ", timestamp));
  };
  SessionWriter* const session =
      Start([&file] { return file.MakeSink(); }, 100, {kFirstTracepoint}, std::move(options));
  SessionWriter* const other = Start(&other_file, 100, {kFirstTracepoint, kSecondTracepoint});
  const std::uint64_t pause = absl::ToInt64Milliseconds(absl::Seconds(1)) * 1'000'000;
  Put(EventRecord(kFirstTracepoint, "a", "later"), 200);
  Put(EventRecord(kFirstTracepoint, "a", "now"), 300);
  Put(EventRecord(kSecondTracepoint, "c", "now"), 400 + pause);
  Put(EventRecord(kFirstTracepoint, "b", "now"), 500 + pause);
  Put(EventRecord(kFirstTracepoint, "c", "now"), 600 + pause);
  Drain(700 + pause);
  EXPECT_EQ(fired, (std::vector<std::string>{"0 at 300", absl::StrCat("2 at ", 600 + pause)}));
  Stop(session, 800 + pause);
  Stop(other, 800 + pause);
}

TEST_F(DistributorTest, EachSessionHasTheEventsOfItsTracepointsAndOfItsTime) {
  tests::FileInMemory first;
  tests::FileInMemory second;
  SessionWriter* const one = Start(&first, 10, {kFirstTracepoint, kSecondTracepoint});
  Put(EventRecord(kFirstTracepoint, "A", "x"), 10);
  Put(EventRecord(kFirstTracepoint, "A", "x"), 11);
  Drain(20);
  SessionWriter* const two = Start(&second, 30, {kSecondTracepoint});
  Put(EventRecord(kSecondTracepoint, "B", "y"), 30);  // From before the second session.
  Put(EventRecord(kFirstTracepoint, "A", "x"), 31);
  Put(EventRecord(kSecondTracepoint, "B", "y"), 32);
  Put(EventRecord(kSecondTracepoint, "B", "z"), 33);
  Drain(40);
  one->EndAt(41);
  Put(EventRecord(kSecondTracepoint, "B", "y"), 41);
  Put(EventRecord(kSecondTracepoint, "B", "y"), 42);
  Drain(50);
  distributor_.Give(kFirstTracepoint, one);  // `one` already has the tracepoint.
  const SessionSummary summary = Stop(one, 50);
  EXPECT_EQ(summary.events, 6u);
  EXPECT_EQ(summary.tracepoints, 2u);
  EXPECT_EQ(unused_, std::vector<int>{kFirstTracepoint});
  Put(EventRecord(kFirstTracepoint, "A", "x"), 51);  // No session records this tracepoint.
  Put(EventRecord(kSecondTracepoint, "B", "y"), 52);
  Drain(60);
  EXPECT_EQ(Stop(two, 60).events, 5u);
  EXPECT_EQ(unused_, std::vector<int>{kSecondTracepoint});

  const std::vector<DeliveredEvent> of_one = Read(first);
  EXPECT_EQ(Times(of_one), (TimeList{11, 30, 31, 32, 33, 41}));
  EXPECT_EQ(of_one[0].name, "A");
  EXPECT_EQ(of_one[4].payload, "\1\0z"s);
  EXPECT_EQ(lost_, 0u);
  const std::vector<DeliveredEvent> of_two = Read(second);
  EXPECT_EQ(Times(of_two), (TimeList{32, 33, 41, 42, 52}));
  for (const DeliveredEvent& event : of_two) EXPECT_EQ(event.name, "B");
  EXPECT_EQ(lost_, 0u);
}

// When the second session begins, the converter already has the forms (contents of metadata rows),
// threads and labels. The session must still write their rows into its own file.
TEST_F(DistributorTest, SessionThatBeginsLaterHasAllRowsOfItsEvents) {
  tests::FileInMemory first;
  tests::FileInMemory second;
  std::vector<std::string> records;
  for (const char activity : {'a', 'b', '\0'}) {
    for (const char* name : {"A", "B", "C"}) {
      records.push_back(EventRecord(kFirstTracepoint, name, "plain", activity));
      records.push_back(EventRecord(kFirstTracepoint, name, "\xC3\xA9", activity));
    }
  }
  std::uint64_t time = 100;
  const auto put_all = [&] {
    std::uint32_t tid = kSampleTid;
    for (const std::string& record : records) Put(record, ++time, ++tid);
    Drain(time);
  };
  SessionWriter* const one = Start(&first, 10, {kFirstTracepoint});
  put_all();
  SessionWriter* const two = Start(&second, time, {kFirstTracepoint});
  put_all();
  one->EndInterval(++time);
  put_all();
  Stop(one, ++time);
  Stop(two, time);

  const std::vector<DeliveredEvent> of_one = Read(first);
  const std::vector<DeliveredEvent> of_two = Read(second);
  ASSERT_EQ(of_one.size(), 3 * records.size());
  ASSERT_EQ(of_two.size(), 2 * records.size());
  for (std::size_t i = 0; i < of_two.size(); ++i) {
    const DeliveredEvent& same = of_one[i + records.size()];
    EXPECT_EQ(of_two[i].name, same.name);
    EXPECT_EQ(of_two[i].timestamp, same.timestamp);
    EXPECT_EQ(of_two[i].thread, kSampleTid + 1 + i % records.size());
    EXPECT_EQ(same.thread, of_two[i].thread);
    EXPECT_EQ(of_two[i].payload, same.payload);
    EXPECT_EQ(of_two[i].labels, same.labels);
  }
  EXPECT_EQ(of_two[1].payload, "\1\0\xE9\0"s);
  EXPECT_EQ((*of_two[0].labels.activity_id)[0], std::byte{'a'});
  EXPECT_FALSE(of_two.back().labels.activity_id.has_value());
}

TEST_F(DistributorTest, EachSessionHasSeparateIntervals) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  tests::FileInMemory first;
  tests::FileInMemory second;
  SessionWriter* const one = Start(&first, 0, {kFirstTracepoint}, absl::Milliseconds(10));
  SessionWriter* const two = Start(&second, 0, {kFirstTracepoint}, absl::Milliseconds(25));
  for (std::uint64_t time = kMillisecond; time <= 100 * kMillisecond; time += kMillisecond) {
    Put(EventRecord(kFirstTracepoint, "A", "x"), time);
    Drain(time);
  }
  // The sink has all events up to this time. It gets the event at 102 ms only when the interval
  // ends.
  two->EndInterval(101 * kMillisecond);
  EXPECT_EQ(two->Summarize().events_written, two->stats().events);
  Put(EventRecord(kFirstTracepoint, "A", "x"), 102 * kMillisecond);
  Drain(102 * kMillisecond);
  EXPECT_LT(two->Summarize().events_written, two->stats().events);
  EXPECT_EQ(Stop(one, 103 * kMillisecond).sequence_points, 11u);
  // EndInterval() wrote no sequence point, because no event had arrived since the last sequence
  // point, at 100 ms.
  EXPECT_EQ(Stop(two, 103 * kMillisecond).sequence_points, 5u);
  EXPECT_EQ(Read(first).size(), 101u);
  EXPECT_EQ(Read(second).size(), 101u);
}

TEST_F(DistributorTest, IntervalsOfSessionsThatBeganAtOtherTimesEndTogether) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  tests::FileInMemory first;
  tests::FileInMemory second;
  const SessionWriter* const one =
      Start(&first, 3 * kMillisecond, {kFirstTracepoint}, absl::Milliseconds(20));
  const SessionWriter* const two =
      Start(&second, 17 * kMillisecond, {kFirstTracepoint}, absl::Milliseconds(10));
  EXPECT_EQ(one->interval_end(), 20 * kMillisecond);
  EXPECT_EQ(two->interval_end(), 20 * kMillisecond);
  Put(EventRecord(kFirstTracepoint, "A", "x"), 19 * kMillisecond);
  Drain(20 * kMillisecond);
  EXPECT_EQ(one->interval_end(), 40 * kMillisecond);
  EXPECT_EQ(two->interval_end(), 30 * kMillisecond);
}

// A session with very many thread rows drops them at the end of an interval, and writes the rows of
// later events again. Other sessions keep their rows.
TEST_F(DistributorTest, RowsAreFlushedInOneSessionOnly) {
  constexpr std::uint32_t kThreads = 70'000;
  tests::FileInMemory first;
  tests::FileInMemory second;
  SessionWriter* const one = Start(&first, 0, {kFirstTracepoint});
  std::uint64_t time = 0;
  for (std::uint32_t i = 0; i < kThreads; ++i) {
    Put(EventRecord(kFirstTracepoint, "A", "x"), ++time, kSampleTid + i);
    if (i % 100 == 0 || i + 1 == kThreads) Drain(time);
  }
  SessionWriter* const two = Start(&second, time, {kFirstTracepoint});
  const auto put_some = [&] {
    for (std::uint32_t i = 0; i < 100; ++i)
      Put(EventRecord(kFirstTracepoint, "A", "x"), ++time, kSampleTid + i);
    Drain(time);
  };
  put_some();
  one->EndInterval(++time);
  const std::uint64_t rows = two->stats().threads;
  put_some();
  EXPECT_EQ(two->stats().threads, rows);
  EXPECT_GT(Stop(one, ++time).threads, kThreads + 100);
  Stop(two, time);
  EXPECT_EQ(Read(first).size(), kThreads + 200);
  const std::vector<DeliveredEvent> of_two = Read(second);
  ASSERT_EQ(of_two.size(), 200u);
  for (std::size_t i = 0; i < of_two.size(); ++i) EXPECT_EQ(of_two[i].thread, kSampleTid + i % 100);
}

// The timestamp of an event, and whether it is late, depend on the interval of each session.
TEST_F(DistributorTest, EventThatIsLateForOneSessionIsInTimeForAnother) {
  tests::FileInMemory first;
  tests::FileInMemory second;
  SessionWriter* const one = Start(&first, 0, {kFirstTracepoint});
  SessionWriter* const two = Start(&second, 0, {kFirstTracepoint});
  Put(EventRecord(kFirstTracepoint, "A", "x"), 10);
  Drain(10);
  one->EndInterval(20);
  Put(EventRecord(kFirstTracepoint, "A", "x", 'a'), 15);
  Put(EventRecord(kFirstTracepoint, "A", "x", 'a'), 25);
  Drain(30);
  EXPECT_EQ(Stop(one, 40).late, 1u);
  EXPECT_EQ(Stop(two, 40).late, 0u);
  const std::vector<DeliveredEvent> of_one = Read(first);
  EXPECT_EQ(Times(of_one), (TimeList{10, 20, 25}));
  ASSERT_EQ(of_one[1].labels.integers.size(), 1u);
  EXPECT_EQ(of_one[1].labels.integers[0].second, 15);
  EXPECT_TRUE(of_one[1].labels.activity_id.has_value());
  EXPECT_TRUE(of_one[2].labels.integers.empty());
  const std::vector<DeliveredEvent> of_two = Read(second);
  EXPECT_EQ(Times(of_two), (TimeList{10, 15, 25}));
  EXPECT_TRUE(of_two[1].labels.integers.empty());
}

TEST_F(DistributorTest, StopsWritingToASessionWithAFailedFile) {
  tests::FileInMemory good;
  tests::FileInMemory bad;
  SessionWriter* const one = Start(&good, 0, {kFirstTracepoint});
  SessionWriter* const two = Start(&bad, 0, {kFirstTracepoint});
  Put(EventRecord(kFirstTracepoint, "A", "x"), 1);
  Drain(1);
  bad.fails = true;
  two->EndInterval(2);
  EXPECT_FALSE(two->status().ok());
  EXPECT_TRUE(one->status().ok());
  const std::uint64_t events = two->stats().events;
  Put(EventRecord(kFirstTracepoint, "A", "x"), 3);
  Drain(3);
  distributor_.LostInPlace(0, 5);
  EXPECT_EQ(two->stats().events, events);
  EXPECT_FALSE(two->Summarize().status.ok());
  EXPECT_GT(two->Summarize().events_missing, 0u);
  EXPECT_EQ(Stop(one, 4).events, 2u);
  EXPECT_EQ(Read(good).size(), 2u);
}

TEST_F(DistributorTest, CountsLossesOnlyForTracepointsAndTimeOfTheSession) {
  tests::FileInMemory all_file;
  tests::FileInMemory part_file;
  tests::FileInMemory late_file;
  SessionWriter* const all = Start(&all_file, 0, {kFirstTracepoint, kSecondTracepoint});
  SessionWriter* const part = Start(&part_file, 0, {kFirstTracepoint});
  // The records report 10 lost events. The kernel counts 4 for one tracepoint and 6 for the other.
  distributor_.LostInPlace(0, 10);
  EXPECT_EQ(all->stats().lost, 10u);
  EXPECT_EQ(part->stats().lost, 0u);
  distributor_.CountLost(0, kFirstTracepoint, 4, {});
  distributor_.CountLost(0, kSecondTracepoint, 6, {});
  distributor_.SettleLosses();
  EXPECT_EQ(all->stats().lost, 10u);
  EXPECT_EQ(part->stats().lost, 4u);
  // The kernel has counted these 3 losses before the next session begins, but a record in the ring
  // reports them only after that.
  distributor_.CountLost(0, kFirstTracepoint, 3, {});
  distributor_.SettleLosses();
  SessionWriter* const late = Start(&late_file, 0, {kFirstTracepoint, kSecondTracepoint});
  distributor_.LostInPlace(0, 13);
  EXPECT_EQ(late->stats().lost, 0u);
  distributor_.LostInPlace(0, 15);
  EXPECT_EQ(late->stats().lost, 2u);
  distributor_.CountLost(0, kSecondTracepoint, 2, {});
  distributor_.SettleLosses();
  EXPECT_EQ(Stop(all, 10).lost, 15u);
  EXPECT_EQ(Stop(part, 10).lost, 7u);
  EXPECT_EQ(Stop(late, 10).lost, 2u);
}

TEST_F(DistributorTest, AccountHasTracepointAndTimeOfLosses) {
  tests::FileInMemory file;
  SessionWriter* const session = Start(&file, 10, {kFirstTracepoint, kSecondTracepoint});
  session->tracepoints().Skip("ftrace:function", "cannot be enabled");
  Put(EventRecord(kFirstTracepoint, "A", "x"), 20);
  Drain(30);
  distributor_.LostInPlace(0, 10);
  distributor_.CountLost(0, kFirstTracepoint, 4, {100, 110});
  distributor_.CountLost(0, kSecondTracepoint, 6, {100, 110});
  distributor_.SettleLosses();
  // A count that is read between 200 and 210 has 3 more losses of the tracepoint, which no record
  // in the ring reports.
  distributor_.CountLost(0, kFirstTracepoint, 3, {200, 210});
  distributor_.SettleLosses();
  const SessionSummary summary = Stop(session, 220);
  EXPECT_EQ(summary.collector_events, 4u);
  EXPECT_EQ(summary.events, 1u);
  using Losses = std::map<trace::AccountSummary::Key, std::uint64_t>;
  EXPECT_EQ(summary.account.losses(),
            (Losses{{{0, "user_events:P_L4K1"}, 7}, {{0, "user_events:P_L4K2"}, 6}}));
  const auto& intervals = summary.account.intervals();
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].from, 20u);  // After the last event before the gap.
  EXPECT_EQ(intervals[0].until, 110u);
  EXPECT_EQ(intervals[0].count, 10u);
  EXPECT_EQ(intervals[1].from, 100u);
  EXPECT_EQ(intervals[1].until, 210u);

  const auto reader = file.Read();
  std::vector<trace::AccountEvent> account_events;
  using Step = nettrace::Reader::Step;
  for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
    if (step != Step::kEvent || !trace::IsAccount(reader->event())) continue;
    account_events.push_back(trace::ParseAccount(reader->event()).value());
  }
  using Kind = trace::AccountEvent::Kind;
  const std::vector<trace::AccountEvent> expected = {
      {Kind::kEventsLost, 0, 4, "user_events:P_L4K1", "", 20, 110},
      {Kind::kEventsLost, 0, 6, "user_events:P_L4K2", "", 20, 110},
      {Kind::kEventsLost, 0, 3, "user_events:P_L4K1", "", 100, 210},
      {Kind::kTracepointLeftOut, 0, 0, "ftrace:function", "cannot be enabled", 0, 0}};
  EXPECT_EQ(account_events, expected);
}

TEST_F(DistributorTest, AccountHasTheCpuIfTheKernelCountsNoLosses) {
  tests::FileInMemory file;
  distributor_.SetLossesUncounted();
  SessionWriter* const session = Start(&file, 10, {kFirstTracepoint}, absl::Nanoseconds(100));
  distributor_.LostInPlace(0, 5);
  Drain(2'000'000);  // An interval ends.
  EXPECT_EQ(session->Summarize().account.lost(), 5u);
  distributor_.LostInPlace(0, 12);
  const SessionSummary summary = Stop(session, 3'000'000);
  using Losses = std::map<trace::AccountSummary::Key, std::uint64_t>;
  EXPECT_EQ(summary.account.losses(), (Losses{{{0, ""}, 12}}));
  EXPECT_EQ(summary.account.intervals().size(), 2u);
}

// The session records only the first tracepoint. The capture has no other tracepoint, except while
// the second one is added.
TEST_F(DistributorTest, NoLossCountsTwiceWhenATracepointIsAddedOrRemoved) {
  tests::FileInMemory file;
  distributor_.RemoveTracepoint(kSecondTracepoint);
  SessionWriter* const session = Start(&file, 0, {kFirstTracepoint});
  distributor_.LostInPlace(0, 5);
  distributor_.CountLost(0, kFirstTracepoint, 7, {});
  distributor_.SettleLosses();
  EXPECT_EQ(session->stats().lost, 7u);
  ASSERT_TRUE(
      distributor_
          .AddTracepoint(kSecondTracepoint, "user_events", "P_L4K2", EventHeaderFormat(8, "P_L4K2"))
          .ok());
  // The ring has lost 12 more events: 2 of them were counted above, and 10 are counted below.
  distributor_.LostInPlace(0, 17);
  EXPECT_EQ(session->stats().lost, 7u);
  distributor_.CountLost(0, kFirstTracepoint, 6, {});
  distributor_.CountLost(0, kSecondTracepoint, 4, {});
  distributor_.SettleLosses();
  EXPECT_EQ(session->stats().lost, 13u);
  distributor_.RemoveTracepoint(kSecondTracepoint);
  distributor_.LostInPlace(0, 20);
  EXPECT_EQ(session->stats().lost, 16u);
  distributor_.CountLost(0, kFirstTracepoint, 3, {});
  distributor_.SettleLosses();
  EXPECT_EQ(Stop(session, 10).lost, 16u);
}

TEST_F(DistributorTest, SamplesOfARemovedTracepointAreNotLost) {
  tests::FileInMemory file;
  SessionWriter* const session = Start(&file, 0, {kFirstTracepoint, kSecondTracepoint});
  distributor_.RemoveTracepoint(kSecondTracepoint);
  Put(EventRecord(kSecondTracepoint, "B", "x"), 1);
  Drain(2);
  EXPECT_EQ(session->stats().lost, 0u);
  Put(EventRecord(99, "B", "x"), 3);  // An unknown tracepoint.
  Drain(4);
  EXPECT_EQ(Stop(session, 10).lost, 1u);
}

TEST_F(DistributorTest, EachSessionHasTheProcessesOfItsTime) {
  tests::FileInMemory first;
  tests::FileInMemory second;
  ProcessTracker& processes = tasks_.processes();
  const auto events = [](const tests::FileInMemory& file) {
    EXPECT_EQ(file.Verify(), "");
    const auto reader = file.Read();
    std::vector<std::string> texts;
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const nettrace::Event& event = reader->event();
      texts.push_back(
          absl::StrCat(event.timestamp, " ", event.metadata->name, " ", *event.thread->process_id));
    }
    return texts;
  };
  processes.Exists(1, {"/bin/init", true, 1}, 5, 5);
  SessionWriter* const one = Start(&first, 10, {kFirstTracepoint});
  processes.Created(2, 1, "", 15);
  processes.Created(3, 1, "", 16);
  processes.EndThread(3, 3, 17);
  SessionWriter* const two = Start(&second, 20, {kFirstTracepoint});
  processes.Created(4, 1, "", 19);  // The record came late.
  processes.Created(5, 1, "", 25);
  processes.EndThread(2, 2, 26);
  Drain(30);
  Stop(one, 40);
  Stop(two, 40);
  EXPECT_EQ(events(first), (std::vector<std::string>{"10 ExistingProcess 1", "15 ProcessCreate 2",
                                                     "16 ProcessCreate 3", "17 ProcessExit 3",
                                                     "19 ProcessCreate 4", "25 ProcessCreate 5",
                                                     "26 ProcessExit 2"}));
  EXPECT_EQ(events(second), (std::vector<std::string>{
                                "20 ExistingProcess 1", "20 ExistingProcess 2",
                                "20 ExistingProcess 4", "25 ProcessCreate 5", "26 ProcessExit 2"}));
}

// The contents of one or more sections, read as a separate file.
struct File {
  std::vector<std::uint64_t> events;  // Times.
  std::uint64_t lost = 0;
  std::vector<std::string> processes;
  std::vector<trace::AccountEvent> account;
};

class SectionTest : public DistributorTest {
 protected:
  SessionWriter* StartWithSections(std::uint64_t start,
                                   absl::Duration interval = absl::Milliseconds(1)) {
    return Start([this] { return std::make_unique<nettrace::testing::SectionedSink>(sections_); },
                 start, {kFirstTracepoint}, interval);
  }

  void PutAndDrain(std::initializer_list<std::uint64_t> times, std::uint64_t limit) {
    for (const std::uint64_t time : times) Put(EventRecord(kFirstTracepoint, "A", "x"), time);
    Drain(limit);
  }

  // Returns the file with the sections from `first` on, `count` of them.
  File ReadSections(std::size_t first, std::size_t count = 1) const {
    File file;
    const std::string bytes = sections_->Stream(first, count);
    const auto source = [&bytes] {
      return std::make_unique<nettrace::MemorySource>(std::as_bytes(std::span(bytes)));
    };
    const auto report = nettrace::Verify(source());
    EXPECT_TRUE(report.ok()) << report.status();
    for (const nettrace::Finding& finding : report->findings) {
      ADD_FAILURE() << finding.rule->name << ": " << finding.explanation;
    }
    const auto reader = *nettrace::Reader::Open(source());
    using Step = nettrace::Reader::Step;
    for (Step step = reader->Next(); step != Step::kEnd; step = reader->Next()) {
      if (step != Step::kEvent) continue;
      const nettrace::Event& event = reader->event();
      if (trace::IsAccount(event)) {
        file.account.push_back(trace::ParseAccount(event).value());
      } else if (event.metadata->provider == "P") {
        file.events.push_back(event.timestamp);
      } else {
        file.processes.push_back(absl::StrCat(event.timestamp, " ", event.metadata->name, " ",
                                              *event.thread->process_id));
      }
    }
    EXPECT_TRUE(reader->stats().complete);
    file.lost = reader->stats().lost;
    return file;
  }

  // Returns the account's event for the beginning of a section after these numbers of events and
  // losses.
  static trace::AccountEvent SectionBegan(std::uint64_t section, std::uint64_t events,
                                          std::uint64_t lost) {
    trace::AccountEvent event;
    event.kind = trace::AccountEvent::Kind::kSectionBegan;
    event.section = section;
    event.count = events;
    event.lost = lost;
    return event;
  }
  static trace::AccountEvent EventsDropped(std::uint64_t count, std::uint64_t from,
                                           std::uint64_t until) {
    return {
        trace::AccountEvent::Kind::kEventsDropped, 0, count, "", "the output is full", from, until};
  }
  using Account = std::vector<trace::AccountEvent>;

  // Times are in ms, because the shortest interval is 1 ms.
  static constexpr std::uint64_t kMs = 1'000'000;
  std::shared_ptr<nettrace::testing::Sections> sections_ =
      std::make_shared<nettrace::testing::Sections>();
};

TEST_F(SectionTest, EachSectionIsAFileThatContinuesThePreviousOne) {
  ProcessTracker& processes = tasks_.processes();
  processes.Exists(1, {"/bin/init", true, 1}, 5, 5);
  SessionWriter* const session = StartWithSections(10);
  PutAndDrain({20, 30}, kMs);
  EXPECT_EQ(sections_->starts.size(), 1u);
  sections_->wants_section = true;
  processes.Created(2, 1, "", kMs + 5);
  processes.Created(3, 1, "", kMs + 6);
  distributor_.CountLost(0, kFirstTracepoint, 7, {kMs + 7, kMs + 8});
  distributor_.SettleLosses();
  PutAndDrain({kMs + 10}, 2 * kMs);
  EXPECT_EQ(sections_->starts.size(), 2u);
  PutAndDrain({2 * kMs + 1, 2 * kMs + 2}, 3 * kMs);
  EXPECT_EQ(sections_->starts.size(), 2u);
  EXPECT_EQ(session->Summarize().section, 1u);
  sections_->wants_section = true;
  processes.EndThread(2, 2, 3 * kMs + 5);
  processes.Created(4, 1, "", 4 * kMs + 5);  // Known before the section begins.
  processes.EndThread(3, 3, 4 * kMs + 6);
  Drain(4 * kMs);  // No event arrives, but the section begins.
  EXPECT_EQ(sections_->starts.size(), 3u);
  PutAndDrain({4 * kMs + 10}, 4 * kMs + 20);
  distributor_.CountLost(0, kFirstTracepoint, 2, {4 * kMs, 4 * kMs + 30});
  distributor_.SettleLosses();
  const SessionSummary summary = Stop(session, 4 * kMs + 30);
  EXPECT_EQ(summary.events, 6u);
  EXPECT_EQ(summary.lost, 9u);
  EXPECT_EQ(summary.section, 2u);

  const File first = ReadSections(0);
  EXPECT_EQ(first.events, (TimeList{20, 30, kMs + 10}));
  EXPECT_EQ(first.lost, 7u);
  EXPECT_EQ(first.processes,
            (std::vector<std::string>{"10 ExistingProcess 1", "1000005 ProcessCreate 2",
                                      "1000006 ProcessCreate 3"}));
  const File second = ReadSections(1);
  EXPECT_EQ(second.events, (TimeList{2 * kMs + 1, 2 * kMs + 2}));
  EXPECT_EQ(second.lost, 0u);
  EXPECT_EQ(second.account, (Account{SectionBegan(1, 3, 7)}));
  EXPECT_EQ(second.processes,
            (std::vector<std::string>{"2000000 ExistingProcess 1", "2000000 ExistingProcess 2",
                                      "2000000 ExistingProcess 3", "3000005 ProcessExit 2"}));
  const File third = ReadSections(2);
  EXPECT_EQ(third.events, (TimeList{4 * kMs + 10}));
  EXPECT_EQ(third.lost, 2u);
  EXPECT_EQ(third.account[0], SectionBegan(2, 5, 7));
  EXPECT_EQ(third.processes,
            (std::vector<std::string>{"4000000 ExistingProcess 1", "4000000 ExistingProcess 3",
                                      "4000005 ProcessCreate 4", "4000006 ProcessExit 3"}));
  // Any consecutive sections are a file, too.
  EXPECT_EQ(ReadSections(1, 2).events.size(), 3u);
  EXPECT_EQ(ReadSections(0, 3).lost, 9u);
}

TEST_F(SectionTest, ASectionIsBegunOnRequestAndOnlyOnce) {
  SessionWriter* const session = StartWithSections(10, absl::Hours(1));
  PutAndDrain({20}, 30);
  EXPECT_FALSE(session->IsIntervalOver(30));
  session->RequestSection();
  const std::uint64_t now = SessionClockNow();
  EXPECT_TRUE(session->IsIntervalOver(now));
  Drain(now);
  EXPECT_EQ(sections_->starts.size(), 2u);
  Drain(now + 1);
  EXPECT_EQ(sections_->starts.size(), 2u);
  Stop(session, now + 2);
  EXPECT_EQ(ReadSections(0).events, (TimeList{20}));
  EXPECT_EQ(ReadSections(1).events, TimeList{});
}

TEST_F(SectionTest, NextSectionReportsEventsDroppedWhileTheSinkWasFull) {
  ProcessTracker& processes = tasks_.processes();
  processes.Exists(1, {"/bin/init", true, 1}, 5, 5);
  tests::FileInMemory other_file;
  SessionWriter* const other = Start(&other_file, 10, {kFirstTracepoint}, absl::Milliseconds(1));
  SessionWriter* const session = StartWithSections(10);
  PutAndDrain({20}, kMs / 2);
  sections_->is_full = true;
  const std::size_t bytes = sections_->bytes.size();
  processes.Created(2, 1, "", kMs / 2 + 7);
  PutAndDrain({kMs / 2 + 5, kMs / 2 + 6}, kMs);
  EXPECT_TRUE(session->is_suspended());
  EXPECT_FALSE(other->is_suspended());
  EXPECT_GT(sections_->bytes.size(), bytes);  // Events from before the suspension.
  const std::size_t flushed = sections_->bytes.size();
  PutAndDrain({kMs + 5}, 5 * kMs);
  EXPECT_EQ(sections_->bytes.size(), flushed);
  SessionSummary summary = session->Summarize();
  EXPECT_EQ(summary.events, 1u);
  EXPECT_EQ(summary.lost, 3u);
  EXPECT_EQ(summary.dropped, 3u);
  sections_->is_full = false;
  // The suspension ends with the interval, so this event is dropped, too.
  PutAndDrain({5 * kMs + 1}, 6 * kMs);
  EXPECT_FALSE(session->is_suspended());
  PutAndDrain({6 * kMs + 1}, 7 * kMs);
  summary = Stop(session, 7 * kMs + 1);
  EXPECT_EQ(summary.events, 2u);
  EXPECT_EQ(summary.lost, 4u);
  EXPECT_EQ(summary.dropped, 4u);
  EXPECT_EQ(summary.account.dropped(), 4u);
  EXPECT_EQ(Stop(other, 7 * kMs + 1).lost, 0u);
  EXPECT_EQ(Times(Read(other_file)).size(), 6u);

  const File first = ReadSections(0);
  EXPECT_EQ(first.events, (TimeList{20}));
  EXPECT_EQ(first.lost, 4u);
  EXPECT_EQ(first.account, (Account{EventsDropped(4, kMs / 2, 6 * kMs)}));
  const File second = ReadSections(1);
  EXPECT_EQ(second.events, (TimeList{6 * kMs + 1}));
  EXPECT_EQ(second.account, (Account{SectionBegan(1, 1, 4)}));
  EXPECT_EQ(second.processes,
            (std::vector<std::string>{"6000000 ExistingProcess 1", "6000000 ExistingProcess 2"}));
}

TEST_F(SectionTest, SessionThatStopsWithAFullSinkWritesItsAccount) {
  SessionWriter* const session = StartWithSections(10);
  PutAndDrain({20}, 30);
  sections_->is_full = true;
  PutAndDrain({40}, 3 * kMs);
  // The kernel loses 5 events during the suspension.
  distributor_.CountLost(0, kFirstTracepoint, 5, {100, 110});
  distributor_.SettleLosses();
  PutAndDrain({3 * kMs + 1}, 4 * kMs);
  session->EndAt(4 * kMs);
  PutAndDrain({4 * kMs + 1}, 5 * kMs);  // After the end of the session.
  const SessionSummary summary = Stop(session, 5 * kMs);
  EXPECT_EQ(summary.events, 1u);
  EXPECT_EQ(summary.lost, 7u);
  EXPECT_EQ(summary.dropped, 2u);
  ASSERT_EQ(sections_->starts.size(), 1u);
  const File file = ReadSections(0);
  EXPECT_EQ(file.lost, 7u);
  ASSERT_EQ(file.account.size(), 2u);
  EXPECT_EQ(file.account[0].kind, trace::AccountEvent::Kind::kEventsLost);
  EXPECT_EQ(file.account[0].count, 5u);
  EXPECT_EQ(file.account[1], EventsDropped(2, 30, 5 * kMs));
}

TEST_F(DistributorTest, LeavesOutKernelEventsOfTheCollectorItself) {
  constexpr int kKernels = 9;
  constexpr std::uint32_t kOwnPid = kSamplePid + 1;
  ASSERT_TRUE(
      distributor_.AddTracepoint(kKernels, "syscalls", "P_L4K3", EventHeaderFormat(9, "P_L4K3"))
          .ok());
  tests::FileInMemory file;
  SessionWriter* const session = Start(&file, 0, {kFirstTracepoint, kKernels});
  Put(EventRecord(kKernels, "A", "x"), 1, kSampleTid, kOwnPid);
  Drain(1);
  // A task that has exited and no longer has ids, and the idle task, whose ids are 0.
  Put(EventRecord(kKernels, "A", "x"), 2, kExitedTask, kExitedTask);
  Put(EventRecord(kKernels, "A", "x"), 3, 0, 0);
  Drain(3);
  EXPECT_FALSE(distributor_.HasLeftOut(kKernels));
  distributor_.LeaveOut(kOwnPid);
  Put(EventRecord(kKernels, "A", "x"), 4, kSampleTid, kOwnPid);
  Put(EventRecord(kKernels, "A", "x"), 5, kSampleTid + 1);
  Put(EventRecord(kKernels, "A", "x"), 6, kExitedTask, kExitedTask);
  Put(EventRecord(kFirstTracepoint, "A", "x"), 7, kSampleTid, kOwnPid);  // An event of a service.
  Drain(7);
  EXPECT_TRUE(distributor_.HasLeftOut(kKernels));
  Stop(session, 8);
  EXPECT_EQ(Times(Read(file)), (TimeList{1, 2, 3, 5, 6, 7}));
}

// Describes a session. Its file must have the events of the tracepoints `ids` after `start` and up
// to `end`, in the order of time.
struct Expected {
  std::uint64_t start;
  std::uint64_t end = ~std::uint64_t{0};
  std::vector<int> ids;
  std::unique_ptr<tests::FileInMemory> file = std::make_unique<tests::FileInMemory>();
};

TEST_F(DistributorTest, SessionsThatStartAndStopHaveExactlyTheirEvents) {
  std::mt19937 generator(1);
  const auto below = [&generator](std::size_t limit) { return generator() % limit; };
  const std::vector<std::string> names = {"A", "B", "C", "D"};
  std::vector<std::pair<std::uint64_t, int>> written;  // Time and tracepoint.
  std::vector<Expected> all;
  std::vector<std::pair<SessionWriter*, std::size_t>> running;  // With the index in `all`.
  std::uint64_t now = 1000;
  std::uint64_t drained = now;
  const auto stop = [&](std::size_t i) {
    const auto [session, place] = running[i];
    session->EndAt(now);
    all[place].end = now;
    Drain(drained = now);
    Stop(session, now);
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int step = 0; step < 3000; ++step) {
    const std::size_t what = below(20);
    if (what == 0 && running.size() < 5) {
      Expected& expected = all.emplace_back();
      expected.start = now;
      expected.ids = std::vector<std::vector<int>>{
          {kFirstTracepoint}, {kSecondTracepoint}, {kFirstTracepoint, kSecondTracepoint}}[below(3)];
      running.emplace_back(
          Start(expected.file.get(), now, expected.ids, absl::Milliseconds(1 + below(3))),
          all.size() - 1);
    } else if (what == 1 && !running.empty()) {
      stop(below(running.size()));
    } else if (what < 5) {
      Drain(drained = std::max(drained, now - below(2000)));
    } else {
      for (std::size_t i = below(20); i > 0; --i) {
        const int id = below(2) == 0 ? kFirstTracepoint : kSecondTracepoint;
        const char activity = below(2) == 0 ? '\0' : static_cast<char>('a' + below(5));
        now += below(100'000);
        Put(EventRecord(id, names[below(names.size())], below(4) == 0 ? "\xC3\xA9" : "text",
                        activity),
            now, kSampleTid + static_cast<std::uint32_t>(below(50)));
        written.emplace_back(now, id);
      }
      // The ring must not become full before it is drained again.
      if (ring_.fill() > ring_.size() / 2) Drain(drained = now);
    }
  }
  while (!running.empty()) stop(0);
  EXPECT_GT(all.size(), 50u);
  for (const Expected& expected : all) {
    TimeList times;
    for (const auto& [time, id] : written) {
      const bool has_it =
          std::find(expected.ids.begin(), expected.ids.end(), id) != expected.ids.end();
      if (has_it && time > expected.start && time <= expected.end) times.push_back(time);
    }
    ASSERT_EQ(Times(Read(*expected.file)), times);
    EXPECT_EQ(lost_, 0u);
  }
}

}  // namespace
}  // namespace collector
