// Tests the counts of a tracepoint on several CPUs, with pipes in place of perf events.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tools/collector/perf/attached_tracepoint.h"

namespace collector {
namespace {

// An event whose counts are set by the test.
class FakeEvent {
 public:
  FakeEvent() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_end_ = base::UniqueFd(ends[0]);
    write_end_ = base::UniqueFd(ends[1]);
  }

  // Returns the descriptor, once.
  base::UniqueFd TakeDescriptor() { return std::move(read_end_); }
  std::vector<base::UniqueFd> TakeDescriptors() {
    std::vector<base::UniqueFd> events;
    events.push_back(TakeDescriptor());
    return events;
  }
  // Sets the counts that are read next. Each value is read once.
  void Count(std::uint64_t hits, std::uint64_t lost) {
    const EventCounts counts = {hits, lost};
    EXPECT_EQ(write(write_end_.get(), &counts, sizeof counts), ssize_t{sizeof counts});
  }
  // Sets the count that is read next, as kernels before 6.0 return it: without a count of losses.
  void CountHitsOnly(std::uint64_t hits) {
    EXPECT_EQ(write(write_end_.get(), &hits, sizeof hits), ssize_t{sizeof hits});
  }

 private:
  base::UniqueFd read_end_;
  base::UniqueFd write_end_;
};

AttachedTracepoint OnCpus(std::size_t cpus, PerfTarget::Kind target = PerfTarget::Kind::kMachine) {
  return AttachedTracepoint({7, "a:b", "", false}, target, cpus);
}

std::vector<CpuRing> OneCpu() {
  std::vector<CpuRing> cpus;
  cpus.emplace_back(0);
  return cpus;
}

TEST(AttachedTracepoint, AddsUpTheCountsOfAllCpus) {
  AttachedTracepoint tracepoint = OnCpus(3);
  EXPECT_EQ(tracepoint.id(), 7);
  FakeEvent a, b, c;
  std::vector<base::UniqueFd> two = b.TakeDescriptors();
  two.push_back(c.TakeDescriptor());
  tracepoint.SetEvents(0, a.TakeDescriptors());
  tracepoint.SetEvents(2, std::move(two));
  a.Count(10, 1);
  b.Count(200, 20);
  c.Count(3000, 300);
  const absl::StatusOr<EventCounts> totals = tracepoint.ReadTotals();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(totals->hits, 3210u);
  EXPECT_EQ(totals->lost, 321u);
  EXPECT_TRUE(tracepoint.hits_are_known());
}

TEST(AttachedTracepoint, TakesTheLossesOfACpuOnce) {
  AttachedTracepoint tracepoint = OnCpus(2);
  FakeEvent a, b;
  tracepoint.SetEvents(0, a.TakeDescriptors());
  tracepoint.SetEvents(1, b.TakeDescriptors());
  for (const std::uint64_t lost : {5u, 5u, 9u}) a.Count(100, lost);
  b.Count(100, 2);
  EXPECT_EQ(*tracepoint.TakeLosses(0), 5u);
  EXPECT_EQ(*tracepoint.TakeLosses(0), 0u);
  EXPECT_EQ(*tracepoint.TakeLosses(1), 2u);
  EXPECT_EQ(*tracepoint.TakeLosses(0), 4u);
}

TEST(AttachedTracepoint, KeepsTheCountsOfClosedEvents) {
  AttachedTracepoint tracepoint = OnCpus(2);
  FakeEvent former, current;
  tracepoint.SetEvents(0, former.TakeDescriptors());
  for (const std::uint64_t hits : {10u, 12u}) former.Count(hits, 2);
  EXPECT_EQ(*tracepoint.TakeLosses(0), 2u);
  std::vector<base::UniqueFd> closing;
  EXPECT_EQ(tracepoint.Close(0, &closing), 2u);
  EXPECT_EQ(tracepoint.Close(1, &closing), 0u);
  ASSERT_EQ(closing.size(), 1u);
  EXPECT_TRUE(closing[0].valid());
  EXPECT_EQ(*tracepoint.TakeLosses(0), 0u);
  EXPECT_EQ(tracepoint.ReadTotals()->hits, 12u);

  tracepoint.SetEvents(0, current.TakeDescriptors());
  for (int i = 0; i < 3; ++i) current.Count(5, 3);
  EXPECT_EQ(*tracepoint.TakeLosses(0), 3u);
  EXPECT_EQ(tracepoint.ReadTotals()->hits, 17u);
  EXPECT_EQ(tracepoint.Close(0, &closing), 5u);
  EXPECT_EQ(closing.size(), 2u);
}

TEST(AttachedTracepoint, CountsNoHitsOfProcessesBeforeEnable) {
  AttachedTracepoint tracepoint = OnCpus(1, PerfTarget::Kind::kProcesses);
  FakeEvent event;
  tracepoint.SetEvents(0, event.TakeDescriptors());
  for (int i = 0; i < 2; ++i) event.Count(10, 2);
  EXPECT_EQ(tracepoint.ReadTotals()->hits, 0u);
  tracepoint.Disable();
  EXPECT_TRUE(tracepoint.hits_are_known());
  EXPECT_EQ(*tracepoint.TakeLosses(0), 2u);
}

TEST(AttachedTracepoint, NamesTheTracepointThatCannotBeEnabled) {
  AttachedTracepoint tracepoint = OnCpus(1);
  FakeEvent event;
  tracepoint.SetEvents(0, event.TakeDescriptors());
  const absl::Status status = tracepoint.Enable(OneCpu());
  EXPECT_EQ(status.message(), "enabling tracepoint a:b: Inappropriate ioctl for device");
}

TEST(AttachedTracepoint, StaysDisabled) {
  AttachedTracepoint tracepoint = OnCpus(1);
  FakeEvent event;
  tracepoint.SetEvents(0, event.TakeDescriptors());
  EXPECT_FALSE(tracepoint.is_disabled());
  tracepoint.Disable();
  EXPECT_TRUE(tracepoint.is_disabled());
  // Enable() leaves the event disabled. Enabling the event would fail, because it is a pipe.
  EXPECT_TRUE(tracepoint.Enable(OneCpu()).ok());
  EXPECT_TRUE(tracepoint.is_disabled());
}

TEST(AttachedTracepoint, ReportsThatCountsCannotBeRead) {
  AttachedTracepoint tracepoint = OnCpus(1);
  FakeEvent event;
  tracepoint.SetEvents(0, event.TakeDescriptors());
  EXPECT_EQ(tracepoint.ReadTotals().status().message(),
            "reading the counts of a perf event: Resource temporarily unavailable");
  event.CountHitsOnly(10);
  EXPECT_EQ(tracepoint.TakeLosses(0).status().code(), absl::StatusCode::kUnimplemented);
  // The event has no count of losses, so Close returns 0.
  std::vector<base::UniqueFd> closing;
  EXPECT_EQ(tracepoint.Close(0, &closing), 0u);
}

}  // namespace
}  // namespace collector
