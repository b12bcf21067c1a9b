// The recorder on this machine's own kernel: every hit of a tracepoint is an event or counted as
// lost.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tools/collector/session/recorder.h"

namespace collector {
namespace {

constexpr char kTracepoint[] = "syscalls:sys_enter_getppid";

// Calls the traced system call `calls` times in each of `threads` threads.
class Load {
 public:
  Load(int threads, int calls) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this, calls] {
        for (int call = 0; call < calls; ++call) syscall(SYS_getppid);
        ++finished_;
      });
    }
  }
  ~Load() {
    for (std::thread& thread : threads_) thread.join();
  }
  bool finished() const { return finished_ == static_cast<int>(threads_.size()); }

 private:
  std::atomic<int> finished_ = 0;
  std::vector<std::thread> threads_;
};

class RecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<Tracefs> tracefs = Tracefs::Find();
    if (!tracefs.ok()) GTEST_SKIP() << tracefs.status().message();
    if (!tracefs->ReadTracepoint("syscalls", "sys_enter_getppid").ok()) {
      GTEST_SKIP() << "this kernel has no system call tracepoints (CONFIG_FTRACE_SYSCALLS)";
    }
  }

  // Records kTracepoint while `threads` threads call it `calls` times each.
  RecorderSummary Record(RecorderOptions options, int threads, int calls) {
    options.selectors = {*ParseSelector(kTracepoint)};
    auto recorder =
        Recorder::Start(options, [] { return std::make_unique<nettrace::MemorySink>(); });
    EXPECT_TRUE(recorder.ok()) << recorder.status();
    if (!recorder.ok()) return {};
    {
      const Load load(threads, calls);
      while (!load.finished()) {
        const absl::Status status = (*recorder)->Poll(absl::Milliseconds(10));
        EXPECT_TRUE(status.ok()) << status;
      }
    }
    const absl::StatusOr<RecorderSummary> summary = (*recorder)->Finish();
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary.ok() ? *summary : RecorderSummary();
  }
};

TEST_F(RecorderTest, EveryHitIsAnEventWhereTheRingsHoldThem) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  const RecorderSummary summary = Record(options, 4, 25'000);
  EXPECT_GE(summary.events, 100'000u);
  EXPECT_EQ(summary.lost, 0u);
  EXPECT_EQ(summary.undecoded, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events);
}

TEST_F(RecorderTest, EventsAndLostAreTheHitsWhereTheRingsAreTooSmall) {
  RecorderOptions options;
  options.ring_size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const RecorderSummary summary = Record(options, 4, 100'000);
  EXPECT_GT(summary.lost, 0u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
  EXPECT_GE(*summary.hits, 400'000u);
}

TEST_F(RecorderTest, SequencePointsComeAsOftenAsAsked) {
  RecorderOptions options;
  options.ring_size = 16 << 20;
  options.interval = absl::Milliseconds(10);
  options.slack = absl::Milliseconds(1);
  const RecorderSummary summary = Record(options, 2, 400'000);
  EXPECT_GT(summary.sequence_points, 3u);
  ASSERT_TRUE(summary.hits.has_value());
  EXPECT_EQ(*summary.hits, summary.events + summary.lost);
}

TEST_F(RecorderTest, TracepointThatPerfMayNotSampleLeavesNoFile) {
  RecorderOptions options;
  options.selectors = {*ParseSelector("irq_vectors:irq_work_exit")};
  if (!Tracefs::Find()->ReadTracepoint("irq_vectors", "irq_work_exit").ok()) {
    GTEST_SKIP() << "this kernel has no such tracepoint (irq_vectors:irq_work_exit)";
  }
  bool made_sink = false;
  const auto recorder = Recorder::Start(options, [&] {
    made_sink = true;
    return std::make_unique<nettrace::MemorySink>();
  });
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("irq_work_exit"), absl::string_view::npos);
  EXPECT_FALSE(made_sink);
}

TEST_F(RecorderTest, UnknownTracepointIsNamed) {
  RecorderOptions options;
  options.selectors = {*ParseSelector("syscalls:sys_enter_nosuchcall")};
  bool made_sink = false;
  const auto recorder = Recorder::Start(options, [&] {
    made_sink = true;
    return std::make_unique<nettrace::MemorySink>();
  });
  ASSERT_FALSE(recorder.ok());
  EXPECT_NE(recorder.status().message().find("sys_enter_nosuchcall does not exist"),
            absl::string_view::npos);
  EXPECT_FALSE(made_sink);
}

}  // namespace
}  // namespace collector
