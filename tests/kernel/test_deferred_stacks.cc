// Tests that samples have the user part of their stacks on the kernel of this machine, whether it
// defers user parts (since Linux 6.19) or rejects the attributes that request this.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tools/base/unique_fd.h"
#include "tools/collector/perf/cpu_list.h"
#include "tools/collector/perf/deferred_stacks.h"
#include "tools/collector/perf/open_event.h"
#include "tools/collector/perf/perf_capture.h"

namespace collector {
namespace {

// Returns whether the stack has a frame in user space.
bool HasUserFrame(const SampleRecord& sample) {
  if (!sample.stack) return false;
  bool is_user = false;
  for (std::size_t at = 0; at < sample.stack->entries.size(); at += 8) {
    std::uint64_t entry = 0;
    std::memcpy(&entry, sample.stack->entries.data() + at, sizeof entry);
    if (entry < static_cast<std::uint64_t>(PERF_CONTEXT_MAX)) {
      if (is_user && entry != 0) return true;
    } else {
      is_user = entry == static_cast<std::uint64_t>(PERF_CONTEXT_USER);
    }
  }
  return false;
}

TEST(KernelDefersStacks, IsFalseIfTheKernelRejectsTheAttributes) {
  perf_event_attr attr = DummyAttributes(/*ring_size=*/0);
  DeferStacks(&attr);
  const base::UniqueFd defers = OpenEvent(&attr, /*pid=*/0, /*cpu=*/-1);
  if (defers.valid()) GTEST_SKIP() << "this kernel accepts the attributes";
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(KernelDefersStacks());
}

TEST(KernelDefersStacks, SamplesHaveUserFramesEitherWay) {
  const absl::StatusOr<std::vector<int>> cpus = PossibleCpus();
  ASSERT_TRUE(cpus.ok());
  PerfOptions options;
  options.stacks = true;
  absl::StatusOr<PerfCapture> perf = PerfCapture::Open(*cpus, std::move(options));
  if (!perf.ok()) GTEST_SKIP() << perf.status().message();
  StackOptions stacks;
  stacks.user = stacks.kernel = true;
  ASSERT_TRUE(perf->AttachSamples(kCpuTimeId, "CPU time", 997, stacks).ok());
  EXPECT_EQ(perf->defers_stacks(), KernelDefersStacks());
  ASSERT_TRUE(perf->Enable().ok());
  DeferredStacks deferred;
  int samples = 0;
  int with_user_frames = 0;
  for (const absl::Time end = absl::Now() + absl::Seconds(20);
       with_user_frames < 20 && absl::Now() < end;) {
    for (const absl::Time next = absl::Now() + absl::Milliseconds(5); absl::Now() < next;) {
    }
    deferred.Collect(PerfRing::kNoLimit, [&perf](const auto& look) { perf->rings().Peek(look); });
    perf->rings().Drain(
        PerfRing::kNoLimit,
        [&](std::size_t, const SampleRecord& drained, std::uint64_t) {
          if (drained.pid != static_cast<std::uint32_t>(getpid())) return;
          SampleRecord sample = drained;
          deferred.Join(&sample);
          ++samples;
          if (HasUserFrame(sample)) ++with_user_frames;
        },
        [](std::size_t, std::uint64_t) {});
  }
  EXPECT_GE(with_user_frames, 20);
  EXPECT_GE(with_user_frames, samples / 2);
}

}  // namespace
}  // namespace collector
