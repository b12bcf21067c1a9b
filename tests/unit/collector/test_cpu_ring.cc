// Tests the samples and losses of a CPU that goes offline and comes online, on rings in memory.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/collector/memory_ring.h"
#include "tools/collector/perf/cpu_ring.h"
#include "tools/collector/perf/session_clock.h"

namespace collector {
namespace {

constexpr std::size_t kSmallSampleSize = 40;  // bytes, with 4 bytes of raw data

class CpuMemory : public MemoryRing {
 public:
  CpuMemory() : MemoryRing(16 * 1024) {}

  EventRing ring() { return {base::UniqueFd(), reader()}; }
  void PutSample(std::uint64_t time) { Put(Sample(10, 11, time, std::vector<std::byte>(4))); }
  void PutLost(std::uint64_t lost) { Put(Lost(1'000'000, lost)); }
};

// Returns the timestamps of the delivered samples and the reported losses, in order.
std::string DrainCpu(CpuRing* cpu, std::uint64_t limit) {
  std::string text;
  cpu->Drain(
      limit,
      [&](const SampleRecord& sample, std::uint64_t timestamp) {
        EXPECT_EQ(sample.pid, 10u);
        absl::StrAppend(&text, timestamp, " ");
      },
      [&](std::uint64_t total) { absl::StrAppend(&text, "lost:", total, " "); });
  return text;
}

TEST(CpuRing, DeliversSamplesUpToTheLimit) {
  CpuMemory memory;
  CpuRing cpu(3);
  EXPECT_EQ(cpu.number(), 3);
  EXPECT_FALSE(cpu.is_online());
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "");
  cpu.Begin(memory.ring());
  EXPECT_TRUE(cpu.is_online());
  for (const std::uint64_t time : {10u, 20u, 30u}) memory.PutSample(time);
  EXPECT_EQ(DrainCpu(&cpu, 20), "10 20 ");
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "30 ");
}

TEST(CpuRing, ReportsLossesWhereSamplesAreMissing) {
  CpuMemory memory;
  CpuRing cpu(0);
  cpu.Begin(memory.ring());
  memory.PutSample(10);
  memory.PutLost(5);
  memory.PutSample(20);
  memory.PutLost(3);
  memory.PutSample(30);
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "10 lost:5 20 lost:8 30 ");
}

TEST(CpuRing, DeliversFormerRingsBeforeTheCurrentOne) {
  CpuMemory first, second, third;
  CpuRing cpu(0);
  cpu.Begin(first.ring());
  for (const std::uint64_t time : {10u, 30u}) first.PutSample(time);
  cpu.End(0);
  EXPECT_FALSE(cpu.is_online());
  EXPECT_EQ(cpu.fill(), 0u);
  cpu.Begin(second.ring());
  second.PutSample(40);
  cpu.End(0);
  cpu.Begin(third.ring());
  // This sample is earlier than two samples of the previous rings. The kernel does not write such a
  // sample, but it must not be lost.
  third.PutSample(15);
  EXPECT_EQ(cpu.fill(), kSmallSampleSize);
  EXPECT_EQ(cpu.waiting_bytes(), 4 * kSmallSampleSize);
  EXPECT_EQ(DrainCpu(&cpu, 20), "10 ");
  EXPECT_EQ(cpu.waiting_bytes(), 3 * kSmallSampleSize);
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "30 40 15 ");
  EXPECT_EQ(cpu.waiting_bytes(), 0u);
}

TEST(CpuRing, ReportsLossesThatAFormerRingHasNotReported) {
  CpuMemory first, second;
  CpuRing cpu(0);
  cpu.Begin(first.ring());
  first.PutLost(5);
  first.PutSample(10);
  cpu.End(7);
  cpu.Begin(second.ring());
  second.PutLost(2);
  second.PutSample(20);
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "lost:5 10 lost:7 lost:9 20 ");
}

TEST(CpuRing, ReportsLossesOfAFormerRingOnce) {
  CpuMemory first;
  CpuRing cpu(0);
  cpu.Begin(first.ring());
  first.PutLost(5);
  first.PutSample(10);
  cpu.End(5);
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "lost:5 10 ");
  EXPECT_EQ(DrainCpu(&cpu, PerfRing::kNoLimit), "");
}

TEST(CpuRing, MayHaveLostAfterALostRecord) {
  CpuMemory memory;
  CpuRing cpu(0);
  cpu.Begin(memory.ring());
  memory.PutSample(10);
  DrainCpu(&cpu, PerfRing::kNoLimit);
  EXPECT_FALSE(cpu.TakeMayHaveLost());
  memory.PutLost(1);
  memory.PutSample(20);
  EXPECT_FALSE(cpu.TakeMayHaveLost());  // The LOST record is not read yet.
  DrainCpu(&cpu, PerfRing::kNoLimit);
  EXPECT_TRUE(cpu.TakeMayHaveLost());
  EXPECT_FALSE(cpu.TakeMayHaveLost());
}

TEST(CpuRing, MayHaveLostWithoutSpaceForALargeSample) {
  CpuMemory memory;
  CpuRing cpu(0);
  cpu.Begin(memory.ring());
  const auto fill_to = [&](std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / kSmallSampleSize; ++i) memory.PutSample(10);
    DrainCpu(&cpu, PerfRing::kNoLimit);
  };
  // A sample has up to 8448 bytes, so the kernel can lose a sample only while fewer bytes are free.
  fill_to(memory.size() - 8500);
  EXPECT_FALSE(cpu.TakeMayHaveLost());
  fill_to(memory.size() - 8400);
  EXPECT_TRUE(cpu.TakeMayHaveLost());
  EXPECT_FALSE(cpu.TakeMayHaveLost());
}

TEST(CpuRing, MayHaveLostAfterARingHasEnded) {
  CpuMemory first, second;
  CpuRing cpu(0);
  cpu.Begin(first.ring());
  cpu.End(0);
  EXPECT_TRUE(cpu.TakeMayHaveLost());
  EXPECT_FALSE(cpu.TakeMayHaveLost());
  cpu.Begin(second.ring());
  EXPECT_FALSE(cpu.TakeMayHaveLost());
}

TEST(CpuRing, IsRecordedUntilTheLastSampleOrTheBeginning) {
  CpuMemory memory;
  CpuRing cpu(0);
  const std::uint64_t before = SessionClockNow();
  cpu.Begin(memory.ring());
  const std::uint64_t began = cpu.recorded_until();
  EXPECT_GE(began, before);
  EXPECT_LE(began, SessionClockNow());
  memory.PutSample(began - 1);
  DrainCpu(&cpu, PerfRing::kNoLimit);
  EXPECT_EQ(cpu.recorded_until(), began);
  memory.PutSample(began + 5);
  EXPECT_EQ(cpu.recorded_until(), began);
  DrainCpu(&cpu, PerfRing::kNoLimit);
  EXPECT_EQ(cpu.recorded_until(), began + 5);
}

}  // namespace
}  // namespace collector
