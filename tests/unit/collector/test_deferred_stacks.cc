// Tests the joining of samples with the user parts of their stacks, on the rings of two CPUs in
// memory. The records have the layout of Linux 6.19.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/collector/memory_ring.h"
#include "tools/collector/perf/cpu_ring.h"
#include "tools/collector/perf/deferred_stacks.h"
#include "tools/collector/perf/open_event.h"

namespace collector {
namespace {

constexpr auto kKernelMark = static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL);
constexpr auto kUserMark = static_cast<std::uint64_t>(PERF_CONTEXT_USER);
constexpr std::uint64_t kWait = DeferredStacks::kLongestWait;

class DeferredStacksTest : public testing::Test {
 protected:
  DeferredStacksTest() {
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      cpus_[i].Begin({base::UniqueFd(), memories_[i].reader()});
    }
  }

  // Puts a sample with one frame of the kernel, whose user part is deferred.
  void PutSample(std::size_t cpu, std::uint32_t tid, std::uint64_t time, std::uint64_t cookie) {
    memories_[cpu].Put(MemoryRing::StackSample(
        tid, time, std::array{kKernelMark, std::uint64_t{0x77}, kDeferredMark, cookie}));
  }
  void PutPart(std::size_t cpu, std::uint32_t tid, std::uint64_t time, std::uint64_t cookie,
               const std::vector<std::uint64_t>& entries) {
    memories_[cpu].Put(MemoryRing::DeferredStack(tid, time, cookie, entries));
  }
  std::uint64_t Collect(std::uint64_t now) {
    return stacks_.Collect(now, [this](const auto& look) {
      for (CpuRing& cpu : cpus_) cpu.Peek(look);
    });
  }
  // Returns the drained samples up to `limit`: their times and the frames of their stacks, with k
  // before those of the kernel and u before those of the process.
  std::string Drain(std::uint64_t limit) {
    std::string text;
    for (CpuRing& cpu : cpus_) {
      cpu.Drain(
          limit,
          [&](const SampleRecord& drained, std::uint64_t time) {
            SampleRecord sample = drained;
            stacks_.Join(&sample);
            absl::StrAppend(&text, time, ":");
            EXPECT_EQ(sample.stack.has_value(), drained.stack.has_value());
            if (!sample.stack) return;
            const std::span<const std::byte> entries = sample.stack->entries;
            for (std::size_t at = 0; at < entries.size(); at += 8) {
              std::uint64_t entry = 0;
              std::memcpy(&entry, entries.data() + at, sizeof entry);
              absl::StrAppend(&text,
                              entry == kKernelMark ? "k"
                              : entry == kUserMark ? "u"
                                                   : "",
                              entry == kKernelMark || entry == kUserMark ? "" : absl::StrCat(entry),
                              " ");
            }
            if (sample.stack->lacks_user_frames) absl::StrAppend(&text, "cut ");
          },
          [](std::uint64_t) {});
    }
    return text;
  }

  std::array<MemoryRing, 2> memories_{MemoryRing(16 * 1024), MemoryRing(16 * 1024)};
  std::array<CpuRing, 2> cpus_{CpuRing(0), CpuRing(1)};
  DeferredStacks stacks_;
};

TEST_F(DeferredStacksTest, JoinsSamplesOfOneReturnWithOnePart) {
  PutSample(0, 5, 10, 99);
  PutSample(0, 5, 20, 99);
  PutPart(0, 5, 30, 99, {1, 2});
  EXPECT_EQ(Collect(40), 40u);
  EXPECT_EQ(Drain(40), "10:k 119 u 1 2 20:k 119 u 1 2 ");
  EXPECT_EQ(stacks_.missing(), 0u);
}

TEST_F(DeferredStacksTest, JoinsAThreadThatReturnsOnAnotherCpu) {
  PutSample(1, 5, 10, 99);
  PutPart(0, 5, 30, 99, {1});
  EXPECT_EQ(Collect(40), 40u);
  // CPU 0 is drained first. Its ring has the user part of the sample of CPU 1.
  EXPECT_EQ(Drain(40), "10:k 119 u 1 ");
}

TEST_F(DeferredStacksTest, DistinguishesThreadsAndCookies) {
  PutSample(0, 5, 10, 99);
  PutSample(0, 6, 11, 99);
  PutSample(0, 5, 12, 98);
  PutPart(0, 6, 30, 99, {6});
  PutPart(0, 5, 31, 98, {98});
  PutPart(0, 5, 32, 99, {99});
  EXPECT_EQ(Collect(40), 40u);
  EXPECT_EQ(Drain(40), "10:k 119 u 99 11:k 119 u 6 12:k 119 u 98 ");
}

TEST_F(DeferredStacksTest, SampleWaitsInTheRingForItsPart) {
  PutSample(0, 5, kWait + 10, 99);
  PutSample(1, 6, kWait + 5, 97);
  PutPart(1, 6, kWait + 6, 97, {6});
  EXPECT_EQ(Collect(kWait + 40), kWait + 9);
  EXPECT_EQ(Drain(kWait + 9), absl::StrCat(kWait + 5, ":k 119 u 6 "));
  PutPart(1, 5, kWait + 50, 99, {1});
  EXPECT_EQ(Collect(kWait + 60), kWait + 60);
  EXPECT_EQ(Drain(kWait + 60), absl::StrCat(kWait + 10, ":k 119 u 1 "));
  EXPECT_EQ(stacks_.missing(), 0u);
}

TEST_F(DeferredStacksTest, SampleWhosePartNeverArrivesKeepsItsKernelPart) {
  PutSample(0, 5, 10, 99);
  EXPECT_EQ(Collect(kWait + 9), 9u);
  EXPECT_EQ(Drain(9), "");
  EXPECT_EQ(Collect(kWait + 10), kWait + 10);
  EXPECT_EQ(Drain(kWait + 10), "10:k 119 cut ");
  EXPECT_EQ(stacks_.missing(), 1u);
}

TEST_F(DeferredStacksTest, PartWithoutFramesCountsAsMissing) {
  PutSample(0, 5, 10, 99);
  PutPart(0, 5, 20, 99, {kUserMark});
  EXPECT_EQ(Collect(30), 30u);
  EXPECT_EQ(Drain(30), "10:k 119 cut ");
  EXPECT_EQ(stacks_.missing(), 1u);
}

TEST_F(DeferredStacksTest, PartMayHaveMarks) {
  PutSample(0, 5, 10, 99);
  PutPart(0, 5, 20, 99, {kUserMark, 1, 2});
  EXPECT_EQ(Collect(30), 30u);
  EXPECT_EQ(Drain(30), "10:k 119 u 1 2 ");
}

TEST_F(DeferredStacksTest, LeavesOtherStacksAsTheyAre) {
  memories_[0].Put(MemoryRing::StackSample(
      5, 10, std::array{kKernelMark, std::uint64_t{0x77}, kUserMark, std::uint64_t{3}}));
  memories_[0].Put(MemoryRing::Sample(10, 11, 20, std::vector<std::byte>(4)));
  EXPECT_EQ(Collect(30), 30u);
  EXPECT_EQ(Drain(30), "10:k 119 u 3 20:");
  EXPECT_EQ(stacks_.missing(), 0u);
}

// Only newer kernel headers name the flags defer_callchain and defer_output. They follow sigtrap,
// the last flag that older headers name.
TEST(DeferStacks, SetsTheFlagsAfterTheLastOneOfOlderHeaders) {
  const auto flags_of = [](const perf_event_attr& attr) {
    std::uint64_t flags = 0;
    std::memcpy(&flags, reinterpret_cast<const std::byte*>(&attr.read_format) + 8, sizeof flags);
    return flags;
  };
  perf_event_attr last = {};
  last.sigtrap = 1;
  perf_event_attr defers = {};
  DeferStacks(&defers);
  EXPECT_EQ(flags_of(defers), flags_of(last) << 1);
  perf_event_attr writes = {};
  WriteDeferredStacks(&writes);
  EXPECT_EQ(writes.comm_exec, 1u);
  writes.comm_exec = 0;
  EXPECT_EQ(flags_of(writes), flags_of(last) << 2);
}

}  // namespace
}  // namespace collector
