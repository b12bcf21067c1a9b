// Tests how the times that threads spend without a CPU are computed from records of context
// switches: with records in any order, with missing records, and with threads that end.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "tools/collector/session/off_cpu_tracker.h"

namespace collector {
namespace {

class OffCpuTrackerTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kPid = 100;
  static constexpr std::uint32_t kTid = 101;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};

  // A time without a CPU: tid, when it ended, how long it was, and the CPU on which it ended.
  using Found = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::size_t>;

  void Out(std::size_t cpu, std::uint64_t timestamp, std::uint32_t tid = kTid,
           std::uint32_t pid = kPid) {
    SampleRecord sample;
    sample.kind = SampleRecord::Kind::kSwitchOut;
    sample.pid = pid;
    sample.tid = tid;
    sample.stack.emplace().entries = std::as_bytes(std::span(stack_));
    tracker_.Add(cpu, sample, timestamp);
  }

  void In(std::size_t cpu, std::uint64_t timestamp, std::uint32_t tid = kTid,
          std::uint32_t pid = kPid) {
    SampleRecord sample;
    sample.kind = SampleRecord::Kind::kSwitchIn;
    sample.pid = pid;
    sample.tid = tid;
    tracker_.Add(cpu, sample, timestamp);
  }

  // Records the creation or the end of the thread.
  void Task(std::uint32_t type, std::uint64_t timestamp, std::uint32_t tid = kTid) {
    const std::uint32_t ids[] = {kPid, kPid, tid, kPid};
    const perf_event_header header = {type, 0, 48};
    std::vector<std::byte> bytes(header.size);
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, ids, sizeof ids);
    std::memcpy(bytes.data() + 40, &timestamp, sizeof timestamp);
    PerfRecord record;
    record.timestamp = timestamp;
    record.bytes = bytes;
    tasks_.Apply(record);
  }

  std::vector<Found> Process(std::uint64_t limit = kAll) {
    std::vector<Found> found;
    tracker_.Process(limit, [&](const OffCpuTracker::Interval& interval) {
      found.emplace_back(interval.sample.tid, interval.timestamp, interval.duration, interval.cpu);
      stack_bytes_ = interval.sample.stack->entries.size();
    });
    return found;
  }

  TaskTracker tasks_;
  OffCpuTracker tracker_{&tasks_};
  std::vector<std::uint64_t> stack_ = {static_cast<std::uint64_t>(PERF_CONTEXT_USER), 1, 2};
  std::size_t stack_bytes_ = 0;
};

TEST_F(OffCpuTrackerTest, ThreadThatMovesBetweenCpusHasItsTime) {
  // CPU 0 is read first, so the later switch to the thread is added before the switch from it.
  In(0, 50);
  Out(1, 20);
  EXPECT_EQ(Process(), (std::vector<Found>{{kTid, 50, 30, 0}}));
  EXPECT_EQ(stack_bytes_, 24u);
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, ThreadWithoutASwitchOutHasNoTime) {
  In(0, 50);
  In(0, 60);
  EXPECT_EQ(Process(), std::vector<Found>());
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, SwitchesAfterTheLimitWait) {
  Out(0, 20);
  In(0, 50);
  Out(0, 60);
  stack_ = {static_cast<std::uint64_t>(PERF_CONTEXT_USER), 1};
  Out(0, 70, kTid + 1);
  EXPECT_EQ(Process(49), std::vector<Found>());
  EXPECT_EQ(Process(55), (std::vector<Found>{{kTid, 50, 30, 0}}));
  In(1, 80);
  In(1, 90, kTid + 1);
  EXPECT_EQ(Process(), (std::vector<Found>{{kTid, 80, 20, 1}, {kTid + 1, 90, 20, 1}}));
  EXPECT_EQ(stack_bytes_, 16u);
}

TEST_F(OffCpuTrackerTest, NoTimeContainsMissingSwitches) {
  Out(0, 20);
  Out(0, 25, kTid + 1);
  In(0, 28);
  // Switches between 30 and 40 may be missing, so thread kTid + 1 may have had a CPU in this time.
  tracker_.Miss(30, 40);
  Out(0, 35);
  In(0, 50, kTid + 1);
  In(0, 55);
  Out(0, 60);
  In(0, 70);
  EXPECT_EQ(Process(), (std::vector<Found>{{kTid, 28, 8, 0}, {kTid, 70, 10, 0}}));
  EXPECT_EQ(tracker_.TakeLost(), 2u);
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, SwitchInThatIsAddedTooLateHasNoTime) {
  Out(0, 20);
  Out(0, 60);
  EXPECT_EQ(Process(70), std::vector<Found>());
  EXPECT_EQ(tracker_.TakeLost(), 1u);
  In(0, 50);
  In(1, 80);
  EXPECT_EQ(Process(), (std::vector<Found>{{kTid, 80, 20, 1}}));
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, SwitchesBeforeTheStartDoNotCount) {
  Out(0, 10);
  Process();
  tracker_.StartAt(20);
  Out(0, 15, kTid + 1);
  In(0, 25);
  In(0, 26, kTid + 1);
  EXPECT_EQ(Process(), std::vector<Found>());
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, ThreadThatGetsTheIdOfAnotherHasItsOwnTimes) {
  Task(PERF_RECORD_FORK, 5);
  Task(PERF_RECORD_EXIT, 18);
  Task(PERF_RECORD_FORK, 30);
  Out(0, 20);
  In(0, 40);
  Out(0, 50);
  In(0, 60);
  EXPECT_EQ(Process(), (std::vector<Found>{{kTid, 60, 10, 0}}));
  // No record states that the thread ended, but the next thread with its id has another process.
  Out(0, 70);
  In(0, 80, kTid, kPid + 1);
  EXPECT_EQ(Process(), std::vector<Found>());
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

TEST_F(OffCpuTrackerTest, IdleCpusAndThreadsWithoutIdsHaveNoTimes) {
  for (const std::uint32_t tid : {std::uint32_t{0}, kExitedTask}) {
    Out(0, 20, tid, tid);
    In(0, 30, tid, tid);
  }
  EXPECT_EQ(Process(), std::vector<Found>());
  EXPECT_EQ(tracker_.threads(), 0u);
}

TEST_F(OffCpuTrackerTest, MemoryOfStacksIsBounded) {
  stack_.resize(8000);
  const std::size_t fits = OffCpuTracker::kMaxBytes / (8 * stack_.size());
  const auto threads = static_cast<std::uint32_t>(fits + 10);
  for (std::uint32_t i = 0; i < threads; ++i) {
    Task(PERF_RECORD_FORK, 1, kTid + i);
    Out(0, 10 + i, kTid + i);
  }
  Process();
  EXPECT_EQ(tracker_.TakeLost(), 10u);
  for (std::uint32_t i = 0; i < threads; ++i) In(0, 100'000 + i, kTid + i);
  EXPECT_EQ(Process().size(), fits);
}

TEST_F(OffCpuTrackerTest, ThreadsThatHaveEndedAreForgotten) {
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    Task(PERF_RECORD_FORK, 10 * i + 1, kTid + i);
    Out(0, 10 * i + 2, kTid + i);
    In(0, 10 * i + 3, kTid + i);
    EXPECT_EQ(Process().size(), 1u);
    Task(PERF_RECORD_EXIT, 10 * i + 4, kTid + i);
  }
  EXPECT_LE(tracker_.threads(), 1024u);
  EXPECT_EQ(tracker_.TakeLost(), 0u);
}

}  // namespace
}  // namespace collector
